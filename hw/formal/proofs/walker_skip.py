"""The walker's set-up: its result satisfies the assumptions of walker_runs.py."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from dibber.deposit import skip

from harness import Harness, Mutant, Property, implies, inner
from proofs.walker_runs import Arithmetic, sound

# Set-up -------------------------------------------------------------------------------------------

class Sound(Harness, Arithmetic):
    """Any walks, one after the other, any first bases of lists, any pace of the nest."""
    def __init__(self):
        super().__init__()
        self.block = block = skip.Skip()
        sink, start = block.sink, block.source
        self.free_all("sink", sink)
        self.free_all("base", block.base)
        self.comb += [
            start.ready.eq(self.free("ready")),
            block.order.ready.eq(self.free("order_ready")),
        ]
        self.assume("walk", implies(sink.valid, self.whole(sink)))
        self.prove("sound", implies(start.valid, sound(self, start)))

        # Results of a division and of the sums, for any walk.
        walk, base, inside, over, remainder, divisor, level, closing, total, multiplicand = (inner(block, name) for name in (
            "walk", "base", "block_offset", "past_end", "remainder", "divisor", "level", "dividing_last", "total",
            "multiplicand"))
        self.lemma("states", self.on("IDLE", "CONTIGUOUS", "DIVIDE", "DIVIDED", "END", "SATURATE", "LIMIT", "ORDER",
            "INDEX", "MULTIPLY", "FIRST", "BASE1", "NEXT", "BASE0", "ADDRESS", "READY"))
        self.lemma("walk", implies(~self.on("IDLE"), self.whole(walk)))
        self.lemma("division", implies(self.on("DIVIDE", "DIVIDED"), (remainder < divisor)
            & (level < self.named(3, walk.levels + walk.listed)) & implies(level == 0, divisor == walk.block)))
        nested = (walk.levels != 0) | walk.listed
        self.lemma("inside", implies(~self.on("IDLE") & nested
            & ~(self.on("DIVIDE", "DIVIDED") & (level == 0) & ~closing), inside < walk.block))
        self.lemma("contiguous", Mux(self.on("CONTIGUOUS"), ~nested, 1) & implies(self.on("INDEX", "MULTIPLY"), nested))
        near = self.named(64, base[0] + inside)
        self.lemma("listed", implies(self.on("END", "SATURATE", "LIMIT", "ORDER", "FIRST", "BASE1", "NEXT", "BASE0"), walk.listed))
        self.lemma("near",   implies(self.on("READY") & nested & ~over, total == near))
        self.lemma("added",  implies(self.on("ADDRESS"), multiplicand == inside))
        self.lemma("flat",   implies(~self.on("IDLE") & (walk.levels == 0), start.left0 == 0))

    def on(self, *names):
        return reduce(or_, [self.block.fsm.ongoing(name) for name in names])

    def whole(self, walk):
        """Conditions that the engines ensure for each walk."""
        counts = [implies(walk.levels > n, getattr(walk, f"count{n}") != 0) for n in range(3)]
        return ((walk.length != 0) & (walk.low <= walk.high) & counts[0] & counts[1] & counts[2]
            & implies(walk.listed, walk.levels != 3) & implies((walk.levels != 0) | walk.listed, walk.block != 0))

# Properties ---------------------------------------------------------------------------------------

SKIP = "dibber.deposit.skip"

PROPERTIES = [
    Property("walker-skip", "deposit/skip", "what the set-up leaves is what walker-runs assumes",
        "64-bit addresses, 32-bit lengths", "Sound", k=1, apart=True, quick=True, mutants=[
            Mutant("blocks apart are told to touch", SKIP, "source.joinable.eq(walk.stride0 == walk.block)",
                "source.joinable.eq(1)", depth=4),
            Mutant("without levels the block ends", SKIP,
                "Mux((walk.levels == 0) & ~walk.listed, 2**32 - 1, walk.block - block_offset)", "walk.block - block_offset", depth=4),
            Mutant("level 1 is not asked whether it is at its end", SKIP,
                "source.spent.eq((source.left0 == 0) & (source.left1 == 0))", "source.spent.eq(source.left0 == 0)", depth=4),
            Mutant("the first run lacks a byte", SKIP,
                "2**32 - 1, walk.block - block_offset)", "2**32 - 1, walk.block - block_offset - 1)",
                depth=4),
            Mutant("the blocks begin at 0", SKIP, "NextValue(b, start)", "NextValue(b, 0)", depth=4),
    ]),
]
