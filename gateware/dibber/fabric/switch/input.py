"""One channel of one input of the switch: the packet at its head, and where it goes."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.fabric.switch.prefix import FAULT_NONE, FAULT_PREFIX, FAULT_ROUTE_END, order_layout
from dibber.interface.description import SWITCH_DROP
from dibber.layouts import word_layout

# Ticks that a packet may take from its grant to its end. A tick is an eighth of the limit, so a
# packet is cut between 7/8 of the limit and the limit.
LIMIT_TICKS = 8

# Ticks that a packet may wait for its grant. They are more: a packet that waits for a holder that
# is cut must not be dropped in the same tick.
WAIT_TICKS = LIMIT_TICKS + 1

# Layouts ------------------------------------------------------------------------------------------

def lane_layout():
    """What an input shows to all outputs. The output that granted it looks.

    valid : a word is offered
    data, last, bad : that word
    behind : number of prefix words that the packet still has
    cut   : the packet ends here, without this word. Not together with `valid`
    """
    return [("valid", 1), ("data", 32), ("last", 1), ("bad", 1), ("behind", 3), ("cut", 1)]

def drop_layout():
    """A packet is dropped, in a cycle with `strobe`; `reason` as enum switch_drop."""
    return [("strobe", 1), ("reason", SWITCH_DROP.bits)]

# Switch Input -------------------------------------------------------------------------------------

class SwitchInput(LiteXModule):
    """Ask the output of each packet for its channel, pass the packet's words, discard what is
    dropped.

    It has one state for each part of a packet's way: HEAD waits for the order, BUSY waits for the
    grant and passes words, DISCARD takes the rest of a dropped packet.

    Parameters
    ----------
    ports  : of the switch, a power of two
    number : of this input's port

    Attributes
    ----------
    sink     : Endpoint(word_layout), in    packets, the first word is an order
    lane     : Record(lane_layout), out
    request  : Signal(ports), out           one-hot: the output that the packet waits for; 0 if none
    granted  : Signal(), in                 an output takes words from this input
    taken    : Signal(), in                 with `granted`: it takes a word now, if one is offered
    down     : Signal(ports), in            outputs whose link is not UP
    disabled : Signal(ports), in            outputs that are disabled
    stuck    : Signal(ports), in            outputs that have not taken a word for long
    tick     : Signal(), in                 an eighth of the limit went by
    passed   : Signal(), out                a good packet was passed on whole
    bad      : Signal(), out                a packet that came in bad was dropped or passed on
    drop     : Record(drop_layout), out
    ends     : Signal(), out                the word at the sink is the order of a packet whose route
               ends here; it is taken
    discards : Signal(), out                the word at the sink is of a dropped packet; it is taken

    Cycles: 1 from the order to `request`; 0 from sink to lane. `taken` is late in the cycle.
    """
    def __init__(self, ports, number):
        self.sink     = sink = stream.Endpoint(word_layout())
        self.lane     = lane = Record(lane_layout())
        self.request  = Signal(ports)
        self.granted  = Signal()
        self.taken    = Signal()
        self.down     = Signal(ports)
        self.disabled = Signal(ports)
        self.stuck    = Signal(ports)
        self.tick     = Signal()
        self.passed   = Signal()
        self.bad      = Signal()
        self.drop     = drop = Record(drop_layout())
        self.ends     = Signal()
        self.discards = Signal()

        # # #

        # Order ------------------------------------------------------------------------------------
        busy    = Signal()
        discard = Signal()
        head    = Signal()
        order   = Record(order_layout())
        output  = Signal(log2_int(ports))
        target  = Signal(ports)  # one-hot
        fault   = Signal.like(order.fault)
        self.comb += [
            head.eq(~busy & ~discard),
            order.raw_bits().eq(sink.data),
            # Output = input + turn, modulo the number of ports.
            output.eq(order.turn[:len(output)] + number),
        ]
        self.sync += If(head,
            target.eq(1 << output),
            fault.eq(order.fault),
            lane.behind.eq(order.behind),
        )

        # Limit ------------------------------------------------------------------------------------
        ticks   = Signal(max=WAIT_TICKS)
        overdue = Signal()
        held    = Signal()  # the grant was there in the cycle before
        self.sync += [
            held.eq(self.granted),
            If(self.tick,
                ticks.eq(ticks + 1),
                If(ticks == Mux(self.granted, LIMIT_TICKS - 1, WAIT_TICKS - 1), overdue.eq(1))
            ),
            If(head | (self.granted & ~held),
                ticks.eq(0),
                overdue.eq(0)
            ),
        ]

        # Refusal ----------------------------------------------------------------------------------
        is_down   = Signal()
        is_stuck  = Signal()
        off       = Signal()
        refused   = Signal()  # the packet at the head must not begin
        cut       = Signal()  # the packet that is being passed must end
        passes    = Signal()  # a word passes
        ends      = Signal()  # with `passes`: the last one
        self.comb += [
            is_down.eq((target & self.down) != 0),
            is_stuck.eq((target & self.stuck) != 0),
            off.eq((target & self.disabled) != 0),
            refused.eq((fault != FAULT_NONE) | is_down | is_stuck | overdue),
            cut.eq(busy & self.granted & (is_down | (held & overdue))),
            If(fault == FAULT_ROUTE_END,
                drop.reason.eq(SWITCH_DROP.ROUTE_END)
            ).Elif(fault == FAULT_PREFIX,
                drop.reason.eq(SWITCH_DROP.PREFIX)
            ).Elif(is_down,
                drop.reason.eq(Mux(off, SWITCH_DROP.DISABLED, SWITCH_DROP.DOWN))
            ).Elif(self.granted & self.taken,
                drop.reason.eq(SWITCH_DROP.LATE)
            ).Else(
                drop.reason.eq(SWITCH_DROP.BLOCKED)
            ),
        ]

        # Words ------------------------------------------------------------------------------------
        only = Signal()  # the order is the packet's only word
        self.comb += [
            self.request.eq(Mux(busy & ~self.granted & ~refused, target, 0)),
            lane.valid.eq(sink.valid & busy & ~cut),
            lane.data.eq(sink.data),
            lane.last.eq(sink.last),
            lane.bad.eq(sink.bad),
            lane.cut.eq(cut),
            passes.eq(lane.valid & self.granted & self.taken),
            ends.eq(passes & sink.last),
            only.eq(head & sink.valid & sink.last),
            sink.ready.eq(head | discard | passes),
            self.passed.eq(ends & ~sink.bad),
            self.ends.eq(head & sink.valid & ~sink.last & (order.fault == FAULT_ROUTE_END)),
            self.discards.eq(discard & sink.valid),
            self.bad.eq((ends | only) & sink.bad),
            If(busy,
                drop.strobe.eq(Mux(self.granted, cut, refused))
            ).Elif(only & ~sink.bad,
                drop.strobe.eq(1),
                drop.reason.eq(SWITCH_DROP.PREFIX)
            ),
        ]
        self.sync += [
            If(head & sink.valid & ~sink.last, busy.eq(1)),
            If(ends | (busy & drop.strobe), busy.eq(0)),
            If(busy & drop.strobe, discard.eq(1)),
            If(discard & sink.valid & sink.last, discard.eq(0)),
        ]
