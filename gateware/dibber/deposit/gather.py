"""From pieces of host memory to a stream of their bytes: reads, reassembly, picking, packing."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import STATUS
from dibber.layouts import FAULT_BITS, FAULT_LIST, FAULT_READ, completion_layout, ends_read, piece_layout, read_layout

from dibber.deposit.cover import PICKS, UNIT, Cover
from dibber.deposit.packer import Packer, dense_layout
from dibber.deposit.tags import Tags

# Gather -------------------------------------------------------------------------------------------

class Gather(LiteXModule):
    """Read pieces from host memory and give their bytes in order, packed.

    `Cover` decides which pieces are read together. The reassembly buffer consists of units of 64
    bytes as host memory does, and a byte lies in its unit where its address puts it. Units are
    taken in the order of the requests, before each request, so that completions always have a
    place. They are written where they belong whenever they come. When a read is complete its picks,
    the bytes that are wanted of it, are read out in order, whatever their order in memory.

    Completions agree with their reads: `CompletionChecker` stands in front of this. A transfer
    fails when a read is answered with an error, or not in time, or when an error piece comes. Its
    output then ends with a line whose `status` says why and which has no bytes of worth. `abort`
    asks the walker to end the transfer; reads of it that are in flight are awaited.

    Parameters
    ----------
    data_width : 64 or 128
    tags       : reads in flight
    lines      : lines of the reassembly buffer, a power of two; 4096 bytes at least
    picks      : that may wait for their read; as many as cycles from request to completion, so that
                 a pick a cycle can go on, and more than one read has at most
    timeout    : cycles until a read fails; the default is 50 us at 125 MHz
    quarantine : cycles until the tag of such a read is used again, see `Tags`

    Attributes
    ----------
    sink          : Endpoint(piece_layout), in
    source        : Endpoint(dense_layout), out     `last` on a transfer's last line
    max_request   : Signal(13), in   bytes a read, a power of two from 128 to 4096
    reads         : Endpoint(read_layout), out
    completions   : Endpoint(completion_layout), in  always ready
    extended_tags : Signal(), in   see `Tags`
    crowded       : Signal(), in   see `Cover`
    abort         : Signal(), out  to `Walker.abort`
    pulses        : dict counter name -> Signal()

    Cycles: a request a cycle, of one pick or several; 5 from piece to request; 9 from the last beat
    of a completion that was waited for to its bytes at `source`, where they fill a line; a line of
    the buffer a cycle, and a pick a cycle.
    """
    def __init__(self, data_width, tags=64, lines=512, picks=512, timeout=6250, quarantine=2**23):
        self.sink          = sink   = stream.Endpoint(piece_layout())
        self.source        = source = stream.Endpoint(dense_layout(data_width))
        self.reads         = reads  = stream.Endpoint(read_layout())
        self.completions   = completions = stream.Endpoint(completion_layout(data_width))
        self.max_request   = Signal(13)
        self.extended_tags = Signal()
        self.crowded       = Signal()
        self.abort         = Signal()
        self.pulses        = pulses = {name: Signal(name=name.lower()) for name in (
            "COMPLETION_UNEXPECTED", "COMPLETION_ERROR", "COMPLETION_TIMEOUT")}

        # # #

        width = data_width//8
        bits  = log2_int(width)
        if lines*width < 4096:
            raise ValueError(f"{lines} lines of {width} bytes cannot hold a read of 4096 bytes")

        if picks <= PICKS:
            raise ValueError(f"a read may have {PICKS} picks, more than the {picks} that may wait")

        self.cover = cover = Cover()
        self.comb += [
            sink.connect(cover.sink),
            cover.max_request.eq(self.max_request),
            cover.crowded.eq(self.crowded),
        ]
        self.tags = Tags(tags, timeout, quarantine)
        self.comb += self.tags.extended.eq(self.extended_tags)
        self.packer = Packer(data_width)
        self.comb += self.packer.source.connect(source)

        # Picks in order ---------------------------------------------------------------------------

        self.order = order = stream.SyncFIFO(
            [("offset", 6), ("length", 13), ("advance", 1), ("final", 1), ("void", 1), ("fault", FAULT_BITS)], picks, buffered=True)

        # A slot for each read; a read has a unit at least, so that there are never more. Bit
        # `slot_bits` of the slot counters tells this pass over the slots from the last.
        units     = lines*width//UNIT
        slots     = units
        slot_bits = log2_int(slots)
        self.outcomes = outcomes = Memory(3, slots)  # pass, error, timeout
        outcome_write = outcomes.get_port(write_capable=True)
        outcome_read  = outcomes.get_port(async_read=True)
        self.specials += outcome_write, outcome_read

        # Request ----------------------------------------------------------------------------------

        pick       = cover.source
        opened     = Signal()  # picks of its read have been let through, so that it must be read
        discard    = Signal()  # the transfer has failed: no more reads
        void       = Signal()
        issue      = Signal()
        finish     = Signal()
        precede    = Signal()  # the pick's read is not whole yet
        write_unit = Signal(max=units)
        slot_in    = Signal(slot_bits + 1)
        free_units = Signal(max=units + 1, reset=units)
        leaving    = Signal()
        tag        = self.tags.source
        self.comb += [
            void.eq((discard & ~opened) | pick.error),
            issue.eq(pick.valid & pick.final & ~void & (free_units >= pick.units) & tag.valid &
                order.sink.ready & (~reads.valid | reads.ready)),
            finish.eq(pick.valid & void & pick.last & order.sink.ready),
            precede.eq(pick.valid & ~pick.final & ~void & order.sink.ready),
            pick.ready.eq(issue | finish | precede | (void & ~pick.last)),
            tag.ready.eq(issue),
            order.sink.valid.eq(issue | finish | precede),
            order.sink.offset.eq(pick.offset),
            order.sink.length.eq(Mux(void, 0, pick.length)),
            order.sink.advance.eq(pick.advance),
            order.sink.final.eq(pick.final),
            order.sink.void.eq(void),
            order.sink.fault.eq(pick.fault),
            order.sink.last.eq(pick.last),
            # A last piece that is here already needs no help, and the walker is in the next
            # transfer.
            self.abort.eq(discard & ~cover.ending),
        ]
        self.sync += [
            If(reads.ready, reads.valid.eq(0)),
            If(precede, opened.eq(1)),
            If(issue,
                opened.eq(0),
                reads.valid.eq(1),
                reads.last.eq(1),
                reads.address.eq(pick.address),
                reads.length.eq(pick.span),
                reads.tag.eq(tag.tag),
                write_unit.eq(write_unit + pick.units),
                slot_in.eq(slot_in + 1),
            ),
            free_units.eq(free_units - Mux(issue, pick.units, 0) + leaving),
        ]

        # What a completion needs to know of its read: where its bytes end, and its slot.
        position = log2_int(units*UNIT)
        table    = Memory(position + slot_bits + 1, tags)
        enter    = table.get_port(write_capable=True)
        find     = table.get_port()
        expiring = table.get_port()
        self.specials += table, enter, find, expiring
        end = Signal(position)
        self.comb += [
            end.eq(Cat(pick.address[:6], write_unit) + pick.span),
            enter.adr.eq(tag.tag),
            enter.dat_w.eq(Cat(end, slot_in)),
            enter.we.eq(issue),
        ]

        # Completion -------------------------------------------------------------------------------

        beat  = stream.Endpoint(completion_layout(data_width))
        begin = Signal(reset=1)
        found_end  = Signal(position)
        found_slot = Signal(slot_bits + 1)
        outstanding = Signal(13)
        start = Signal(position)
        line  = Signal(log2_int(lines))
        next_line = Signal(log2_int(lines))
        known = self.tags.known
        live  = self.tags.live
        final = Signal()
        self.comb += [
            completions.ready.eq(1),
            find.adr.eq(completions.tag),
            Cat(found_end, found_slot).eq(find.dat_r),
            outstanding.eq(Mux(beat.count == 0, 4096, beat.count)),
            start.eq(found_end - outstanding),
            line.eq(Mux(begin, start[bits:], next_line)),
            self.tags.answered.eq(beat.tag),
            self.tags.release.eq(final & ~beat.failed),
            self.tags.fail.eq(final & beat.failed),
        ]
        self.sync += [
            beat.valid.eq(completions.valid),
            final.eq(ends_read(completions)),
            *[getattr(beat, n).eq(getattr(completions, n)) for n in (
                "last", "dat", "tag", "status", "count", "bytes", "failed")],
            If(beat.valid,
                begin.eq(beat.last),
                next_line.eq(line + 1),
            ),
            pulses["COMPLETION_UNEXPECTED"].eq(beat.valid & beat.last & ~known),
            pulses["COMPLETION_ERROR"].eq(final & live & (beat.status != 0) & ~beat.failed),
            pulses["COMPLETION_TIMEOUT"].eq(self.tags.expire),
        ]

        # Buffer. A completion ends a read or at a multiple of 64 bytes (PCIe Base 3.0, 2.3.1.1), so
        # that no line ever comes from two of them.
        self.buffer = buffer = Memory(data_width, lines, name="gather_buffer")
        store = buffer.get_port(write_capable=True)
        fetch = buffer.get_port(has_re=True, mode=READ_FIRST)
        self.specials += store, fetch
        self.sync += [
            store.adr.eq(line),
            store.dat_w.eq(beat.dat),
            store.we.eq(beat.valid & live & (beat.status == 0)),
        ]

        # Outcome: of a completion, or of time.
        expired = Signal()
        ended   = Signal()
        slot    = Signal(slot_bits + 1)
        error   = Signal()
        # After a reset the memory holds the outcomes of reads before it; they are gone before
        # `Tags` hands the first tag out.
        wiping  = Signal(reset=1)
        wiped   = Signal(slot_bits)
        self.sync += If(wiping, wiped.eq(wiped + 1), wiping.eq(wiped != slots - 1))
        self.comb += [
            expiring.adr.eq(self.tags.expire_tag),
            outcome_write.we.eq(ended | expired | wiping),
            If(wiping,
                outcome_write.adr.eq(wiped),
                outcome_write.dat_w.eq(0)
            ).Elif(expired,
                outcome_write.adr.eq(expiring.dat_r[position:]),
                outcome_write.dat_w.eq(Cat(~expiring.dat_r[-1], 0, 1))
            ).Else(
                outcome_write.adr.eq(slot),
                outcome_write.dat_w.eq(Cat(~slot[-1], error, 0))
            )
        ]
        self.sync += [
            expired.eq(self.tags.expire),
            ended.eq(final & live),
            slot.eq(found_slot),
            error.eq(beat.status != 0),
        ]

        # Read-out ---------------------------------------------------------------------------------

        slot_out  = Signal(slot_bits + 1)
        read_unit = Signal(max=units)
        fresh     = Signal(reset=1)  # the next pick is the first of its read
        here      = Signal()         # a pick is being passed on
        place     = Signal(6)
        lane      = place[:bits]
        rest      = Signal(13)
        whole     = Signal()   # it is its read's last
        over      = Signal()   # it is its transfer's last
        empty     = Signal()
        reason    = Signal(8)
        drain     = Signal()   # its transfer has failed already
        count     = Signal(5)
        ending    = Signal()
        step      = Signal()
        load      = Signal()
        lasts     = Signal(max=picks + 2)  # ends of transfers among the picks in order
        begins    = Signal()
        arrives   = Signal()
        out       = stream.Endpoint([("lane", bits), ("count", 5), ("status", 8)])
        head      = order.source
        self.comb += [
            outcome_read.adr.eq(slot_out),
            ending.eq(rest <= (width - lane)),
            count.eq(Mux(reason != STATUS.OK, 0, Mux(ending, rest, width - lane))),
            step.eq(here & (~out.valid | out.ready)),
            # A unit leaves with the read's last pick, or when a pick goes on or begins in the next
            # unit.
            leaving.eq((step & ~empty & Mux(ending, whole, place[bits:] == UNIT//width - 1)) |
                (load & head.advance)),
            load.eq(head.valid & (head.void | ~fresh | (outcome_read.dat_r[0] != slot_out[-1])) &
                (~here | (step & ending))),
            head.ready.eq(load),
            # The transfer fails here; if its last piece has not come yet, the others are let go.
            begins.eq(step & ~drain & (reason != STATUS.OK) & ~(over & ending)),
            arrives.eq(order.sink.valid & order.sink.ready & order.sink.last),
            fetch.adr.eq(Cat(place[bits:], read_unit)),
            fetch.re.eq(step),
        ]
        self.sync += [
            If(step,
                place.eq(Cat(Constant(0, bits), place[bits:] + 1)),
                rest.eq(rest - count),
                If(ending, here.eq(0)),
                If(begins, drain.eq(1)),
                If(over & ending, drain.eq(0)),
                If(reason != STATUS.OK, rest.eq(rest - (width - lane))),
            ),
            If(leaving, read_unit.eq(read_unit + 1)),
            If(load,
                here.eq(1),
                fresh.eq(head.final),
                place.eq(head.offset),
                rest.eq(head.length),
                whole.eq(head.final),
                over.eq(head.last),
                empty.eq(head.void),
                If(head.void,
                    Case(head.fault, {
                        FAULT_READ: reason.eq(STATUS.READ_ERROR),
                        FAULT_LIST: reason.eq(STATUS.BAD_LIST),
                        "default":  reason.eq(STATUS.BOUNDS)})
                ).Elif(fresh,
                    reason.eq(STATUS.OK),
                    If(outcome_read.dat_r[1], reason.eq(STATUS.READ_ERROR)),
                    If(outcome_read.dat_r[2], reason.eq(STATUS.READ_TIMEOUT)),
                    slot_out.eq(slot_out + 1)
                )
            ),
            lasts.eq(lasts + arrives - (load & head.last)),
            If(begins & ~over & (lasts == 0) & ~arrives, discard.eq(1)),
            If(arrives & discard, discard.eq(0)),
            If(~out.valid | out.ready,
                out.valid.eq(here & ~drain),
                out.lane.eq(lane),
                out.count.eq(count),
                out.status.eq(reason),
                out.last.eq((over & ending) | (reason != STATUS.OK)),
            )
        ]
        self.comb += [
            out.connect(self.packer.sink),
            self.packer.sink.dat.eq(fetch.dat_r),
        ]
