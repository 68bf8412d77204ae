"""The window's store queue: it never waits, and counts what it loses."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.places import BlockFIFO
from dibber.host.tlp import line_layout
from dibber.interface.description import C

QUEUE_LINES = 512

class StoreQueue(LiteXModule):
    """Lines that were stored into the aperture, in their order.

    Nothing on the receive path waits for this queue. A line that finds no room is lost.

    Parameters
    ----------
    data_width : bits of a line
    depth      : lines, a power of two

    Attributes
    ----------
    sink     : Endpoint(line_layout), in     `ready` is ignored; a line without enabled bytes counts
               as nothing
    source   : Endpoint(line_layout), out
    level    : Signal, out     lines that came and have not left
    room     : Signal, out     lines that can come now without loss
    stored   : Signal(), out   one cycle: a line came
    overflow : Signal(), out   one cycle: a line is lost
    moved    : Signal(), out   one cycle: a line leaves

    Cycles: 2 from sink to source; a line a cycle.
    """
    def __init__(self, data_width, depth=QUEUE_LINES):
        width  = data_width//8
        layout = line_layout(data_width, log2_int(C.APERTURE_BYTES//width))
        self.sink     = sink   = stream.Endpoint(layout)
        self.fifo     = fifo   = BlockFIFO(layout, depth)
        self.source   = source = fifo.source
        self.level    = level  = Signal(max=depth + 2)
        self.room     = Signal(max=depth + 2)
        self.stored   = stored   = Signal()
        self.overflow = overflow = Signal()
        self.moved    = moved    = Signal()

        # # #

        comes = Signal()
        self.comb += [
            sink.ready.eq(1),
            comes.eq(sink.valid & (sink.be != 0)),
            fifo.sink.valid.eq(comes),
            *[getattr(fifo.sink, name).eq(getattr(sink, name)) for name in ["adr", "dat", "be"]],
            stored.eq(comes & fifo.sink.ready),
            overflow.eq(comes & ~fifo.sink.ready),
            moved.eq(source.valid & source.ready),
            self.room.eq(Mux(level >= depth, 0, depth - level)),
        ]
        self.sync += level.eq(level + stored - moved)
