"""Writes by descriptors: a mark follows the statuses of its write and of all before it."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.host.dma_writes import DMAWrites

from harness import Harness, Mutant, Property, implies, inner

DEPTH, LINES, PAYLOAD = 8, 64, 64

class Writes(Harness):
    """The block with free engines and a free DMA engine. The solver chooses one write by `pick`.

    `picked`: it was chosen, and has no mark yet. `ended`: its status came. `stored`: its lines are
    in the RAM.
    """
    def __init__(self):
        super().__init__()
        self.dma = dma = DMAWrites(64, LINES, DEPTH, PAYLOAD)
        self.free_all("writes", dma.writes)
        self.free_all("posts", dma.posts)
        self.free_all("status", dma.status)
        self.comb += [
            dma.descriptors.ready.eq(self.free("ready")),
            dma.enable.eq(self.free("enable")),
            dma.discard.eq(self.free("discard")),
            dma.hold.eq(self.free("hold")),
            dma.ask.eq(self.free("ask")),
        ]
        # BusMaster: both are registers, and exclude each other.
        self.assume("exclusive", ~(dma.enable & dma.discard))

        self.head, self.mark, self.tail = (inner(dma, name) for name in ("head", "mark", "tail"))
        self.owed = dma.pending.owed
        pushes, marks, frees = (inner(dma, name) for name in ("pushes", "marks", "frees"))
        size   = len(self.head)
        pick   = self.free("pick")
        self.picked = picked = Signal()
        self.ended  = ended  = Signal()
        self.stored = stored = Signal()
        self.index  = index  = Signal(size)
        comes = Signal()
        passes, leaves = Signal(), Signal()
        self.comb += [
            comes.eq(dma.status.valid & (dma.status.tag == index[:size - 1]) & stored),
            passes.eq(marks & picked & (self.mark == index)),
            leaves.eq(frees & stored & (self.tail == index)),
        ]
        self.sync += [
            If(pushes & pick & ~picked & ~stored,
                picked.eq(1),
                stored.eq(1),
                ended.eq(0),
                index.eq(self.head),
            ).Else(
                If(comes, ended.eq(1)),
                If(passes, picked.eq(0)),
                If(leaves, stored.eq(0)),
            )
        ]
        self.prove("mark_behind_status", implies(passes & ~dma.discard, ended & ~dma.hold))
        self.prove("place_behind_status", implies(leaves, ended))
        self.prove("order", implies(marks & picked & ~dma.discard,
            (index - self.mark)[:size] < DEPTH))
        self.prove("not_full", (self.head - self.tail)[:size] <= DEPTH)

        # Which states there are.
        inside = lambda low, value, high: (value - low)[:size] <= (high - low)[:size]
        mine   = (self.owed >> index[:size - 1])[0]
        self.lemma("ring", inside(self.tail, self.mark, self.head))
        self.lemma("few", (self.head - self.tail)[:size] <= DEPTH)
        self.lemma("stored", implies(stored, inside(self.tail, index, self.head) & (index != self.head)))
        self.lemma("picked", implies(picked, stored & inside(self.mark, index, self.head)))
        self.lemma("passed", implies(stored & ~picked, inside(self.tail, index, self.mark) & (index != self.mark)))
        self.lemma("status", implies(stored, mine == ~ended))
        # `has_room` is of the cycle before, in which one more tag was given.
        count = (self.head - self.tail)[:size]
        room  = inner(dma, "has_room")
        self.lemma("room", implies(room, count < DEPTH - 1))
        self.lemma("begun", implies(inner(dma, "locked") & ~inner(dma, "dropping"), count < DEPTH - 1))
        self.lemma("owed", Cat(*[
            implies(self.owed[n], ((Constant(n, size - 1) - self.tail[:size - 1])[:size - 1] < count) | (count == DEPTH))
            for n in range(DEPTH)]) == 2**DEPTH - 1)


MODULE = "dibber.host.dma_writes"

PROPERTIES = [
    Property("dma-marks", "host/dma_writes", "a mark follows its status and all before it; so does the place's next use",
        f"64 bits, {DEPTH} writes", "Writes", k=2, quick=True, mutants=[
            Mutant("marks do not wait", MODULE, "((~(pending.owed >> mark[:index_bits])[0] & ~self.hold) | self.discard)",
                "1", depth=8),
            Mutant("places do not wait", MODULE, "frees.eq((tail != mark) & ~(pending.owed >> tail[:index_bits])[0])",
                "frees.eq(tail != mark)", depth=10),
            Mutant("a mark in spite of hold", MODULE, "[0] & ~self.hold)", "[0])", depth=8),
            Mutant("one write too many", MODULE, "< depth - 2)", "< depth + 2)", depth=20),
            Mutant("any status ends a write", "dibber.host.descriptors", "(status.tag[:bits] == n)", "(n != 9)", depth=10),
    ]),
]
