"""The endpoints as one block: slots, doorbells, queues, and what arrives."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.common.pulses import Pulses
from dibber.endpoint.arrivals import Arrivals
from dibber.endpoint.doorbells import EndpointPages, connect_count
from dibber.endpoint.events import EventWriter
from dibber.endpoint.queues import QueueWriter, queue_open_layout
from dibber.endpoint.room import if_present
from dibber.endpoint.slots import Slots
from dibber.endpoint.turns import CommandTurns
from dibber.interface.description import C
from dibber.interface.register_bank import connect_lines

class Endpoints(LiteXModule):
    """What each process sees of the card: its pages in BAR 0, and its queues in host memory.

    A doorbell makes `turns` offer the endpoint's next command. The completion of a command, and the
    event of a notice, go through `queues` to host memory.

    Parameters
    ----------
    data_width   : bits of a line
    endpoints    : of the card, a power of two
    address_bits : see QueueWriter
    readers, writers : how many other blocks read and write slots
    favourite, late  : see Slots

    Attributes
    ----------
    port     : line_port(data_width)   the host's window on the endpoints' pages
    pages    : EndpointPages
    slots    : Slots            `readers` and `writers` are the core's to connect
    turns    : CommandTurns     offers commands
    arrivals : Arrivals         notices and messages from the engines
    events   : EventWriter      notices become events
    queues   : QueueWriter      writes entries of completion and event queues; its last sink is
               that of `events`
    open     : Record(queue_open_layout), in   a queue is opened or closed
    halted   : Signal(), in     the control program is halted
    clear    : Signal(), in     with `halted`: what belongs to entry `index` of its table is emptied
    index    : Signal, in
    stopped  : list of modules that are in reset while the control program is halted
    counters : dict of pulses by their names in the interface description
    """
    def __init__(self, data_width, endpoints, address_bits, readers, writers, favourite, late):
        self.pages    = pages    = EndpointPages(data_width, endpoints)
        self.slots    = slots    = Slots(data_width, readers, writers, favourite=favourite, late=late, present=endpoints)
        self.turns    = turns    = CommandTurns(endpoints)
        self.arrivals = arrivals = Arrivals(sinks=2)
        self.events   = events   = EventWriter(endpoints)
        self.queues   = queues   = QueueWriter(endpoints=endpoints, address_bits=address_bits)
        self.lost     = lost     = Pulses(queues.counters["EVENTS_LOST"], events.counters["EVENTS_LOST"])

        self.port     = pages.port
        self.open     = opened = Record(queue_open_layout())
        self.halted   = Signal()
        self.clear    = Signal()
        self.index    = Signal(max=max(C.REGIONS, C.ENDPOINTS*C.SLOTS))
        self.stopped  = [pages.doorbells, turns, events, queues]
        self.counters = {**pages.counters, "FAST_EVENTS": events.counters["FAST_EVENTS"], "EVENTS_LOST": lost.pulse}

        # # #

        # Pages and doorbells.
        self.comb += [
            *connect_lines(pages.slots, slots.port),
            *connect_count(turns.producer, pages.producer[0]),
            *connect_count(turns.cq_consumer, pages.cq_consumer),
            *connect_count(queues.eq_consumer, pages.eq_consumer),
            *connect_count(pages.head, turns.heads[0]),
            turns.rung.eq(pages.rung),
        ]

        # Queues. Those of numbers below ENDPOINTS are completion queues.
        completion = ~opened.queue[log2_int(C.ENDPOINTS)]
        self.comb += [
            queues.open.eq(opened),
            turns.open.strobe.eq(if_present(endpoints, opened.queue, opened.strobe & completion)),
            turns.open.endpoint.eq(opened.queue),
            *[getattr(turns.open, name).eq(getattr(opened, name)) for name in ["size", "closed"]],
            events.entry.connect(queues.sinks[-1]),
        ]

        # Halt.
        self.comb += [
            arrivals.halted.eq(self.halted),
            arrivals.sweep.eq(self.clear & (self.index < C.SLOTS)),
            arrivals.index.eq(self.index),
            *[[part.held.eq(self.halted), part.index.eq(self.index)] for part in (pages.doorbells, turns)],
        ]
