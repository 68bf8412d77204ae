"""`pattern`: all cards of a network put at once: rate and fairness of the flows, and the bounds by
cut and link.
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import libdibber
from dibber.interface.description import RIGHT, STATUS
from libdibber.late import np

from dibber_cli import paths, topology
from dibber_cli.bench import bound, cuts, session
from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.point import FILL
from dibber_cli.bench.views import Panel, Table
from dibber_cli.errors import CommandError
from dibber_cli.link.end import Both, Sender
from dibber_cli.link.side import Ends
from dibber_cli.map import survey
from dibber_cli.output import Progress
from dibber_cli.profile import Profile
from dibber_cli.simulator import Network

NAME = "pattern"

NETWORKS = ("star:4", "star:8", "star:16", "torus:4x4", "tree:16")
BASE = "pair"  # one flow back to back, beside which all others stand
KINDS = ("shift", "random", "hot-spot", "all-to-all")
RINGS = ("ring:4", "ring:8")
CHOICE = (*KINDS, *NETWORKS, *RINGS)  # of --series: patterns, networks or both
HOT_SENDERS = 8  # that put into card 0, at most
PIECE = 4096  # bytes of a put
UNDER_WAY = 4  # puts of a flow at once …
SLOTS = 30  # … and of a card
PIECES = 64  # of a flow; of those of all-to-all: as many for a card together
TIMEOUT_NS = 100_000_000
SETTLE_NS = 5000  # for the last writes

# Of points() with a profile of this fabric, in place of NETWORKS and of what QUICK has.
OF_FABRIC = {"ring": {"all": {"networks": RINGS}, "quick": {"networks": RINGS[:1]}}}
QUICK = {"networks": ("star:4",), "pieces": 24}  # of points()


# Flows --------------------------------------------------------------------------------------------


def flows_of(kind: str, cards: int, seed: int) -> list[tuple[int, int]]:
    """(source, target) of each flow of a pattern between so many cards."""
    everybody = range(cards)
    if kind == "one":
        return [(0, 1)]
    if kind == "shift":
        return [(n, (n + cards // 2) % cards) for n in everybody]
    if kind == "hot-spot":
        return [(n, 0) for n in range(1, min(HOT_SENDERS + 1, cards))]
    if kind == "all-to-all":
        # In round k each card begins with another target.
        return [(n, (n + k) % cards) for n in everybody for k in range(1, cards)]
    random = np.random.default_rng((seed, cards))
    while True:
        targets = random.permutation(cards)
        if all(targets[n] != n for n in everybody):
            return [(n, int(targets[n])) for n in everybody]


class TrafficSide(Sender, Protocol):
    """A side with the memory of all its flows."""

    source: libdibber.Region
    target: libdibber.Region


@dataclass(frozen=True)
class Traffic:
    """A point: a pattern in a network. `pieces` puts of PIECE bytes in each flow."""

    series: str
    x: str
    pieces: int
    number: int = 0


def points(
    series: Sequence[str] = KINDS, networks: Sequence[str] = NETWORKS, pieces: int = PIECES
) -> list[Traffic]:
    """All points, those of one network together; the first is one flow back to back.

    series : names of CHOICE; without a pattern among them all patterns, without a network all
             `networks`
    """
    networks = [name for name in series if name in (*NETWORKS, *RINGS)] or networks
    series = [name for name in series if name in KINDS] or KINDS
    found = [("one", BASE)] + [(kind, network) for network in networks for kind in series]
    return [Traffic(kind, network, pieces, n) for n, (kind, network) in enumerate(found)]


def pieces_of(point: Traffic, cards: int) -> int:
    """Puts of each flow. All to all has many flows of a card, which share its cable."""
    return max(2, -(-point.pieces // (cards - 1))) if point.series == "all-to-all" else point.pieces


# Measurement --------------------------------------------------------------------------------------


def payload(seed: int, number: int, source: int, target: int, length: int) -> np.ndarray:
    """The bytes of a flow."""
    return np.random.default_rng((seed, number, source, target)).integers(0, 256, length, np.uint8)


class Load:
    """A card's part of a point: its flows, one after the other a put each."""

    def __init__(
        self, side: TrafficSide, targets: Sequence[int], keys: Sequence[int], pieces: int
    ) -> None:
        self.side, self.targets, self.keys, self.pieces = side, targets, keys, pieces
        self.sent, self.ended = [0] * len(targets), [0] * len(targets)
        self.times: list[tuple[int, int]] = []  # (picoseconds, flow) of each completion

    def _feed(self) -> None:
        """Put while there is a place, for each flow in turn."""
        node, length = self.side.node, self.pieces * PIECE
        again = True
        while again:
            again = False
            for flow, target in enumerate(self.targets):
                waits = self.sent[flow] - self.ended[flow]
                if (
                    self.sent[flow] == self.pieces
                    or waits == UNDER_WAY
                    or sum(self.sent) - sum(self.ended) >= SLOTS
                ):
                    continue
                place = self.sent[flow] * PIECE
                try:
                    self.side.endpoint.put(
                        self.side.source.key,
                        flow * length + place,
                        self.keys[target],
                        node * length + place,
                        PIECE,
                        node=target,
                        tag=flow,
                    )
                except libdibber.DibberError as error:
                    # Slots are used in a circle, and an old put of a slow flow has the next one.
                    if error.name != "AGAIN":
                        raise
                    return
                self.sent[flow] += 1
                again = True

    def run(self) -> tuple[int, list[tuple[int, int]]]:
        """All puts; (when the first began, in picoseconds, and `times`)."""
        endpoint = self.side.endpoint
        begin = endpoint.clock().now_ps
        while sum(self.ended) < self.pieces * len(self.targets):
            self._feed()
            if not endpoint.wait(TIMEOUT_NS):
                raise CommandError(f"card {self.side.node}: puts do not end")
            entries = endpoint.poll(32)
            now = endpoint.clock()
            if now.free:
                raise CommandError("a client without the clock takes part: figures would differ")
            for entry in entries:
                if entry.status != STATUS.OK:
                    raise CommandError(
                        f"card {self.side.node}: a put ended with {STATUS.name_of(entry.status)}"
                    )
                self.ended[entry.tag] += 1
                self.times.append((now.now_ps, entry.tag))
        return begin, self.times


def _register(
    point: Traffic, seed: int, flows: Sequence[tuple[int, int]], cards: int, pieces: int
) -> Callable[[TrafficSide], int]:
    """A step: memory with the bytes of all flows of a card, and for those that come to it."""

    def step(side: TrafficSide) -> int:
        length = pieces * PIECE
        targets = [target for source, target in flows if source == side.node]
        side.source = side.endpoint.register(
            libdibber.alloc(max(1, len(targets)) * length), RIGHT.LOCAL_READ
        )
        for flow, target in enumerate(targets):
            side.source.memory[flow * length : (flow + 1) * length] = payload(
                seed, point.number, side.node, target, length
            )
        side.target = side.endpoint.register(
            libdibber.alloc(cards * length), RIGHT.LOCAL_WRITE | RIGHT.REMOTE_WRITE
        )
        side.target.memory[:] = FILL
        return side.target.key

    return step


def _compare(
    point: Traffic, seed: int, flows: Sequence[tuple[int, int]], pieces: int
) -> Callable[[TrafficSide], tuple[int, int]]:
    """A step: number of wrong bytes; the memory is returned to the system."""

    def step(side: TrafficSide) -> tuple[int, int]:
        side.sleep(SETTLE_NS)
        length = pieces * PIECE
        wanted = np.full(len(side.target.memory), FILL, np.uint8)
        for source, target in flows:
            if target == side.node:
                wanted[source * length : (source + 1) * length] = payload(
                    seed, point.number, source, target, length
                )
        wrong = int(np.count_nonzero(wanted != side.target.memory))
        guards = len(wanted) - length * sum(target == side.node for _, target in flows)
        side.source.close()
        side.target.close()
        return wrong, guards

    return step


def _run(
    point: Traffic, seed: int, ends: Ends, ways: Mapping[int, Mapping[int, list[int]]]
) -> dict[str, Any]:
    """One point on cards that know their routes; a result."""
    cards = len(ends.sides)
    flows = flows_of(point.series, cards, seed)
    pieces = pieces_of(point, cards)
    sides: Both = ends
    keys = sides.both(_register(point, seed, flows, cards, pieces))

    def send(side: TrafficSide) -> tuple[int, list[tuple[int, int]]]:
        targets = [target for source, target in flows if source == side.node]
        return Load(side, targets, keys, pieces).run()

    wall = time.monotonic()
    ran = sides.both(send)
    wall = time.monotonic() - wall
    checked = sides.both(_compare(point, seed, flows, pieces))
    begin = min(start for (start, times) in ran if times)
    numbers: dict[tuple[int, int], list[int]] = {}
    ended: list[tuple[int, tuple[int, int]]] = []
    for node, (_, times) in enumerate(ran):
        order = [flow for flow in flows if flow[0] == node]
        for now, flow in times:
            ended.append((now - begin, order[flow]))
    for now, flow in sorted(ended):
        numbers.setdefault(flow, []).append(now)
    network = topology.named(point.x)
    assert network is not None  # points() has names alone
    used = []
    for source, target in flows:
        if network.one_way:
            used.append(cuts.around(network, source, target))
            continue
        entered, reached = cuts.path(network, source, ways[source][target])
        if reached != target:
            raise CommandError(f"the route of card {source} to {target} leads to card {reached}")
        used.append(entered)
    return {
        "point": point,
        "flows": flows,
        "pieces": pieces,
        "ended": [numbers[flow] for flow in flows],
        "link_load": cuts.most_loaded(used),
        "cut_load": cuts.fullest_cut(network, flows),
        "bytes_wrong": sum(wrong for wrong, _ in checked),
        "guards": sum(guards for _, guards in checked),
        "wall_seconds": wall,
    }


def _ways(ends: Ends) -> dict[int, dict[int, list[int]]]:
    """Map from all cards. {source: {target: turns of the route in use}}."""
    found = ends.both(lambda side: survey(side.card, 2, True))
    return {
        card["own"]: {route["node"]: route["routes"][route["current"]] for route in card["routes"]}
        for card in found
    }


def measure(
    profile: Profile, seed: int, points: Sequence[Traffic], progress: Progress | None = None
) -> tuple[list[dict[str, Any]], dict[str, str], dict[str, int]]:
    """Each network has cards of its own. Returns (results, versions, counts) as session.run() needs
    them.
    """
    session.check()
    results, versions = [], {}
    for name in dict.fromkeys(point.x for point in points):
        options = ["--preload", str(paths.FIRMWARE)]
        with Network(profile, name, seed=seed, options=options) as simulated:
            with Ends(simulated.uris) as ends:
                info = ends.both(lambda side: side.card.info())[0]
                versions = session.versions_of(
                    info["build"],
                    info["mcp_identity"],
                    info["interface_version"],
                    info["interface_hash"],
                )
                ways = _ways(ends)
                missing = [n for n, way in ways.items() if len(way) != len(ways) - 1]
                if missing:
                    raise CommandError(f"{name}: the map of card {missing[0]} lacks nodes")
                for point in points:
                    if point.x != name:
                        continue
                    if progress:
                        progress.draw(f"{point.series}, {point.x}")
                    results.append(_run(point, seed, ends, ways))
                    if progress:
                        progress.step(f"{point.series}, {point.x}")
    return (
        results,
        versions,
        {
            "bytes_compared": sum(len(r["flows"]) * r["pieces"] * PIECE for r in results),
            "guard_bytes_compared": sum(r["guards"] for r in results),
            "bytes_wrong": sum(r["bytes_wrong"] for r in results),
        },
    )


# Report -------------------------------------------------------------------------------------------


def rates(result: dict[str, Any]) -> list[float]:
    """Bytes a second of each flow, until the first one ends: all flows are under way until then."""
    first = min(times[-1] for times in result["ended"])
    return [
        PIECE * sum(now <= first for now in times) / (first * 1e-12) for times in result["ended"]
    ]


def together(result: dict[str, Any]) -> float:
    """Bytes a second of all flows until the first one ends."""
    return sum(rates(result))


def jain(values: Sequence[float]) -> float:
    """Jain's index of shares (1984): 1 if all are equal, 1/n if one of n has all."""
    squares = sum(value**2 for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def of_cards(result: dict[str, Any]) -> list[float]:
    """Bytes a second that each card sends, until the first flow ends."""
    cards: dict[int, float] = {}
    for (source, _), rate in zip(result["flows"], rates(result)):
        cards[source] = cards.get(source, 0) + rate
    return list(cards.values())


def _point(profile: Profile, result: dict[str, Any]) -> dict[str, Any]:
    """A point of the report. The value is the payload of all flows, divided by the time until the
    last one has ended.
    """
    point, flows, each = result["point"], result["flows"], rates(result)
    last = max(times[-1] for times in result["ended"])
    both_ways = {source for source, _ in flows} & {target for _, target in flows}
    side = Pattern.contiguous(PIECE).side(session.BUS_ADDRESS)
    cable = bound.bound(profile, side, side, both_ways=bool(both_ways)).value
    mean = sum(each) / len(each)
    return {
        "series": point.series,
        "x": point.x,
        "x_unit": "network",
        "value": round(len(flows) * result["pieces"] * PIECE / (last * 1e-12) / 1e6, 1),
        "unit": "MB/s",
        "bound": round(len(flows) * cable / result["cut_load"] / 1e6, 1),
        "bound_by": "cut",
        "limit": round(len(flows) * cable / result["link_load"] / 1e6, 1),
        "limited_by": f"{result['link_load']} on a link",
        "cycles": round(last * 1e-12 * profile.clock_hz),
        "cpu_percent": None,
        "flows": len(flows),
        "together": round(sum(each) / 1e6, 1),
        "least_share": round(min(each) / mean, 3),
        "most_share": round(max(each) / mean, 3),
        "fairness": round(jain(each), 4),
        "card_fairness": round(jain(of_cards(result)), 4),
    }


def evaluate(profile: Profile, seed: int, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found = [_point(profile, result) for result in results]
    alone = next((p["together"] for p in found if p["series"] == "one"), None)
    lines = []
    for p in found:
        if p["series"] == "one":
            continue
        text = (
            f"{p['series']}, {p['x']}: {p['flows']} flows, each {100 * p['least_share']:.1f} to "
            f"{100 * p['most_share']:.1f} % of the mean, fairness {p['fairness']:.4f}"
        )
        if p["series"] == "all-to-all":
            text += f", of the cards {p['card_fairness']:.4f}"
        if p["series"] == "hot-spot" and alone:
            text += f"; together {100 * p['together'] / alone:.1f} % of one flow back to back"
        lines.append(text)
    return {
        "points": found,
        "findings": lines,
        "notes": [
            f"puts of {PIECE} bytes, {UNDER_WAY} of a flow under way; the rate of all flows until "
            "the last one ended",
            "shift: by half of the cards; hot-spot: up to "
            f"{HOT_SENDERS} cards put into card 0; shares and fairness (Jain's index): until the "
            "first flow ended",
            "bound: the fullest cut, for flows of one rate and any routes; limit: the link with "
            "the most flows on the routes in use",
        ],
    }


def tables(report: dict[str, Any]) -> list[Table]:
    present = {point["series"] for point in report["points"]}
    return [Table("network", [kind for kind in ("one", *KINDS) if kind in present])]


def panels(report: dict[str, Any]) -> list[Panel]:
    return [Panel(f"all flows together, profile {report['profile']}", [*KINDS], "network")]
