"""From byte runs that lie anywhere in their lines to dense lines."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.rotate import rotate
from dibber.common.places import Skid

# Layout -------------------------------------------------------------------------------------------

def lanes_layout(data_width):
    """A line of which `count` bytes from lane `lane` on count.

    `status` on the last one, when it is not OK: the transfer failed, and this run has no bytes.
    """
    return stream.EndpointDescription(
        [("dat", data_width), ("lane", log2_int(data_width//8)), ("count", 5), ("status", 8)])

def dense_layout(data_width):
    """`layouts.payload_layout` of a transfer, with enum status in place of `error`."""
    return stream.EndpointDescription([("dat", data_width), ("bytes", 5), ("status", 8)])

# Packer -------------------------------------------------------------------------------------------

class Packer(LiteXModule):
    """Pack runs of 1 to data_width/8 bytes into full lines, in order, until `last`.

    A run is rotated to where the free lanes begin; what goes over the end has then already been
    rotated to the start of the next line.

    Attributes
    ----------
    sink   : Endpoint(lanes_layout), in
    source : Endpoint(dense_layout), out    every line full but the last

    Cycles: a run a cycle, one more when the last run of a transfer fills one line and starts
    another; 3 from the run that fills a line to that line.
    """
    def __init__(self, data_width):
        # Whether a line leaves is heard a cycle later.
        self.runs   = runs   = Skid(lanes_layout(data_width))
        self.sink   = runs.sink
        self.source = source = stream.Endpoint(dense_layout(data_width))

        # # #

        lanes = data_width//8
        bits  = log2_int(lanes)
        sink  = runs.source

        # Place: where the run goes. `fill` lanes are taken so far.
        place = stream.Endpoint(
            [("dat", data_width), ("by", bits), ("start", bits), ("end", bits + 1), ("status", 8)])
        fill  = Signal(bits)
        end   = Signal(bits + 1)
        self.comb += [
            end.eq(fill + sink.count),
            sink.ready.eq(~place.valid | place.ready),
        ]
        self.sync += If(sink.ready,
            place.valid.eq(sink.valid),
            place.last.eq(sink.last),
            place.dat.eq(sink.dat),
            place.by.eq(fill - sink.lane),
            place.start.eq(fill),
            place.end.eq(end),
            place.status.eq(sink.status),
            If(sink.valid, fill.eq(Mux(sink.last, 0, end)))
        )

        # Turn.
        turn = stream.Endpoint([("dat", data_width), ("start", bits), ("end", bits + 1), ("status", 8)])
        self.comb += place.ready.eq(~turn.valid | turn.ready)
        self.sync += If(place.ready,
            turn.valid.eq(place.valid),
            turn.last.eq(place.last),
            turn.dat.eq(rotate(place.dat, place.by)),
            turn.start.eq(place.start),
            turn.end.eq(place.end),
            turn.status.eq(place.status),
        )

        # Merge: `rest` are the lanes taken of the line that is being filled.
        rest   = Signal(data_width)
        merged = Signal(data_width)
        free   = Signal()
        tail   = Signal()  # the line after the last full one still has to leave
        over   = Signal()
        self.comb += [
            free.eq(~source.valid | source.ready),
            over.eq(turn.end > lanes),
            turn.ready.eq(free & ~(turn.last & over & ~tail)),
            *[merged[8*i:8*i + 8].eq(Mux(turn.start > i, rest[8*i:8*i + 8], turn.dat[8*i:8*i + 8]))
                for i in range(lanes)],
        ]
        self.sync += If(free,
            source.valid.eq(turn.valid & (turn.last | (turn.end >= lanes))),
            source.dat.eq(Mux(tail, rest, merged)),
            source.last.eq(turn.last & (tail | ~over)),
            source.status.eq(turn.status),
            source.bytes.eq(Mux(tail, turn.end - lanes, Mux(turn.end >= lanes, lanes, turn.end))),
            If(turn.valid,
                rest.eq(Mux(turn.end >= lanes, turn.dat, merged)),
                tail.eq(turn.last & over & ~tail),
            )
        )
