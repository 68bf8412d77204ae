"""The queue of an engine's orders, which the control program and the fast path share."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

# Order Queue --------------------------------------------------------------------------------------

class OrderQueue(LiteXModule):
    """A FIFO of orders from the control program and from the fast path.

    Each side has places of its own, so that the other side cannot use up its `space`. If both sides
    give an order in one cycle, the program's goes first, because it does not wait.

    Parameters
    ----------
    layout  : of an order
    program : places of the control program
    fast    : places of the fast path
    fifo    : class of the FIFO

    Attributes
    ----------
    program : Endpoint(layout), in     `ready` is ignored: the program reads `space` first
    fast    : Endpoint(layout), in
    source  : Endpoint(layout), out
    space   : Signal, out              free places of the program

    Cycles: those of `fifo`.
    """
    def __init__(self, layout, program, fast, fifo=stream.SyncFIFO):
        self.program = stream.Endpoint(layout)
        self.fast    = stream.Endpoint(layout)
        self.source  = source = stream.Endpoint(layout)
        self.space   = space  = Signal(max=program + 1, reset=program)

        # # #

        fields    = list(layout.payload_layout if hasattr(layout, "payload_layout") else layout)
        self.fifo = fifo = fifo(fields + [("by_program", 1)], program + fast)
        free      = Signal(max=fast + 1, reset=fast)
        omit      = {"valid", "ready", "first", "last", "by_program"}
        program_leaves, fast_leaves = Signal(), Signal()  # an order of this side leaves the FIFO
        self.comb += [
            If(self.program.valid,
                self.program.connect(fifo.sink, omit=omit),
                fifo.sink.valid.eq(1),
                fifo.sink.by_program.eq(1),
            ).Else(
                self.fast.connect(fifo.sink, omit=omit),
                fifo.sink.valid.eq(self.fast.valid & (free != 0)),
                self.fast.ready.eq(free != 0),
            ),
            self.program.ready.eq(1),
            fifo.source.connect(source, omit=omit - {"valid", "ready"}),
            program_leaves.eq(source.valid & source.ready & fifo.source.by_program),
            fast_leaves.eq(source.valid & source.ready & ~fifo.source.by_program),
        ]
        self.sync += [
            If(self.program.valid & ~program_leaves, space.eq(space - 1)),
            If(~self.program.valid & program_leaves, space.eq(space + 1)),
            If(self.fast.valid & self.fast.ready & ~fast_leaves, free.eq(free - 1)),
            If(~(self.fast.valid & self.fast.ready) & fast_leaves, free.eq(free + 1)),
        ]
