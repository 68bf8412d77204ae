"""`matrix`: shapes of real programs: a column, the faces of a halo, a transpose, rows by an
index; direct and packed.
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from libdibber.late import np

from dibber_cli.bench import session
from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.point import Point, numbered
from dibber_cli.bench.views import Panel, Table
from dibber_cli.profile import Profile

NAME = "matrix"

DOUBLE = 8  # bytes
# under way at once: neighbouring columns, the same face of two grids, two blocks
TRANSFERS = 4
COLUMN = (8192, 128)  # rows, columns of doubles
GRID, HALO = 96, 1  # points a side, and of the halo around them
# rows and columns of the exchanged block, of a matrix twice as wide
TRANSPOSE = 128
ATOMS = (16384, 4096)  # atoms of three doubles here, and how many of them are sent
OBJECTS = (8192, 2048)  # places on each node, and moved objects …
OBJECT = 64  # … of so many bytes
WAYS = ("direct", "packed")
Pair = tuple[Pattern, Pattern]  # source and target

QUICK: dict[str, object] = {}  # nothing to leave out: there are few points


def column(rows: int = COLUMN[0], columns: int = COLUMN[1]) -> Pair:
    """A column of a row-major matrix, to the same column of the other node's."""
    side = Pattern(DOUBLE, ((rows, columns * DOUBLE),), DOUBLE, TRANSFERS)
    return side, side


def face(axis: int, grid: int = GRID) -> Pair:
    """A face of a 3-D grid to the halo of the neighbour; axis 0 varies fastest in memory."""
    side = grid + 2 * HALO
    pitch = [DOUBLE, DOUBLE * side, DOUBLE * side * side]
    others = [a for a in range(3) if a != axis]

    def layer(index: int) -> Pattern:
        first = index * pitch[axis] + sum(HALO * pitch[a] for a in others)
        if axis == 0:
            return Pattern(
                DOUBLE, tuple((grid, pitch[a]) for a in others), DOUBLE * side**3, TRANSFERS, first
            )
        return Pattern(
            DOUBLE * grid, ((grid, pitch[others[1]]),), DOUBLE * side**3, TRANSFERS, first
        )

    # our last layer goes before the neighbour's first
    return layer(grid), layer(0)


def transpose(n: int = TRANSPOSE) -> Pair:
    """A block of a matrix that two nodes hold by rows, to the place of its transpose on the other
    node: rows become columns.
    """
    pitch = 2 * n * DOUBLE
    source = Pattern(n * DOUBLE, ((n, pitch),), n * pitch, TRANSFERS, n * DOUBLE)
    target = Pattern(DOUBLE, ((n, pitch), (n, DOUBLE)), n * pitch, TRANSFERS)
    return source, target


def atoms(here: int = ATOMS[0], sent: int = ATOMS[1]) -> Pair:
    """Positions of the atoms that the neighbour needs, as LAMMPS sends them: by a list that ascends
    with gaps, to one row behind the neighbour's own."""
    element = 3 * DOUBLE
    chosen = np.sort(np.random.default_rng(1).permutation(here)[:sent])
    return (
        Pattern.indexed(element, chosen, here * element, TRANSFERS),
        Pattern(element * sent, (), (here + sent) * element, TRANSFERS, here * element),
    )


def objects(places: int = OBJECTS[0], moved: int = OBJECTS[1], size: int = OBJECT) -> Pair:
    """Objects from any places here to any places there."""
    leave, land = (np.random.default_rng(2 + n).permutation(places)[:moved] for n in range(2))
    source, target = (
        Pattern.indexed(size, chosen, places * size, TRANSFERS) for chosen in (leave, land)
    )
    return source, target


def shapes() -> dict[str, Pair]:
    """Name: (source, target)."""
    return {
        "column": column(),
        "halo-x": face(0),
        "halo-y": face(1),
        "halo-z": face(2),
        "transpose": transpose(),
        "atoms": atoms(),
        "objects": objects(),
    }


def points(chosen: dict[str, Pair] | None = None) -> list[Point]:
    return numbered(
        Point(way, name, source, target, TRANSFERS, packed=way == "packed")
        for way in WAYS
        for name, (source, target) in (chosen or shapes()).items()
    )


def evaluate(profile: Profile, seed: int, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "points": [session.evaluate(profile, result, "shape") for result in results],
        "notes": [
            f"column of {COLUMN[0]} × {COLUMN[1]} doubles; faces of {GRID}³ doubles with a halo "
            f"of {HALO}; "
            f"transpose of {TRANSPOSE} × {TRANSPOSE}; {TRANSFERS} transfers under way",
            f"atoms: 3 doubles of {ATOMS[1]} of {ATOMS[0]} by a list, to a row; objects: "
            f"{OBJECTS[1]} of "
            f"{OBJECT} bytes, lists on both sides; the bound has the reading of the lists",
            "packing and unpacking: computed from the profile's table [benchmark], not overlapped",
        ],
    }


def tables(report: dict[str, Any]) -> list[Table]:
    return [Table("shape", list(WAYS))]


def panels(report: dict[str, Any]) -> list[Panel]:
    return [Panel(f"shapes, profile {report['profile']}", list(WAYS), "shape")]
