"""Packing: runs of bytes at any lane become full lines."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.rotate import rotate
from dibber.common.places import Skid
from dibber.layouts import count_bits

# Layout -------------------------------------------------------------------------------------------

def lanes_layout(data_width):
    """A line in which `count` bytes, from lane `lane` on, are valid.

    `status` is valid on the last run. If it is not OK, the transfer failed and this run has no
    bytes.
    """
    return stream.EndpointDescription(
        [("dat", data_width), ("lane", log2_int(data_width//8)), ("count", count_bits(data_width)), ("status", 8)])

def dense_layout(data_width):
    """`layouts.payload_layout` of a transfer, with enum status instead of `error`."""
    return stream.EndpointDescription([("dat", data_width), ("bytes", count_bits(data_width)), ("status", 8)])

# Packer -------------------------------------------------------------------------------------------

class Packer(LiteXModule):
    """Pack runs of 1 to data_width/8 bytes into full lines, in order, until `last`.

    A run is rotated to the first free lane. Bytes beyond the end of the line are then already at
    the start of the next line.

    Example at 64 bits: 5 bytes, then 6 bytes: a line with 5 + 3 bytes, then 3 bytes in the next
    line.

    Attributes
    ----------
    sink   : Endpoint(lanes_layout), in
    source : Endpoint(dense_layout), out    every line full except the last

    Cycles: one run a cycle; one more if the last run of a transfer fills one line and starts
    another; 3 from the run that fills a line to that line.
    """
    def __init__(self, data_width):
        # Skid buffer: this block sees one cycle later whether its output was taken.
        self.runs   = runs   = Skid(lanes_layout(data_width))
        self.sink   = runs.sink
        self.source = source = stream.Endpoint(dense_layout(data_width))

        # # #

        lanes = data_width//8
        bits  = log2_int(lanes)
        sink  = runs.source

        # Stage 1: rotation of the run. `fill` lanes of the current line are taken.
        stage1 = stream.Endpoint(
            [("dat", data_width), ("by", bits), ("start", bits), ("end", bits + 1), ("status", 8)])
        fill  = Signal(bits)
        end   = Signal(bits + 1)
        self.comb += [
            end.eq(fill + sink.count),
            sink.ready.eq(~stage1.valid | stage1.ready),
        ]
        self.sync += If(sink.ready,
            stage1.valid.eq(sink.valid),
            stage1.last.eq(sink.last),
            stage1.dat.eq(sink.dat),
            stage1.by.eq(fill - sink.lane),
            stage1.start.eq(fill),
            stage1.end.eq(end),
            stage1.status.eq(sink.status),
            If(sink.valid, fill.eq(Mux(sink.last, 0, end)))
        )

        # Stage 2: the rotated run.
        stage2 = stream.Endpoint(
            [("dat", data_width), ("start", bits), ("end", bits + 1), ("status", 8)])
        self.comb += stage1.ready.eq(~stage2.valid | stage2.ready)
        self.sync += If(stage1.ready,
            stage2.valid.eq(stage1.valid),
            stage2.last.eq(stage1.last),
            stage2.dat.eq(rotate(stage1.dat, stage1.by)),
            stage2.start.eq(stage1.start),
            stage2.end.eq(stage1.end),
            stage2.status.eq(stage1.status),
        )

        # Merge: `partial_line` holds the taken lanes of the line that is being filled.
        partial_line = Signal(data_width)
        merged       = Signal(data_width)
        free         = Signal()
        second_line  = Signal()  # the last run's rest, in the line after the full one, must leave
        fills_line   = Signal()
        self.comb += [
            free.eq(~source.valid | source.ready),
            fills_line.eq(stage2.end > lanes),
            stage2.ready.eq(free & ~(stage2.last & fills_line & ~second_line)),
            *[
                merged[8*i:8*i + 8].eq(
                    Mux(stage2.start > i, partial_line[8*i:8*i + 8], stage2.dat[8*i:8*i + 8]))
                for i in range(lanes)],
        ]
        self.sync += If(free,
            source.valid.eq(stage2.valid & (stage2.last | (stage2.end >= lanes))),
            source.dat.eq(Mux(second_line, partial_line, merged)),
            source.last.eq(stage2.last & (second_line | ~fills_line)),
            source.status.eq(stage2.status),
            source.bytes.eq(
                Mux(second_line, stage2.end - lanes, Mux(stage2.end >= lanes, lanes, stage2.end))),
            If(stage2.valid,
                partial_line.eq(Mux(stage2.end >= lanes, stage2.dat, merged)),
                second_line.eq(stage2.last & fills_line & ~second_line),
            )
        )
