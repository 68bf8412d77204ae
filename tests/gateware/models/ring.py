"""Golden model of a ring node: docs/design/ring.md, in plain Python.

Words are (data, k) as in the model of the link; with a third member that is true, a word has an
erroneous symbol.
"""

# SPDX-License-Identifier: BSD-2-Clause

from dataclasses import dataclass, field

from tests.gateware.models.link import END_BAD_WORD, END_WORD, control, crc8, meaning, start_word

K_RESUME = 0xF7
ACCEPTED, BUSY_A, BUSY_B, ORDER, DAMAGED, GRANT, LOST = range(7)

# Words --------------------------------------------------------------------------------------------


def resume_word(channel):
    return control(K_RESUME, channel, crc8([channel]), 0)


def ring_word(target, source, third, old=False):
    """A prefix or an echo word. `third` is number | head << 7, or number | status << 5."""
    data = [target | old << 7, source, third]
    return int.from_bytes(bytes([*data, crc8(data)]), "little"), 0


@dataclass
class Fields:
    """Of a prefix or an echo word, or None if its CRC or its unused bits are wrong."""

    target: int
    old: bool
    source: int
    number: int
    head: bool
    status: int

    @classmethod
    def of(cls, word):
        first, second, third, check = word[0].to_bytes(4, "little")
        if crc8([first, second, third]) != check or first & 0x70 or second & 0xF0:
            return None
        return cls(first & 15, bool(first >> 7), second, third & 31, bool(third >> 7), third >> 5)


def packet_words(channel, target, source, number, words, head=False, bad=False, old=False):
    """A whole packet on the ring."""
    return [
        start_word(channel, 1),
        ring_word(target, source, number | head << 7, old),
        *[(word, 0) for word in words],
        END_BAD_WORD if bad else END_WORD,
    ]


def echo_words(channel, target, source, number, status, old=False):
    return [resume_word(channel), ring_word(target, source, number | status << 5, old)]


# Transit ------------------------------------------------------------------------------------------


@dataclass
class Transit:
    """What a node that is UP makes of the words that come. Idles have no place in their order.

    accept    : (channel, source, head) -> status; ACCEPTED takes the packet
    limits    : most words of a packet, by channel
    housekeep : (data) -> data to pass on for a nonce, ping or pong, or None
    passed    : words that leave
    packets   : by channel, (words, good) for the receive FIFO
    answers   : (status, number, source, channel) for this node's own packets; number is None for a
                grant
    """

    address: int
    scrubber: bool
    accept: callable
    limits: tuple
    housekeep: callable
    passed: list = field(default_factory=list)
    packets: list = field(default_factory=lambda: [[] for _ in range(4)])
    answers: list = field(default_factory=list)
    scrubbed: int = 0
    misrouted: int = 0

    def take(self, words):
        """All words of a run. What the last one leaves open is not done."""
        kinds = [(word, *meaning(word)) for word in words]
        kinds = [kind for kind in kinds if kind[1] != "flow"]
        at = 0
        while at < len(kinds):
            word, kind, value = kinds[at]
            if kind in ("nonce", "ping", "pong"):
                kept = self.housekeep(word[0])
                if kept is not None:
                    self.passed.append((kept, 1))
            elif kind in ("start", "resume"):
                if at + 1 == len(kinds):
                    return
                second, second_kind, _ = kinds[at + 1]
                fields = Fields.of(second) if second_kind == "data" else None
                if kind == "start" and value >> 4 != 1:
                    fields = None
                if fields is None:
                    self.misrouted += 1
                elif kind == "resume":
                    self._echo(word, value, second, fields)
                else:
                    at = self._packet(kinds, at, value & 15, fields)
                    if at is None:
                        return
                    continue
            at += 1

    def _stays(self, fields):
        """Whether it leaves the ring here without being for this node."""
        if fields.source == self.address:
            return True
        if fields.old and self.scrubber:
            self.scrubbed += 1
            return True
        return False

    def _marked(self, word, fields):
        if not self.scrubber:
            return word
        third = word[0] >> 16 & 0xFF
        return ring_word(fields.target, fields.source, third, True)

    def _echo(self, word, channel, second, fields):
        if fields.target == self.address:
            self.answers.append((fields.status, fields.number, fields.source, channel))
        elif not self._stays(fields):
            self.passed += [word, self._marked(second, fields)]

    def _packet(self, kinds, at, channel, fields):
        """Index behind the packet, or None if it has no end."""
        mine = fields.target == self.address
        if not mine and self._stays(fields):
            if fields.source == self.address:
                self.answers.append((LOST, fields.number, fields.source, channel))
            return at + 2
        status = self.accept(channel, fields.source, fields.head) if mine else None
        end, body = at + 2, []
        while end < len(kinds) and kinds[end][1] == "data":
            body.append(kinds[end][0])
            end += 1
        if end == len(kinds):
            return None
        last, kind, value = kinds[end]
        clash = kind in ("start", "resume")
        good = kind == "end" and value
        if not mine:
            sent = [kinds[at][0], self._marked(kinds[at + 1][0], fields), *body]
            if clash:
                sent[-1] = END_BAD_WORD
            else:
                sent.append(last if kind == "end" else END_BAD_WORD)
            self.passed += sent
            return end if clash else end + 1
        if status == ACCEPTED:
            limit = self.limits[channel]
            if body:
                self.packets[channel].append(
                    ([word for word, _ in body[:limit]], good and len(body) <= limit)
                )
            if not good or len(body) > limit:
                status = DAMAGED
        if fields.source == self.address:
            # No echo takes the place of the last word. A nonce, ping or pong goes on.
            self.answers.append((status, fields.number, None, None))
            clash = clash or kind in ("nonce", "ping", "pong")
        elif not clash:
            self.passed += echo_words(channel, fields.source, self.address, fields.number, status)
        return end if clash else end + 1


# Reservation --------------------------------------------------------------------------------------


class Reservation:
    """The two ages of sources of one channel, and their grants."""

    def __init__(self, words):
        self.words = words
        self.older, self.younger, self.granted = set(), set(), set()
        self.age = 0  # of the older set: 0 is A
        self.start = 0  # the address that is served first

    def ask(self, source, head, room):
        """The status of a packet's echo, with `room` words in the receive FIFO."""
        reserved = source in self.older | self.younger
        if reserved and not head:
            return ORDER
        fits = room >= self.words * (len(self.granted) + 1)
        first = not self.older and not self.younger
        if source in self.granted or (fits and (source in self.older or first)):
            for group in (self.older, self.younger, self.granted):
                group.discard(source)
            return ACCEPTED
        if not reserved:
            (self.older if first else self.younger).add(source)
        return (BUSY_A, BUSY_B)[self.age ^ (source in self.younger)]

    def turn(self):
        """The younger set becomes the older one, if that is empty."""
        if not self.older and self.younger:
            self.older, self.younger = self.younger, set()
            self.age ^= 1
            self.start = (self.start + 5) % 16

    def may_grant(self, room):
        """The source that gets the next grant, or None."""
        waiting = self.older - self.granted
        if not waiting or room < self.words * (len(self.granted) + 1):
            return None
        return min(waiting, key=lambda source: (source - self.start) % 16)
