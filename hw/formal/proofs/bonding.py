"""Bonded lanes: within the limit of skew no row is lost, mixed or out of order."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from dibber.link.bonding import CONTROL_BLOCK, DATA_BLOCK, LaneDeskew, marker

from harness import Harness, Mutant, Property, implies, inner, inner_all, memory_of

LANES  = 2
DEPTH  = 4
PERIOD = 8
SKEW   = DEPTH - 2
COUNT  = 6         # bits of the number of a row, which is all that a block has

class Skewed(Harness):
    """Lanes whose blocks come in any cycle, one lane before the other by SKEW blocks at most. The
    locks come and go. Each block has its row's number, which counts modulo 64.
    """
    def __init__(self):
        super().__init__()
        self.block = block = LaneDeskew(LANES, DEPTH, PERIOD)
        self.comb += block.locked.eq(self.free("locked", LANES))
        all_locked = block.locked == 2**LANES - 1
        came       = [Signal(COUNT) for _ in range(LANES)]  # blocks of the lane; the next row
        for n, (sink, row) in enumerate(zip(block.sinks, came)):
            marks = row[:log2_int(PERIOD)] == 0
            self.comb += [
                sink.valid.eq(self.free(f"valid_{n}")),
                sink.header.eq(Mux(marks, CONTROL_BLOCK, DATA_BLOCK)),
                sink.data.eq(Mux(marks, marker(n), row)),
            ]
            self.sync += If(sink.valid, row.eq(row + 1))
        ahead = Signal(COUNT)  # of lane 0, modulo 64
        self.comb += ahead.eq(came[0] - came[1] + SKEW)
        self.assume("skew", ahead <= 2*SKEW)

        # What leaves: one row, and the one behind the last one.
        source = block.source
        rows   = [source.data[64*n:64*n + COUNT] for n in range(LANES)]
        next_  = Signal(COUNT)
        after  = Signal(COUNT)
        begun  = Signal()  # a row left since the alignment began
        held   = Signal()  # the alignment did not end since the last cycle
        self.comb += after.eq(rows[0] + 1)
        self.sync += [
            held.eq(~block.lost),
            If(source.valid, begun.eq(1), next_.eq(after + (after[:log2_int(PERIOD)] == 0))),
            If(block.lost, begun.eq(0)),
        ]
        self.prove("one_row",  implies(source.valid, rows[0] == rows[1]))
        self.prove("in_order", implies(source.valid & begun, rows[0] == next_))
        self.prove("no_marker", implies(source.valid, rows[0][:log2_int(PERIOD)] != 0))
        self.prove("stays",    implies(block.aligned & all_locked, ~block.lost))

        # Which states can be reached.
        read, marked, position = (inner(block, name) for name in ("read", "marked", "position"))
        misses = inner(block, "misses")
        writes = inner_all(block, "write")
        levels = [Signal(max=2*DEPTH) for _ in range(LANES)]
        bases  = [Signal(COUNT) for _ in range(LANES)]  # row at the read address
        for n in range(LANES):
            memory = memory_of(block, f"lane_{n}")
            self.comb += [
                levels[n].eq(writes[n] - read),
                bases[n].eq(came[n] - levels[n]),
            ]
            self.lemma(f"level{n}",  levels[n] <= DEPTH)
            self.lemma(f"empty{n}",  implies(~marked[n], (writes[n] == 0) & (read == 0)))
            self.lemma(f"base{n}",   implies(marked[n], bases[n][:log2_int(PERIOD)] == position))
            for i in range(DEPTH):
                port = memory.get_port(async_read=True)
                self.specials += port
                address = Signal(log2_int(DEPTH))
                row     = Signal(COUNT)
                marks   = Signal()
                self.comb += [
                    address.eq(read + i),
                    port.adr.eq(address),
                    row.eq(bases[n] + i),
                    marks.eq(row[:log2_int(PERIOD)] == 0),
                ]
                self.lemma(f"stored{n}_{i}", implies(marked[n] & (i < levels[n]),
                    (port.dat_r[66] == marks) & (marks | (port.dat_r[:COUNT] == row))))
        both = marked == 2**LANES - 1
        self.lemma("one_base", implies(both, bases[0] == bases[1]))
        self.lemma("few",      implies(both, reduce(or_, [level <= 1 for level in levels])))
        self.lemma("aligned",  implies(block.aligned, both))
        self.lemma("waits",    implies(~block.aligned, (read == 0) & (position == 0)))
        self.lemma("begun",    implies(begun, block.aligned))
        self.lemma("out",      implies(source.valid, block.aligned & held))
        self.lemma("misses",   misses == 0)
        past = Signal(COUNT)
        self.comb += past.eq(bases[0] - 1)
        self.lemma("shown",    implies(source.valid, rows[0] == past))
        # Behind a row of markers the next number is left out.
        follows = Signal(COUNT)
        self.comb += follows.eq(bases[0] + (bases[0][:log2_int(PERIOD)] == 0))
        self.lemma("next",     implies(begun & ~source.valid, next_ == follows))


PROPERTIES = [
    Property("bonding-order", "link/bonding",
        "lanes with a skew of depth - 2 blocks: each row whole, in order, none lost",
        f"{LANES} lanes, depth {DEPTH}, period {PERIOD}", "Skewed", k=1, quick=True, mutants=[
            Mutant("a row leaves when one lane has a block", "dibber.link.bonding",
                "pop.eq(holds == 2**lanes - 1)", "pop.eq(holds != 0)", depth=14),
            Mutant("a lane is stored from any block on", "dibber.link.bonding",
                "stores.eq(sink.valid & (marked[n] | own))", "stores.eq(sink.valid)", depth=20),
            Mutant("a lost lock leaves the addresses", "dibber.link.bonding",
                "                    marked[n].eq(0),\n                    write.eq(0)",
                "                    marked[n].eq(0)", depth=20),
            Mutant("a full lane goes on", "dibber.link.bonding",
                "(self.crossed != 0) | (full != 0) | slipped", "(self.crossed != 0) | slipped",
                depth=30),
    ]),
]
