"""Requests of other nodes, which hardware looks at before the control program."""

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
    """Offers gets of other nodes to the fast path, and sends atomics to the atomic unit. A get that
    the fast path does not take, and all other arrivals, go to the control program.

    An arrival waits until the one before it was looked at. So the control program gets its arrivals
    in the order in which they came. A get never waits for room in the fast path. It would wait for
    acknowledgements of another node, and that node may wait for this one.

    The program may arm a flow while a get waits for the program. Then it may have the get offered
    `again`, so that it need not claim the flow that it has just armed.

    Attributes
    ----------
    sink   : Endpoint(asking_layout), in
    offer  : Endpoint(request_layout), out    a get that lies in a slot of the INBOX
    taken  : Signal(), in                     in the cycle of `offer.ready`: the fast path answers
             the get and frees its slot
    atomics : Endpoint(request_layout), out   atomics in the order of arrival; the FIFO has a place
              for each slot of the INBOX
    source : Endpoint(arrival_layout), out    for the control program
    again  : Signal(), in                     in a cycle with `source.valid`, if `source` is a get:
             offer it to the fast path again first
    twice  : Signal(), out                    the get at `source` was offered again

    Cycles: 2. A get that is not taken takes as many more as the look at it.
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

        # The lowest byte of the word is the opcode.
        context = sink.value[8:]
        self.adds  = adds  = BlockFIFO([("node", len(atomics.node)), ("slot", len(atomics.slot)), ("context", len(context))], C.SLOTS)
        self.queue = queue = BlockFIFO(arrival_layout(), PLACES)
        head    = queue.source
        atomic  = Signal()
        get     = Signal()  # `sink` is a get that was not offered yet
        missed  = Signal()  # the get at `sink` was offered, and not taken
        retry   = Signal()  # the head is hidden from the program, to be offered again
        turn    = Signal()  # the head is on offer again
        first   = Signal()  # the get at `sink` is on offer
        self.comb += [
            atomic.eq(sink.atomic),
            get.eq(sink.get & ~missed),
            adds.sink.valid.eq(sink.valid & atomic),
            adds.sink.node.eq(sink.node),
            adds.sink.slot.eq(sink.slot),
            adds.sink.context.eq(context),
            adds.source.connect(atomics, omit={"context"}),
            atomics.word.eq(Cat(Constant(MESSAGE.ATOMIC, 8), adds.source.context)),

            first.eq(sink.valid & get & ~turn),
            offer.valid.eq(first | turn),
            offer.last.eq(1),
            *[getattr(offer, name).eq(Mux(turn, getattr(head, field), getattr(sink, field)))
                for name, field in [("node", "node"), ("slot", "slot"), ("word", "value")]],
            sink.connect(queue.sink, omit={"valid", "ready", "get", "atomic"}),
            queue.sink.valid.eq(sink.valid & ~get & ~atomic),
            sink.ready.eq(Mux(atomic, adds.sink.ready, Mux(get, first & offer.ready & taken, queue.sink.ready))),
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
