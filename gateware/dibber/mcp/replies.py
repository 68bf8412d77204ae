# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The way back of what atomics of other nodes have found."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, FAST_KIND, LANE
from dibber.layouts import fast_put_layout, request_layout

# Replies ------------------------------------------------------------------------------------------

class Replies(LiteXModule):
    """Offers replies, which lie in slots of the INBOX, to their flows, by turns with commands; what is not taken the control
    program sends.

    Nobody waits for room: that would be a wait for acknowledgements of a node, and atomics of others wait behind it.

    Attributes
    ----------
    enable   : Signal(), in    the fast path may reply
    sink     : Endpoint(request_layout), in
    commands : Endpoint(fast_put_layout), in    what else there is to be put
    put      : Endpoint(fast_put_layout), out
    taken    : Signal(), in    in the cycle of `put.ready`
    source   : Endpoint(request_layout), out    for the control program

    Cycles: 0 for commands; a reply is offered 1 behind `sink`, or behind the offer under way. What is not taken 1 more.
    """
    def __init__(self):
        self.enable   = enable   = Signal()
        self.sink     = sink     = stream.Endpoint(request_layout())
        self.commands = commands = stream.Endpoint(fast_put_layout())
        self.put      = put      = stream.Endpoint(fast_put_layout())
        self.taken    = taken    = Signal()
        self.source   = source   = stream.Endpoint(request_layout())

        # # #

        turn   = Signal()  # a reply is offered
        missed = Signal()  # it is the program's
        self.comb += [
            If(turn,
                put.valid.eq(1),
                put.last.eq(1),
                put.kind.eq(FAST_KIND.REPLY),
                put.lane.eq(LANE.EXPRESS),
                put.node.eq(sink.node),
                put.endpoint.eq(C.INBOX),
                put.slot.eq(sink.slot),
                put.cookie.eq(sink.word),
            ).Else(
                commands.connect(put)
            ),
            sink.connect(source, omit={"valid", "ready"}),
            source.valid.eq(missed),
            sink.ready.eq(Mux(missed, source.ready, turn & put.ready & taken)),
        ]
        self.sync += [
            If(turn,
                If(put.ready,
                    turn.eq(0),
                    missed.eq(~taken),
                )
            ).Elif(sink.valid & ~missed,
                If(~enable,
                    missed.eq(1)
                ).Elif(~commands.valid | commands.ready,
                    turn.eq(1)
                )
            ),
            If(source.valid & source.ready, missed.eq(0)),
        ]
