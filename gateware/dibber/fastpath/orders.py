"""The way to an engine, which control program and fast path share."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

# Order Queue --------------------------------------------------------------------------------------

class OrderQueue(LiteXModule):
    """Orders of the control program and of the fast path, in the order in which they were given.

    Each side has places of its own, so that `space` is a promise that the other cannot break. When
    both order in one cycle the program is first: its order comes once and does not wait.

    Parameters
    ----------
    layout  : of an order
    program : places of the control program
    fast    : places of the fast path
    fifo    : what has the places

    Attributes
    ----------
    program : Endpoint(layout), in     `ready` is ignored: there is `space`
    fast    : Endpoint(layout), in
    source  : Endpoint(layout), out
    space   : Signal, out              places of the program that are free

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
        mine, his = Signal(), Signal()  # places given back
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
            mine.eq(source.valid & source.ready & fifo.source.by_program),
            his.eq(source.valid & source.ready & ~fifo.source.by_program),
        ]
        self.sync += [
            If(self.program.valid & ~mine, space.eq(space - 1)),
            If(~self.program.valid & mine, space.eq(space + 1)),
            If(self.fast.valid & self.fast.ready & ~his, free.eq(free - 1)),
            If(~(self.fast.valid & self.fast.ready) & his, free.eq(free + 1)),
        ]
