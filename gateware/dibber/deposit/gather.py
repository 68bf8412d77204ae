"""Gather: pieces of host memory become a dense byte stream, by reads, reassembly and packing."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import STATUS
from dibber.layouts import FAULT_BITS, FAULT_LIST, FAULT_READ, completion_layout, count_bits, ends_read, piece_layout, read_layout

from dibber.deposit.cover import PICKS, UNIT, Cover
from dibber.deposit.packer import Packer, dense_layout
from dibber.deposit.tags import Tags

# Gather -------------------------------------------------------------------------------------------

class Gather(LiteXModule):
    """Read pieces from host memory and give their bytes in order, packed.

    `Cover` merges pieces into reads. The reassembly buffer consists of 64-byte units, aligned as in
    host memory. Units are allocated in the order of the requests, before each request, so
    completions always have a place. A completion is written to its place whenever it comes. When a
    read is complete, its picks (the wanted bytes) are read out in walk order.

    Completions have been checked against their reads by `CompletionChecker`. A transfer fails if a
    read is answered with an error or times out, or if an error piece comes. Its output then ends
    with a line whose `status` tells the reason and whose bytes are void. `abort` asks the walker to
    end the transfer. Reads of it that are in flight are awaited.

    Parameters
    ----------
    data_width : 64, 128 or 256
    tags       : reads in flight
    lines      : lines of the reassembly buffer, a power of two; at least 4096 bytes
    picks      : picks that can wait for their read. For one pick a cycle it must be at least the
                 cycles from request to completion; it must exceed the largest number of picks in a
                 read
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

    Cycles: one request a cycle, for one pick or several; 5 from piece to request; 9 from the last
    beat of an awaited completion to its bytes at `source`, if they fill a line; one line of the
    buffer and one pick a cycle.
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
            [
                ("offset", 6), ("length", 13), ("advance", 1), ("final", 1), ("void", 1),
                ("fault", FAULT_BITS)],
            picks, buffered=True)

        # Each read has a slot for its outcome. A read has at least one unit, so there are as many
        # slots as units. The slot counters' top bit tells this pass over the slots from the last
        # one.
        units     = lines*width//UNIT
        slots     = units
        slot_bits = log2_int(slots)
        self.outcomes = outcomes = Memory(3, slots)  # pass, error, timeout
        outcome_write = outcomes.get_port(write_capable=True)
        outcome_read  = outcomes.get_port(async_read=True)
        self.specials += outcome_write, outcome_read

        # Request ----------------------------------------------------------------------------------

        pick       = cover.source
        read_begun = Signal()  # earlier picks of this read were passed on, so it must be issued
        discard    = Signal()  # the transfer has failed: no more reads
        void       = Signal()
        issue      = Signal()
        end_void   = Signal()
        pass_pick  = Signal()  # the read is not complete yet: pass its pick on
        write_unit = Signal(max=units)
        slot_in    = Signal(slot_bits + 1)
        free_units = Signal(max=units + 1, reset=units)
        unit_freed = Signal()
        tag        = self.tags.source
        self.comb += [
            void.eq((discard & ~read_begun) | pick.error),
            issue.eq(pick.valid & pick.final & ~void & (free_units >= pick.units) & tag.valid &
                order.sink.ready & (~reads.valid | reads.ready)),
            end_void.eq(pick.valid & void & pick.last & order.sink.ready),
            pass_pick.eq(pick.valid & ~pick.final & ~void & order.sink.ready),
            pick.ready.eq(issue | end_void | pass_pick | (void & ~pick.last)),
            tag.ready.eq(issue),
            order.sink.valid.eq(issue | end_void | pass_pick),
            order.sink.offset.eq(pick.offset),
            order.sink.length.eq(Mux(void, 0, pick.length)),
            order.sink.advance.eq(pick.advance),
            order.sink.final.eq(pick.final),
            order.sink.void.eq(void),
            order.sink.fault.eq(pick.fault),
            order.sink.last.eq(pick.last),
            # If the last piece is already here, no abort is needed: the walker may be in the next
            # transfer.
            self.abort.eq(discard & ~cover.ending),
        ]
        self.sync += [
            If(reads.ready, reads.valid.eq(0)),
            If(pass_pick, read_begun.eq(1)),
            If(issue,
                read_begun.eq(0),
                reads.valid.eq(1),
                reads.last.eq(1),
                reads.address.eq(pick.address),
                reads.length.eq(pick.span),
                reads.tag.eq(tag.tag),
                reads.tag_phase.eq(tag.phase),
                write_unit.eq(write_unit + pick.units),
                slot_in.eq(slot_in + 1),
            ),
            free_units.eq(free_units - Mux(issue, pick.units, 0) + unit_freed),
        ]

        # For the completions of a read: the position of its end in the buffer, and its slot.
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

        beat        = stream.Endpoint(completion_layout(data_width))
        first_beat  = Signal(reset=1)
        found_end   = Signal(position)
        found_slot  = Signal(slot_bits + 1)
        outstanding = Signal(13)
        start       = Signal(position)
        line        = Signal(log2_int(lines))
        next_line   = Signal(log2_int(lines))
        known       = self.tags.known
        live        = self.tags.live
        final       = Signal()
        self.comb += [
            completions.ready.eq(1),
            find.adr.eq(completions.tag),
            Cat(found_end, found_slot).eq(find.dat_r),
            outstanding.eq(Mux(beat.count == 0, 4096, beat.count)),
            start.eq(found_end - outstanding),
            line.eq(Mux(first_beat, start[bits:], next_line)),
            self.tags.answered.eq(beat.tag),
            self.tags.answered_phase.eq(beat.tag_phase),
            self.tags.release.eq(final & ~beat.failed),
            self.tags.fail.eq(final & beat.failed),
        ]
        self.sync += [
            beat.valid.eq(completions.valid),
            final.eq(ends_read(completions)),
            *[getattr(beat, n).eq(getattr(completions, n)) for n in (
                "last", "dat", "tag", "tag_phase", "status", "count", "bytes", "failed")],
            If(beat.valid,
                first_beat.eq(beat.last),
                next_line.eq(line + 1),
            ),
            pulses["COMPLETION_UNEXPECTED"].eq(beat.valid & beat.last & ~known),
            pulses["COMPLETION_ERROR"].eq(final & live & (beat.status != 0) & ~beat.failed),
            pulses["COMPLETION_TIMEOUT"].eq(self.tags.expire),
        ]

        # Buffer. A completion ends at the end of its read or at a multiple of 64 bytes (PCIe Base
        # 3.0, 2.3.1.1). So no line is written by two completions.
        self.buffer = buffer = Memory(data_width, lines, name="gather_buffer")
        store = buffer.get_port(write_capable=True)
        fetch = buffer.get_port(has_re=True, mode=READ_FIRST)
        self.specials += store, fetch
        self.sync += [
            store.adr.eq(line),
            store.dat_w.eq(beat.dat),
            store.we.eq(beat.valid & live & (beat.status == 0)),
        ]

        # Outcome of a read: from its last completion, or from a timeout.
        expired = Signal()
        ended   = Signal()
        slot    = Signal(slot_bits + 1)
        error   = Signal()
        # After a reset the memory holds outcomes of old reads. They are cleared before `Tags`
        # gives out the first tag.
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

        slot_out      = Signal(slot_bits + 1)
        read_unit     = Signal(max=units)
        fresh         = Signal(reset=1)  # the next pick is the first of its read
        pick_valid    = Signal()         # a pick is being read out
        unit_offset   = Signal(6)
        lane          = unit_offset[:bits]
        bytes_left    = Signal(13)
        read_ends     = Signal()   # the pick is the last of its read
        transfer_ends = Signal() # the pick is the last of its transfer
        empty         = Signal()
        reason        = Signal(8)
        drain         = Signal()   # the transfer has failed before: discard the pick
        count         = Signal(count_bits(data_width))
        pick_ends     = Signal()
        step          = Signal()
        load          = Signal()
        ends_queued   = Signal(max=picks + 2)  # last picks of transfers among the queued picks
        failure       = Signal()
        end_enters    = Signal()
        out           = stream.Endpoint([("lane", bits), ("count", count_bits(data_width)), ("status", 8)])
        head          = order.source
        self.comb += [
            outcome_read.adr.eq(slot_out),
            pick_ends.eq(bytes_left <= (width - lane)),
            count.eq(Mux(reason != STATUS.OK, 0, Mux(pick_ends, bytes_left, width - lane))),
            step.eq(pick_valid & (~out.valid | out.ready)),
            # A unit becomes free with the last pick of its read, or when a pick continues or
            # starts in the next unit.
            unit_freed.eq(
                (step & ~empty & Mux(pick_ends, read_ends, unit_offset[bits:] == UNIT//width - 1)) |
                (load & head.advance)),
            load.eq(head.valid & (head.void | ~fresh | (outcome_read.dat_r[0] != slot_out[-1])) &
                (~pick_valid | (step & pick_ends))),
            head.ready.eq(load),
            # The transfer fails here. If its last pick has not come yet, later picks are discarded.
            failure.eq(step & ~drain & (reason != STATUS.OK) & ~(transfer_ends & pick_ends)),
            end_enters.eq(order.sink.valid & order.sink.ready & order.sink.last),
            fetch.adr.eq(Cat(unit_offset[bits:], read_unit)),
            fetch.re.eq(step),
        ]
        self.sync += [
            If(step,
                unit_offset.eq(Cat(Constant(0, bits), unit_offset[bits:] + 1)),
                bytes_left.eq(bytes_left - count),
                If(pick_ends, pick_valid.eq(0)),
                If(failure, drain.eq(1)),
                If(transfer_ends & pick_ends, drain.eq(0)),
                If(reason != STATUS.OK, bytes_left.eq(bytes_left - (width - lane))),
            ),
            If(unit_freed, read_unit.eq(read_unit + 1)),
            If(load,
                pick_valid.eq(1),
                fresh.eq(head.final),
                unit_offset.eq(head.offset),
                bytes_left.eq(head.length),
                read_ends.eq(head.final),
                transfer_ends.eq(head.last),
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
            ends_queued.eq(ends_queued + end_enters - (load & head.last)),
            If(failure & ~transfer_ends & (ends_queued == 0) & ~end_enters, discard.eq(1)),
            If(end_enters & discard, discard.eq(0)),
            If(~out.valid | out.ready,
                out.valid.eq(pick_valid & ~drain),
                out.lane.eq(lane),
                out.count.eq(count),
                out.status.eq(reason),
                out.last.eq((transfer_ends & pick_ends) | (reason != STATUS.OK)),
            )
        ]
        self.comb += [
            out.connect(self.packer.sink),
            self.packer.sink.dat.eq(fetch.dat_r),
        ]
