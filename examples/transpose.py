"""Transpose of a matrix that two nodes hold by rows: one put moves a block, and transposes it on
the way.

    python examples/transpose.py [--profile gen2x1]

Each node has half of the rows of A, and wants the same rows of B, the transpose of A. The half of
its rows whose columns are the other node's rows of B must change hands: with both sides of the put
strided, the card reads them row by row and puts them column by column. The CPU has only to
transpose what stays.
"""

# SPDX-License-Identifier: BSD-2-Clause

import sys
from dataclasses import replace

import harness
import numpy as np
from harness import PACKED, Case, Node, as_pattern

DOUBLE = 8  # bytes
SIZES = (32, 64, 128, 256)  # rows of the whole matrix
NOTICE = 1


class Transposer(Node):
    SOURCE = TARGET = 2 * DOUBLE * max(SIZES) ** 2  # the rows, and room to pack a block

    def prepare(self, case):
        n, half = case.size, case.size // 2
        self.a = self.source.memory.view("f8")[: half * n].reshape(half, n)
        self.b = self.target.memory.view("f8")[: half * n].reshape(half, n)
        # For the packed way alone: a block without gaps, behind the rows.
        self.out, self.came = (
            region.memory.view("f8")[half * n : half * n + half * half].reshape(half, half)
            for region in (self.source, self.target)
        )
        self.a[...] = case.random(self.seed, self.node).random((half, n))
        self.b[...] = np.nan

    def exchange(self, case, keys):
        half = case.size // 2
        mine, theirs = (
            slice(half * node, half * (node + 1)) for node in (self.node, 1 - self.node)
        )
        block = self.a[:, theirs]
        # Where the block's transpose lies in the other node's B: in ours it has the same place,
        # under another key.
        place = self.target.walk(self.b[:, mine].T)
        stays = (self.source.walk(self.a[:, mine]), self.target.walk(self.b[:, mine].T))
        if case.way == PACKED:
            self.out[...] = block.T
            self.charge(
                True, as_pattern(self.source.walk(block.T)), as_pattern(self.source.walk(self.out))
            )
            source, target = self.source.walk(self.out), self.target.walk(self.came)
        else:
            source, target = self.source.walk(block), place
        self.endpoint.put_strided(
            source,
            replace(target, key=keys["target"]),
            node=1 - self.node,
            notice=NOTICE,
            endpoint=1,
        )

        self.b[:, mine] = self.a[:, mine].T
        self.charge(True, *map(as_pattern, stays))
        self.finish(commands=1, notices=1)
        if case.way == PACKED:
            self.b[:, theirs] = self.came
            self.charge(
                False,
                as_pattern(self.target.walk(self.came)),
                as_pattern(self.target.walk(self.b[:, theirs])),
            )

    def wrong(self, case):
        half = case.size // 2
        whole = np.vstack(
            [case.random(self.seed, node).random((half, case.size)) for node in range(2)]
        )
        right = np.ascontiguousarray(whole.T[half * self.node : half * (self.node + 1)])
        return int(np.count_nonzero(right.view(np.uint8) != self.b.view(np.uint8)))


def example(sizes=SIZES):
    cases = [Case(way, n, DOUBLE * (n // 2) ** 2) for way in ("direct", PACKED) for n in sizes]
    return harness.Example(
        "transpose",
        Transposer,
        cases,
        "rows (n × n doubles on two nodes)",
        [
            "each node puts one block of n/2 × n/2 doubles, both at once",
            "the block that stays is transposed by the CPU in both ways",
        ],
    )


if __name__ == "__main__":
    sys.exit(harness.main(example(), __doc__))
