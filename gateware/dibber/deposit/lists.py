"""Index lists: look-up of their region, and reading of their entries ahead of the walk."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.deposit.departures import Departures
from dibber.deposit.finder import finder_port
from dibber.deposit.pages import SHIFT_LEAST, is_paged
from dibber.deposit.regions import lookup_port
from dibber.deposit.tags import Tags
from dibber.interface.description import C, RIGHT
from dibber.layouts import completion_layout, ends_read, list_base_layout, list_order_layout, read_layout
from dibber.common.places import Place, Skid

LINE  = 64                       # bytes of host memory that are read at once
ENTRY = log2_int(C.LIST_ENTRY_BYTES)
WORD  = log2_int(LINE) - ENTRY   # bits that number the entries of a line
# Lists under way at once: of the walk in progress and of the next walk.
AHEAD = 2

# List Lookup --------------------------------------------------------------------------------------

class ListLookup(LiteXModule):
    """Look up the region of an index list: its bus address, and whether the list may be used.

    Parameters
    ----------
    address_bits : 64 or 32

    Attributes
    ----------
    start   : Signal(), in      one cycle
    key     : Signal(32), in    of the list's region, in the cycle of `start`
    offset  : Signal(address_bits), in   of its first entry, from `start` to `done`
    far     : Signal(), in      the offset had more bits, from `start` to `done`
    owner   : Signal(8), in     of the walked region, from `start` to `done`
    lookup  : lookup_port(), to the region table
    done    : Signal(), out     one cycle; the outputs below are valid from then until the next
              `done`
    good    : Signal(), out     the region exists, has this owner and LOCAL_READ; the first entry is
              aligned and not beyond the region's end
    address : Signal(address_bits), out  bus address of the first entry
    entries : Signal(32), out   entries from there to the region's end; at most 2**32 - 1

    Cycles: 5 from `start` to `done`.
    """
    def __init__(self, address_bits=64):
        self.start   = Signal()
        self.key     = Signal(32)
        self.offset  = Signal(address_bits)
        self.far     = far = Signal()
        self.owner   = Signal(8)
        self.lookup  = lookup = lookup_port()
        self.done    = Signal()
        self.good    = Signal()
        self.address = Signal(address_bits)
        self.entries = Signal(32)

        # # #

        # One sum a cycle; its consequences in the next cycle.
        usable     = Signal()
        base       = Signal(address_bits)
        bytes_left = Signal(address_bits + 1)  # negative beyond the region's end
        waiting    = Signal()    # for this look-up; other users share the port
        found      = Signal()
        summed     = Signal()
        self.comb += [
            lookup.valid.eq(self.start),
            lookup.key.eq(self.key),
        ]
        self.sync += [
            If(lookup.done, waiting.eq(0)),
            If(self.start, waiting.eq(1)),
            found.eq(lookup.done & waiting),
            summed.eq(found),
            self.done.eq(summed),
            If(lookup.done,
                usable.eq(
                    lookup.found & (lookup.owner == self.owner) &
                    ((lookup.rights & RIGHT.LOCAL_READ) != 0)),
                base.eq(lookup.base),
                bytes_left.eq(lookup.length),
            ),
            If(found,
                self.address.eq(base + self.offset),
                bytes_left.eq(bytes_left - self.offset),
            ),
            If(summed,
                self.good.eq(
                    usable & ~bytes_left[address_bits] & (self.address[:ENTRY] == 0) &
                    (1 if address_bits == 64 else ~far)),
                self.entries.eq(
                    Mux(
                        bytes_left[32 + ENTRY:64] != 0, 2**32 - 1,
                        bytes_left[ENTRY:]) if address_bits == 64
                    else bytes_left[ENTRY:]),
            ),
        ]

# List Reader --------------------------------------------------------------------------------------

class ListReader(LiteXModule):
    """Read the entries of index lists ahead of their use; give each one, added to its origin, in
    order.

    A list is read in lines of 64 bytes of host memory or less, and no byte beyond its last entry is
    read. The lines wait in a ring buffer, which completions fill in any order. In a paged region,
    each 4 KiB page is found before its first line is requested. If a line cannot be read (error,
    timeout, no page), its entries come with `error`.

    Parameters
    ----------
    data_width : 64, 128 or 256
    lines      : lines that are requested or wait to be taken, a power of two
    tags       : reads under way, a power of two
    base       : number of tags without extended tags
    timeout, quarantine : cycles, see `Tags`
    address_bits : 64 or 32

    Attributes
    ----------
    sink        : Endpoint(list_order_layout), in   one for each walk with a list
    source      : Endpoint(list_base_layout), out   `last` on the last entry of an order
    drop        : Signal(), in      the consumer discards the rest of the order that `source` is in,
                  and takes its entries meanwhile. No more lines are requested; the order ends with
                  an error
    reads       : Endpoint(read_layout), out
    completions : Endpoint(completion_layout), in   always ready
    extended_tags : Signal(), in
    pages       : finder_port(), to the page finder
    departures  : Departures of orders
    pulses      : COMPLETION_UNEXPECTED, COMPLETION_ERROR, COMPLETION_TIMEOUT

    Cycles: 3 from an order to its first read, 6 from a completion to the first entry of its line,
    then one entry a cycle.
    """
    def __init__(
        self, data_width, lines=32, tags=16, base=2, timeout=6250, quarantine=2**23,
        address_bits=64):
        self.sink        = sink   = stream.Endpoint(list_order_layout(address_bits))
        self.drop        = Signal()
        self.reads       = reads  = stream.Endpoint(read_layout())
        self.completions = stream.Endpoint(completion_layout(data_width))
        self.tags        = pool   = Tags(tags, timeout, quarantine, base)
        self.extended_tags = pool.extended
        slot_bits = log2_int(lines)
        self.pages       = pages  = finder_port(address_bits)
        self.pulses      = pulses = {name: Signal(name=f"lists_{name.lower()}") for name in (
            "COMPLETION_UNEXPECTED", "COMPLETION_ERROR", "COMPLETION_TIMEOUT")}

        # # #

        # Order ------------------------------------------------------------------------------------

        # The origins of AHEAD orders, to which their entries are added.
        self.origin0 = origin_in = Place([("origin", address_bits)])
        self.origin1 = origins   = stream.PipeValid([("origin", address_bits)])
        self.ring    = ring      = stream.SyncFIFO(
            [("word", WORD), ("more", WORD), ("void", 1)], lines)
        active        = Signal()
        address       = Signal(address_bits)
        entries_left  = Signal(32)
        entries_above = Signal(WORD)       # entries of the line after the next one
        last_line     = Signal()           # this line has all remaining entries
        stop          = Signal()
        push          = Signal()
        slot_in       = Signal(slot_bits)
        is_paged_list = Signal()
        page_known    = Signal()           # `page` is the next line's
        page          = Signal(address_bits - SHIFT_LEAST)
        no_page       = Signal()           # there is no such page
        may_issue     = Signal()           # the next line may be requested
        issue         = Signal()           # it is requested
        self.requests = requests = Place(read_layout())
        # Orders whose last line is in the ring, or whose last entry was not taken yet.
        orders_ended     = Signal(max=AHEAD + 1)
        self.comb += [
            origin_in.source.connect(origins.sink),
            sink.ready.eq(~active & origin_in.sink.ready),
            origin_in.sink.valid.eq(sink.valid & ~active),
            origin_in.sink.origin.eq(sink.origin),
            entries_above.eq(~address[ENTRY:ENTRY + WORD]),
            last_line.eq((entries_left[WORD:] == 0) & (entries_left[:WORD] <= entries_above)),
            # If no order has ended in the ring, `source` is in this order.
            stop.eq(self.drop & (orders_ended == 0)),
            # A stopped order ends as soon as the ring has room.
            pages.valid.eq(active & is_paged_list & ~page_known),
            pages.address.eq(address),
            may_issue.eq(active & ~stop & ring.sink.ready & (page_known | ~is_paged_list)),
            issue.eq(may_issue & ~no_page & requests.sink.ready & pool.source.valid),
            ring.sink.valid.eq(active & (stop | (may_issue & no_page) | issue)),
            ring.sink.last.eq(last_line | stop),
            ring.sink.void.eq(stop),
            ring.sink.word.eq(address[ENTRY:ENTRY + WORD]),
            ring.sink.more.eq(Mux(last_line, entries_left[:WORD], entries_above)),
            push.eq(ring.sink.valid & ring.sink.ready),
        ]
        self.sync += [
            If(pages.done,
                page_known.eq(1),
                no_page.eq(pages.fault),
                page.eq(pages.page),
            ),
            If(push,
                slot_in.eq(slot_in + 1),
                # The next line is in another page.
                If(address[ENTRY + WORD:SHIFT_LEAST] == 2**(SHIFT_LEAST - ENTRY - WORD) - 1,
                    page_known.eq(0),
                    no_page.eq(0)
                ),
                address.eq(Cat(Constant(0, ENTRY + WORD), address[ENTRY + WORD:] + 1)),
                entries_left.eq(entries_left - entries_above - 1),
                If(ring.sink.last, active.eq(0))
            ),
            If(sink.valid & sink.ready,
                active.eq(1),
                address.eq(sink.address),
                entries_left.eq(sink.more),
                is_paged_list.eq(is_paged(sink.address)),
                page_known.eq(0),
                no_page.eq(0),
            )
        ]

        # Read -------------------------------------------------------------------------------------

        # For each tag: slot in the ring, end of its entries in the line, phase.
        tag_table    = Memory(slot_bits + WORD + 2, max(tags, 2))
        enter, of_answer, of_expired = (
            tag_table.get_port(write_capable=True), tag_table.get_port(async_read=True),
            tag_table.get_port(async_read=True))
        self.specials += tag_table, enter, of_answer, of_expired
        # A line is complete when its answer has the phase of its request. Both phases are in LUT
        # memory: each has one write a cycle, because no tag expires in the cycle of an answer.
        asked    = Memory(2, lines)   # phase; the line has no page
        answered = Memory(2, lines)   # phase; the line could not be read
        asked_write, asked_out = asked.get_port(write_capable=True), asked.get_port(async_read=True)
        answer_write, answered_in, answered_out = (
            answered.get_port(write_capable=True), answered.get_port(async_read=True),
            answered.get_port(async_read=True))
        self.specials += (
            asked, asked_write, asked_out, answered, answer_write, answered_in, answered_out)
        self.comb += [
            answered_in.adr.eq(slot_in),
            asked_write.adr.eq(slot_in),
            asked_write.dat_w.eq(Cat(answered_in.dat_r[0] ^ ~no_page, no_page)),
            asked_write.we.eq(push),
        ]
        length   = Signal(WORD + 1)
        end      = Signal(WORD + 1)
        self.comb += [
            length.eq(ring.sink.more + 1),
            end.eq(address[ENTRY:ENTRY + WORD] + length),
            pool.source.ready.eq(issue),
            requests.sink.valid.eq(issue),
            requests.sink.last.eq(1),
            requests.sink.tag.eq(pool.source.tag),
            requests.sink.tag_phase.eq(pool.source.phase),
            requests.sink.address.eq(
                Cat(address[:SHIFT_LEAST], Mux(is_paged_list, page, address[SHIFT_LEAST:]))),
            requests.sink.length.eq(Cat(Constant(0, ENTRY), length)),
            requests.source.connect(reads),
            enter.adr.eq(pool.source.tag),
            enter.dat_w.eq(Cat(slot_in, end, ~answered_in.dat_r[0])),
            enter.we.eq(issue),
        ]

        # Completion -------------------------------------------------------------------------------

        # Pipeline stage: a completion is evaluated one cycle after it came.
        answer          = stream.Endpoint(completion_layout(data_width))
        last_completion = Signal()
        self.sync += [
            answer.valid.eq(self.completions.valid),
            last_completion.eq(ends_read(self.completions)),
            *[
                getattr(answer, n).eq(getattr(self.completions, n))
                for n in (
                    "last", "dat", "tag", "tag_phase", "status", "count", "bytes", "failed")],
        ]
        width  = data_width//8
        beats  = LINE//width
        # With narrow addresses the top bit of a stored entry says that bits were cut off.
        entry_bits = address_bits + (address_bits < 64)
        def stored(entry):
            return entry if address_bits == 64 else Cat(
                entry[:address_bits],
                entry[address_bits:] != Replicate(entry[address_bits - 1], 64 - address_bits))
        data   = Memory(entry_bits*(width//8), lines*beats)
        fill   = data.get_port(write_capable=True)
        # The read port holds an entry (`re`) while its slot is refilled: the line leaves the ring
        # with its last entry.
        fetch  = data.get_port(has_re=True, mode=READ_FIRST)
        self.specials += data, fill, fetch
        first    = Signal(reset=1)
        beat     = Signal(max=beats)
        start    = Signal(ENTRY + WORD + 1)
        slot     = of_answer.dat_r[:slot_bits]
        filled   = Signal()
        finished = Signal(len(of_answer.dat_r))   # slot and phase of a line, answered or given up
        self.comb += [
            self.completions.ready.eq(1),
            pool.answered.eq(answer.tag),
            pool.answered_phase.eq(answer.tag_phase),
            of_answer.adr.eq(answer.tag),
            of_expired.adr.eq(pool.expire_tag),
            pool.release.eq(last_completion & ~answer.failed),
            pool.fail.eq(last_completion & answer.failed),
            start.eq(Cat(Constant(0, ENTRY), of_answer.dat_r[slot_bits:-1]) - answer.count),
            fill.adr.eq(Cat(Mux(first, start[log2_int(width):log2_int(LINE)], beat), slot)),
            fill.dat_w.eq(answer.dat if address_bits == 64 else
                Cat(*[stored(answer.dat[64*n:64*n + 64]) for n in range(width//8)])),
            fill.we.eq(answer.valid & pool.live & (answer.status == 0)),
            filled.eq(last_completion & pool.live),
            finished.eq(Mux(last_completion, of_answer.dat_r, of_expired.dat_r)),
            answer_write.adr.eq(finished),
            answer_write.dat_w.eq(Cat(finished[-1], pool.expire | (answer.status != 0))),
            answer_write.we.eq(pool.expire | filled),
        ]
        self.sync += [
            If(answer.valid,
                first.eq(answer.last),
                beat.eq(fill.adr[:log2_int(beats)] + 1),
            ),
            pulses["COMPLETION_UNEXPECTED"].eq(answer.valid & answer.last & ~pool.known),
            pulses["COMPLETION_ERROR"].eq(filled & (answer.status != 0) & ~answer.failed),
            pulses["COMPLETION_TIMEOUT"].eq(pool.expire),
        ]

        # Entries ----------------------------------------------------------------------------------

        # Pipeline: memory, word of the line, sum.
        head          = ring.source
        slot_out      = Signal(slot_bits)
        entries_taken = Signal(WORD)   # of this line
        word          = Signal(WORD)
        ready         = Signal()
        go            = Signal()
        stages        = [
            stream.Endpoint([("word", WORD), ("error", 1)]),
            stream.Endpoint([("entry", entry_bits), ("error", 1)])]
        read, entry = stages
        self.sum  = total = stream.PipeValid(list_base_layout(address_bits))
        self.pipe = pipe  = Skid(list_base_layout(address_bits))
        self.source = pipe.source
        words    = data_width//64
        self.comb += [
            word.eq(head.word + entries_taken),
            asked_out.adr.eq(slot_out),
            answered_out.adr.eq(slot_out),
            ready.eq(asked_out.dat_r[0] == answered_out.dat_r[0]),
            go.eq(head.valid & (head.void | ready) & (~read.valid | read.ready)),
            head.ready.eq(go & (head.void | (entries_taken == head.more))),
            fetch.adr.eq(Cat(word[log2_int(words):], slot_out)),
            fetch.re.eq(go),
            read.ready.eq(~entry.valid | entry.ready),
            entry.connect(total.sink, omit={"entry"}),
            total.sink.base.eq(entry.entry + origins.source.origin),
            *([total.sink.far.eq(entry.entry[-1])] if address_bits < 64 else []),
            origins.source.ready.eq(entry.valid & entry.ready & entry.last),
            total.source.connect(pipe.sink),
        ]
        self.sync += [
            If(go,
                entries_taken.eq(entries_taken + 1),
                read.last.eq(head.last & head.ready),
                read.error.eq(head.void | asked_out.dat_r[1] | answered_out.dat_r[1]),
                read.word.eq(word),
            ),
            If(head.valid & head.ready,
                entries_taken.eq(0),
                slot_out.eq(slot_out + 1)
            ),
            If(~read.valid | read.ready, read.valid.eq(go)),
            If(read.ready,
                entry.valid.eq(read.valid),
                entry.last.eq(read.last),
                entry.error.eq(read.error),
                entry.entry.eq(
                    Array(
                        fetch.dat_r[entry_bits*n:entry_bits*(n + 1)]
                        for n in range(words))[read.word[:log2_int(words)]]
                    if words > 1 else fetch.dat_r),
            ),
            orders_ended.eq(
                orders_ended + (push & ring.sink.last) -
                (self.source.valid & self.source.ready & self.source.last)),
        ]

        # When an order's last entry leaves, all of its reads are answered or given up.
        self.departures = Departures(sink.valid & sink.ready, [origins.source.ready], AHEAD + 1)
