"""`element`: elements of 1 to 256 bytes at twice and eight times their size, direct and packed,
with their crossover.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Sequence
from typing import Any

from dibber_cli.bench import litepcie, session
from dibber_cli.bench.figures import crossover
from dibber_cli.bench.options import MOST_STRIDE, Argument
from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.point import Point, numbered
from dibber_cli.bench.views import Panel, Table
from dibber_cli.profile import Profile

NAME = "element"

SIZES = (1, 2, 3, 4, 7, 8, 16, 24, 32, 64, 100, 128, 256)  # bytes
TIMES = (2, 8)  # stride, in elements
LENGTH = 64 * 1024  # bytes of a transfer, in at most …
MOST = 8192  # … so many elements
TRANSFERS = 2  # under way at once

# Which side is strided.
SIDES = {"dst": (False, True), "src": (True, False), "both": (True, True)}

QUICK = {"sizes": (1, 3, 8, 64, 256), "times": (2,)}  # of points()
# Options of the command line for points(): --size in bytes of an element.
OPTIONS = {
    "size": Argument(1, LENGTH, lambda n: {"sizes": (n,)}),
    "stride": Argument(1, MOST_STRIDE, lambda n: {"times": (n,)}),
}


def name(way: str, side: str, times: int) -> str:
    """Name of a series; `way` is "direct" or "packed"."""
    return f"{way}-{side}-strided-x{times}"


def peer(times: int) -> str:
    return f"litepcie-descriptors-x{times}"


def alignment(size: int, strided: bool) -> int:
    """Start of the memory, in bytes after a line: odd for odd sizes, different on both sides."""
    if size % 2 == 0:
        return 0
    return 3 if strided else 1


def side(size: int, times: int, strided: bool) -> Pattern:
    count = min(MOST, LENGTH // size)
    return Pattern.strided(
        size, count, size * times if strided else size, TRANSFERS, alignment(size, strided)
    )


def points(
    sizes: Sequence[int] = SIZES, times: Sequence[int] = TIMES, sides: Sequence[str] = tuple(SIDES)
) -> list[Point]:
    return numbered(
        Point(name(way, s, t), size, source, target, TRANSFERS, packed=way == "packed")
        for t in times
        for s in sides
        for way in ("direct", "packed")
        for size in sizes
        for source, target in [[side(size, t, strided) for strided in SIDES[s]]]
    )


def _found(x: float | None) -> str:
    if x is None:
        return "packing is faster to the end"
    return f"direct is faster from {x:.1f} bytes" if x else "direct is faster from the start"


check = litepcie.check  # what is needed beside the simulator


def evaluate(profile: Profile, seed: int, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    measured = [session.evaluate(profile, result, "bytes") for result in results]

    def curve(series: str) -> list[tuple[float, float]]:
        return [(p["x"], p["value"]) for p in measured if p["series"] == series]

    sizes = dict.fromkeys(p["x"] for p in measured)
    times = sorted({int(p["series"].rpartition("-x")[2]) for p in measured})
    peers = [
        litepcie.descriptors(profile, seed, size, size * t, size, "bytes", peer(t))
        for t in times
        for size in sizes
    ]
    direct = [s for s in dict.fromkeys(p["series"] for p in measured) if s.startswith("direct")]
    crossings = {s: crossover(curve(s), curve(s.replace("direct", "packed"))) for s in direct}
    return {
        "points": measured + peers,
        "crossover_bytes": {s: x and round(x, 1) for s, x in crossings.items()},
        "findings": [f"{s}: {_found(x)}" for s, x in crossings.items()],
        "notes": [
            f"{LENGTH >> 10} KiB a transfer, {MOST} elements at most; {TRANSFERS} transfers under "
            f"way",
            "odd sizes begin 1 byte after a dword where contiguous, 3 bytes where strided",
            "packing and unpacking: computed from the profile's table [benchmark], not overlapped",
            *litepcie.NOTES,
        ],
    }


def _grouped(report: dict[str, Any]) -> dict[int, list[str]]:
    """Series of the report for each stride."""
    present = dict.fromkeys(p["series"] for p in report["points"])
    times = sorted({int(series.rpartition("-x")[2]) for series in present})
    return {t: [s for s in present if s.endswith(f"-x{t}")] for t in times}


def tables(report: dict[str, Any]) -> list[Table]:
    return [
        Table("bytes", [s for s in series if s.startswith("direct") == direct], brief=not direct)
        for series in _grouped(report).values()
        for direct in (True, False)
        if series
    ]


def panels(report: dict[str, Any]) -> list[Panel]:
    return [
        Panel(f"stride {t} elements, profile {report['profile']}", series, "bytes an element")
        for t, series in _grouped(report).items()
        if series
    ]
