"""Buffers and FIFOs for streams, chosen by what they cost on an FPGA.

`stream.SyncFIFO` is a FIFO in LUT memory. On ECP5 it costs six LUT4 for four bits of up to 16
words.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

# One Place ----------------------------------------------------------------------------------------

class Place(LiteXModule):
    """A register for one element. It costs no LUTs, and `sink.ready` depends on that register
    alone.

    Attributes
    ----------
    sink, source : Endpoint(layout)

    Cycles: 1; an element every 2 cycles.
    """
    def __init__(self, layout):
        self.sink   = sink   = stream.Endpoint(layout)
        self.source = source = stream.Endpoint(layout)

        # # #

        self.comb += sink.ready.eq(~source.valid)
        self.sync += [
            If(source.ready, source.valid.eq(0)),
            If(sink.ready,
                source.valid.eq(sink.valid),
                source.first.eq(sink.first),
                source.last.eq(sink.last),
                source.payload.eq(sink.payload),
                source.param.eq(sink.param),
            ),
        ]

# Skid ---------------------------------------------------------------------------------------------

class Skid(LiteXModule):
    """Skid buffer: holds the element that arrives during a stall, because the sender sees the stall
    one cycle later.

    Cycle for cycle it behaves as `stream.PipeReady`. A stall is known too late in the cycle to
    reach the enable of every register. So the registers are written whenever they are free, and
    `held` says whether they count. `sink.ready` is a register of its own, and is that enable. If it
    were `~held`, synthesis would move the registers behind the multiplexer of the source, and could
    not remove their constant bits.

    Attributes
    ----------
    sink, source : Endpoint(layout); `sink.ready` is a register
    held         : Signal(), out    `source` shows the held element, not the sink's

    Cycles: 0; an element a cycle.
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

# Row ----------------------------------------------------------------------------------------------

class Row(LiteXModule):
    """A short FIFO of registers: `depth` of `Place`, one behind the other.

    Attributes
    ----------
    sink, source : Endpoint(layout)
    level        : Signal, out   elements, also those on their way to `source`
    holds        : Signal, out   there is at least one element

    Cycles: `depth`; an element every 2 cycles. When an element is taken, there is room at `sink`
    `depth` cycles later.
    """
    def __init__(self, layout, depth):
        places = [Place(layout) for _ in range(depth)]
        self.submodules += places
        self.sink   = places[0].sink
        self.source = places[-1].source
        self.level  = Signal(max=depth + 1)
        self.holds  = Signal()

        # # #

        self.comb += [
            *[before.source.connect(behind.sink) for before, behind in zip(places, places[1:])],
            self.level.eq(sum(place.source.valid for place in places)),
            self.holds.eq(Reduce("OR", [place.source.valid for place in places])),
        ]

# FIFOs in Block RAM -------------------------------------------------------------------------------

class BlockFIFO(stream.SyncFIFO):
    """A FIFO in block RAM, even if it is short. hw/synthesis/flow.py recognises it by the name of
    its memory.

    Attributes
    ----------
    sink, source : Endpoint(layout)
    level        : Signal, out   elements

    Cycles: 2; an element a cycle.
    """
    def __init__(self, layout, depth):
        super().__init__(layout, depth, buffered=True)
        memory, = [special for special in self.fifo.fifo._fragment.specials if isinstance(special, Memory)]
        memory.name_override = "block_storage"

class BypassedFIFO(LiteXModule):
    """A FIFO in block RAM. An element that finds it empty goes round the memory.

    Attributes
    ----------
    sink, source : Endpoint(layout)
    fifo         : stream.SyncFIFO, the elements behind the one at the source
    level        : Signal, out   elements

    Cycles: 1 if it is empty, else 3; an element a cycle. After a stall of the source one cycle may
    pass without an element.
    """
    def __init__(self, layout, depth):
        self.fifo   = fifo = stream.SyncFIFO(layout, depth, buffered=True)
        self.front  = front = stream.PipeValid(layout)
        self.sink   = sink  = stream.Endpoint(layout)
        self.source = front.source
        self.level  = Signal(max=depth + 3)

        # # #

        empty = Signal()
        self.comb += [
            empty.eq(~(fifo.source.valid | fifo.fifo.fifo.readable)),
            sink.connect(fifo.sink, omit={"valid"}),
            fifo.sink.valid.eq(sink.valid & ~(empty & front.sink.ready)),
            front.sink.valid.eq(fifo.source.valid | (sink.valid & empty)),
            fifo.source.ready.eq(front.sink.ready),
            If(fifo.source.valid,
                fifo.source.connect(front.sink, omit={"valid", "ready"})
            ).Else(
                sink.connect(front.sink, omit={"valid", "ready"})
            ),
            self.level.eq(fifo.level + front.source.valid),
        ]
