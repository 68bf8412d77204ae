"""Destination of EXPRESS packets: small deposits to host memory, messages to the inbox."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.genlib.coding import PriorityEncoder

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, LANE, RIGHT, STATUS
from dibber.layouts import (arrival_layout, deposit_done_layout, deposit_layout, payload_layout,
    slot_write_port, write_layout)

from dibber.deposit.departures import Departures
from dibber.deposit.landing import Landing
from dibber.deposit.finder import finder_port
from dibber.deposit.pages import is_paged
from dibber.deposit.regions import lookup_port
from dibber.common.rotate import rotate
from dibber.packet.header import flag

PAGE_BITS = 12  # no write crosses 4 KiB

# Inbox --------------------------------------------------------------------------------------------

class InboxSlots(LiteXModule):
    """The free slots of the inbox.

    Attributes
    ----------
    slot  : Signal, out    the lowest free slot, if any; 2 cycles after `take` and `free`
    hold  : Signal(), in   `slot` must not change
    take  : Signal(), in   `slot` is in use from now on
    free  : Record, in     `strobe`, `slot`: the slot is free again
    freed : Signal(), out  one cycle for each slot that was in use and becomes free
    """
    def __init__(self):
        self.slot  = Signal(max=C.SLOTS)
        self.hold  = Signal()
        self.take  = Signal()
        self.free  = free = Record([("strobe", 1), ("slot", log2_int(C.SLOTS))])
        self.freed = Signal()

        # # #

        in_use     = Signal(C.SLOTS)
        freed_mask = Signal(C.SLOTS)
        self.pick = pick = PriorityEncoder(C.SLOTS)
        self.comb += [
            freed_mask.eq(Mux(free.strobe, 1 << free.slot, 0)),
            pick.i.eq(~in_use),
        ]
        self.sync += [
            in_use.eq((in_use & ~freed_mask) | Mux(self.take, 1 << self.slot, 0)),
            self.freed.eq((in_use & freed_mask) != 0),
            If(~self.hold, self.slot.eq(pick.o)),
        ]

# Placement ----------------------------------------------------------------------------------------

class Placement(LiteXModule):
    """Look up a deposit's region; give the addresses of its writes, or the reason for its refusal.

    Parameters
    ----------
    deposit      : Endpoint(deposit_layout), only observed
    address_bits : 64 or 32

    Attributes
    ----------
    pages   : finder_port(), to the page finder
    start   : Signal(), in   `deposit` is new; it stays until the next `start`
    lookup  : lookup_port(), to the region table
    ready   : Signal(), out  the result is valid, until the next `start`
    reason  : Signal(8), out
    address : Signal(address_bits), out   of the first write
    page    : Signal, out        page number of the second write
    crosses : Signal(), out  the bytes lie in two pages, so there are two writes
    first   : Signal(7), out bytes of the first write
    rest    : Signal(7), out bytes of the second write, with `crosses`

    Cycles: 4 from `start` to `ready`. In a paged region 7 more for each 4 KiB page, plus the wait
    for other users of the finder, plus a read of the page table if the line is not cached.
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

        end_offset  = Signal(49)  # one past the last byte, from the region's start
        outside     = Signal()
        found       = Signal()
        allowed     = Signal()
        looked_up   = Signal()
        page_room   = Signal(13)  # bytes to the end of the first byte's page
        second_page = Signal()   # the finder works on the second page
        ask         = Signal()
        self.pages = pages = finder_port(address_bits)
        self.comb += [
            lookup.valid.eq(self.start),
            lookup.key.eq(deposit.key),
            page_room.eq(2**PAGE_BITS - self.address[:PAGE_BITS]),
            pages.address.eq(
                Mux(second_page, Cat(Constant(0, PAGE_BITS), self.page), self.address)),
        ]
        self.sync += [
            end_offset.eq(deposit.offset + deposit.length),
            looked_up.eq(lookup.done),
            If(lookup.done,
                self.address.eq(lookup.base + deposit.offset),
                found.eq(lookup.found),
                allowed.eq((lookup.rights & RIGHT.REMOTE_WRITE) != 0),
                outside.eq(
                    (deposit.length != 0) &
                    ((end_offset > lookup.length) | (deposit.far if address_bits < 64 else 0))),
            ),
            ask.eq(0),
            If(ask, pages.valid.eq(1)),
            If(looked_up,
                self.crosses.eq(deposit.length > page_room),
                self.first.eq(Mux(deposit.length > page_room, page_room, deposit.length)),
                self.rest.eq(deposit.length - page_room),
                self.page.eq(self.address[PAGE_BITS:] + 1),
                self.reason.eq(STATUS.OK),
                If(outside,  self.reason.eq(STATUS.REMOTE_BOUNDS)),
                If(~allowed, self.reason.eq(STATUS.REMOTE_NOT_PERMITTED)),
                If(~found,   self.reason.eq(STATUS.REMOTE_BAD_KEY)),
                second_page.eq(0),
                # An empty deposit needs no page.
                If(is_paged(self.address) & found & allowed & ~outside & (deposit.length != 0),
                    ask.eq(1)
                ).Else(
                    self.ready.eq(1)
                )
            ),
            If(pages.done,
                If(second_page,
                    self.page.eq(pages.page),
                ).Else(
                    self.address[PAGE_BITS:].eq(pages.page),
                ),
                If(pages.fault, self.reason.eq(STATUS.REMOTE_READ_ERROR)),
                second_page.eq(1),
                pages.valid.eq(0),
                ask.eq(self.crosses & ~second_page),
                self.ready.eq(~self.crosses | second_page),
            ),
            If(self.start, self.ready.eq(0)),
        ]

# Express Lander -----------------------------------------------------------------------------------

class ExpressLander(LiteXModule):
    """Write deposits of up to INLINE_BYTES to host memory, and messages to the inbox, in order.

    A packet has one block of payload. So when its first line is here, the whole packet is good; or
    that line has `error`, and the packet is dropped. The receiver passes on only as many messages
    as the inbox has room for, because it counts `inbox_freed`.

    Parameters
    ----------
    data_width : 64, 128 or 256
    address_bits : 64 or 32

    Attributes
    ----------
    deposits    : Endpoint(deposit_layout), in
    payload     : Endpoint(payload_layout), in    the lines of a packet come without gaps
    lookup      : lookup_port(), to the region table
    pages       : finder_port(), to the page finder
    writes      : Endpoint(write_layout), out     a deposit's last write has `mark`
    marked      : Signal(), in                    the PHY has taken a write with `mark`
    slot        : slot_write_port(data_width), master
    free        : Record, in                      `strobe`, `slot` of the inbox: it is free again
    inbox_freed : Signal(), out                   one cycle for each slot that became free
    done        : Endpoint(deposit_done_layout), out    a message is done when its arrival is queued
    departures  : Departures of packets
    arrivals    : Endpoint(arrival_layout), out   messages and notices, in the order of the packets

    Cycles: 2 from the first line at `payload` to the first at `writes`, if the deposit came 4
    cycles before; then one line a cycle. 5 in all from the last word of an 8-byte packet at the
    receiver to its write. A message takes one cycle a line, and 3 from its last line to its
    arrival.
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

        # Pipeline stage: the payload is read from block RAM and rotated in the next cycle.
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

        # Lines. The upper lanes of a rotated line belong to one line of memory, the lower lanes to
        # the next. A page ends at the end of a line, so two writes share no line.
        rotated         = Signal(data_width)
        previous        = Signal(data_width)
        lanes_before    = Signal(width)   # mask of the lanes before the first byte
        lane            = Signal(bits)
        bytes_left      = Signal(7)       # bytes of this write, counted from lane 0 of the line
        step            = Signal()
        emit            = Signal()
        flush           = Signal()        # `rotated` holds the last line of the payload
        first_line      = Signal()        # first line of the write
        second_write    = Signal()        # the second of two writes
        last_line       = Signal()        # last line of the write
        last_of_deposit = Signal()
        self.comb += [
            step.eq(~writes.valid | writes.ready),
            last_line.eq(bytes_left <= width),
            last_of_deposit.eq(last_line & (second_write | ~placement.crosses)),
            *[
                writes.dat[8*n:8*n + 8].eq(
                    Mux(lanes_before[n], previous[8*n:8*n + 8], rotated[8*n:8*n + 8]))
                for n in range(width)],
        ]
        self.sync += If(step,
            writes.valid.eq(emit),
            If(emit,
                previous.eq(rotated),
                rotated.eq(rotate(line.dat, lane)),
                lanes_before.eq((1 << lane) - 1),
                writes.last.eq(last_line),
                writes.mark.eq(second_write | ~placement.crosses),
                bytes_left.eq(bytes_left - width),
                flush.eq(flush | line.last),
                first_line.eq(last_line),
                If(first_line,
                    writes.address.eq(
                        Mux(
                            second_write, Cat(Constant(0, PAGE_BITS), placement.page),
                            placement.address)),
                    writes.length.eq(Mux(second_write, placement.rest, placement.first)),
                ),
                If(last_line,
                    second_write.eq(1),
                    bytes_left.eq(placement.rest),
                ),
            ),
        )

        # Packets.
        message     = Signal()
        refused     = Signal()
        report      = Signal()
        start_write = Signal()
        line_number = Signal(max=C.SLOT_BYTES//width)
        self.comb += refused.eq(~message & (placement.reason != STATUS.OK))
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            placement.start.eq(deposit.valid & ~deposit.is_message & landing.sink.ready),
            NextValue(message, deposit.is_message),
            NextValue(line_number, 0),
            If(deposit.valid & landing.sink.ready,
                NextState("PLACE"),
                If(deposit.is_message, NextState("MESSAGE"))
            )
        )
        fsm.act("PLACE",
            start_write.eq(1),
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
                If(emit & step & last_of_deposit,
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
                    NextValue(line_number, line_number + 1),
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
        self.sync += If(start_write,
            lane.eq(placement.address),
            bytes_left.eq(placement.first + placement.address[:bits]),
            first_line.eq(1),
            second_write.eq(0),
            flush.eq(0),
        )
        self.comb += [
            inbox.hold.eq(fsm.ongoing("MESSAGE") | fsm.ongoing("REPORT")),
            slot.adr.eq(Cat(line_number, inbox.slot, Constant(C.INBOX, 4))),
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
