# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Where a `ready` becomes a register, for streams whose `ready` is late."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

# Skid ---------------------------------------------------------------------------------------------

class Skid(LiteXModule):
    """`stream.PipeReady`, cycle for cycle, but `source.ready` goes to two registers, and not to every bit of the place.

    Whether what is at the sink will have to wait is known late. So the place takes it whenever it is free, and `held` says
    whether it counts. `sink.ready` is a register besides, and the place's enable: were both one, synthesis would put the place
    behind the choice of the source, and no bit of it that is always 0 would fall away.

    Attributes
    ----------
    sink, source : Endpoint(layout); `sink.ready` is a register
    held         : Signal(), out    what `source` shows is in here, and does not come from the sink in this cycle

    Cycles: none; an element a cycle.
    """
    def __init__(self, layout):
        self.sink   = sink   = stream.Endpoint(layout)
        self.source = source = stream.Endpoint(layout)
        self.held   = held   = Signal()

        # # #

        place = stream.Endpoint(layout)
        free  = Signal(reset=1)
        self.comb += [
            sink.ready.eq(free),
            source.valid.eq(held | sink.valid),
            If(held,
                place.connect(source, omit={"valid", "ready"})
            ).Else(
                sink.connect(source, omit={"valid", "ready"})
            ),
        ]
        self.sync += [
            held.eq(source.valid & ~source.ready),
            free.eq(~source.valid | source.ready),
            If(free, sink.connect(place, omit={"valid", "ready"})),
        ]
