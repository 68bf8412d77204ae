"""What others ask for, looked at by hardware first."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.places import BlockFIFO
from dibber.endpoint.arrivals import asking_layout
from dibber.interface.description import C, MESSAGE
from dibber.layouts import arrival_layout, request_layout

PLACES = 16  # arrivals that may wait for the control program

# Requests -----------------------------------------------------------------------------------------

class Requests(LiteXModule):
    """Offers the gets among the arrivals to the fast path; what that does not take goes to the
    control program, as all else. But atomics go to the unit that executes them, whatever the
    program does.

    An arrival waits until the one before it was looked at, so that all that the program gets is in
    the order in which it came. Nobody waits for room here: that would be a wait for
    acknowledgements of another node, which may wait for this one's. But when the program has armed
    a flow while a get waited for it, it may have that offered `again`, so that it need not claim
    what it has just armed.

    Attributes
    ----------
    sink   : Endpoint(asking_layout), in
    offer  : Endpoint(request_layout), out    a get that lies in a slot of the INBOX
    taken  : Signal(), in                     in the cycle of `offer.ready`: it is answered, and its
             slot is not the program's
    atomics : Endpoint(request_layout), out   atomics in the order of arrival; there is a place for
              each slot of the INBOX
    source : Endpoint(arrival_layout), out    for the control program
    again  : Signal(), in                     in a cycle with `source.valid`, a get: it is not the
             program's before it was offered again
    twice  : Signal(), out                    it was

    Cycles: 2; a get that is not taken as many more as the look takes.
    """
    def __init__(self):
        self.sink    = sink    = stream.Endpoint(asking_layout())
        self.offer   = offer   = stream.Endpoint(request_layout())
        self.taken   = taken   = Signal()
        self.atomics = atomics = stream.Endpoint(request_layout())
        self.source  = source  = stream.Endpoint(arrival_layout())
        self.again   = Signal()
        self.twice   = twice   = Signal()

        # # #

        # The word's lowest byte is known.
        context = sink.value[8:]
        self.adds  = adds  = BlockFIFO([("node", len(atomics.node)), ("slot", len(atomics.slot)), ("context", len(context))], C.SLOTS)
        self.queue = queue = BlockFIFO(arrival_layout(), PLACES)
        head    = queue.source
        atomic  = Signal()
        mine    = Signal()
        missed  = Signal()  # it was looked at
        retry   = Signal()  # the program has not the head: it is to be offered again
        turn    = Signal()  # that is done
        first   = Signal()  # the one that has just come is offered
        self.comb += [
            atomic.eq(sink.atomic),
            mine.eq(sink.get & ~missed),
            adds.sink.valid.eq(sink.valid & atomic),
            adds.sink.node.eq(sink.node),
            adds.sink.slot.eq(sink.slot),
            adds.sink.context.eq(context),
            adds.source.connect(atomics, omit={"context"}),
            atomics.word.eq(Cat(Constant(MESSAGE.ATOMIC, 8), adds.source.context)),

            first.eq(sink.valid & mine & ~turn),
            offer.valid.eq(first | turn),
            offer.last.eq(1),
            *[getattr(offer, name).eq(Mux(turn, getattr(head, field), getattr(sink, field)))
                for name, field in [("node", "node"), ("slot", "slot"), ("word", "value")]],
            sink.connect(queue.sink, omit={"valid", "ready", "get", "atomic"}),
            queue.sink.valid.eq(sink.valid & ~mine & ~atomic),
            sink.ready.eq(Mux(atomic, adds.sink.ready, Mux(mine, first & offer.ready & taken, queue.sink.ready))),
            head.connect(source, omit={"valid", "ready"}),
            source.valid.eq(head.valid & ~retry),
            head.ready.eq((source.valid & source.ready) | (turn & offer.ready & taken)),
        ]
        self.sync += [
            If(first & offer.ready & ~taken, missed.eq(1)),
            If(sink.valid & sink.ready, missed.eq(0)),
            If(turn,
                If(offer.ready,
                    turn.eq(0),
                    retry.eq(0),
                )
            ).Elif(retry & (~first | offer.ready),
                turn.eq(1)
            ),
            If(self.again & source.valid,
                retry.eq(1),
                twice.eq(1),
            ),
            If(head.ready, twice.eq(0)),
        ]
