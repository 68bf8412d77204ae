"""Index lists: where they lie, and their entries ahead of the walk that needs them."""

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
# lists that are under way at once: of the walk that goes on, and of the next one
AHEAD = 2

# List Lookup --------------------------------------------------------------------------------------

class ListLookup(LiteXModule):
    """Find the place of an index list on the bus, and whether the owner of a walked region may use
    it.

    Parameters
    ----------
    address_bits : 64 or 32

    Attributes
    ----------
    start   : Signal(), in      one cycle
    key     : Signal(32), in    of the list's region, in the cycle of `start`
    offset  : Signal(address_bits), in   of its first entry, from `start` to `done`
    far     : Signal(), in      it had more bits, likewise
    owner   : Signal(8), in     of the walked region, likewise
    lookup  : lookup_port(), to the region table
    done    : Signal(), out     one cycle
    good    : Signal(), out     with `done` and until the next one: there is such a region, it has
              this owner and LOCAL_READ,
                                and the first entry does not lie behind it and is aligned
    address : Signal(address_bits), out  of the first entry, likewise
    entries : Signal(32), out   that the region has from there on, likewise; 2**32 - 1 if they are
              more

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

        # A sum a cycle, and what follows from it in the next.
        usable = Signal()
        base   = Signal(address_bits)
        left   = Signal(address_bits + 1)  # bytes, negative behind the region's end
        asked  = Signal()    # others look up by the same port
        found  = Signal()
        summed = Signal()
        self.comb += [
            lookup.valid.eq(self.start),
            lookup.key.eq(self.key),
        ]
        self.sync += [
            If(lookup.done, asked.eq(0)),
            If(self.start, asked.eq(1)),
            found.eq(lookup.done & asked),
            summed.eq(found),
            self.done.eq(summed),
            If(lookup.done,
                usable.eq(lookup.found & (lookup.owner == self.owner) & ((lookup.rights & RIGHT.LOCAL_READ) != 0)),
                base.eq(lookup.base),
                left.eq(lookup.length),
            ),
            If(found,
                self.address.eq(base + self.offset),
                left.eq(left - self.offset),
            ),
            If(summed,
                self.good.eq(usable & ~left[address_bits] & (self.address[:ENTRY] == 0) & (1 if address_bits == 64 else ~far)),
                self.entries.eq(Mux(left[32 + ENTRY:64] != 0, 2**32 - 1, left[ENTRY:]) if address_bits == 64 else left[ENTRY:]),
            ),
        ]

# List Reader --------------------------------------------------------------------------------------

class ListReader(LiteXModule):
    """Read the entries of index lists ahead of their use, and give them in order, each added to its
    origin.

    A list is read 64 bytes at a time or less, in lines of host memory, and no byte beyond its last
    entry. The lines wait in a ring; completions fill them in any order. Of a list in a paged region
    each 4 KiB are found before their first line is asked for. The entries of a line that could not
    be read (error, time-out, no page) are errors.

    Parameters
    ----------
    data_width : 64 or 128
    lines      : that are asked for or wait to be taken, a power of two
    tags       : reads under way, a power of two
    base       : of them without extended tags
    timeout, quarantine : cycles, see `Tags`
    address_bits : 64 or 32

    Attributes
    ----------
    sink        : Endpoint(list_order_layout), in   one for each walk with a list
    source      : Endpoint(list_base_layout), out   `last` on an order's last one
    drop        : Signal(), in      nobody wants the rest of the order that `source` is in the midst
                  of, which is taken
                                    meanwhile: nothing more is asked for, and it ends with an error
    reads       : Endpoint(read_layout), out
    completions : Endpoint(completion_layout), in   always ready
    extended_tags : Signal(), in
    pages       : finder_port(), to the page finder
    departures  : Departures of orders
    pulses      : COMPLETION_UNEXPECTED, COMPLETION_ERROR, COMPLETION_TIMEOUT

    Cycles: 3 from an order to its first read, 6 from a completion to the first entry of its line,
    then an entry a cycle.
    """
    def __init__(self, data_width, lines=32, tags=16, base=2, timeout=6250, quarantine=2**23, address_bits=64):
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

        # AHEAD places: what the entries of each walk are added to.
        self.origin0 = arrived = Place([("origin", address_bits)])
        self.origin1 = origins = stream.PipeValid([("origin", address_bits)])
        self.ring    = ring    = stream.SyncFIFO([("word", WORD), ("more", WORD), ("void", 1)], lines)
        active   = Signal()
        address  = Signal(address_bits)
        more     = Signal(32)
        above    = Signal(WORD)            # entries of the line above the next one
        final    = Signal()                # they are enough
        stop     = Signal()
        push     = Signal()
        slot_in  = Signal(slot_bits)
        paged    = Signal()
        found    = Signal()                # where the next line's page is
        page     = Signal(address_bits - SHIFT_LEAST)
        absent   = Signal()                # nowhere
        line     = Signal()                # the next one can be asked for
        issue    = Signal()                # and is
        self.requests = requests = Place(read_layout())
        # orders whose last line is in the ring, or whose last entry was not taken
        ends     = Signal(max=AHEAD + 1)
        self.comb += [
            arrived.source.connect(origins.sink),
            sink.ready.eq(~active & arrived.sink.ready),
            arrived.sink.valid.eq(sink.valid & ~active),
            arrived.sink.origin.eq(sink.origin),
            above.eq(~address[ENTRY:ENTRY + WORD]),
            final.eq((more[WORD:] == 0) & (more[:WORD] <= above)),
            # Without an end in between, `source` is in this order.
            stop.eq(self.drop & (ends == 0)),
            # An order that is to stop is not active any more as soon as the ring has room.
            pages.valid.eq(active & paged & ~found),
            pages.address.eq(address),
            line.eq(active & ~stop & ring.sink.ready & (found | ~paged)),
            issue.eq(line & ~absent & requests.sink.ready & pool.source.valid),
            ring.sink.valid.eq(active & (stop | (line & absent) | issue)),
            ring.sink.last.eq(final | stop),
            ring.sink.void.eq(stop),
            ring.sink.word.eq(address[ENTRY:ENTRY + WORD]),
            ring.sink.more.eq(Mux(final, more[:WORD], above)),
            push.eq(ring.sink.valid & ring.sink.ready),
        ]
        self.sync += [
            If(pages.done,
                found.eq(1),
                absent.eq(pages.fault),
                page.eq(pages.page),
            ),
            If(push,
                slot_in.eq(slot_in + 1),
                # The page ends with its last line.
                If(address[ENTRY + WORD:SHIFT_LEAST] == 2**(SHIFT_LEAST - ENTRY - WORD) - 1,
                    found.eq(0),
                    absent.eq(0)
                ),
                address.eq(Cat(Constant(0, ENTRY + WORD), address[ENTRY + WORD:] + 1)),
                more.eq(more - above - 1),
                If(ring.sink.last, active.eq(0))
            ),
            If(sink.valid & sink.ready,
                active.eq(1),
                address.eq(sink.address),
                more.eq(sink.more),
                paged.eq(is_paged(sink.address)),
                found.eq(0),
                absent.eq(0),
            )
        ]

        # Read -------------------------------------------------------------------------------------

        # slot of a tag, where in it its entries end, its phase
        where    = Memory(slot_bits + WORD + 2, max(tags, 2))
        enter, of_answer, of_expired = (where.get_port(write_capable=True), where.get_port(async_read=True),
            where.get_port(async_read=True))
        self.specials += where, enter, of_answer, of_expired
        # A line is here when it was answered in the phase in which it was asked for. Both are in
        # LUT memory, since one thing a cycle writes each: nothing expires while there is an answer.
        asked    = Memory(2, lines)   # phase, and that it has no page
        answered = Memory(2, lines)   # phase, and that it could not be read
        asked_write, asked_out = asked.get_port(write_capable=True), asked.get_port(async_read=True)
        answer_write, answered_in, answered_out = (answered.get_port(write_capable=True), answered.get_port(async_read=True),
            answered.get_port(async_read=True))
        self.specials += asked, asked_write, asked_out, answered, answer_write, answered_in, answered_out
        self.comb += [
            answered_in.adr.eq(slot_in),
            asked_write.adr.eq(slot_in),
            asked_write.dat_w.eq(Cat(answered_in.dat_r[0] ^ ~absent, absent)),
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
            requests.sink.address.eq(Cat(address[:SHIFT_LEAST], Mux(paged, page, address[SHIFT_LEAST:]))),
            requests.sink.length.eq(Cat(Constant(0, ENTRY), length)),
            requests.source.connect(reads),
            enter.adr.eq(pool.source.tag),
            enter.dat_w.eq(Cat(slot_in, end, ~answered_in.dat_r[0])),
            enter.we.eq(issue),
        ]

        # Completion -------------------------------------------------------------------------------

        # What it is, is found out a cycle after it came.
        answer = stream.Endpoint(completion_layout(data_width))
        final_ = Signal()
        self.sync += [
            answer.valid.eq(self.completions.valid),
            final_.eq(ends_read(self.completions)),
            *[getattr(answer, n).eq(getattr(self.completions, n)) for n in ("last", "dat", "tag", "status", "count", "bytes", "failed")],
        ]
        width  = data_width//8
        beats  = LINE//width
        # Where addresses are narrow, an entry that has more bits has one that says so.
        entry_bits = address_bits + (address_bits < 64)
        def stored(entry):
            return entry if address_bits == 64 else Cat(
                entry[:address_bits], entry[address_bits:] != Replicate(entry[address_bits - 1], 64 - address_bits))
        data   = Memory(entry_bits*(width//8), lines*beats)
        fill   = data.get_port(write_capable=True)
        # An entry that was read may wait while its place is filled anew: its line leaves the ring
        # with the last one.
        fetch  = data.get_port(has_re=True, mode=READ_FIRST)
        self.specials += data, fill, fetch
        first  = Signal(reset=1)
        beat   = Signal(max=beats)
        start  = Signal(ENTRY + WORD + 1)
        slot   = of_answer.dat_r[:slot_bits]
        filled = Signal()
        over   = Signal(len(of_answer.dat_r))   # of what is answered or given up
        self.comb += [
            self.completions.ready.eq(1),
            pool.answered.eq(answer.tag),
            of_answer.adr.eq(answer.tag),
            of_expired.adr.eq(pool.expire_tag),
            pool.release.eq(final_ & ~answer.failed),
            pool.fail.eq(final_ & answer.failed),
            start.eq(Cat(Constant(0, ENTRY), of_answer.dat_r[slot_bits:-1]) - answer.count),
            fill.adr.eq(Cat(Mux(first, start[log2_int(width):log2_int(LINE)], beat), slot)),
            fill.dat_w.eq(answer.dat if address_bits == 64 else
                Cat(*[stored(answer.dat[64*n:64*n + 64]) for n in range(width//8)])),
            fill.we.eq(answer.valid & pool.live & (answer.status == 0)),
            filled.eq(final_ & pool.live),
            over.eq(Mux(final_, of_answer.dat_r, of_expired.dat_r)),
            answer_write.adr.eq(over),
            answer_write.dat_w.eq(Cat(over[-1], pool.expire | (answer.status != 0))),
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

        # Memory, word, sum: a register for each.
        head     = ring.source
        slot_out = Signal(slot_bits)
        taken    = Signal(WORD)   # of the line
        word     = Signal(WORD)
        ready    = Signal()
        go       = Signal()
        stages   = [stream.Endpoint([("word", WORD), ("error", 1)]), stream.Endpoint([("entry", entry_bits), ("error", 1)])]
        read, entry = stages
        self.sum  = total = stream.PipeValid(list_base_layout(address_bits))
        self.pipe = pipe  = Skid(list_base_layout(address_bits))
        self.source = pipe.source
        words    = data_width//64
        self.comb += [
            word.eq(head.word + taken),
            asked_out.adr.eq(slot_out),
            answered_out.adr.eq(slot_out),
            ready.eq(asked_out.dat_r[0] == answered_out.dat_r[0]),
            go.eq(head.valid & (head.void | ready) & (~read.valid | read.ready)),
            head.ready.eq(go & (head.void | (taken == head.more))),
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
                taken.eq(taken + 1),
                read.last.eq(head.last & head.ready),
                read.error.eq(head.void | asked_out.dat_r[1] | answered_out.dat_r[1]),
                read.word.eq(word),
            ),
            If(head.valid & head.ready,
                taken.eq(0),
                slot_out.eq(slot_out + 1)
            ),
            If(~read.valid | read.ready, read.valid.eq(go)),
            If(read.ready,
                entry.valid.eq(read.valid),
                entry.last.eq(read.last),
                entry.error.eq(read.error),
                entry.entry.eq(Array(fetch.dat_r[entry_bits*n:entry_bits*(n + 1)] for n in range(words))[read.word[:log2_int(words)]]
                    if words > 1 else fetch.dat_r),
            ),
            ends.eq(ends + (push & ring.sink.last) - (self.source.valid & self.source.ready & self.source.last)),
        ]

        # All of an order's reads are answered, or were given up, when its last entry leaves.
        self.departures = Departures(sink.valid & sink.ready, [origins.source.ready], AHEAD + 1)
