"""`window`: stores and loads of the processor that reach the other card's memory, beside the
engine: 8-byte elements at strides, contiguous blocks, and the times of one access.

The cards are a build of their own (hw/sim/build.py --window).
"""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from dibber_cli import paths
from dibber_cli.bench import bound, session, stride
from dibber_cli.bench.figures import half_size, percentile
from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.point import Point, numbered
from dibber_cli.bench.views import Panel, Table, of_series
from dibber_cli.bench.window_program import (
    BARRIER,
    ELEMENT,
    LOAD,
    LOOK_NS,
    MEMCPY,
    PROBES,
    STORE,
    STREAMS,
    VISIBLE,
    WindowProgram,
)
from dibber_cli.errors import CommandError
from dibber_cli.output import Progress
from dibber_cli.profile import Profile

NAME = "window"

STRIDES = (1, 2, 4, 8, 16, 32, 64)  # elements
ELEMENTS = 2048  # of a point of stores, which is one transfer
SIZES = tuple(64 << 2 * n for n in range(6))  # bytes of a block
TRANSFERS = 4  # of a size, one at a time
ROUNDS = 50
PERCENTILES = (1, 50, 99)

ENGINE, UNPACK = "put-dst-strided", "put-contiguous-unpack"
BY_STRIDE = (STORE, MEMCPY, ENGINE, UNPACK)
# Of contiguous blocks: operation of each series.
BY_SIZE = {"block-window-store": STORE, "block-window-memcpy": MEMCPY, "block-put": "put"}
CHOICE = (*BY_STRIDE, *BY_SIZE, *PROBES)

# What each series stands for (Kurmann and Stricker, EMMSEC 1998).
STANDS_FOR = {
    STORE: "stores of the processor, as SCI's and the T3D's",
    MEMCPY: "contiguous stores by lines, as SCI's stream buffers",
    ENGINE: "this card's engine",
    UNPACK: "DMA, the receiver unpacks, as Myrinet's",
}

QUICK = {"strides": (1, 2, 8, 64), "sizes": (64, 1024, 16384), "rounds": 20}  # of points()


def _by_stride(name: str, x: int) -> Point:
    if name in (ENGINE, UNPACK):
        sides = stride.side(False, x), stride.side(True, x)
        source, target = (dataclasses.replace(side, transfers=1) for side in sides)
        return Point(name, x, source, target, 1, packed=name == UNPACK)
    source = Pattern.contiguous(ELEMENT * ELEMENTS)
    target = Pattern.strided(ELEMENT, ELEMENTS, ELEMENT * x)
    return Point(name, x, source, target, 1, operation=name)


def _by_size(name: str, x: int) -> Point:
    pattern = Pattern.contiguous(x, TRANSFERS)
    return Point(name, x, pattern, pattern, 1, operation=BY_SIZE[name])


def _probe(name: str, rounds: int) -> Point:
    pattern = Pattern.contiguous(ELEMENT, rounds)
    return Point(name, "rounds", pattern, pattern, 1, operation=name)


def points(
    series: Sequence[str] = CHOICE,
    strides: Sequence[int] = STRIDES,
    sizes: Sequence[int] = SIZES,
    rounds: int = ROUNDS,
) -> list[Point]:
    found = []
    for name in series:
        if name in BY_STRIDE:
            # A copy by lines has no gaps.
            found += [_by_stride(name, x) for x in (strides if name != MEMCPY else strides[:1])]
        elif name in BY_SIZE:
            found += [_by_size(name, x) for x in sizes]
        else:
            found.append(_probe(name, rounds))
    return numbered(found)


def measure(
    profile: Profile, seed: int, points: Sequence[Point], progress: Progress | None = None
) -> tuple[list[dict[str, Any]], dict[str, str], dict[str, int]]:
    """session.measure() on cards with a window."""
    fitted = dataclasses.replace(profile, window=True)
    program = paths.simulator(fitted)
    if not program.exists():
        raise CommandError(
            f"{program} is not built",
            f"run 'build/venv/bin/python hw/sim/build.py --window --profile {profile.name}'",
        )
    results, versions, _ = session.measure(fitted, seed, points, progress, kind=WindowProgram)
    return results, versions, session.compared(results)


# Report -------------------------------------------------------------------------------------------


def _stream(profile: Profile, result: dict[str, Any]) -> dict[str, Any]:
    """A point of the report. The processor makes each store itself, and waits for room in the card
    by loads, so it is busy all the time.
    """
    point, answer = result["point"], result["answers"][0]
    gap = 0 if point.target.is_contiguous else point.target.levels[0][1]
    best = bound.stores(profile, point.payload, gap)
    elapsed = answer["elapsed_ps"]
    value = point.payload / (elapsed * 1e-12)
    near = value >= 0.9 * best.value
    return {
        "series": point.series,
        "x": point.x,
        "x_unit": "bytes" if point.series in BY_SIZE else "elements",
        "value": round(value / 1e6, 1),
        "unit": "MB/s",
        "bound": round(best.value / 1e6, 1),
        "bound_by": best.name,
        "limit": round(best.value / 1e6, 1) if near else None,
        "limited_by": best.name if near else "latency",
        "cycles": round(elapsed * 1e-12 * profile.clock_hz),
        "cpu_percent": 100.0,
    }


def _times(point: Point, answers: Sequence[dict[str, Any]]) -> list[int]:
    """Picoseconds of each round."""
    if point.operation != VISIBLE:
        return answers[0]["rounds_ps"]
    return [seen - made for made, seen in zip(answers[0]["rounds_ps"], answers[1]["seen_ps"])]


def _probe_rows(profile: Profile, result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    point, answers = result["point"], result["answers"]
    times = _times(point, answers)
    if point.operation == VISIBLE:
        least = bound.message_seconds(profile, ELEMENT)
    else:
        least = bound.answer_seconds(profile, reads=point.operation == LOAD)
    # A store is posted: the processor is free again when its buffers are empty.
    busy = answers[0]["cpu_ps"] / sum(times) if point.operation == VISIBLE else 1
    for percent in PERCENTILES:
        ps = percentile(times, percent)
        yield {
            "series": point.series,
            "x": percent,
            "x_unit": "percentile",
            "value": round(ps * 1e-6, 4),
            "unit": "us",
            "bound": round(least * 1e6, 4),
            "bound_by": "wire",
            "limit": None,
            "limited_by": None,
            "cycles": round(ps * 1e-12 * profile.clock_hz, 1),
            "cpu_percent": round(100 * busy, 2),
        }


def evaluate(profile: Profile, seed: int, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for result in results:
        point = result["point"]
        if point.operation in PROBES:
            rows += _probe_rows(profile, result)
        elif point.operation in STREAMS:
            rows.append(_stream(profile, result))
        else:
            unit = "bytes" if point.series in BY_SIZE else "elements"
            rows.append(session.evaluate(profile, result, unit))
    halves = {}
    for name in BY_SIZE:
        curve = sorted((row["x"], row["value"]) for row in rows if row["series"] == name)
        if len(curve) > 1:
            half = half_size(curve)
            halves[name] = half and round(half, 1)
    return {
        "points": rows,
        "half_size_bytes": halves,
        "findings": [
            *(f"{name}: {words}" for name, words in STANDS_FOR.items()),
            *(
                f"N½ of {name}: {f'{half:.0f} bytes' if half else 'below the smallest size'}"
                for name, half in halves.items()
            ),
        ],
        "notes": [
            f"{STORE}, {MEMCPY}: {ELEMENTS} elements, from the first store to the barrier behind "
            f"the last; the processor makes the stores and waits for room, so it does nothing "
            f"else",
            f"{ENGINE}, {UNPACK}: one transfer of {stride.ELEMENTS * ELEMENT >> 10} KiB",
            "block-…: one at a time, each with its barrier or completion",
            f"{VISIBLE}: from the store to the look that sees it, a look every {LOOK_NS} ns; "
            f"{LOAD}: from the call to its bytes; {BARRIER}: of a store, from the store to the "
            f"barrier's answer",
            "the processor's write-combining buffers are a model: docs/benchmarks.md; a store "
            "costs what an assignment does, a call of the library adds nothing",
        ],
    }


def tables(report: dict[str, Any]) -> list[Table]:
    groups = (
        ("stride", BY_STRIDE),
        ("bytes", BY_SIZE),
        ("percentile", PROBES),
    )
    present = [(x, [s for s in names if of_series(report, s)]) for x, names in groups]
    return [Table(x, names) for x, names in present if names]


def panels(report: dict[str, Any]) -> list[Panel]:
    profile = report["profile"]
    found = [
        Panel(
            f"8-byte elements, profile {profile}",
            list(BY_STRIDE),
            "stride (elements of 8 bytes; 1 is contiguous)",
            history=True,
            meanings=STANDS_FOR,
        ),
        Panel(f"contiguous, one at a time, profile {profile}", list(BY_SIZE), "bytes a transfer"),
        Panel(f"8 bytes, profile {profile}", list(PROBES), "percentile of the rounds"),
    ]
    return [panel for panel in found if any(of_series(report, s) for s in panel.series)]
