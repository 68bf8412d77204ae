"""Write arbiter: several engines share the host's write port; marks return to their engine."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import write_layout
from dibber.common.places import Skid

# Write Arbiter ------------------------------------------------------------------------------------

class WriteArbiter(LiteXModule):
    """Grant the host's write port to one engine at a time, for a whole write.

    The first sink has priority. It does not starve the others: its writes come from packets over
    the link, and a packet is longer on the link than its write on PCIe.

    Parameters
    ----------
    data_width : 64, 128 or 256
    sinks      : number of engines
    depth      : marks that may be under way, a power of two

    Attributes
    ----------
    sinks  : list of Endpoint(write_layout), in
    landed : list of Signal(), out    for each sink: one cycle when the PHY takes a write with
             `mark`
    source : Endpoint(write_layout), out
    marked : Signal(), in             the PHY took a write with `mark`; at the earliest 1 cycle
             after its last line was taken from `source`

    Cycles: 1 from sink to source, then one line a cycle, also from write to write.
    """
    def __init__(self, data_width, sinks=3, depth=64):
        # Skid buffers: the grant depends on all engines and on the PHY, so an engine sees a stall
        # one cycle later.
        pipes = [Skid(write_layout(data_width)) for _ in range(sinks)]
        self.submodules += pipes
        self.sinks  = [pipe.sink for pipe in pipes]
        self.landed = [Signal(name=f"landed{n}") for n in range(sinks)]
        self.marked = Signal()
        self.pipe   = pipe = stream.PipeValid(write_layout(data_width))
        self.source = pipe.source

        # # #

        # Marks return in the order of the writes.
        self.origins = origins = stream.SyncFIFO([("origin", bits_for(sinks - 1))], depth)

        choice      = Signal(max=sinks)
        owner       = Signal(max=sinks)
        locked      = Signal()  # between the first and the last line of a write
        first_valid = owner
        for n in reversed(range(sinks)):
            first_valid = Mux(pipes[n].source.valid, n, first_valid)
        chosen = stream.Endpoint(write_layout(data_width))
        valid  = Signal()
        go     = Signal()
        # the line at `source` was taken in the previous cycle, from sink `owner`
        line_taken = Signal()
        sink_valid = [each.source.valid for each in pipes]
        self.comb += [
            choice.eq(Mux(locked, owner, first_valid)),
            Case(choice, {n: each.source.connect(chosen) for n, each in enumerate(pipes)}),
            # `valid` is computed apart from the choice, which is slower.
            valid.eq(Mux(locked, Array(sink_valid)[owner], Reduce("OR", sink_valid))),
            go.eq(
                locked | (origins.level < depth - 1) | (origins.sink.ready & ~origins.sink.valid)),
            chosen.connect(pipe.sink, omit={"valid", "ready"}),
            pipe.sink.valid.eq(valid & go),
            chosen.ready.eq(pipe.sink.ready & go),
            # A mark is recorded when its line is at `source`, before it can return.
            origins.sink.valid.eq(line_taken & pipe.source.last & pipe.source.mark),
            origins.sink.origin.eq(owner),
            origins.source.ready.eq(self.marked),
            *[
                landed.eq(self.marked & (origins.source.origin == n))
                for n, landed in enumerate(self.landed)],
        ]
        self.sync += [
            line_taken.eq(valid & chosen.ready),
            If(valid & chosen.ready,
                locked.eq(~chosen.last),
                owner.eq(choice),
            ),
        ]
