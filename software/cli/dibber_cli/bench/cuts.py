"""What links and cuts of a network allow: bounds for flows of equal rate, and paths of routes."""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from libdibber.late import np

from dibber_cli.topology import Topology

MOST_SWITCHES = 16  # of which all sets are tried

# An end of a cable: ("card0", 0) or ("switch1", 3).
End = tuple[str, int]


def _end(text: str) -> End:
    unit, _, port = text.partition(":")
    return unit, int(port or 0)


def wires(topology: Topology) -> dict[End, End]:
    """The other end of the cable at each end."""
    found = {}
    for one, other in topology.cables:
        found[_end(one)], found[_end(other)] = _end(other), _end(one)
    return found


def path(topology: Topology, source: int, turns: Sequence[int]) -> tuple[list[End], int]:
    """(the ends at which a packet from card `source` enters a cable, the card that it reaches).

    A card at which a route does not end, a switch where it ends, and a port without a cable are a
    ValueError.
    """
    cables, at, entered = wires(topology), (f"card{source}", 0), []
    for turn in [*turns, None]:
        entered.append(at)
        if at not in cables:
            raise ValueError(f"route {list(turns)} of card {source}: no cable at {at[0]}:{at[1]}")
        unit, port = cables[at]
        if (turn is None) != unit.startswith("card"):
            raise ValueError(f"route {list(turns)} of card {source} ends at {unit}")
        if turn is not None:
            ports = topology.switches[int(unit.removeprefix("switch"))]
            at = unit, (port + turn) % ports
    return entered, int(unit.removeprefix("card"))


def around(topology: Topology, source: int, target: int) -> list[End]:
    """The ends at which a packet between two cards of a ring enters a cable. Its target takes it
    off the ring.
    """
    return [
        (f"card{(source + n) % topology.cards}", 0)
        for n in range((target - source) % topology.cards)
    ]


def most_loaded(paths: Iterable[Sequence[End]]) -> int:
    """The number of paths through the fullest direction of a cable."""
    return max(Counter(end for entered in paths for end in entered).values())


def fullest_cut(topology: Topology, flows: Sequence[tuple[int, int]]) -> float:
    """The most flows for each cable that lead across a cut, in one direction.

    flows : (source card, target card)

    No routes can give all flows more than a cable's rate divided by this number. The cuts are: each
    card alone, and each set of switches with the cards at them. On a ring one cable leads out of
    each row of cards, so the fullest cable is the fullest cut. Raises ValueError if the network has
    more than MOST_SWITCHES switches.
    """
    if topology.one_way:
        return float(most_loaded(around(topology, *flow) for flow in flows))
    alone = max(
        max(Counter(source for source, _ in flows).values()),
        max(Counter(target for _, target in flows).values()),
    )
    count = len(topology.switches)
    if count > MOST_SWITCHES:
        raise ValueError(f"{count} switches: cuts are tried for {MOST_SWITCHES} at most")
    if not count:
        return float(alone)
    inside = np.arange(1 << count)[:, None] >> np.arange(count) & 1 == 1
    number = lambda unit: int(unit.removeprefix("switch"))
    cables, crossing, home = wires(topology), np.zeros(1 << count, int), {}
    for (unit, _), (other, _) in cables.items():
        if unit.startswith("card"):
            home[int(unit.removeprefix("card"))] = number(other)
        elif other.startswith("switch"):
            # Each cable is seen from both ends; a direction of it crosses once.
            crossing += inside[:, number(unit)] & ~inside[:, number(other)]
    across = np.zeros(1 << count, int)
    for source, target in flows:
        across += inside[:, home[source]] & ~inside[:, home[target]]
    used = crossing > 0
    return max(float(alone), float((across[used] / crossing[used]).max(initial=0)))
