"""Notices of other nodes become event queue entries without the control program."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.endpoint.arrivals import asking_layout, kinds_of
from dibber.interface.description import C, ENTRY, STATUS
from dibber.layouts import arrival_layout, entry_layout

# Event Writer -------------------------------------------------------------------------------------

class EventWriter(LiteXModule):
    """Turns notices into event queue entries; all other arrivals go on to the control program.

    One register holds the arrival, so that order is kept: the entry that the control program posts
    for a message comes after those of the notices before it.

    Parameters
    ----------
    endpoints : of the card

    Attributes
    ----------
    enable   : Signal(), in                     0: notices go to the control program, too
    sink     : Endpoint(arrival_layout), in
    source   : Endpoint(asking_layout), out     for the control program
    entry    : Endpoint(entry_layout), out      to QueueWriter
    counters : FAST_EVENTS; EVENTS_LOST, notices for an endpoint that does not exist. Notices whose
               queue is full or closed count in FAST_EVENTS, and QueueWriter counts them as lost

    Cycles: 1.
    """
    def __init__(self, endpoints=C.ENDPOINTS):
        self.enable   = Signal()
        self.sink     = sink   = stream.Endpoint(arrival_layout())
        self.source   = source = stream.Endpoint(asking_layout())
        self.entry    = entry  = stream.Endpoint(entry_layout())
        self.counters = {"FAST_EVENTS": Signal(), "EVENTS_LOST": Signal()}

        # # #

        # The way of an arrival is decided when it comes, so that no offer is withdrawn when
        # `enable` changes.
        becomes_event = Signal()
        has_endpoint  = Signal()
        waiting       = Signal()
        is_event      = Signal()
        arrival       = Record(arrival_layout().payload_layout)
        self.comb += [
            becomes_event.eq(self.enable & ~sink.is_message & ~sink.response),
            has_endpoint.eq(sink.endpoint < endpoints),
            sink.ready.eq(~waiting | Mux(is_event, entry.ready, source.ready)),
        ]
        self.sync += [
            If(sink.ready,
                waiting.eq(sink.valid & (has_endpoint | ~becomes_event)),
                is_event.eq(becomes_event),
                arrival.eq(sink.payload),
                # Decoded a cycle early, because engines wait for the result.
                *[getattr(source, name).eq(kind) for name, kind in kinds_of(sink).items()],
            ),
            self.counters["FAST_EVENTS"].eq(sink.valid & sink.ready & becomes_event & has_endpoint),
            self.counters["EVENTS_LOST"].eq(sink.valid & sink.ready & becomes_event & ~has_endpoint),
        ]
        self.comb += [
            source.valid.eq(waiting & ~is_event),
            source.payload.eq(arrival),
            entry.valid.eq(waiting & is_event),
            entry.queue.eq(C.ENDPOINTS + arrival.endpoint[:log2_int(C.ENDPOINTS)]),
            entry.cookie.eq(arrival.value),
            entry.length.eq(arrival.length),
            entry.node.eq(arrival.node),
            entry.kind.eq(ENTRY.NOTICE),
            entry.status.eq(STATUS.OK),
            entry.key.eq(arrival.key),
            entry.interrupt.eq(arrival.interrupt),
        ]
