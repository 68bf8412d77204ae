"""One stream of writes to host memory from those of several engines, and their marks back."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import write_layout
from dibber.common.places import Skid

# Write Arbiter ------------------------------------------------------------------------------------

class WriteArbiter(LiteXModule):
    """Lend the host's writes to one engine after the other, a whole write at a time.

    The first sink goes first. It does not starve the others: what it writes came over the link in
    packets that are longer on the link than their writes are on PCIe.

    Parameters
    ----------
    data_width : 64 or 128
    sinks      : how many
    depth      : marks that may be under way, a power of two

    Attributes
    ----------
    sinks  : list of Endpoint(write_layout), in
    landed : list of Signal(), out    for each sink: one cycle when a write with `mark` was taken by
             the PHY
    source : Endpoint(write_layout), out
    marked : Signal(), in             the PHY took a write with `mark`; at the earliest 1 cycle
             after its
                                      last line was taken from `source`

    Cycles: 1 from sink to source, then a line a cycle, also from write to write.
    """
    def __init__(self, data_width, sinks=3, depth=64):
        # Whose turn it is depends on all of them, and on the PHY: each engine hears of it a cycle
        # later.
        pipes = [Skid(write_layout(data_width)) for _ in range(sinks)]
        self.submodules += pipes
        self.sinks  = [pipe.sink for pipe in pipes]
        self.landed = [Signal(name=f"landed{n}") for n in range(sinks)]
        self.marked = Signal()
        self.pipe   = pipe = stream.PipeValid(write_layout(data_width))
        self.source = pipe.source

        # # #

        # Marks come back in their order.
        self.origins = origins = stream.SyncFIFO([("origin", bits_for(sinks - 1))], depth)

        choice = Signal(max=sinks)
        held   = Signal(max=sinks)
        locked = Signal()  # between the first and the last line of a write
        first  = held
        for n in reversed(range(sinks)):
            first = Mux(pipes[n].source.valid, n, first)
        chosen = stream.Endpoint(write_layout(data_width))
        valid  = Signal()
        go     = Signal()
        fresh  = Signal()  # the line at `source` was taken in the cycle before, from `held`
        waits  = [each.source.valid for each in pipes]
        self.comb += [
            choice.eq(Mux(locked, held, first)),
            Case(choice, {n: each.source.connect(chosen) for n, each in enumerate(pipes)}),
            # Whether there is a line does not wait for whose it is.
            valid.eq(Mux(locked, Array(waits)[held], Reduce("OR", waits))),
            go.eq(locked | (origins.level < depth - 1) | (origins.sink.ready & ~origins.sink.valid)),
            chosen.connect(pipe.sink, omit={"valid", "ready"}),
            pipe.sink.valid.eq(valid & go),
            chosen.ready.eq(pipe.sink.ready & go),
            # A mark is written down when its line is at `source`, ahead of any answer.
            origins.sink.valid.eq(fresh & pipe.source.last & pipe.source.mark),
            origins.sink.origin.eq(held),
            origins.source.ready.eq(self.marked),
            *[landed.eq(self.marked & (origins.source.origin == n)) for n, landed in enumerate(self.landed)],
        ]
        self.sync += [
            fresh.eq(valid & chosen.ready),
            If(valid & chosen.ready,
                locked.eq(~chosen.last),
                held.eq(choice),
            ),
        ]
