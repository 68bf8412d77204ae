"""Exchange of the halo of a 3-D grid: six faces, each one put, none of them packed.

    python examples/halo.py [--profile gen2x1]

Each node has a cube of n³ doubles inside a halo of one point. Two nodes tile a torus like the two
colours of a chessboard, so that each neighbour of one is the other. Before each step of a
computation the outermost layer of each cube goes to the opposite side of the neighbour's halo. In
memory z varies fastest: a face across z is n² single doubles, one across y n rows, and one across x
n rows that follow each other but for the halo.
"""

# SPDX-License-Identifier: BSD-2-Clause

import sys
from dataclasses import replace

import harness
import numpy as np
from harness import PACKED, Case, Node, as_pattern

DOUBLE = 8  # bytes
SIZES = (8, 16, 32, 64)  # points a side
FACES = [(axis, side) for axis in range(3) for side in range(2)]


def face(grid, axis, index):
    """The layer `index` across `axis` of a grid with its halo, without the halo's edges."""
    inside = [slice(1, -1)] * 3
    inside[axis] = index
    return grid[tuple(inside)]


class Neighbour(Node):
    # The grid stands in memory that is read and in memory that is written, for a program may do
    # both to all of it; and behind it there is room to pack.
    SOURCE = TARGET = DOUBLE * ((max(SIZES) + 2) ** 3 + len(FACES) * max(SIZES) ** 2)

    def prepare(self, case):
        side = case.size + 2
        words = [region.memory.view("f8") for region in (self.source, self.target)]
        self.grid, self.halo = (w[: side**3].reshape((side,) * 3) for w in words)
        self.out, self.came = (
            w[side**3 : side**3 + len(FACES) * case.size**2].reshape(-1, case.size, case.size)
            for w in words
        )
        self.grid[...] = case.random(self.seed, self.node).random((side,) * 3)
        self.halo[...] = np.nan

    def exchange(self, case, keys):
        faces = [
            (face(self.grid, axis, (1, -2)[side]), face(self.halo, axis, (-1, 0)[side]))
            for axis, side in FACES
        ]
        if case.way == PACKED:
            for n, (layer, _) in enumerate(faces):
                self.out[n] = layer
                self.charge(
                    True,
                    as_pattern(self.source.walk(layer)),
                    as_pattern(self.source.walk(self.out[n])),
                )
            walks = [(self.source.walk(self.out), self.target.walk(self.came))]
        else:
            walks = [(self.source.walk(layer), self.target.walk(halo)) for layer, halo in faces]
        for n, (source, target) in enumerate(walks):
            last = n == len(walks) - 1
            self.endpoint.put_strided(
                source,
                replace(target, key=keys["target"]),
                node=1 - self.node,
                tag=n,
                notice=1 if last else None,
                endpoint=1,
            )
        # Puts are executed in order: the notice of the last one tells of all.
        self.finish(commands=len(walks), notices=1)
        if case.way == PACKED:
            for n, (_, halo) in enumerate(faces):
                halo[...] = self.came[n]
                self.charge(
                    False,
                    as_pattern(self.target.walk(self.came[n])),
                    as_pattern(self.target.walk(halo)),
                )

    def wrong(self, case):
        other = case.random(self.seed, 1 - self.node).random((case.size + 2,) * 3)
        right = np.full_like(other, np.nan)
        for axis, side in FACES:
            face(right, axis, (-1, 0)[side])[...] = face(other, axis, (1, -2)[side])
        return int(np.count_nonzero(right.view(np.uint8) != self.halo.view(np.uint8)))


def example(sizes=SIZES):
    cases = [Case(way, n, DOUBLE * len(FACES) * n * n) for way in ("direct", PACKED) for n in sizes]
    return harness.Example(
        "halo",
        Neighbour,
        cases,
        "points a side (n³ doubles a node)",
        ["six faces, both nodes at once; packed: one put of all six"],
    )


if __name__ == "__main__":
    sys.exit(harness.main(example(), __doc__))
