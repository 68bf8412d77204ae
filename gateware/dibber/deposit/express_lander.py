"""Where EXPRESS packets land: small deposits in host memory, messages in the inbox."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.genlib.coding import PriorityEncoder

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, LANE, RIGHT, STATUS
from dibber.layouts import (arrival_layout, deposit_done_layout, deposit_layout, payload_layout,
    slot_write_port, write_layout)

from dibber.deposit.departures import Departures
from dibber.deposit.landing import Landing, landing_layout
from dibber.deposit.finder import finder_port
from dibber.deposit.pages import is_paged
from dibber.deposit.regions import lookup_port
from dibber.common.rotate import rotate
from dibber.packet.header import flag

PAGE_BITS = 12  # no write crosses 4 KiB

# Inbox --------------------------------------------------------------------------------------------

class InboxSlots(LiteXModule):
    """Which slots of the inbox are in use.

    Attributes
    ----------
    slot  : Signal, out    the lowest free one, if there is one; 2 cycles behind `take` and `free`
    hold  : Signal(), in   `slot` stays
    take  : Signal(), in   `slot` is in use from now on
    free  : Record, in     `strobe`, `slot`: it may be used again
    freed : Signal(), out  one cycle for each slot that was in use and is free again
    """
    def __init__(self):
        self.slot  = Signal(max=C.SLOTS)
        self.hold  = Signal()
        self.take  = Signal()
        self.free  = free = Record([("strobe", 1), ("slot", log2_int(C.SLOTS))])
        self.freed = Signal()

        # # #

        used = Signal(C.SLOTS)
        mine = Signal(C.SLOTS)
        self.pick = pick = PriorityEncoder(C.SLOTS)
        self.comb += [
            mine.eq(Mux(free.strobe, 1 << free.slot, 0)),
            pick.i.eq(~used),
        ]
        self.sync += [
            used.eq((used & ~mine) | Mux(self.take, 1 << self.slot, 0)),
            self.freed.eq((used & mine) != 0),
            If(~self.hold, self.slot.eq(pick.o)),
        ]

# Placement ----------------------------------------------------------------------------------------

class Placement(LiteXModule):
    """Look a deposit's region up and say where its lines go, or why they do not.

    Parameters
    ----------
    deposit      : Endpoint(deposit_layout), watched
    address_bits : 64 or 32

    Attributes
    ----------
    pages   : finder_port(), to the page finder
    start   : Signal(), in   `deposit` is new; it stands until the next `start`
    lookup  : lookup_port(), to the region table
    ready   : Signal(), out  the answer is there, until the next `start`
    reason  : Signal(8), out
    address : Signal(address_bits), out   of the first write
    page    : Signal, out        in which the second write begins
    crosses : Signal(), out  the bytes go into two pages
    first   : Signal(7), out bytes of the first write
    rest    : Signal(7), out bytes of the second, with `crosses`

    Cycles: 4 from `start` to `ready`; in a paged region 7 more for each page of 4 KiB, and what
    others ask and a read of the page table for those that were not used lately.
    """
    def __init__(self, deposit, address_bits=64):
        self.start   = Signal()
        self.lookup  = lookup = lookup_port()
        self.ready   = Signal()
        self.reason  = Signal(8)
        self.address = Signal(address_bits)
        self.page    = Signal(address_bits - PAGE_BITS)
        self.crosses = Signal()
        self.first   = Signal(7)
        self.rest    = Signal(7)

        # # #

        end     = Signal(49)  # behind the last byte, from the region's start
        outside = Signal()
        found   = Signal()
        allowed = Signal()
        placed  = Signal()
        room    = Signal(13)  # to the end of the first byte's page
        second  = Signal()    # the second page is being found
        ask     = Signal()
        self.pages = pages = finder_port(address_bits)
        self.comb += [
            lookup.valid.eq(self.start),
            lookup.key.eq(deposit.key),
            room.eq(2**PAGE_BITS - self.address[:PAGE_BITS]),
            pages.address.eq(Mux(second, Cat(Constant(0, PAGE_BITS), self.page), self.address)),
        ]
        self.sync += [
            end.eq(deposit.offset + deposit.length),
            placed.eq(lookup.done),
            If(lookup.done,
                self.address.eq(lookup.base + deposit.offset),
                found.eq(lookup.found),
                allowed.eq((lookup.rights & RIGHT.REMOTE_WRITE) != 0),
                outside.eq((deposit.length != 0) & ((end > lookup.length) | (deposit.far if address_bits < 64 else 0))),
            ),
            ask.eq(0),
            If(ask, pages.valid.eq(1)),
            If(placed,
                self.crosses.eq(deposit.length > room),
                self.first.eq(Mux(deposit.length > room, room, deposit.length)),
                self.rest.eq(deposit.length - room),
                self.page.eq(self.address[PAGE_BITS:] + 1),
                self.reason.eq(STATUS.OK),
                If(outside,  self.reason.eq(STATUS.REMOTE_BOUNDS)),
                If(~allowed, self.reason.eq(STATUS.REMOTE_NOT_PERMITTED)),
                If(~found,   self.reason.eq(STATUS.REMOTE_BAD_KEY)),
                second.eq(0),
                # An empty deposit has no place.
                If(is_paged(self.address) & found & allowed & ~outside & (deposit.length != 0),
                    ask.eq(1)
                ).Else(
                    self.ready.eq(1)
                )
            ),
            If(pages.done,
                If(second,
                    self.page.eq(pages.page),
                ).Else(
                    self.address[PAGE_BITS:].eq(pages.page),
                ),
                If(pages.fault, self.reason.eq(STATUS.REMOTE_READ_ERROR)),
                second.eq(1),
                pages.valid.eq(0),
                ask.eq(self.crosses & ~second),
                self.ready.eq(~self.crosses | second),
            ),
            If(self.start, self.ready.eq(0)),
        ]

# Express Lander -----------------------------------------------------------------------------------

class ExpressLander(LiteXModule):
    """Write deposits of up to INLINE_BYTES to host memory and messages into the inbox, in order.

    A packet has one block of payload, so once its first line is here it is good to its end; or that
    line has `error`, then the packet is forgotten. The receiver announces no more messages than the
    inbox has room for: it counts `inbox_freed`.

    Parameters
    ----------
    data_width : 64 or 128
    address_bits : 64 or 32

    Attributes
    ----------
    deposits    : Endpoint(deposit_layout), in
    payload     : Endpoint(payload_layout), in    a packet's lines without gaps between them
    lookup      : lookup_port(), to the region table
    pages       : finder_port(), to the page finder
    writes      : Endpoint(write_layout), out     a deposit's last one with `mark`
    marked      : Signal(), in                    a write with `mark` was taken by the PHY
    slot        : slot_write_port(data_width), master
    free        : Record, in                      `strobe`, `slot` of the inbox: it may be used
                  again
    inbox_freed : Signal(), out                   one cycle for each slot that came free
    done        : Endpoint(deposit_done_layout), out    a message is done when its arrival is queued
    departures  : Departures of packets
    arrivals    : Endpoint(arrival_layout), out   messages and notices, in the order of the packets

    Cycles: 2 from the first line at `payload` to the first at `writes`, if the deposit came 4
    earlier; then a line a cycle. From the last word of an 8-byte packet at the receiver to its
    write 5 in all. 1 a line of a message, and 3 from its last one to its arrival.
    """
    def __init__(self, data_width, address_bits=64):
        self.deposits = deposit = stream.Endpoint(deposit_layout(address_bits))
        self.payload  = stream.Endpoint(payload_layout(data_width))
        self.writes   = writes  = stream.Endpoint(write_layout(data_width))
        self.marked   = Signal()
        self.slot     = slot    = slot_write_port(data_width)
        self.done     = stream.Endpoint(deposit_done_layout())
        self.open     = Signal()
        self.arrivals = stream.Endpoint(arrival_layout())

        # # #

        width = data_width//8
        bits  = log2_int(width)

        # The payload comes from a block RAM and is turned next: not in the same cycle.
        self.pipe      = pipe      = stream.PipeValid(payload_layout(data_width))
        self.placement = placement = Placement(deposit, address_bits)
        self.inbox     = inbox     = InboxSlots()
        self.landing   = landing   = Landing(LANE.EXPRESS)
        self.lookup      = placement.lookup
        self.pages       = placement.pages
        self.free        = inbox.free
        self.inbox_freed = inbox.freed
        line = pipe.source
        self.comb += [
            self.payload.connect(pipe.sink),
            landing.marked.eq(self.marked),
            landing.done.connect(self.done),
            self.open.eq(landing.open),
            landing.arrivals.connect(self.arrivals),
        ]

        # Lines. A turned line gives its upper lanes to one line of memory and its lower ones to the
        # next. A page ends where a line ends, so two writes share no line.
        turned   = Signal(data_width)
        previous = Signal(data_width)
        below    = Signal(width)   # lanes before the first byte's
        lane     = Signal(bits)
        left     = Signal(7)       # bytes of this write from the line's lane 0 on
        step     = Signal()
        emit     = Signal()
        flush    = Signal()        # the payload's last line is in `turned`
        opening  = Signal()        # the write's first line
        second   = Signal()        # of two writes
        ending   = Signal()        # the write's last line
        final    = Signal()        # the deposit's
        self.comb += [
            step.eq(~writes.valid | writes.ready),
            ending.eq(left <= width),
            final.eq(ending & (second | ~placement.crosses)),
            *[writes.dat[8*n:8*n + 8].eq(Mux(below[n], previous[8*n:8*n + 8], turned[8*n:8*n + 8]))
                for n in range(width)],
        ]
        self.sync += If(step,
            writes.valid.eq(emit),
            If(emit,
                previous.eq(turned),
                turned.eq(rotate(line.dat, lane)),
                below.eq((1 << lane) - 1),
                writes.last.eq(ending),
                writes.mark.eq(second | ~placement.crosses),
                left.eq(left - width),
                flush.eq(flush | line.last),
                opening.eq(ending),
                If(opening,
                    writes.address.eq(Mux(second, Cat(Constant(0, PAGE_BITS), placement.page), placement.address)),
                    writes.length.eq(Mux(second, placement.rest, placement.first)),
                ),
                If(ending,
                    second.eq(1),
                    left.eq(placement.rest),
                ),
            ),
        )

        # Packets.
        message = Signal()
        refused = Signal()
        report  = Signal()
        begin   = Signal()
        number  = Signal(max=C.SLOT_BYTES//width)
        self.comb += refused.eq(~message & (placement.reason != STATUS.OK))
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            placement.start.eq(deposit.valid & ~deposit.is_message & landing.sink.ready),
            NextValue(message, deposit.is_message),
            NextValue(number, 0),
            If(deposit.valid & landing.sink.ready,
                NextState("PLACE"),
                If(deposit.is_message, NextState("MESSAGE"))
            )
        )
        fsm.act("PLACE",
            begin.eq(1),
            If(placement.ready,
                NextState("WRITE"),
                If(refused, NextState("DROP")),
                If(deposit.length == 0, NextState("REPORT"))
            )
        )
        fsm.act("WRITE",
            If(line.valid & line.error & ~flush,
                NextState("FORGET")
            ).Else(
                emit.eq(line.valid | flush),
                line.ready.eq(step & ~flush),
                If(emit & step & final,
                    report.eq(1),
                    deposit.ready.eq(1),
                    NextState("IDLE")
                )
            )
        )
        fsm.act("DROP",
            If(line.valid & line.error,
                NextState("FORGET")
            ).Else(
                line.ready.eq(1),
                If(line.valid & line.last, NextState("REPORT"))
            )
        )
        fsm.act("MESSAGE",
            If(line.valid & line.error,
                NextState("FORGET")
            ).Else(
                slot.valid.eq(line.valid),
                line.ready.eq(slot.ready),
                If(line.valid & slot.ready,
                    NextValue(number, number + 1),
                    If(line.last, NextState("REPORT"))
                )
            )
        )
        fsm.act("FORGET",
            line.ready.eq(1),
            deposit.ready.eq(1),
            NextState("IDLE")
        )
        fsm.act("REPORT",
            report.eq(1),
            deposit.ready.eq(1),
            inbox.take.eq(message),
            NextState("IDLE")
        )
        self.departures = Departures(fsm.ongoing("IDLE") & deposit.valid & landing.sink.ready,
            [landing.landed, fsm.ongoing("FORGET")], 32)
        self.sync += If(begin,
            lane.eq(placement.address),
            left.eq(placement.first + placement.address[:bits]),
            opening.eq(1),
            second.eq(0),
            flush.eq(0),
        )
        self.comb += [
            inbox.hold.eq(fsm.ongoing("MESSAGE") | fsm.ongoing("REPORT")),
            slot.adr.eq(Cat(number, inbox.slot, Constant(C.INBOX, 4))),
            slot.dat_w.eq(line.dat),
            slot.be.eq(2**width - 1),
            landing.sink.valid.eq(report),
            landing.sink.marked.eq(fsm.ongoing("WRITE")),
            landing.sink.node.eq(deposit.source),
            landing.sink.incarnation.eq(deposit.incarnation),
            landing.sink.psn.eq(deposit.psn),
            landing.sink.final.eq(flag(deposit.flags, "LAST")),
            landing.sink.alone.eq(1),
            landing.sink.notice.eq(message | flag(deposit.flags, "NOTICE")),
            landing.sink.interrupt.eq(flag(deposit.flags, "INTERRUPT")),
            landing.sink.key.eq(deposit.key),
            landing.sink.is_message.eq(message),
            landing.sink.slot.eq(inbox.slot),
            landing.sink.refused.eq(refused),
            If(message,
                landing.sink.value.eq(deposit.key),
                landing.sink.total.eq(deposit.length),
            ).Else(
                landing.sink.reason.eq(placement.reason),
                landing.sink.endpoint.eq(deposit.notice_endpoint),
                landing.sink.value.eq(deposit.notice),
                landing.sink.total.eq(deposit.notice_length),
            ),
        ]
