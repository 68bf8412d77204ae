"""BAR 2 beside BAR 0: which of the two a request is for, and whose answer leaves next."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.host import tlp

class ApertureSplit(LiteXModule):
    """Divide the host's writes and reads between BAR 0 and the aperture, and join their answers.

    The highest bit of an address tells the aperture. Neither side waits for the other: writes are
    always taken, `loads` must always be ready, and an answer of the aperture is one completion,
    which leaves when BAR 0 has none.

    Parameters
    ----------
    data_width : 64, 128 or 256
    receiver   : TLPReceiver with an aperture
    bar        : BARDecoder

    Attributes
    ----------
    stores  : Endpoint(line_layout), out     valid only; `adr` counts from the aperture's start
    loads   : Endpoint(request_layout), out
    answers : Endpoint(reply_layout), in     the lines of one completion come without gaps
    replies : Endpoint(reply_layout), out    to the transmitter
    """
    def __init__(self, data_width, receiver, bar):
        writes, requests = receiver.writes, receiver.requests
        self.stores  = stores  = stream.Endpoint(tlp.line_layout(data_width, len(writes.adr) - 1))
        self.loads   = loads   = stream.Endpoint(tlp.request_layout(len(requests.offset) - 1))
        self.answers = answers = stream.Endpoint(tlp.reply_layout(data_width))
        self.replies = replies = stream.Endpoint(tlp.reply_layout(data_width))

        # # #

        # A refused request gets its Unsupported Request from BAR 0, whatever its address is.
        load = requests.offset[-1] & requests.memory & ~requests.refused
        self.comb += [
            *[getattr(sink, name).eq(getattr(writes, name))
                for sink in (bar.writes, stores) for name in ["adr", "dat", "be"]],
            bar.writes.valid.eq(writes.valid & ~writes.adr[-1]),
            stores.valid.eq(writes.valid & writes.adr[-1]),
            *[getattr(sink, name).eq(getattr(requests, name))
                for sink in (bar.requests, loads) for name, *_ in requests.description.payload_layout],
            bar.requests.valid.eq(requests.valid & ~load),
            loads.valid.eq(requests.valid & load),
            requests.ready.eq(Mux(load, loads.ready, bar.requests.ready)),
        ]

        # A completion that has begun goes on.
        going = Signal()
        ours  = Signal()   # it is the aperture's
        turn  = Signal()
        self.comb += [
            turn.eq(Mux(going, ours, ~bar.replies.valid)),
            If(turn, answers.connect(replies)).Else(bar.replies.connect(replies)),
        ]
        self.sync += If(replies.valid & replies.ready,
            going.eq(~replies.last),
            ours.eq(turn),
        )
