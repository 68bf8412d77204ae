"""Places where elements of a stream wait, chosen for what they take on an FPGA.

A FIFO in LUT memory, as `stream.SyncFIFO` is, takes six LUT4 for four bits of up to 16 words on
ECP5.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

# One Place ----------------------------------------------------------------------------------------

class Place(LiteXModule):
    """A register: no LUTs, and whether it is free depends on nothing else.

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
    """A place beside the way, for the one element that comes when it is not taken: who sends hears
    of that a cycle later.

    As `stream.PipeReady`, cycle for cycle, but that something was not taken is known too late to
    reach every register of the place: so it is written whenever it is free, and `held` says whether
    it counts. `sink.ready` is a register of its own, and the place's enable: were it `~held`,
    synthesis would put the place behind the choice of the source, and no bit of it that is always 0
    would fall away.

    Attributes
    ----------
    sink, source : Endpoint(layout); `sink.ready` is a register
    held         : Signal(), out    what `source` shows is in here, and does not come from the sink
                   in this cycle

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

# Row ----------------------------------------------------------------------------------------------

class Row(LiteXModule):
    """Places one behind the other: a short FIFO of registers.

    Attributes
    ----------
    sink, source : Endpoint(layout)
    level        : Signal, out   elements, those that are on their way to `source` too
    holds        : Signal, out   there is one

    Cycles: `depth`; an element every 2 cycles. One that was taken makes room at `sink` as many
    cycles later.
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

# Places in Block RAM ------------------------------------------------------------------------------

class BlockFIFO(stream.SyncFIFO):
    """A FIFO in block RAM, however short it is; `hw/synthesis/flow.py` asks for that by the name of
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
    """A FIFO in block RAM which what finds it empty does not go through.

    Attributes
    ----------
    sink, source : Endpoint(layout)
    fifo         : stream.SyncFIFO, what has no place at the source
    level        : Signal, out   elements

    Cycles: 1 when it is empty, else 3; an element a cycle. When it begins to be emptied after a
    wait, a cycle may pass without one.
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
