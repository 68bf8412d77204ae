"""Replies to atomics of other nodes, sent by the fast path."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.places import Place
from dibber.interface.description import C, FAST_KIND, LANE
from dibber.layouts import fast_put_layout, request_layout

# Replies ------------------------------------------------------------------------------------------

class Replies(LiteXModule):
    """Offers replies to their flows, in turn with commands. A reply lies in a slot of the INBOX.
    The control program sends those that are not taken.

    A reply never waits for room: it would wait for acknowledgements of one node, and atomics of
    other nodes wait behind it. If the program has armed the flow, it may have a reply offered
    `again`, so that it need not claim the flow that it has just armed.

    Attributes
    ----------
    enable   : Signal(), in    the fast path may reply
    sink     : Endpoint(request_layout), in
    commands : Endpoint(fast_put_layout), in    puts of commands
    coming   : Signal(), in                     the put at `commands` is being looked up
    put      : Endpoint(fast_put_layout), out
    taken    : Signal(), in    in the cycle of `put.ready`
    source   : Endpoint(request_layout), out    for the control program
    again    : Signal(), in    in a cycle with `source.valid`: offer the reply again; if it is not
               taken, it shows at `source` again
    twice    : Signal(), out   the reply at `source` was offered again

    Cycles: 0 for commands. A reply is offered after 2, or after the offer under way. One that is
    not taken shows at `source` 1 later.
    """
    def __init__(self):
        self.enable   = enable   = Signal()
        self.sink     = sink     = stream.Endpoint(request_layout())
        self.commands = commands = stream.Endpoint(fast_put_layout())
        self.coming   = Signal()
        self.put      = put      = stream.Endpoint(fast_put_layout())
        self.taken    = taken    = Signal()
        self.source   = source   = stream.Endpoint(request_layout())
        self.again    = Signal()
        self.twice    = twice    = Signal()

        # # #

        self.place = place = Place(request_layout())
        reply  = place.source
        turn   = Signal()  # a reply is on offer
        missed = Signal()  # the reply was not taken: it is for the program
        self.comb += [
            If(turn,
                put.valid.eq(1),
                put.last.eq(1),
                put.kind.eq(FAST_KIND.REPLY),
                put.lane.eq(LANE.EXPRESS),
                put.node.eq(reply.node),
                put.endpoint.eq(C.INBOX),
                put.slot.eq(reply.slot),
                put.cookie.eq(reply.word),
            ).Else(
                commands.connect(put)
            ),
            sink.connect(place.sink),
            reply.connect(source, omit={"valid", "ready"}),
            source.valid.eq(missed),
            reply.ready.eq(Mux(missed, source.ready & ~self.again, turn & put.ready & taken)),
        ]
        self.sync += [
            If(turn,
                If(put.ready,
                    turn.eq(0),
                    missed.eq(~taken),
                )
            ).Elif(reply.valid & ~missed,
                If(~enable,
                    missed.eq(1)
                ).Elif(~(commands.valid | self.coming) | commands.ready,
                    turn.eq(1)
                )
            ),
            If(missed & (source.ready | self.again),
                missed.eq(0),
                twice.eq(1),
            ),
            If(reply.ready, twice.eq(0)),
        ]
