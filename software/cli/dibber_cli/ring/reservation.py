"""Queue reservation at a target: room is given by age, so that no packet is refused for ever.

IEEE 1596-1992 has two ages, A and B. While packets of one age wait for room, only these are
accepted. A packet that is refused meanwhile gets the other age. When no packet of the first age is
left, the ages change their roles.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Callable

from dibber_cli.ring.items import ACCEPTED, BUSY_A, BUSY_B, ORDER, Packet

# The source that gets the first grant moves by so many addresses with each turn, of so many
# addresses at least (docs/design/ring.md).
STEP, ADDRESSES = 5, 16


class Room:
    """A receive buffer. It takes a packet if one of the largest size has room.

    Parameters
    ----------
    packets : of the largest size that it holds
    largest : size of such a packet in bytes; None: each packet takes the room of a largest one
    """

    def __init__(self, packets: float, largest: int | None = None) -> None:
        self.largest = largest or 1
        self.whole = largest is None
        self.left = packets * self.largest

    def fits(self, packets: int = 1) -> bool:
        return self.left >= packets * self.largest

    def take(self, packet: Packet) -> None:
        self.left -= self.largest if self.whole else packet.bytes

    def free(self, packet: Packet) -> None:
        self.left += self.largest if self.whole else packet.bytes


class Ages:
    """One channel of a node; a refused packet tries again at once, with its age.

    Parameters
    ----------
    room     : the Room
    reserves : packets have ages. Without them, a packet may be refused for ever.
    """

    def __init__(self, room: Room, reserves: bool = True) -> None:
        self.room, self.reserves = room, reserves
        self.served: str | None = None  # the age that is accepted
        self.waiting = {BUSY_A: 0, BUSY_B: 0}  # refused packets that have not come back, by age

    def answer(self, packet: Packet, in_order: bool) -> str:
        """What the echo says. ACCEPTED takes room.

        in_order : all earlier packets of its flow were accepted
        """
        label = packet.label
        turn = self.served is None or label == self.served
        if turn and in_order and self.room.fits():
            self.room.take(packet)
            if label:
                self._came(label)
            return ACCEPTED
        if label:
            return label
        if not in_order:
            return ORDER  # its turn comes with its flow's first packet, which has a reservation
        if not self.reserves:
            return BUSY_A
        age = BUSY_B if self.served == BUSY_A else BUSY_A
        self.waiting[age] += 1
        self.served = self.served or age
        return age

    def _came(self, label: str) -> None:
        if self.reserves:
            self.waiting[label] -= 1
            if not self.waiting[label]:
                other = BUSY_B if label == BUSY_A else BUSY_A
                self.served = other if self.waiting[other] else None

    def echoed(self) -> None:
        """The echo of the last packet has left."""

    def free(self, packet: Packet) -> None:
        """The client took a packet."""
        self.room.free(packet)


class Grants:
    """The same, but a refused packet waits until it has a grant (docs/design/ring.md).

    Parameters
    ----------
    room  : the Room
    nodes : of the ring
    grant : function(source): the source's retry has room. It is called while no packet is being
            taken or refused, because its echo must leave before its grant.
    """

    def __init__(self, room: Room, nodes: int, grant: Callable[[int], None]) -> None:
        self.room, self.grant = room, grant
        self.addresses = max(nodes, ADDRESSES)
        self.first = 0  # the source that comes first in this turn
        self.older: set[int] = set()  # sources with a reservation
        self.younger: set[int] = set()
        self.granted: set[int] = set()  # sources of the older set whose retry has room
        self.taking = 0

    def answer(self, packet: Packet, in_order: bool) -> str:
        """What the echo says. ACCEPTED takes room."""
        self.taking += 1
        source = packet.source
        if source in self.older or source in self.younger:
            if not in_order:
                return ORDER
            room = source in self.older and self.room.fits(len(self.granted) + 1)
            if source not in self.granted and not room:
                return BUSY_A if source in self.older else BUSY_B
            self.granted.discard(source)
            self.older.discard(source)
            self.room.take(packet)
            return ACCEPTED
        if not in_order:
            return ORDER
        if not self.older and self.room.fits():
            self.room.take(packet)
            return ACCEPTED
        if not self.older:
            self.older.add(source)
            return BUSY_A
        self.younger.add(source)
        return BUSY_B

    def echoed(self) -> None:
        """The echo of a packet has left."""
        self.taking -= 1
        self._give()

    def free(self, packet: Packet) -> None:
        """The client took a packet."""
        self.room.free(packet)
        self._give()

    def _give(self) -> None:
        if self.taking:
            return
        if not self.older:
            self.older, self.younger = self.younger, self.older
            if self.older:
                self.first = (self.first + STEP) % self.addresses
        ungranted = self.older - self.granted
        for source in sorted(ungranted, key=lambda source: (source < self.first, source)):
            if not self.room.fits(len(self.granted) + 1):
                return
            self.granted.add(source)
            self.grant(source)
