"""Queue reservation at a target: room is given by age, so that no packet is refused for ever.

IEEE 1596-1992 has two ages, A and B. While packets of one age wait for room, only these are
accepted. A packet that is refused meanwhile gets the other age. When no packet of the first age is
left, the ages change their roles.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Callable

from dibber_cli.ring.items import ACCEPTED, BUSY_A, BUSY_B, ORDER, Packet


class Ages:
    """One channel of a node's receive buffer; a refused packet tries again at once, with its age.

    Parameters
    ----------
    room     : packets that the buffer holds
    reserves : packets have ages. Without them, a packet may be refused for ever.

    Attributes
    ----------
    used : packets in it
    """

    def __init__(self, room: int, reserves: bool = True) -> None:
        self.room, self.used, self.reserves = room, 0, reserves
        self.served: str | None = None  # the age that is accepted
        self.waiting = {BUSY_A: 0, BUSY_B: 0}  # refused packets that have not come back, by age

    def answer(self, packet: Packet, in_order: bool) -> str:
        """What the echo says. ACCEPTED takes room.

        in_order : all earlier packets of its flow were accepted
        """
        label = packet.label
        turn = self.served is None or label == self.served
        if turn and in_order and self.used < self.room:
            self.used += 1
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

    def _came(self, label):
        if self.reserves:
            self.waiting[label] -= 1
            if not self.waiting[label]:
                other = BUSY_B if label == BUSY_A else BUSY_A
                self.served = other if self.waiting[other] else None

    def echoed(self) -> None:
        """The echo of the last packet has left."""

    def free(self) -> None:
        """The client took a packet."""
        self.used -= 1


class Grants:
    """The same, but a refused packet waits until it has a grant (docs/design/ring.md).

    Parameters
    ----------
    room  : packets that the buffer holds
    grant : function(source): the source's retry has room. It is called while no packet is being
            taken or refused, because its echo must leave before its grant.
    """

    def __init__(self, room: int, grant: Callable[[int], None]) -> None:
        self.room, self.used, self.grant = room, 0, grant
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
            room = self.room - self.used > len(self.granted)
            if source not in self.granted and not (source in self.older and room):
                return BUSY_A if source in self.older else BUSY_B
            self.granted.discard(source)
            self.older.discard(source)
            self.used += 1
            return ACCEPTED
        if not in_order:
            return ORDER
        if not self.older and self.used < self.room:
            self.used += 1
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

    def free(self) -> None:
        """The client took a packet."""
        self.used -= 1
        self._give()

    def _give(self) -> None:
        if self.taking:
            return
        if not self.older:
            self.older, self.younger = self.younger, self.older
        for source in sorted(self.older - self.granted):
            if self.room - self.used <= len(self.granted):
                return
            self.granted.add(source)
            self.grant(source)
