"""Paged regions, whose pages are scattered in host memory: page tables and address translation.

A page table is in host memory. It has the bus address of each page, 8 bytes each, in order. Its
start is a multiple of 64, and it is read 64 bytes (eight pages) at a time. Pages are aligned to
their size.

An address in such a region is *paged*: bit 63 is set, bits 62:57 are the region's index, and the
other bits count from the start of the first page. With 32-bit addresses these bits are 31 and
30:25. A walk treats a paged address like any other. A page is a multiple of 4 KiB, so a piece that
does not cross 4 KiB does not cross a page.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.deposit.tags import Tags
from dibber.interface.description import C
from dibber.layouts import FAULT_READ, completion_layout, ends_read, piece_layout, read_layout
from dibber.common.places import BlockFIFO, Place, Skid

# Addresses ----------------------------------------------------------------------------------------

SHIFT_LEAST, SHIFT_MOST = 12, 30   # pages of 4 KiB to 1 GiB
LINE       = 64            # bytes of a line of the table
PER_LINE   = LINE//8

def is_paged(address):
    """Whether the highest bit of `address` is set; `address` has the card's full address width."""
    return address[len(address) - 1]

def index_of(address_bits):
    """The bits of a paged address that are the index of its region, as a slice."""
    return slice(address_bits - 1 - log2_int(C.REGIONS), address_bits - 1)

def line_address(number, address_bits):
    return Cat(
        Constant(0, log2_int(LINE)),
        number if address_bits == 64 else number[:address_bits - log2_int(LINE)])

def narrow_entry(entry, address_bits):
    """A page table entry, cut to `address_bits`. If the page is beyond these, it is marked absent
    (bit 0).
    """
    return entry if address_bits == 64 else Cat(
        entry[0] | (entry[address_bits:] != 0), entry[1:address_bits])

def directory_layout():
    """Page table of region `index`: its bus address, and log2 of the page size in bytes (`shift`).

    The entry is written in a cycle with `strobe`.
    """
    return [("strobe", 1), ("index", log2_int(C.REGIONS)), ("table", 64), ("shift", 5)]

# Translator ---------------------------------------------------------------------------------------

class Translator(LiteXModule):
    """Translate paged addresses of a stream to bus addresses; others pass unchanged.

    An element with a bus address passes at once if no element is in here before it. A paged one is
    looked up when it enters a FIFO. On a cache miss its table line is requested at once, so table
    reads are under way for all waiting elements. A line stays in the cache until the last element
    that needs it has left. So no line is read twice for waiting elements, and the first element
    always proceeds.

    `fault` comes if the table cannot be read (error or timeout), or if the entry has bit 0 set; the
    table's owner marks an absent page so.

    Parameters
    ----------
    layout     : of the stream; `address` in its payload or its parameters
    data_width : 64, 128 or 256
    lines      : lines of the cache,
    a power of two; direct-mapped by region and position in the table
    depth      : of the FIFO
    tags       : reads under way, a power of two
    base       : number of tags without extended tags
    timeout, quarantine : cycles, see `Tags`
    address_bits : width of `address`

    Attributes
    ----------
    sink, source : Endpoint(
        layout); `source.ready` must not wait for `source.valid`, because no element
                   may enter before it
    fault        : Signal(), out     the address of the element at `source` has no page
    ending       : Signal(), out     an element with `last` is in here
    directory    : Record(directory_layout), in    writes an entry and empties the cache. With shift
                   0 it only empties the cache: elements under way in a region that is removed still
                   find their pages
    reads        : Endpoint(read_layout), out
    completions  : Endpoint(completion_layout), in   always ready
    extended_tags: Signal(), in
    pulses       : COMPLETION_UNEXPECTED, COMPLETION_ERROR, COMPLETION_TIMEOUT

    Cycles: 0 for elements that bypass. Otherwise 5 from sink to source, 6 if `depth` exceeds 16;
    then one element a cycle as long as the cache hits.
    """
    def __init__(
        self, layout, data_width, lines=64, depth=32, tags=16, base=2, timeout=6250,
        quarantine=2**23, address_bits=64):
        self.sink        = sink   = stream.Endpoint(layout)
        self.source      = source = stream.Endpoint(layout)
        self.fault       = Signal()
        self.ending      = Signal()
        self.directory   = directory = Record(directory_layout())
        self.reads       = reads  = stream.Endpoint(read_layout())
        self.completions = answer = stream.Endpoint(completion_layout(data_width))
        self.tags        = pool   = Tags(tags, timeout, quarantine, base)
        self.extended_tags = pool.extended
        self.pulses      = pulses = {name: Signal(name=f"pages_{name.lower()}") for name in (
            "COMPLETION_UNEXPECTED", "COMPLETION_ERROR", "COMPLETION_TIMEOUT")}

        # # #

        width  = data_width//8
        beats  = LINE//width
        index_bits = log2_int(lines)
        shift_bits = bits_for(SHIFT_MOST - SHIFT_LEAST)
        INDEX      = index_of(address_bits)

        # Bypass -----------------------------------------------------------------------------------

        cache_in     = stream.Endpoint(layout)   # elements into the cache path, and out of it
        cache_out    = stream.Endpoint(layout)
        count_inside = Signal(max=depth + 8)
        lasts_inside = Signal(max=depth + 8)
        empty        = Signal(reset=1)   # `count_inside` is 0; registered, as `ending` is
        enters, exits = cache_in.valid & cache_in.ready, cache_out.valid & cache_out.ready
        self.comb += [
            # The data of `source` are selected by `empty` alone, not by the address: this keeps the
            # address out of the data's timing path. They may be invalid then.
            source.valid.eq(Mux(empty, sink.valid & ~is_paged(sink.address), cache_out.valid)),
            If(empty,
                sink.connect(source, omit={"valid", "ready"})
            ).Else(
                cache_out.connect(source, omit={"valid", "ready"})
            ),
            cache_out.ready.eq(source.ready),
            # `sink.ready` does not depend on the address either. So a paged element also enters
            # only in a cycle in which `source` would take it.
            sink.ready.eq(Mux(empty, source.ready, cache_in.ready)),
            sink.connect(cache_in, omit={"valid", "ready"}),
            cache_in.valid.eq(sink.valid & (~empty | (is_paged(sink.address) & source.ready))),
        ]
        self.sync += [
            count_inside.eq(count_inside + enters - exits),
            lasts_inside.eq(lasts_inside + (enters & cache_in.last) - (exits & cache_out.last)),
            If(enters,
                empty.eq(0)
            ).Elif(exits,
                empty.eq(count_inside == 1)
            ),
            If(enters & cache_in.last,
                self.ending.eq(1)
            ).Elif(exits & cache_out.last,
                self.ending.eq(lasts_inside != 1)
            ),
        ]

        # Directory --------------------------------------------------------------------------------

        # The shift is needed first, the table when a line is requested: each has its own memory. No
        # entry is read while it is written, because its region is not in use then.
        shifts  = Memory(shift_bits, C.REGIONS, name="page_shifts")
        tables  = Memory(address_bits - log2_int(LINE), C.REGIONS, name="page_tables")
        enter   = [memory.get_port(write_capable=True) for memory in (shifts, tables)]
        shift   = shifts.get_port(has_re=True, mode=READ_FIRST)
        table_  = tables.get_port(has_re=True, mode=READ_FIRST)
        self.specials += shifts, tables, *enter, shift, table_
        self.comb += [
            *[port.adr.eq(directory.index) for port in enter],
            *[port.we.eq(directory.strobe & (directory.shift != 0)) for port in enter],
            enter[0].dat_w.eq(directory.shift - SHIFT_LEAST),
            enter[1].dat_w.eq(directory.table[log2_int(LINE):]),
        ]

        # Position in the table. Two registers precede the cache: one for the directory, one for
        # the shift. Backpressure depends on the cache; a skid buffer (`gate`) between them ends
        # its timing path. `shift` is counted from SHIFT_LEAST.
        region_fields = [("paged", 1), ("region", log2_int(C.REGIONS))]
        place_layout  = region_fields + [("shift", shift_bits)]
        looked_up     = stream.PipeValid(self._extended(layout, region_fields))
        gate          = Skid(self._extended(layout, place_layout))
        page_number   = stream.PipeValid(
            self._extended(layout, place_layout + [("page", INDEX.start - SHIFT_LEAST)]))
        self.where, self.gate, self.numbered = looked_up, gate, page_number
        virtual_page  = gate.source.address[SHIFT_LEAST:INDEX.start]
        self.comb += [
            cache_in.connect(looked_up.sink),
            looked_up.sink.paged.eq(is_paged(cache_in.address)),
            looked_up.sink.region.eq(cache_in.address[INDEX]),
            shift.adr.eq(cache_in.address[INDEX]),
            shift.re.eq(looked_up.sink.ready),
            looked_up.source.connect(gate.sink),
            gate.sink.shift.eq(shift.dat_r),
            gate.source.connect(page_number.sink),
            page_number.sink.page.eq(virtual_page >> gate.source.shift),
        ]

        # Cache ------------------------------------------------------------------------------------

        # Register for the comparison of the wanted line's name with the cached one.
        self.named = lookup_stage = stream.PipeValid(self._extended(layout, place_layout + [
            ("word", log2_int(PER_LINE)), ("line", INDEX.start - SHIFT_LEAST - log2_int(PER_LINE)),
            ("index", index_bits), ("named", 1)]))
        asked = lookup_stage.source
        index = asked.index
        self.comb += [
            table_.adr.eq(page_number.source.region),
            table_.re.eq(lookup_stage.sink.ready),
        ]

        # For each line: its name, and the number of the last element that needs it.
        def table(bits):
            memory = Memory(bits, lines)
            write, read = memory.get_port(write_capable=True), memory.get_port(async_read=True)
            self.specials += memory, write, read
            return write, read

        name      = Cat(asked.region, asked.line)
        next_name = Cat(lookup_stage.sink.region, lookup_stage.sink.line)
        number    = Signal(bits_for(depth))
        name_write, name_read = table(len(name))
        last_user_write, last_user = table(len(number))
        has_name = Signal(lines)
        in_use   = Signal(lines)    # an element in the FIFO needs the line

        # A line's data are valid if its answer has the phase of its last request. Both phases are
        # in LUT memory: each has one write a cycle, because a line is not requested again before
        # its answer, and no tag expires in the cycle of an answer.
        phase_write, phase = table(1)
        answered     = Memory(2, lines)   # phase; the line could not be read
        answer_write, answer_asked, answer_head = (
            answered.get_port(write_capable=True), answered.get_port(async_read=True),
            answered.get_port(async_read=True))
        self.specials += answered, answer_write, answer_asked, answer_head
        ready      = Signal()         # the line of `head` has been answered
        unreadable = Signal()

        # State of the line of `asked` in this cycle, computed one cycle ahead.
        line_known = Signal()
        line_used  = Signal()
        match      = Signal()
        misses     = Signal()
        admit      = Signal()
        leave      = Signal()
        taken      = Signal()
        self.requests = requests = Place(read_layout())
        waiting_layout         = self._extended(layout, [("paged", 1), ("shift", shift_bits),
            ("index", index_bits), ("word", log2_int(PER_LINE)), ("number", len(number))])
        self.waiting  = waiting = BlockFIFO(
            waiting_layout, depth) if depth > 16 else stream.SyncFIFO(waiting_layout, depth)
        head = waiting.source
        self.comb += [
            page_number.source.connect(lookup_stage.sink, omit={"page"}),
            Cat(lookup_stage.sink.word, lookup_stage.sink.line).eq(page_number.source.page),
            lookup_stage.sink.index.eq(lookup_stage.sink.line ^ lookup_stage.sink.region),
            # The element in front will have renamed the line before this element is compared.
            If(asked.valid & asked.paged & (lookup_stage.sink.index == index),
                lookup_stage.sink.named.eq(next_name == name)
            ).Else(
                lookup_stage.sink.named.eq(next_name == name_read.dat_r)
            ),
            match.eq(line_known & asked.named),
            misses.eq(asked.paged & ~match),
            taken.eq(asked.valid & waiting.sink.ready & ~directory.strobe),
            requests.source.connect(reads),
            requests.sink.valid.eq(taken & misses & ~line_used & pool.source.valid),
            requests.sink.last.eq(1),
            requests.sink.tag.eq(pool.source.tag),
            requests.sink.tag_phase.eq(pool.source.phase),
            requests.sink.length.eq(LINE),
            requests.sink.address.eq(line_address(table_.dat_r + asked.line, address_bits)),
            pool.source.ready.eq(requests.sink.valid & requests.sink.ready),
            admit.eq(taken & (~misses | pool.source.ready)),
            asked.connect(waiting.sink, omit={"valid", "ready", "region", "line", "named"}),
            asked.ready.eq(admit),
            waiting.sink.valid.eq(admit),
            waiting.sink.number.eq(number),
            name_read.adr.eq(lookup_stage.sink.index),
            name_write.adr.eq(index),
            name_write.dat_w.eq(name),
            name_write.we.eq(pool.source.ready),
            last_user_write.adr.eq(index),
            last_user_write.dat_w.eq(number),
            last_user_write.we.eq(admit & asked.paged),
            last_user.adr.eq(head.index),
            answer_asked.adr.eq(index),
            phase_write.adr.eq(index),
            phase_write.dat_w.eq(~answer_asked.dat_r[0]),
            phase_write.we.eq(pool.source.ready),
            phase.adr.eq(head.index),
            answer_head.adr.eq(head.index),
            ready.eq(phase.dat_r == answer_head.dat_r[0]),
            unreadable.eq(answer_head.dat_r[1]),
        ]
        self.sync += If(admit, number.eq(number + 1))

        # Fill -------------------------------------------------------------------------------------

        # Pipeline stage: a completion is evaluated one cycle after it came.
        beat   = stream.Endpoint(completion_layout(data_width))
        final  = Signal()
        self.sync += [
            beat.valid.eq(answer.valid),
            final.eq(ends_read(answer)),
            *[
                getattr(beat, n).eq(getattr(answer, n))
                for n in (
                    "last", "dat", "tag", "tag_phase", "status", "count", "bytes", "failed")],
        ]
        owners = Memory(index_bits + 1, max(tags, 2))  # line and phase of a tag
        own, of_answer, of_expired = (
            owners.get_port(write_capable=True), owners.get_port(async_read=True),
            owners.get_port(async_read=True))
        # No entry is read while its line is filled. An entry that was read may stay in the read
        # port (`re`) while its line is filled again.
        data   = Memory(address_bits*(width//8), lines*beats, name="page_entries")
        fill   = data.get_port(write_capable=True)
        entry  = data.get_port(has_re=True, mode=READ_FIRST)
        self.specials += owners, own, of_answer, of_expired, data, fill, entry
        next_word   = Signal(max=beats)
        first       = Signal(reset=1)
        filled      = Signal()
        finished    = Signal(index_bits + 1) # line and phase, answered or given up
        read_failed = Signal()
        self.comb += [
            own.adr.eq(pool.source.tag),
            own.dat_w.eq(Cat(index, phase_write.dat_w)),
            own.we.eq(pool.source.ready),
            answer.ready.eq(1),
            pool.answered.eq(beat.tag),
            pool.answered_phase.eq(beat.tag_phase),
            of_answer.adr.eq(beat.tag),
            of_expired.adr.eq(pool.expire_tag),
            pool.release.eq(final & ~beat.failed),
            pool.fail.eq(final & beat.failed),
            fill.adr.eq(
                Cat(
                    Mux(first, (LINE - beat.count)[log2_int(width):], next_word)[:log2_int(beats)],
                    of_answer.dat_r[:index_bits])),
            fill.dat_w.eq(beat.dat if address_bits == 64 else
                Cat(
                    *[
                        narrow_entry(beat.dat[64*n:64*n + 64], address_bits)
                        for n in range(width//8)])),
            fill.we.eq(beat.valid & pool.live & (beat.status == 0)),
            filled.eq(final & pool.live),
            finished.eq(Mux(final, of_answer.dat_r, of_expired.dat_r)),
            read_failed.eq(pool.expire | (filled & (beat.status != 0))),
            answer_write.adr.eq(finished),
            answer_write.dat_w.eq(Cat(finished[index_bits], read_failed)),
            answer_write.we.eq(pool.expire | filled),
        ]
        self.sync += [
            If(beat.valid,
                first.eq(beat.last),
                next_word.eq(fill.adr + 1),
            ),
            pulses["COMPLETION_UNEXPECTED"].eq(beat.valid & beat.last & ~pool.known),
            pulses["COMPLETION_ERROR"].eq(filled & (beat.status != 0) & ~beat.failed),
            pulses["COMPLETION_TIMEOUT"].eq(pool.expire),
        ]

        # State of the lines. A line that could not be read loses its name, so that the next
        # element after its present users requests it again.
        forgets   = lambda n: (read_failed & (finished[:index_bits] == n)) | directory.strobe
        frees     = lambda n: leave & (head.index == n) & (last_user.dat_r == head.number)
        same_line = Signal()   # the element in front needs the same line
        self.comb += same_line.eq(lookup_stage.sink.index == index)
        self.sync += [
            If(lookup_stage.sink.ready,
                line_known.eq(
                    ((has_name >> lookup_stage.sink.index)[0] | (pool.source.ready & same_line)) &
                    ~forgets(lookup_stage.sink.index)),
                line_used.eq(
                    ((in_use >> lookup_stage.sink.index)[0] & ~frees(lookup_stage.sink.index)) |
                    (admit & asked.paged & same_line)),
            ).Else(
                line_known.eq(line_known & ~forgets(index)),
                line_used.eq(line_used & ~frees(index)),
            )
        ]
        for n in range(lines):
            self.sync += [
                If(frees(n), in_use[n].eq(0)),
                If(admit & asked.paged & (index == n), in_use[n].eq(1)),
                If(pool.source.ready & (index == n), has_name[n].eq(1)),
                If(forgets(n), has_name[n].eq(0)),
            ]

        # Answer -----------------------------------------------------------------------------------

        # The entry is read when its element leaves the FIFO, and is valid in the next cycle.
        self.reading = reading = stream.PipeValid(self._extended(layout,
            [("paged", 1), ("shift", shift_bits), ("word", log2_int(PER_LINE)), ("broken", 1)]))
        found  = reading.source
        go     = Signal()
        page   = Signal(address_bits)
        # Offset bits within the page, above SHIFT_LEAST; the lower ones need no mask.
        in_page_mask = Signal(SHIFT_MOST - SHIFT_LEAST)
        words        = width//8
        self.comb += [
            go.eq(~head.paged | ready),
            head.connect(reading.sink, omit={"valid", "ready", "index", "number"}),
            reading.sink.broken.eq(unreadable),
            reading.sink.valid.eq(head.valid & go),
            head.ready.eq(reading.sink.ready & go),
            leave.eq(head.valid & head.ready & head.paged),
            entry.adr.eq(Cat(head.word[log2_int(words):], head.index)),
            entry.re.eq(head.valid & head.ready),
            page.eq(
                Array(
                    entry.dat_r[address_bits*n:address_bits*(n + 1)]
                    for n in range(words))[found.word[:log2_int(words)]]
                if words > 1 else entry.dat_r),
            Case(
                found.shift,
                {
                    n - SHIFT_LEAST: in_page_mask.eq(2**(n - SHIFT_LEAST) - 1)
                    for n in range(SHIFT_LEAST, SHIFT_MOST + 1)}),
            found.connect(cache_out, omit={"address", "paged", "shift", "word", "broken"}),
            cache_out.address.eq(found.address),
            If(found.paged,
                cache_out.address[SHIFT_LEAST:].eq(Cat(
                    (page[SHIFT_LEAST:SHIFT_MOST] & ~in_page_mask) | (
                        found.address[SHIFT_LEAST:min(SHIFT_MOST, INDEX.start)] & in_page_mask),
                    page[SHIFT_MOST:])),
                self.fault.eq((found.broken | page[0]) & ~empty),
            )
        ]

    @staticmethod
    def _extended(layout, more):
        """`layout` with further parameters."""
        return stream.EndpointDescription(layout.payload_layout, layout.param_layout + more)

# Paged Pieces -------------------------------------------------------------------------------------

class PagedPieces(LiteXModule):
    """The pieces of walks, translated. After a piece without a page its whole transfer is an error.

    Parameters
    ----------
    those of `Translator`

    Attributes
    ----------
    sink, source : Endpoint(piece_layout)
    ending       : Signal(), out    the last piece of a transfer was taken, and is in here
    directory, reads, completions, extended_tags, pulses : of the `Translator`
    """
    def __init__(self, data_width, address_bits=64, **translator):
        self.sink       = sink   = stream.Endpoint(piece_layout(address_bits))
        # Skid buffer: translator and walker see a stall one cycle later.
        self.gate       = gate   = Skid(piece_layout(address_bits))
        self.source     = gate.source
        self.ending     = Signal()
        self.translator = translator = Translator(
            piece_layout(address_bits), data_width, address_bits=address_bits, **translator)
        for name in ["directory", "reads", "completions", "extended_tags", "pulses"]:
            setattr(self, name, getattr(translator, name))

        # # #

        source = gate.sink
        failed = Signal()
        self.comb += [
            # A last piece that bypasses is still at the sink, so the walker counts it itself.
            self.ending.eq(translator.ending | (gate.held & gate.source.last)),
            sink.connect(translator.sink),
            # An error piece is outside the region and has no page: it must not be translated.
            If(sink.error, translator.sink.address.eq(0)),
            translator.source.connect(source, omit={"error", "fault"}),
            source.fault.eq(translator.source.fault),
            If(translator.fault | failed, source.fault.eq(FAULT_READ)),
            source.error.eq(translator.source.error | (source.fault != 0)),
        ]
        self.sync += If(source.valid & source.ready, failed.eq((source.fault != 0) & ~source.last))
