"""`stride`: 8-byte elements at strides, the ETH chart of 1998, beside alternatives."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber_cli.bench import cpu, litepcie, session
from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.point import Point, numbered
from dibber_cli.bench.views import Panel, Table, of_series

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


def side(strided, stride):
    """One side's Pattern, `stride` in elements."""
    return Pattern.strided(ELEMENT, ELEMENTS, ELEMENT * stride if strided else ELEMENT, TRANSFERS)


def listed(stride):
    """The same places, given by a list."""
    return Pattern.indexed(
        ELEMENT, range(0, ELEMENTS * stride, stride), ELEMENT * ELEMENTS * stride, TRANSFERS
    )


def _point(series, stride):
    if series == "put-contiguous-unpack":
        return Point(
            series, stride, side(False, stride), side(True, stride), TRANSFERS, packed=True
        )
    if series == "descriptors":
        elements = [
            Pattern.contiguous(ELEMENT, DESCRIPTORS),
            Pattern(ELEMENT, (), ELEMENT * stride, DESCRIPTORS),
        ]
        return Point(series, stride, *elements, SLOTS)
    if series in LISTS:
        return Point(
            series,
            stride,
            *(listed(stride) if by_list else side(False, stride) for by_list in LISTS[series]),
            TRANSFERS,
        )
    return Point(
        series,
        stride,
        *(side(strided, stride) for strided in {**OURS, **GETS}[series]),
        TRANSFERS,
        operation="get" if series in GETS else "put",
    )


def points(series=(*OURS, "put-contiguous-unpack", "descriptors"), strides=STRIDES):
    """All points that the simulated pair measures, in that order."""
    return numbered(_point(s, x) for s in series for x in strides)


def local_copy(profile, stride):
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


def evaluate(profile, seed, results):
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


def tables(report):
    ours = [s for s in (*OURS, *GETS, *LISTS) if of_series(report, s)]
    return [
        Table("stride", ours),
        Table("stride", [s for s in PEERS if of_series(report, s)], brief=True),
    ]


def panels(report):
    return [
        Panel(
            f"64 KiB a transfer, profile {report['profile']}",
            [*OURS, *GETS, *LISTS, *PEERS],
            "stride (elements of 8 bytes; 1 is contiguous)",
            history=True,
        )
    ]
