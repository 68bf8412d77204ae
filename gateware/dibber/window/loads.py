"""Loads of the window, and its control page: answered late, and within a limit."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream
from litex.soc.interconnect.stream import EndpointDescription

from dibber.host import tlp
from dibber.interface.description import C, STATUS
from dibber.layouts import write_layout
from dibber.window.layouts import (BUFFERS, LINE_BITS, LINE_BYTES, OWNER_BITS, PAGE_BITS, SLOT_BITS,
    load_layout)

CLOCK_BITS = 24  # of the time of arrival; a limit is at most half of what they count

def waiting_layout():
    """A read of the aperture, and when it came."""
    return EndpointDescription([
        *tlp.request_layout(log2_int(C.APERTURE_BYTES) - 2).payload_layout, ("arrived", CLOCK_BITS)])

class LoadUnit(LiteXModule):
    """Answer the reads of the aperture, one after the other.

    Each load and each barrier first waits for the stores before it: those in the store queue, then
    those in stream buffers. A barrier then waits for the commands that are under way. Whatever else
    comes meanwhile is not waited for.

    A load is answered when all of its bytes have passed on their way to the scratch page, which is
    before its command ends: the packet layer lets no byte pass whose CRC it has not checked. If they
    come in parts, the load waits for its completion. A late completion of the command is no other
    load's, because its slot is in use until then.

    Parameters
    ----------
    data_width : 64, 128 or 256

    Attributes
    ----------
    sink     : Endpoint(waiting_layout), in
    replies  : Endpoint(reply_layout), out    at most 64 bytes, or Unsupported Request
    now      : Signal(24), in       the card's clock
    limit    : Signal(24), in       cycles from arrival to the answer, at most half of the clock
    off      : Signal(), in         the window is not enabled, or the control program is halted: what
               waits is answered with all ones
    queued   : Signal, in           stores in the queue
    moved    : Signal(), in         one cycle: one of them leaves it
    close    : Signal(), out        one cycle: see StreamBuffers
    buffers, freed : Signal(8), in  of StreamBuffers: `used` and `freed`
    slots, ended : Signal(SLOTS), in   of CommandWriter: `used` and `ended`
    load     : Endpoint(load_layout), out     to CommandWriter
    refused, sent, is_atomic, slot, loaded : from CommandWriter
    scratch  : Signal(52), in       number of the scratch page in host memory
    written  : Endpoint(write_layout), in     writes on their way to the host, watched only: `ready` is
               an input, too
    owner    : Signal, out          endpoint whose sequence is asked for
    sequence : Signal(32), in       in the same cycle
    late, misshaped : Signal(), out one cycle: all ones because of the limit or of `off`; a shape
               that no load has
    answered : Signal(), out        one cycle: a load got its value

    Cycles: 3 from a load to `load`, if no store waits; 2 from the last line of its bytes, or from
    its completion, to the answer.
    """
    def __init__(self, data_width):
        width      = data_width//8
        lanes      = data_width//32
        parts      = LINE_BYTES//width
        width_bits = log2_int(width)
        self.sink     = sink     = stream.Endpoint(waiting_layout())
        self.replies  = replies  = stream.Endpoint(tlp.reply_layout(data_width))
        self.now      = now      = Signal(CLOCK_BITS)
        self.limit    = limit    = Signal(CLOCK_BITS)
        self.off      = off      = Signal()
        self.queued   = queued   = Signal(16)
        self.moved    = moved    = Signal()
        self.close    = close    = Signal()
        self.buffers  = buffers  = Signal(BUFFERS)
        self.freed    = freed    = Signal(BUFFERS)
        self.slots    = slots    = Signal(C.SLOTS)
        self.ended    = ended    = Signal(C.SLOTS)
        self.load     = load     = stream.Endpoint(load_layout())
        self.refused  = refused  = Signal()
        self.sent     = sent     = Signal()
        self.is_atomic = is_atomic = Signal()
        self.slot     = slot     = Signal(SLOT_BITS)
        self.loaded   = loaded   = Record(
            [("strobe", 1), ("slot", SLOT_BITS), ("status", 8), ("value", 64)])
        self.scratch  = scratch  = Signal(52)
        self.written  = written  = stream.Endpoint(write_layout(data_width))
        self.owner    = owner    = Signal(OWNER_BITS)
        self.sequence = sequence = Signal(32)
        self.late      = Signal()
        self.misshaped = Signal()
        self.answered = answered = Signal()

        # # #

        # Shape ------------------------------------------------------------------------------------

        # PCIe Base 3.0, 2.3.1.1: byte count and lower address follow from the byte enables.
        request  = Record(waiting_layout().payload_layout)
        length   = Signal(11)   # DWs
        inside   = request.offset[:LINE_BITS - 2]   # first DW in its line
        below    = Signal(2)    # bytes of the first DW that are not wanted
        beyond   = Signal(2)    # bytes of the last one
        count    = Signal(LINE_BITS + 1)
        nothing  = Signal()
        stop     = Signal(6)    # the DW behind the last one
        fits     = Signal()
        control  = Signal()     # the control page
        self.comb += [
            length.eq(Cat(request.length, request.length == 0)),
            nothing.eq((length == 1) & (request.first_be == 0)),
            below.eq(tlp.lowest(request.first_be)),
            beyond.eq(tlp.above(Mux(length == 1, request.first_be, request.last_be))),
            stop.eq(inside + length[:5]),
            fits.eq((length[5:] == 0) & (stop <= LINE_BYTES//4)),
            control.eq(request.offset[PAGE_BITS - 2:] ==
                2**(log2_int(C.APERTURE_BYTES) - PAGE_BITS) - 1),
            owner.eq(request.offset[LINE_BITS - 2:]),
            load.line.eq(request.offset[LINE_BITS - 2:]),
            load.start.eq(Cat(below, inside)),
            load.bytes.eq(count),
            load.last.eq(1),
        ]

        # Limit ------------------------------------------------------------------------------------

        expired = Signal()
        self.sync += expired.eq((now - request.arrived)[:CLOCK_BITS] >= limit)

        # Bytes ------------------------------------------------------------------------------------

        # What is written to the 64 bytes of this load in the scratch page is kept as it passes. The
        # write has one line or more, from its address on.
        store  = Memory(data_width, parts, name="window_load")
        keep, show = store.get_port(write_capable=True), store.get_port(async_read=True)
        self.specials += store, keep, show
        going  = Signal()   # within a write
        mine   = Signal()   # to the bytes of this load
        where  = Signal(log2_int(parts))
        match  = Signal()
        place  = Signal(log2_int(parts))
        mark   = Signal(SLOT_BITS)
        taken  = written.valid & written.ready
        all_of = Signal()   # within a write of all bytes of this load
        exact  = Signal()
        passed = Signal()   # all of them have passed
        self.comb += [
            exact.eq(match & (written.address[:LINE_BITS] == load.start) & (written.length == count)),
            match.eq(written.address[LINE_BITS:] ==
                Cat(mark, Constant(0, 12 - LINE_BITS - SLOT_BITS), scratch)),
            place.eq(Mux(going, where, written.address[width_bits:LINE_BITS])),
            keep.adr.eq(place),
            keep.dat_w.eq(written.dat),
            keep.we.eq(taken & Mux(going, mine, match)),
        ]
        self.sync += [
            If(taken,
                going.eq(~written.last),
                mine.eq(Mux(going, mine, match)),
                all_of.eq(Mux(going, all_of, exact)),
                where.eq(place + 1),
                If(written.last & Mux(going, all_of, exact), passed.eq(1))
            ),
            If(sent,
                mark.eq(slot),
                passed.eq(0)
            ),
        ]

        # Answer -----------------------------------------------------------------------------------

        first_lane = request.offset[:log2_int(lanes)]
        to_send    = Signal(6)   # DWs from the start of the line to the end of the answer
        at         = Signal(log2_int(parts))
        word       = Signal(64)  # an answer of one DW or two, at both halves of a line
        is_word    = Signal()
        ones       = Signal()
        wrong      = Signal()
        self.comb += [
            *[getattr(replies, name).eq(getattr(request, name))
                for name in ["requester", "tag", "attr", "tc"]],
            show.adr.eq(at),
            If(wrong,
                # 2.2.9: any other completion has a byte count of 4 and a lower address of 0.
                replies.status.eq(tlp.STATUS_UNSUPPORTED),
                replies.count.eq(4),
            ).Else(
                replies.length.eq(length),
                replies.count.eq(Mux(nothing, 1, count)),
                replies.lower.eq(Cat(below, request.offset[:5])),
            ),
            replies.dat.eq(Mux(is_word, Replicate(word, data_width//64), show.dat_r) |
                Replicate(ones, data_width)),
            replies.last.eq(wrong | (to_send <= lanes)),
        ]

        # States -----------------------------------------------------------------------------------

        ahead   = Signal(16)           # stores in the queue that came before
        waiting = Signal(BUFFERS)
        under_way = Signal(C.SLOTS)
        failed  = Signal()             # nothing more is waited for
        barrier = Signal()
        self.comb += failed.eq(expired | off)
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            sink.ready.eq(1),
            [NextValue(getattr(request, name), getattr(sink, name)) for name, *_ in request.layout],
            NextValue(is_word, 1),
            NextValue(word, 0),
            NextValue(ones, 0),
            NextValue(wrong, 0),
            If(sink.valid, NextState("SHAPE"))
        )
        fsm.act("SHAPE",
            NextValue(count, Cat(0, 0, length[:5]) - below - beyond),
            NextValue(to_send, first_lane + length[:5]),
            NextValue(at, inside[log2_int(lanes):]),
            NextValue(ahead, queued - moved),
            NextValue(barrier, control),
            If(nothing,
                NextState("ANSWER")
            ).Elif(control & (length == 1) & (request.offset[1:LINE_BITS - 2] == 0),
                If(request.offset[0], NextState("TELL")).Else(NextState("QUEUE"))
            ).Elif(control | ~fits,
                self.misshaped.eq(1),
                NextValue(wrong, 1),
                NextState("ANSWER")
            ).Else(
                NextState("QUEUE")
            )
        )
        # Stores before it: in the queue, then in buffers.
        fsm.act("QUEUE",
            If(moved & (ahead != 0), NextValue(ahead, ahead - 1)),
            If(failed,
                NextState("FAIL")
            ).Elif(ahead == 0,
                close.eq(1),
                NextValue(waiting, buffers & ~freed),
                NextState("BUFFERS")
            )
        )
        fsm.act("BUFFERS",
            NextValue(waiting, waiting & ~freed),
            NextValue(under_way, slots & ~ended),
            If(failed,
                NextState("FAIL")
            ).Elif(waiting == 0,
                If(barrier, NextState("COMMANDS")).Else(NextState("LOAD"))
            )
        )
        fsm.act("COMMANDS",
            NextValue(under_way, under_way & ~ended),
            If(failed,
                NextState("FAIL")
            ).Elif(under_way == 0,
                NextState("TELL")
            )
        )
        fsm.act("TELL",
            NextValue(word, Replicate(sequence, 2)),
            NextState("ANSWER")
        )
        # A load that CommandWriter has accepted is soon refused or sent. The clock waits for that.
        fsm.act("LOAD",
            load.valid.eq(1),
            If(load.ready,
                NextState("SENT")
            ).Elif(failed,
                NextState("FAIL")
            )
        )
        fsm.act("SENT",
            NextValue(is_word, is_atomic),
            If(refused,
                # CommandWriter has counted it.
                NextValue(ones, 1),
                NextState("ANSWER")
            ).Elif(off,
                NextState("FAIL")
            ).Elif(sent,
                NextState("VALUE")
            )
        )
        fsm.act("VALUE",
            # An operand of 8 bytes is aligned to 8; one of 4 may be in each DW of them.
            NextValue(word, Mux(length == 1, Replicate(loaded.value[:32], 2), loaded.value)),
            If(passed & ~is_word,
                answered.eq(1),
                NextState("ANSWER")
            ).Elif(loaded.strobe & (loaded.slot == mark),
                answered.eq(loaded.status == STATUS.OK),
                NextValue(ones, loaded.status != STATUS.OK),
                NextState("ANSWER")
            ).Elif(failed,
                NextState("FAIL")
            )
        )
        fsm.act("FAIL",
            self.late.eq(1),
            NextValue(ones, 1),
            NextState("ANSWER")
        )
        fsm.act("ANSWER",
            replies.valid.eq(1),
            If(replies.ready,
                NextValue(at, at + 1),
                NextValue(to_send, to_send - lanes),
                If(replies.last, NextState("IDLE"))
            )
        )
