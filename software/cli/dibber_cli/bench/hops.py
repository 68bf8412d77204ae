"""`hops`: latency and rate between two cards by the number of switches between them, and strided
deposits through three switches beside those back to back."""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dibber_cli import paths
from dibber_cli.bench import bound, session, stride
from dibber_cli.bench.figures import percentile
from dibber_cli.bench.pingpong import WORD, PingPong, Player
from dibber_cli.bench.point import Point, numbered
from dibber_cli.bench.program import Failed, Program
from dibber_cli.bench.views import Panel, Table
from dibber_cli.bench.worker import Worker
from dibber_cli.errors import CommandError
from dibber_cli.map import survey
from dibber_cli.output import Progress
from dibber_cli.profile import Profile

NAME = "hops"

SWITCHES = (0, 1, 2, 3, 4, 5, 6)  # between the cards
ROUNDS = 300  # of a ping-pong; the looks of the programs settle in the first hundred
STRIDE = 8  # elements, of series "strided"
THROUGH = (0, 3)  # switches of the series over strides
RATES = {"contiguous": 1, "strided": STRIDE}
OVER_STRIDES = {f"strides-through-{switches}": switches for switches in THROUGH}
CHOICE = ("latency", *RATES, *OVER_STRIDES)

QUICK = {"switches": (0, 1, 3), "strides": (1, 8, 64), "rounds": 200}  # of points()

WAY = "through {} switches"

# Programs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Map:
    """The first point in each network: both programs map it and enter their routes."""

    series: str
    x: str = "map"
    number: int = 0
    payload: int = 0
    senders: tuple = ()


class Mapping(Program):
    """A program that maps its network first. The class behind it does all other points."""

    def __init__(
        self, uri: str, node: int, firmware: str, seed: int, points: Sequence[Any]
    ) -> None:
        self.mapped = False
        super().__init__(uri, node, firmware, seed, [p for p in points if not isinstance(p, Map)])

    def prepare(self, point: Any) -> None:
        if not isinstance(point, Map):
            super().prepare(point)

    def run(self, point: Any, keys: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(point, Map):
            return super().run(point, keys)
        found = survey(self.card, 2, True)
        if found["hosts"] != [0, 1]:
            raise Failed(f"the map has nodes {found['hosts']}, not 0 and 1")
        return {"free": self.endpoint.clock().free, "switches": len(found["switches"])}


class MappingWorker(Mapping, Worker):
    """Transfers of a Point."""


class MappingPlayer(Mapping, Player):
    """Ping-pong."""


# Points -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Passage:
    """A point and the number of switches between the cards."""

    switches: int
    point: Any

    @property
    def series(self) -> str:
        return self.point.series

    @property
    def x(self) -> Any:
        return self.point.x


def _transfer(series: str, x: int, elements: int) -> Point:
    """Puts of 64 KiB in elements of 8 bytes, to every `elements`-th place of the target."""
    return Point(series, x, stride.side(False, 1), stride.side(True, elements), stride.TRANSFERS)


def points(
    series: Sequence[str] = CHOICE,
    switches: Sequence[int] = SWITCHES,
    strides: Sequence[int] = stride.STRIDES,
    rounds: int = ROUNDS,
) -> list[Passage]:
    """All Passages. Those of one network and one kind of program are together."""
    found = []
    if "latency" in series:
        found += [Passage(n, PingPong("latency", rounds, x=n)) for n in switches]
    for n in sorted({*switches, *THROUGH}):
        for name, elements in RATES.items():
            if name in series and n in switches:
                found.append(Passage(n, _transfer(name, n, elements)))
        for name, through in OVER_STRIDES.items():
            if name in series and n == through:
                found += [Passage(n, _transfer(name, x, x)) for x in strides]
    ordered = numbered([passage.point for passage in found])
    return [Passage(passage.switches, point) for passage, point in zip(found, ordered)]


# Measurement --------------------------------------------------------------------------------------


def measure(
    profile: Profile, seed: int, points: Sequence[Passage], progress: Progress | None = None
) -> tuple[list[dict[str, Any]], dict[str, str], dict[str, int]]:
    """Each network has cards of its own. As session.measure(), with counts in place of the
    statistics.
    """
    groups: dict[tuple[int, type[Program]], list[Passage]] = {}
    for passage in points:
        program = MappingPlayer if isinstance(passage.point, PingPong) else MappingWorker
        groups.setdefault((passage.switches, program), []).append(passage)
    results: list[dict[str, Any]] = []
    versions: dict[str, str] = {}
    for (switches, kind), passages in groups.items():
        found, versions, _ = session.measure(
            profile,
            seed,
            [Map(WAY.format(switches)), *(passage.point for passage in passages)],
            options=["--preload", str(paths.FIRMWARE)],
            kind=kind,
            topology=f"line:{switches}",
        )
        counted = [answer["switches"] for answer in found[0]["answers"]]
        if counted != [switches] * 2:
            raise CommandError(f"the cards found {counted} switches, not {switches}")
        for passage, result in zip(passages, found[1:]):
            results.append({**result, "switches": passage.switches})
            if progress:
                progress.step(f"{passage.series}, {passage.x}")
    return results, versions, session.compared(results)


# Report -------------------------------------------------------------------------------------------


def _latency(profile: Profile, result: dict[str, Any]) -> dict[str, Any]:
    point, answer = result["point"], result["answers"][0]
    ps = percentile(answer["rounds_ps"], 50) / 2
    least = bound.message_seconds(profile, WORD) + 1e-9 * profile.cable_ns * result["switches"]
    return {
        "series": point.series,
        "x": point.x,
        "x_unit": "switches",
        "value": round(ps * 1e-6, 4),
        "unit": "us",
        "bound": round(least * 1e6, 4),
        "bound_by": "wire",
        "limit": None,
        "limited_by": None,
        "cycles": round(ps * 1e-12 * profile.clock_hz, 1),
        "cpu_percent": None,
    }


def _findings(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Sentences about what a switch costs."""
    at = {(point["series"], point["x"]): point["value"] for point in found}
    longest = max((x for series, x in at if series == "latency"), default=0)
    if longest and ("latency", 0) in at:
        more = 1000 * (at["latency", longest] - at["latency", 0]) / longest
        yield (
            f"latency: {more:.0f} ns for each switch and its cable, median of half of a round, "
            f"over {longest} switches"
        )
    near, far = OVER_STRIDES
    shares = {
        x: 100 * at[far, x] / at[near, x] for series, x in at if series == far and (near, x) in at
    }
    if shares:
        least = min(shares, key=lambda x: shares[x])
        yield (
            f"strided deposit through {THROUGH[1]} switches: at least {shares[least]:.2f} % of "
            f"back to back, at stride {least}"
        )


def evaluate(profile: Profile, seed: int, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found = []
    for result in results:
        if isinstance(result["point"], PingPong):
            found.append(_latency(profile, result))
        else:
            unit = "elements" if result["point"].series in OVER_STRIDES else "switches"
            found.append(session.evaluate(profile, result, unit))
    return {
        "points": found,
        "findings": list(_findings(found)),
        "notes": [
            "one cable more than switches, each of the profile's length; both cards mapped the "
            "network and entered their routes",
            f"latency: median of half of a ping-pong of {WORD} bytes, as 'dibber bench latency'",
            "rates: puts of 64 KiB in elements of 8 bytes; the target is strided, 'strided' by "
            f"{STRIDE} elements",
        ],
    }


def tables(report: dict[str, Any]) -> list[Table]:
    present = {point["series"] for point in report["points"]}
    return [
        Table(heading, [name for name in names if name in present])
        for heading, names in (("switches", ("latency", *RATES)), ("stride", OVER_STRIDES))
        if present & set(names)
    ]


def panels(report: dict[str, Any]) -> list[Panel]:
    title, present = f"profile {report['profile']}", {p["series"] for p in report["points"]}
    found = [
        Panel(f"8 bytes, {title}", ["latency"], "switches between the cards"),
        Panel(f"64 KiB a transfer, {title}", [*RATES], "switches between the cards"),
        Panel(
            f"64 KiB a transfer, {title}",
            [*OVER_STRIDES],
            "stride (elements of 8 bytes; 1 is contiguous)",
        ),
    ]
    return [panel for panel in found if present & set(panel.series)]
