"""Migration of fine-grain objects: some of many small records move from anywhere here to anywhere
there.

    python examples/objects.py [--profile gen2x1]

As in a simulation of particles that moves those which left its part of space. Where they lie has no
stride: each node writes a list of its own places, where objects leave or land, and one indexed put
or get moves all of them. Beside that: a command for each object (`puts` by the node that has them,
`inline` the same with the bytes in the command, `gets` by the one that wants them), and packing.
"""

# SPDX-License-Identifier: BSD-2-Clause

import sys

import harness
import libdibber
import numpy as np
from dibber.interface.description import RIGHT, C
from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.program import TIMEOUT_NS, Failed, reap
from harness import PACKED, Case, Node
from libdibber import List, Walk

SIZES = (8, 16, 32, 64, 256)  # bytes of an object
SLOTS = 4096  # places for objects on each node
MOVED = 1024  # objects that move, at most
FILL = 0xEE  # of what is free
NOTICE = 1
LISTED = ("put-indexed", "get-indexed")
WAYS = (*LISTED, "puts", "inline", "gets", PACKED)


class Mover(Node):
    """Node 0 has the objects, node 1 has room for them. Both know which move where; of that each
    writes its own list.
    """

    SOURCE = TARGET = (SLOTS + MOVED) * max(SIZES)

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.places = self.endpoint.register(
            libdibber.alloc(MOVED * C.LIST_ENTRY_BYTES), RIGHT.LOCAL_READ
        )

    @property
    def keys(self):
        return super().keys | {"places": self.places.key}

    def close(self):
        self.places.close()
        super().close()

    def prepare(self, case):
        random = case.random(self.seed, 0)
        self.objects = random.integers(0, 256, (SLOTS, case.size), dtype=np.uint8)
        self.leave, self.land = (random.permutation(SLOTS)[: case.number] for _ in range(2))
        self.places.memory.view(np.int64)[: case.number] = (self.leave, self.land)[
            self.node
        ] * case.size
        # The objects' slots, and behind them room to pack.
        used = (SLOTS + case.number) * case.size
        (self.pool, self.out), (self.room, self.came) = (
            np.split(region.memory[:used].reshape(-1, case.size), [SLOTS])
            for region in (self.source, self.target)
        )
        self.pool[...] = self.objects
        self.room[...] = FILL

    def exchange(self, case, keys):
        getting = case.way in ("gets", "get-indexed")
        if self.node == (1 if getting else 0):
            self._issue(case, keys)
            if getting:
                self.endpoint.put_inline(
                    b"all here", keys["target"], 0, node=0, notice=NOTICE, endpoint=1
                )
                self.finish(commands=1, notices=0)
        else:
            self.finish(commands=0, notices=1)
        if case.way == PACKED and self.node == 1:
            self.room[self.land] = self.came
            self.charge(
                False, Pattern.contiguous(case.number * case.size), self._pattern(case, self.land)
            )

    @staticmethod
    def _pattern(case, places):
        return Pattern.indexed(case.size, places, SLOTS * case.size)

    def _issue(self, case, keys):
        """All commands, as many under way as there are slots."""
        if case.way in LISTED:
            self._move_all(case, keys)
            return self.finish(commands=1, notices=0)
        if case.way == PACKED:
            self.out[...] = self.pool[self.leave]
            self.charge(
                True, self._pattern(case, self.leave), Pattern.contiguous(case.number * case.size)
            )
            begin = SLOTS * case.size
            self.endpoint.put(
                self.source.key,
                begin,
                keys["target"],
                begin,
                case.number * case.size,
                node=1,
                notice=NOTICE,
                endpoint=1,
            )
            return self.finish(commands=1, notices=0)
        under_way = 0
        for n in range(case.number):
            while under_way == C.SLOTS:
                if not self.endpoint.wait(TIMEOUT_NS):
                    raise Failed("a command did not complete")
                under_way -= reap(self.endpoint)
            self._move(case, keys, n, n == case.number - 1)
            under_way += 1
        self.finish(commands=under_way, notices=0)

    def _move_all(self, case, keys):
        """One command; each list lies on the node whose places it has."""
        sides = (self.keys, keys) if self.node == 0 else (keys, self.keys)
        source, target = (
            Walk(side[name], case.size, list=List(side["places"], case.number))
            for side, name in zip(sides, ("source", "target"))
        )
        if case.way == "get-indexed":
            self.endpoint.get_indexed(source, target, node=0)
        else:
            self.endpoint.put_indexed(source, target, node=1, notice=NOTICE, endpoint=1)

    def _move(self, case, keys, n, last):
        """One object; the last one tells the other side."""
        source, target = int(self.leave[n]) * case.size, int(self.land[n]) * case.size
        how = {"node": 1, "notice": NOTICE if last else None, "endpoint": 1}
        if case.way == "gets":
            self.endpoint.get(keys["source"], source, self.target.key, target, case.size, node=0)
        elif case.way == "inline":
            self.endpoint.put_inline(
                self.pool[self.leave[n]].tobytes(), keys["target"], target, **how
            )
        else:
            self.endpoint.put(self.source.key, source, keys["target"], target, case.size, **how)

    def wrong(self, case):
        if self.node == 0:
            return 0
        right = np.full_like(self.objects, FILL)
        right[self.land] = self.objects[self.leave]
        return int(np.count_nonzero(right != self.room))


def example(sizes=SIZES, moved=MOVED):
    cases = [
        Case(way, size, moved * size, senders=(0,), number=moved)
        for way in WAYS
        for size in sizes
        if (way != "inline" or size <= C.INLINE_BYTES) and (way != "gets" or size == min(SIZES))
    ]
    return harness.Example(
        "objects",
        Mover,
        cases,
        "bytes an object",
        [
            f"{moved} of {SLOTS} objects, from node 0 to node 1",
            "indexed: one command, with a list of places on each node",
            f"puts, inline, gets: a command for each object, up to {C.SLOTS} under way",
        ],
    )


if __name__ == "__main__":
    sys.exit(harness.main(example(), __doc__))
