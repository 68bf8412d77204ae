"""`patterns`: what applications send, by the geometry of DDTBench.

Schneider, Gerstenberger, Hoefler: "Micro-applications for communication data access patterns and
MPI datatypes", EuroMPI 2012; the runs and strides are those of its C version. A transfer is one
array of a pattern. Transfers under way at once are neighbours in the same grid, as in matrix.py.
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from libdibber.late import np

from dibber_cli.bench import session
from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.point import Point, numbered
from dibber_cli.bench.views import Panel, Table
from dibber_cli.profile import Profile

NAME = "patterns"

# Transfers under way at once: of messages up to SHORT bytes, and of longer ones.
SHORT, MANY, FEW = 16 << 10, 12, 4
MOST_BYTES = 256 << 10  # of a transfer; larger sizes of a pattern are left out …
MOST_MEMORY = 64 << 20  # … and those that reach over more memory
REAL, COMPLEX, SITE = 4, 16, 24  # bytes: a float of WRF; of FFT2; of three complex floats of MILC
LU = 40  # bytes of five doubles
DOUBLE = 8
NODES = 2  # over which FFT2 is spread

WAYS = ("direct", "direct-to-contiguous", "packed", "contiguous")

QUICK = {"first": True}  # of points()


@dataclass(frozen=True)
class Message:
    """An array that an application sends.

    by_index : its blocks are found by a list
    """

    application: str
    size: str
    source: Pattern
    target: Pattern
    by_index: bool = False

    @property
    def name(self) -> str:
        return f"{self.application} {self.size}"


def _transfers(length: int) -> int:
    return MANY if length <= SHORT else FEW


def _alike(
    application: str,
    size: object,
    block: int,
    levels: tuple[tuple[int, int], ...],
    span: int,
    neighbours: int = MANY,
) -> Message:
    """A message with the same places on both sides, which has so many neighbours in its grid."""
    length = block * math.prod(count for count, _ in levels)
    side = Pattern(block, levels, span, min(_transfers(length), neighbours))
    return Message(application, str(size), side, side)


# Vectors ------------------------------------------------------------------------------------------


def milc(x: int, y: int, z: int, t: int) -> Message:
    """MILC_su3_zdown: a plane of the lattice; the next transfer is the next plane."""
    row = x * y // 2 * SITE
    return _alike(
        "MILC_su3_zdown", f"{x},{y},{z},{t}", row, ((t, row * z), (2, row * z * t)), row, z
    )


def lu_y(d: int) -> Message:
    """NAS_LU_y: a column of five doubles."""
    return _alike("NAS_LU_y", d, LU, ((d, (d + 2) * LU),), LU)


def mg(axis: str, a: int, b: int, c: int) -> Message:
    """NAS_MG: a face of the inner grid of a·b·c doubles, `axis` "x", "y" or "z"."""
    row, plane = a * DOUBLE, a * b * DOUBLE
    block, levels, span = {
        "x": (DOUBLE, ((b - 2, row), (c - 2, plane)), DOUBLE),
        "y": ((a - 2) * DOUBLE, ((c - 2, plane),), row),
        "z": ((a - 2) * DOUBLE, ((b - 2, row),), plane),
    }[axis]
    return _alike(f"NAS_MG_{axis}", f"{a},{b},{c}", block, levels, span)


def wrf_y(x: int, nx: int) -> Message:
    """A 3-D array of WRF_y: three rows of nx floats in each of 65 levels."""
    row = x * REAL
    return _alike("WRF_y 3-D", f"X={x}", nx * REAL, ((65, row), (3, 65 * row)), 3 * 65 * row)


def wrf_x(x: int) -> Message:
    """A 3-D array of WRF_x: three floats of each row, in 65 levels of 44 rows."""
    row = x * REAL
    return _alike("WRF_x 3-D", f"X={x}", 3 * REAL, ((65, row), (44, 65 * row)), 3 * REAL)


def fft2(n: int) -> Message:
    """FFT2 over two nodes: a block of columns here becomes a block of rows there. Each node has
    two blocks.
    """
    part, row = n // NODES, n * COMPLEX
    return Message(
        "FFT2",
        str(n),
        Pattern(COMPLEX, ((part, row), (part, COMPLEX)), part * COMPLEX, NODES),
        Pattern(part * COMPLEX, ((part, row),), part * COMPLEX, NODES),
    )


def specfem_mt(count: int) -> Message:
    """SPECFEM3D_mt: three floats of each six, to contiguous memory."""
    return Message(
        "SPECFEM3D_mt",
        str(count),
        Pattern(12, ((count, 24),), count * 24, FEW),
        Pattern.contiguous(12 * count, FEW),
    )


# By index -----------------------------------------------------------------------------------------


def _places(count: int, dimension: int, shuffled: bool) -> np.ndarray:
    chosen = np.random.default_rng((count, dimension)).permutation(dimension)[:count]
    return chosen if shuffled else np.sort(chosen)


def specfem(name: str, element: int, count: int, dimension: int) -> Message:
    """SPECFEM3D_oc and one array of _cm: shuffled elements, on both sides."""
    places = _places(count, dimension, True)
    side = Pattern.indexed(element, places, dimension * element, _transfers(count * element))
    return Message(f"SPECFEM3D_{name}", f"{count}/{dimension}", side, side, True)


def lammps(name: str, element: int, count: int, dimension: int) -> Message:
    """An array of LAMMPS: chosen atoms, to one row behind the array of the other node."""
    span, transfers = (dimension + count) * element, _transfers(count * element)
    return Message(
        f"LAMMPS_{name} {element} B",
        f"{count}/{dimension}",
        Pattern.indexed(element, _places(count, dimension, False), dimension * element, transfers),
        Pattern(count * element, (), span, transfers, dimension * element),
        True,
    )


GRIDS = ((34, 18, 18), (130, 66, 66), (258, 130, 130), (514, 258, 258))
WRF = {32: 23, 27: 19, 24: 16, 22: 14, 19: 11}  # X: nx


@functools.cache
def all_messages() -> tuple[Message, ...]:
    """Every size of every pattern, the smallest sizes of an application first."""
    return (
        *(milc(*size) for size in ((8, 8, 8, 8), (8, 8, 8, 16), (8, 8, 16, 16), (16,) * 4)),
        *map(lu_y, (12, 33, 64, 102, 162, 408, 1020)),
        *(mg(axis, *grid) for axis in "xyz" for grid in GRIDS),
        *(wrf_y(x, WRF[x]) for x in sorted(WRF)),
        *map(wrf_x, sorted(WRF)),
        *map(fft2, (256, 512, 768, 1024, 1536)),
        *map(specfem_mt, (5600, 6200, 6400, 7600)),
        *(
            specfem("oc", 4, *size)
            for size in ((493, 3697), (877, 12857), (1897, 38585), (3225, 88881))
        ),
        *(specfem("cm", 12, *size) for size in ((1957, 39929), (11797, 834917))),
        *(
            lammps(name, element, *size)
            for name, sizes in (
                ("full", ((1662, 1907), (2243, 2597), (3062, 3534))),
                ("atomic", ((114, 1217), (145, 2157), (243, 4084))),
            )
            for element in (8, 24)
            for size in sizes
        ),
    )


def measured(message: Message) -> bool:
    """Whether a message is small enough for the simulator."""
    return message.source.length <= MOST_BYTES and all(
        side.extent <= MOST_MEMORY for side in (message.source, message.target)
    )


# Points -------------------------------------------------------------------------------------------


def _contiguous(side: Pattern) -> Pattern:
    return Pattern.contiguous(side.length, side.transfers)


def _point(way: str, message: Message) -> Point:
    source, target = message.source, message.target
    if way == "direct-to-contiguous":
        target = _contiguous(target)
    if way == "contiguous":
        source, target = _contiguous(source), _contiguous(target)
    return Point(way, message.name, source, target, source.transfers, packed=way == "packed")


def chosen(first: bool = False) -> list[Message]:
    """The messages that are measured. `first`: the smallest size of each application alone."""
    found = [m for m in all_messages() if measured(m)]
    if not first:
        return found
    smallest: dict[str, Message] = {}
    for message in found:
        smallest.setdefault(message.application, message)
    return list(smallest.values())


def points(first: bool = False, messages: Sequence[Message] | None = None) -> list[Point]:
    wanted = chosen(first) if messages is None else messages
    return numbered(_point(way, message) for way in WAYS for message in wanted)


# Report -------------------------------------------------------------------------------------------


def shares(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """{name of a message: its direct rate, as a share of the contiguous rate of as many bytes}."""
    value = {(row["series"], row["x"]): row["value"] for row in rows}
    return {
        name: rate / value["contiguous", name]
        for (way, name), rate in value.items()
        if way == "direct" and value.get(("contiguous", name))
    }


def findings(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The least share of vectors and of lists, and which pattern has it."""
    by_index = {m.name for m in all_messages() if m.by_index}
    found = shares(rows)
    lines = []
    for kind, names in (
        ("vectors", [name for name in found if name not in by_index]),
        ("lists", [name for name in found if name in by_index]),
    ):
        if names:
            least = min(names, key=lambda name: found[name])
            lines.append(
                f"{kind}, direct: at least {found[least]:.2f} of contiguous ({least}), "
                f"{len(names)} patterns"
            )
    return lines


def evaluate(profile: Profile, seed: int, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    rows = [session.evaluate(profile, result, "message") for result in results]
    left_out = [m.name for m in all_messages() if not measured(m)]
    return {
        "points": rows,
        "of_contiguous": {name: round(share, 3) for name, share in shares(rows).items()},
        "findings": findings(rows),
        "notes": [
            f"geometry: DDTBench, EuroMPI 2012; transfers under way: {MANY} of messages up to "
            f"{SHORT >> 10} KiB, {FEW} of longer ones, {NODES} of FFT2",
            "WRF, SPECFEM3D_cm and LAMMPS: one of the arrays that make up a message",
            f"left out, more than {MOST_BYTES >> 10} KiB a transfer or {MOST_MEMORY >> 20} MiB of "
            f"memory: {', '.join(left_out)}",
            "packing and unpacking: computed from the profile's table [benchmark], not overlapped",
            "FPsPIN (HOTI 2025) unpacks nested vectors with runs of 432 bytes on arrival at 0.79 "
            "Gb/s: 0.69 of its contiguous 1.15 Gb/s, and 0.008 of its link of 100 Gb/s",
        ],
    }


def tables(report: dict[str, Any]) -> list[Table]:
    return [Table("message", list(WAYS[:1])), Table("message", list(WAYS[1:]), brief=True)]


def panels(report: dict[str, Any]) -> list[Panel]:
    return [Panel(f"messages of applications, profile {report['profile']}", list(WAYS), "message")]
