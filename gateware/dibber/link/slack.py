"""The slack buffer: receive buffer with room for the words that still come after STOP."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import word_layout
from dibber.common.places import BypassedFIFO

# Words that may come after the high mark: docs/design/backpressure.md.
HEADROOM_WORDS = 128

class SlackBuffer(LiteXModule):
    """A channel's receive buffer, which sends STOP before it is full.

    A packet that still finds it full is dropped as a whole: the part in the buffer ends as bad. One
    entry is reserved for this end.

    Parameters
    ----------
    words    : depth; STOP above `words - headroom`, GO below half of this level
    headroom : words that may come after the high mark; HEADROOM_WORDS if not given
    layout   : what an entry is, with `bad`; word_layout if not given

    Attributes
    ----------
    sink     : Endpoint(layout), in   without backpressure
    source   : Endpoint(layout), out
    stop     : Signal(), out
    overflow : Signal(), out  one cycle for each dropped packet
    level    : Signal(), out  words in the buffer

    Cycles: 1 from sink to source if it is empty, otherwise 3.
    """
    def __init__(self, words, headroom=None, layout=None):
        headroom = headroom or HEADROOM_WORDS
        layout   = layout or word_layout()
        assert words >= 2*headroom
        self.sink     = sink   = stream.Endpoint(layout)
        self.source   = source = stream.Endpoint(layout)
        self.stop     = Signal()
        self.overflow = Signal()
        self.level    = Signal(max=words + 3)

        # # #

        high = words - headroom
        low  = high//2

        self.fifo = fifo = BypassedFIFO(layout.payload_layout, words)
        room     = Signal()
        dropping = Signal()
        self.comb += [
            sink.ready.eq(1),
            self.level.eq(fifo.level),
            room.eq(fifo.level < words - 1),
            self.overflow.eq(sink.valid & ~dropping & ~room),
            fifo.sink.valid.eq(sink.valid & ~dropping & (room | ~sink.first)),
            *[getattr(fifo.sink, name).eq(getattr(sink, name))
            for name, *_ in layout.payload_layout if name != "bad"],
            fifo.sink.first.eq(sink.first),
            fifo.sink.last.eq(sink.last | ~room),
            fifo.sink.bad.eq(sink.bad | ~room),
            fifo.source.connect(source),
        ]
        self.sync += [
            If(sink.valid, dropping.eq((dropping | ~room) & ~sink.last)),
            If(fifo.level > high,
                self.stop.eq(1)
            ).Elif(fifo.level < low,
                self.stop.eq(0)
            ),
        ]
