# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""What others ask for, looked at by hardware first."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, MESSAGE
from dibber.layouts import arrival_layout, request_layout
from dibber.places import BlockFIFO

# Requests -----------------------------------------------------------------------------------------

class Requests(LiteXModule):
    """Offers the gets among the arrivals to the fast path; what that does not take goes to the control program, as all else.
    But atomics go to the unit that executes them, whatever the program does.

    An arrival waits until the one before it was looked at, so that all that the program gets is in the order in which
    it came. Nobody waits for room here: that would be a wait for acknowledgements of another node, which may
    wait for this one's.

    Attributes
    ----------
    sink   : Endpoint(arrival_layout), in
    offer  : Endpoint(request_layout), out    a get that lies in a slot of the INBOX
    taken  : Signal(), in                     in the cycle of `offer.ready`: it is answered, and its slot is not the program's
    atomics : Endpoint(request_layout), out   atomics in the order of arrival; there is a place for each slot of the INBOX
    source : Endpoint(arrival_layout), out    for the control program

    Cycles: 0, an atomic 2; a get that is not taken as many as the look takes.
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(arrival_layout())
        self.offer  = offer  = stream.Endpoint(request_layout())
        self.taken  = taken  = Signal()
        self.atomics = atomics = stream.Endpoint(request_layout())
        self.source = source = stream.Endpoint(arrival_layout())

        # # #

        # The word's lowest byte is known.
        context    = sink.value[8:]
        self.queue = queue = BlockFIFO([("node", len(atomics.node)), ("slot", len(atomics.slot)), ("context", len(context))], C.SLOTS)
        request = Signal()  # a message of a node that there can be
        atomic  = Signal()
        mine   = Signal()
        missed = Signal()  # it was looked at
        self.comb += [
            request.eq(sink.is_message & (sink.node[log2_int(C.NODES):] == 0)),
            atomic.eq(request & (sink.value[:8] == MESSAGE.ATOMIC)),
            mine.eq(request & (sink.value[:8] == MESSAGE.GET) & ~missed),
            queue.sink.valid.eq(sink.valid & atomic),
            queue.sink.node.eq(sink.node),
            queue.sink.slot.eq(sink.slot),
            queue.sink.context.eq(context),
            queue.source.connect(atomics, omit={"context"}),
            atomics.word.eq(Cat(Constant(MESSAGE.ATOMIC, 8), queue.source.context)),
            offer.valid.eq(sink.valid & mine),
            offer.last.eq(1),
            offer.node.eq(sink.node),
            offer.slot.eq(sink.slot),
            offer.word.eq(sink.value),
            sink.connect(source, omit={"valid", "ready"}),
            source.valid.eq(sink.valid & ~mine & ~atomic),
            sink.ready.eq(Mux(atomic, queue.sink.ready, Mux(mine, offer.ready & taken, source.ready))),
        ]
        self.sync += [
            If(offer.valid & offer.ready & ~taken, missed.eq(1)),
            If(sink.valid & sink.ready, missed.eq(0)),
        ]
