"""`stride`: 8-byte elements at strides, the ETH chart of 1998, beside alternatives."""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Sequence
from typing import Any

from dibber_cli.bench import cpu, litepcie, session
from dibber_cli.bench.options import MOST_STRIDE, Argument
from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.point import Point, numbered
from dibber_cli.bench.views import Panel, Table, of_series
from dibber_cli.profile import Profile

NAME = "stride"

# elements: Kurmann and Stricker, EMMSEC 1998
STRIDES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64)
ELEMENT = 8  # bytes
ELEMENTS = 64 * 1024 // ELEMENT
TRANSFERS = 4  # under way at once
DESCRIPTORS = 128  # elements of the series with a command each
SLOTS = 32  # commands that an endpoint can have under way

# Which side is strided; whether the CPU packs and unpacks.
OURS = {
    "put-dst-strided": (False, True),
    "put-src-strided": (True, False),
    "put-both-strided": (True, True),
}
# only with --series, because they double the time
GETS = {"get-dst-strided": (False, True), "get-src-strided": (True, False)}
# likewise
LISTS = {
    "put-dst-indexed": (False, True),
    "put-src-indexed": (True, False),
    "put-both-indexed": (True, True),
}
PEERS = (
    "put-contiguous-unpack",
    "descriptors",
    "litepcie-dma",
    "litepcie-descriptors",
    "local-copy",
)


# series of points()
CHOICE = (*OURS, *GETS, *LISTS, "put-contiguous-unpack", "descriptors")

QUICK = {"strides": (1, 2, 8, 64)}  # of points()
# Options of the command line for points(): --size in bytes of a transfer. A list of the largest
# transfer has 32,768 entries.
OPTIONS = {
    "size": Argument(ELEMENT, 256 * 1024, lambda n: {"elements": n // ELEMENT}, ELEMENT),
    "stride": Argument(1, MOST_STRIDE, lambda n: {"strides": (n,)}),
}


def side(strided: bool, stride: int, elements: int = ELEMENTS) -> Pattern:
    """One side's Pattern, `stride` in elements."""
    return Pattern.strided(ELEMENT, elements, ELEMENT * stride if strided else ELEMENT, TRANSFERS)


def listed(stride: int, elements: int = ELEMENTS) -> Pattern:
    """The same places, given by a list."""
    return Pattern.indexed(
        ELEMENT, range(0, elements * stride, stride), ELEMENT * elements * stride, TRANSFERS
    )


def _point(series: str, stride: int, elements: int) -> Point:
    if series == "put-contiguous-unpack":
        source, target = (side(strided, stride, elements) for strided in (False, True))
        return Point(series, stride, source, target, TRANSFERS, packed=True)
    if series == "descriptors":
        source = Pattern.contiguous(ELEMENT, DESCRIPTORS)
        target = Pattern(ELEMENT, (), ELEMENT * stride, DESCRIPTORS)
        return Point(series, stride, source, target, SLOTS)
    if series in LISTS:
        source, target = (
            listed(stride, elements) if by_list else side(False, stride, elements)
            for by_list in LISTS[series]
        )
        return Point(series, stride, source, target, TRANSFERS)
    source, target = (side(strided, stride, elements) for strided in {**OURS, **GETS}[series])
    operation = "get" if series in GETS else "put"
    return Point(series, stride, source, target, TRANSFERS, operation=operation)


def points(
    series: Sequence[str] = (*OURS, "put-contiguous-unpack", "descriptors"),
    strides: Sequence[int] = STRIDES,
    elements: int = ELEMENTS,
) -> list[Point]:
    """All points that the simulated pair measures, in that order."""
    return numbered(_point(s, x, elements) for s in series for x in strides)


def local_copy(profile: Profile, stride: int) -> dict[str, Any]:
    """A point of the report: the CPU copies contiguous bytes to strided ones in its own memory."""
    source, target = side(False, stride), side(True, stride)
    ns = cpu.copy_ns(profile, source, target)
    return {
        "series": "local-copy",
        "x": stride,
        "x_unit": "elements",
        "value": round(TRANSFERS * source.length / ns * 1e3, 1),
        "unit": "MB/s",
        "bound": None,
        "bound_by": None,
        "cycles": round(ns * 1e-9 * profile.clock_hz),
        "cpu_percent": 100.0,
    }


check = litepcie.check  # what is needed beside the simulator


def evaluate(profile: Profile, seed: int, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    measured = [session.evaluate(profile, result, "elements") for result in results]
    strides = list(dict.fromkeys(point["x"] for point in measured))
    return {
        "points": [
            *measured,
            litepcie.contiguous(profile, seed, "elements"),
            *(
                litepcie.descriptors(profile, seed, ELEMENT, ELEMENT * x, x, "elements")
                for x in strides
            ),
            *(local_copy(profile, x) for x in strides),
        ],
        "notes": [
            f"'descriptors': {DESCRIPTORS} elements a point, {SLOTS} commands under way",
            *litepcie.NOTES,
            "'local-copy' and unpacking: computed from the profile's table [benchmark]",
        ],
    }


def tables(report: dict[str, Any]) -> list[Table]:
    ours = [s for s in (*OURS, *GETS, *LISTS) if of_series(report, s)]
    return [
        Table("stride", ours),
        Table("stride", [s for s in PEERS if of_series(report, s)], brief=True),
    ]


def _size_of(report: dict[str, Any]) -> str:
    """Bytes of a transfer, in words."""
    size = report.get("options", {}).get("size", ELEMENTS * ELEMENT)
    return f"{size >> 10} KiB" if size % 1024 == 0 else f"{size:,} bytes"


def panels(report: dict[str, Any]) -> list[Panel]:
    return [
        Panel(
            f"{_size_of(report)} a transfer, profile {report['profile']}",
            [*OURS, *GETS, *LISTS, *PEERS],
            "stride (elements of 8 bytes; 1 is contiguous)",
            history=True,
        )
    ]
