"""Unpacking: dense lines become lines with each byte in the lane of its address."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import count_bits, payload_layout

from dibber.common.rotate import rotate
from dibber.common.places import Skid

# Layouts ------------------------------------------------------------------------------------------

def take_layout(data_width, param_layout):
    """An order for the next `count` bytes; the first one goes to lane `lane`.

    `last`: skip the rest of the packet, including its last line. With `count` 0 nothing else is
    done.
    """
    return stream.EndpointDescription(
        [("lane", log2_int(data_width//8)), ("count", count_bits(data_width))], param_layout)

# Unpacker -----------------------------------------------------------------------------------------

class Unpacker(LiteXModule):
    """Take bytes from packets of dense lines; each order takes up to one line.

    The bytes of an order may come from two lines, so two lines are held: the current and the next.
    An order waits until its bytes are here.

    Example at 64 bits: orders (lane 6, count 2) and (lane 0, count 8) write bytes 0-1 and 2-9 of
    the packet to two lines of memory.

    Parameters
    ----------
    data_width   : 64, 128 or 256
    param_layout : fields that go from an order to its line

    Attributes
    ----------
    sink   : Endpoint(payload_layout), in    bytes of lines with `error` must not be ordered
    orders : Endpoint(take_layout), in
    source : Endpoint([("dat", data_width)], param_layout), out    one line for each order with
             bytes

    Cycles: one order a cycle; 2 from order to line; one more for each skipped line.
    """
    def __init__(self, data_width, param_layout):
        # Skid buffers: both inputs see a stall one cycle later.
        self.lines   = lines   = Skid(payload_layout(data_width))
        self.ordered = ordered = Skid(take_layout(data_width, param_layout))
        self.sink    = lines.sink
        self.orders  = ordered.sink
        self.source  = source = stream.Endpoint(
            stream.EndpointDescription([("dat", data_width)], param_layout))

        # # #

        lanes  = data_width//8
        bits   = log2_int(lanes)
        sink   = lines.source
        orders = ordered.source

        # The current line; `bytes_used` of its bytes are taken.
        valid      = Signal()
        final      = Signal()
        line       = Signal(data_width)
        bytes_used = Signal(bits)
        end_lane   = Signal(bits + 1)

        # Order: a lane comes from the current line, or from the next one where that is used up.
        ready      = Signal()  # the pipeline takes a line
        take       = Signal()
        discard    = Signal()  # the rest of the packet
        needs_next = Signal()
        shift      = Signal()
        merged     = stream.Endpoint(
            stream.EndpointDescription([("dat", data_width), ("by", bits)], param_layout))
        self.comb += [
            end_lane.eq(bytes_used + orders.count),
            needs_next.eq(end_lane > lanes),
            take.eq(orders.valid & valid & ~discard & (~needs_next | sink.valid) & ready),
            orders.ready.eq(take),
            ready.eq(~merged.valid | merged.ready),
            # Go to the next line when this one is used up or skipped. The last line of a packet
            # stays until an order with `last`, even if no byte of it is left.
            shift.eq(~valid | discard | (take & (((end_lane >= lanes) & ~final) | orders.last))),
            sink.ready.eq(shift),
        ]
        self.sync += [
            If(discard & valid & final, discard.eq(0)),
            If(shift,
                valid.eq(sink.valid),
                line.eq(sink.dat),
                final.eq(sink.last),
            ),
            If(take,
                bytes_used.eq(end_lane),
                If(orders.last,
                    bytes_used.eq(0),
                    discard.eq(~final),
                )
            ),
            If(ready,
                merged.valid.eq(take & (orders.count != 0)),
                *[
                    merged.dat[8*i:8*i + 8].eq(
                        Mux(bytes_used > i, sink.dat[8*i:8*i + 8], line[8*i:8*i + 8]))
                    for i in range(lanes)],
                merged.by.eq(orders.lane - bytes_used),
                merged.param.eq(orders.param),
            )
        ]

        # Rotation.
        self.comb += merged.ready.eq(~source.valid | source.ready)
        self.sync += If(merged.ready,
            source.valid.eq(merged.valid),
            source.dat.eq(rotate(merged.dat, merged.by)),
            source.param.eq(merged.param),
        )
