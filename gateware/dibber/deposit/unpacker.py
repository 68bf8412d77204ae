"""From dense lines to lines in which the bytes lie where their addresses put them."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import payload_layout

from dibber.common.rotate import rotate
from dibber.common.places import Skid

# Layouts ------------------------------------------------------------------------------------------

def take_layout(data_width, param_layout):
    """An order for the next `count` bytes, to lie from lane `lane` on.

    `last`: the packet's other lines are passed over, its last one included. With `count` 0 that is
    all.
    """
    return stream.EndpointDescription([("lane", log2_int(data_width//8)), ("count", 5)], param_layout)

# Unpacker -----------------------------------------------------------------------------------------

class Unpacker(LiteXModule):
    """Take bytes from packets of dense lines, any number up to a line at a time.

    The bytes of an order may come from two lines, so the line that is used up and the one behind it
    are both at hand. An order waits until its bytes are there.

    Parameters
    ----------
    data_width   : 64 or 128
    param_layout : what goes along with an order to its line

    Attributes
    ----------
    sink   : Endpoint(payload_layout), in    whoever orders does not order bytes of lines with
             `error`
    orders : Endpoint(take_layout), in
    source : Endpoint([("dat", data_width)], param_layout), out    a line for each order with bytes

    Cycles: an order a cycle; 2 from order to line; one more for each line that is passed over.
    """
    def __init__(self, data_width, param_layout):
        # Whether an order is carried out is heard a cycle later, by who orders and by who has the
        # lines.
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

        # The line at hand, `used` bytes of it taken.
        valid = Signal()
        final = Signal()
        line  = Signal(data_width)
        used  = Signal(bits)
        end   = Signal(bits + 1)

        # Order: each lane comes from the line at hand, or from the next where that is used up.
        ready   = Signal()  # the pipeline takes a line
        take    = Signal()
        discard = Signal()  # the rest of the packet
        second  = Signal()
        shift   = Signal()
        mixed   = stream.Endpoint(stream.EndpointDescription([("dat", data_width), ("by", bits)], param_layout))
        self.comb += [
            end.eq(used + orders.count),
            second.eq(end > lanes),
            take.eq(orders.valid & valid & ~discard & (~second | sink.valid) & ready),
            orders.ready.eq(take),
            ready.eq(~mixed.valid | mixed.ready),
            # The next line moves up when this one is used up, or is of no use any more.
            # A packet's last line stays until it is told so, even with no byte left.
            shift.eq(~valid | discard | (take & (((end >= lanes) & ~final) | orders.last))),
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
                used.eq(end),
                If(orders.last,
                    used.eq(0),
                    discard.eq(~final),
                )
            ),
            If(ready,
                mixed.valid.eq(take & (orders.count != 0)),
                *[mixed.dat[8*i:8*i + 8].eq(Mux(used > i, sink.dat[8*i:8*i + 8], line[8*i:8*i + 8]))
                    for i in range(lanes)],
                mixed.by.eq(orders.lane - used),
                mixed.param.eq(orders.param),
            )
        ]

        # Turn.
        self.comb += mixed.ready.eq(~source.valid | source.ready)
        self.sync += If(mixed.ready,
            source.valid.eq(mixed.valid),
            source.dat.eq(rotate(mixed.dat, mixed.by)),
            source.param.eq(mixed.param),
        )
