# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Migration of fine-grain objects: some of many small records move from anywhere here to anywhere there.

    python examples/objects.py [--profile gen2x1]

As in a simulation of particles that moves those which left its part of space. Where they lie has no stride, so that
it takes a list of places, and the card does not know such lists yet: direct is a chain of commands, one for each object. The
chart shows what that costs, and so what lists would have to save: `puts` by the node that has the objects, `inline` the
same with the bytes in the command, `gets` by the one that wants them.
"""

import sys

import numpy as np

import harness

from harness import PACKED, Case, Node

from dibber.interface.description import C
from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.program import TIMEOUT_NS, Failed, reap

SIZES   = (8, 16, 32, 64, 256)    # bytes of an object
SLOTS   = 1024                    # places for objects on each node
MOVED   = 64                      # objects that move
FILL    = 0xee                    # of what is free
NOTICE  = 1
WAYS    = ("puts", "inline", "gets", PACKED)


class Places:
    """Objects anywhere, as the CPU's model of copies sees them: what Pattern is for strides."""
    transfers = 1

    def __init__(self, size, slots):
        self.block, self.offsets = size, np.asarray(slots)*size
        self.extent = int(self.offsets.max()) + size

    def blocks(self):
        return self.offsets


class Mover(Node):
    """Node 0 has the objects, node 1 has room for them. Both know which move where."""
    SOURCE = TARGET = (SLOTS + MOVED)*max(SIZES)

    def prepare(self, case):
        random = case.random(self.seed, 0)
        self.objects = random.integers(0, 256, (SLOTS, case.size), dtype=np.uint8)
        self.leave, self.land = (random.permutation(SLOTS)[:MOVED] for _ in range(2))
        # The objects' slots, and behind them room to pack.
        used = (SLOTS + MOVED)*case.size
        (self.pool, self.out), (self.room, self.came) = (
            np.split(region.memory[:used].reshape(-1, case.size), [SLOTS]) for region in (self.source, self.target))
        self.pool[...] = self.objects
        self.room[...] = FILL

    def exchange(self, case, keys):
        getting = case.way == "gets"
        if self.node == (1 if getting else 0):
            self._issue(case, keys)
            if getting:
                self.endpoint.put_inline(b"all here", keys["target"], 0, node=0, notice=NOTICE, endpoint=1)
                self.finish(commands=1, notices=0)
        else:
            self.finish(commands=0, notices=1)
        if case.way == PACKED and self.node == 1:
            self.room[self.land] = self.came
            self.charge(False, Pattern.contiguous(MOVED*case.size), Places(case.size, self.land))

    def _issue(self, case, keys):
        """All commands, as many under way as there are slots."""
        if case.way == PACKED:
            self.out[...] = self.pool[self.leave]
            self.charge(True, Places(case.size, self.leave), Pattern.contiguous(MOVED*case.size))
            begin = SLOTS*case.size
            self.endpoint.put(self.source.key, begin, keys["target"], begin, MOVED*case.size, node=1, notice=NOTICE, endpoint=1)
            return self.finish(commands=1, notices=0)
        under_way = 0
        for n in range(MOVED):
            while under_way == C.SLOTS:
                if not self.endpoint.wait(TIMEOUT_NS):
                    raise Failed("a command did not complete")
                under_way -= reap(self.endpoint)
            self._move(case, keys, n, n == MOVED - 1)
            under_way += 1
        self.finish(commands=under_way, notices=0)

    def _move(self, case, keys, n, last):
        """One object; the last one tells the other side."""
        source, target = int(self.leave[n])*case.size, int(self.land[n])*case.size
        how = {"node": 1, "notice": NOTICE if last else None, "endpoint": 1}
        if case.way == "gets":
            self.endpoint.get(keys["source"], source, self.target.key, target, case.size, node=0)
        elif case.way == "inline":
            self.endpoint.put_inline(self.pool[self.leave[n]].tobytes(), keys["target"], target, **how)
        else:
            self.endpoint.put(self.source.key, source, keys["target"], target, case.size, **how)

    def wrong(self, case):
        if self.node == 0:
            return 0
        right = np.full_like(self.objects, FILL)
        right[self.land] = self.objects[self.leave]
        return int(np.count_nonzero(right != self.room))


def example(sizes=SIZES):
    cases = [Case(way, size, MOVED*size, senders=(0,)) for way in WAYS for size in sizes
             if way != "inline" or size <= C.INLINE_BYTES]
    return harness.Example("objects", Mover, cases, "bytes an object",
                           [f"{MOVED} of {SLOTS} objects, from node 0 to node 1; up to {C.SLOTS} commands under way",
                            "the card has no lists of places yet: direct is a command for each object"])


if __name__ == "__main__":
    sys.exit(harness.main(example(), __doc__))
