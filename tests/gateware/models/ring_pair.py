"""The choice of a ring in a pair, in plain Python: docs/design/ring-pair.md."""

# SPDX-License-Identifier: BSD-2-Clause

from dataclasses import dataclass, field

SLOTS = 4


def addresses(cards, last=None):
    """[(address on ring 0, address on ring 1)] of each card; `last`: the last one before a fold."""
    if last is None:
        return [(card, -card % cards) for card in range(cards)]
    places = [card if card <= last else card + cards for card in range(cards)]
    return [(place, (2 * last + 1 - place) % (2 * cards)) for place in places]


def shorter(address, size, turn, last=None):
    """The ring with the shorter way to the card `turn` cards onward, or None: both are equal."""
    target = (address + turn) % size
    if last is not None:
        row = [(card + last + 1) % size for card in range(size)]
        return int(row.index(target) < row.index(address))
    return None if 2 * turn == size else int(2 * turn > size)


@dataclass
class Inputs:
    """What the choice sees in a cycle.

    words : by channel, the word at the sink: (turn if it is the first one, last), or None
    ready : by ring and channel
    turns : by ring and channel, the turn of each open slot, or None
    gone  : by ring and channel, turns of slots whose packet may be on its way
    begun : by ring and channel
    ups   : of both rings
    """

    words: list
    ready: list
    turns: list
    gone: list
    begun: list
    ups: tuple


@dataclass
class Ways:
    """State of the choice, and one step of it.

    address, size, last : as RingView; last is None in an unfolded pair
    """

    channels: int
    address: int
    size: int
    last: int | None = None
    inside: list = field(default_factory=list)
    chosen: list = field(default_factory=list)
    way: list = field(default_factory=list)

    def __post_init__(self):
        self.inside = [False] * self.channels
        self.chosen = [False] * self.channels
        self.way = [0] * self.channels

    def offered(self, seen):
        """{channel: (ring, taken)} of the words that the rings see in this cycle."""
        offers = {}
        for n, word in enumerate(seen.words):
            if word is None:
                continue
            ring = self.way[n]
            turn, _ = word
            if self.chosen[n] if turn is not None else self.inside[n]:
                offers[n] = ring, seen.ready[ring][n]
            elif turn is not None and self.inside[n] and seen.begun[ring][n]:
                offers[n] = ring, False  # the ring ends the old part of the packet
        return offers

    def ready(self, seen):
        """By channel: the sink's word is taken."""
        offers = self.offered(seen)
        return [
            (word is not None and offers.get(n, (0, False))[1])
            or (word is not None and word[0] is None and not self.inside[n])
            for n, word in enumerate(seen.words)
        ]

    def _ring(self, n, turn, seen):
        """The ring of the next packet, or None: it waits."""
        entering = [
            [self.way[m] for m in range(self.channels) if self.inside[m] or self.chosen[m]].count(r)
            for r in (0, 1)
        ]
        opens = [[t for c in seen.turns[r] for t in c if t is not None] for r in (0, 1)]
        loads = [len(opens[r]) + entering[r] for r in (0, 1)]
        best = shorter(self.address, self.size, turn, self.last)
        for r in (0, 1):
            if turn in seen.turns[r][n] or turn in seen.gone[r][n]:
                others = loads[r] - seen.turns[r][n].count(turn)
                leaves = best == 1 - r or (best is None and not loads[1 - r] and others)
                return r if seen.ups[r] and not (seen.ups[1 - r] and leaves) else None
        if best is None:
            best = int(loads[1] < loads[0] or (loads[0] == loads[1] and n % 2))
        return next((r for r in (best, 1 - best) if seen.ups[r]), None)

    def step(self, seen):
        offers, ready = self.offered(seen), self.ready(seen)
        chosen, inside, way = list(self.chosen), list(self.inside), list(self.way)
        decided = False
        for n, word in enumerate(seen.words):
            first = word is not None and word[0] is not None
            if first and not self.inside[n] and not self.chosen[n] and not decided:
                ring = self._ring(n, word[0], seen)
                if ring is not None:
                    chosen[n], way[n], decided = True, ring, True
            if self.chosen[n] and (ready[n] or not seen.ups[self.way[n]]):
                chosen[n] = False
            if offers.get(n, (0, False))[1]:
                inside[n] = not word[1]
            if first and self.inside[n]:
                inside[n] = False
        self.chosen, self.inside, self.way = chosen, inside, way
