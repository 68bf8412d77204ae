"""Regions whose pages are scattered in host memory: page tables, and the translation of addresses
ahead of their use.

A page table lies in host memory: the bus address of each page, 8 bytes each, in the order of the
region. Its start is a multiple of 64 and it is read 64 bytes at a time, eight pages a line. Pages
are aligned to their size.

An address in such a region is *paged*: bit 63 is set, bits 62:57 are the region's index, and the
others count from the first page's start; where addresses have 32 bits these are bits 31 and 30:25.
Walks need not know: they add, compare and cut it like any other, and since a page is a multiple of
4 KiB what does not cross 4 KiB does not cross a page.
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
    """By its highest bit: `address` is as wide as addresses are."""
    return address[len(address) - 1]

def index_of(address_bits):
    """Which bits of a paged address are the index of its region."""
    return slice(address_bits - 1 - log2_int(C.REGIONS), address_bits - 1)

def line_address(number, address_bits):
    return Cat(Constant(0, log2_int(LINE)), number if address_bits == 64 else number[:address_bits - log2_int(LINE)])

def narrow_entry(entry, address_bits):
    """An entry of a page table in `address_bits`. A page whose address has more is one that is not
    there.
    """
    return entry if address_bits == 64 else Cat(entry[0] | (entry[address_bits:] != 0), entry[1:address_bits])

def directory_layout():
    """Where the table of region `index` lies, and log2 of its pages' bytes; entered in a cycle with
    `strobe`.
    """
    return [("strobe", 1), ("index", log2_int(C.REGIONS)), ("table", 64), ("shift", 5)]

# Translator ---------------------------------------------------------------------------------------

class Translator(LiteXModule):
    """Replace paged addresses in a stream by bus addresses.

    Others pass at once when nothing is in here before them. What is paged is looked up when it
    enters a FIFO, and what is missing is asked for at once, so that table reads are under way for
    all that waits. A line is kept until what entered for it has left: it cannot be displaced in
    between, so nothing is asked for twice and what is first always gets through.

    A table that cannot be read (error or timeout) gives `fault`; so does an entry with bit 0 set,
    by which the owner of a table marks a page that is not there.

    Parameters
    ----------
    layout     : of the stream; `address` in its payload or its parameters
    data_width : 64 or 128
    lines      : of the cache, a power of two; direct-mapped by region and place in the table
    depth      : of the FIFO
    tags       : reads under way, a power of two
    base       : of them without extended tags
    timeout, quarantine : cycles, see `Tags`
    address_bits : of `address`

    Attributes
    ----------
    sink, source : Endpoint(layout); `source.ready` waits for no `valid`: nothing comes in here
                   before it
    fault        : Signal(), out     of what `source` shows: its address could not be found
    ending       : Signal(), out     something with `last` is in here
    directory    : Record(directory_layout), in    also empties the cache; without a shift it does
                   no more, so that what
                                                   is under way in a region that is taken out finds
                                                   its own pages yet
    reads        : Endpoint(read_layout), out
    completions  : Endpoint(completion_layout), in   always ready
    extended_tags: Signal(), in
    pulses       : COMPLETION_UNEXPECTED, COMPLETION_ERROR, COMPLETION_TIMEOUT

    Cycles: none, or when anything was paged 5 from sink to source, 6 where many may wait, and then
    one a cycle as long as the cache has what is wanted.
    """
    def __init__(self, layout, data_width, lines=64, depth=32, tags=16, base=2, timeout=6250, quarantine=2**23, address_bits=64):
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

        within = stream.Endpoint(layout)   # what goes through the cache, and comes out of it
        after  = stream.Endpoint(layout)
        inside = Signal(max=depth + 8)
        lasts  = Signal(max=depth + 8)
        empty  = Signal(reset=1)   # `inside` is 0, known before, as `ending` is
        enters, exits = within.valid & within.ready, after.valid & after.ready
        self.comb += [
            # What comes out of an empty cache is not valid: who is shown does not wait for the
            # address.
            source.valid.eq(Mux(empty, sink.valid & ~is_paged(sink.address), after.valid)),
            If(empty,
                sink.connect(source, omit={"valid", "ready"})
            ).Else(
                after.connect(source, omit={"valid", "ready"})
            ),
            after.ready.eq(source.ready),
            # Whether anything is taken does not wait for its address, by which nothing goes in
            # while `source` would not take it.
            sink.ready.eq(Mux(empty, source.ready, within.ready)),
            sink.connect(within, omit={"valid", "ready"}),
            within.valid.eq(sink.valid & (~empty | (is_paged(sink.address) & source.ready))),
        ]
        self.sync += [
            inside.eq(inside + enters - exits),
            lasts.eq(lasts + (enters & within.last) - (exits & after.last)),
            If(enters,
                empty.eq(0)
            ).Elif(exits,
                empty.eq(inside == 1)
            ),
            If(enters & within.last,
                self.ending.eq(1)
            ).Elif(exits & after.last,
                self.ending.eq(lasts != 1)
            ),
        ]

        # Directory --------------------------------------------------------------------------------

        # The shift is needed first, the table when a line is asked for: each is read on the way to
        # where it is used. No entry is read while it is entered: nothing of its region is under way
        # then.
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

        # Where in the table: two registers in front of the cache, one for the directory, one for
        # the shift. Whether anything moves depends on the cache, and goes no further back than
        # between them. `shift` is that above SHIFT_LEAST.
        region   = [("paged", 1), ("region", log2_int(C.REGIONS))]
        place    = region + [("shift", shift_bits)]
        where    = stream.PipeValid(self._extended(layout, region))
        gate     = Skid(self._extended(layout, place))
        numbered = stream.PipeValid(self._extended(layout, place + [("page", INDEX.start - SHIFT_LEAST)]))
        self.where, self.gate, self.numbered = where, gate, numbered
        virtual  = gate.source.address[SHIFT_LEAST:INDEX.start]
        self.comb += [
            within.connect(where.sink),
            where.sink.paged.eq(is_paged(within.address)),
            where.sink.region.eq(within.address[INDEX]),
            shift.adr.eq(within.address[INDEX]),
            shift.re.eq(where.sink.ready),
            where.source.connect(gate.sink),
            gate.sink.shift.eq(shift.dat_r),
            gate.source.connect(numbered.sink),
            numbered.sink.page.eq(virtual >> gate.source.shift),
        ]

        # Cache ------------------------------------------------------------------------------------

        # One register more, for whether the line that is wanted has this name.
        self.named = named = stream.PipeValid(self._extended(layout, place + [
            ("word", log2_int(PER_LINE)), ("line", INDEX.start - SHIFT_LEAST - log2_int(PER_LINE)), ("index", index_bits), ("named", 1)]))
        asked = named.source
        index = asked.index
        self.comb += [
            table_.adr.eq(numbered.source.region),
            table_.re.eq(named.sink.ready),
        ]

        # Who holds a line: its name, and the number of the last that entered for it.
        def table(bits):
            memory = Memory(bits, lines)
            write, read = memory.get_port(write_capable=True), memory.get_port(async_read=True)
            self.specials += memory, write, read
            return write, read

        name    = Cat(asked.region, asked.line)
        coming  = Cat(named.sink.region, named.sink.line)
        number  = Signal(bits_for(depth))
        holder_write, holder = table(len(name))
        latest_write, latest = table(len(number))
        known   = Signal(lines)    # the line has a name
        in_use  = Signal(lines)    # somebody in the FIFO waits for it

        # Its data are here when it was answered in the phase in which it was asked for last. Both
        # are in LUT memory, since one thing a cycle writes each: no line is asked for again before
        # its answer, and nothing expires while there is one.
        phase_write, phase = table(1)
        answered = Memory(2, lines)   # phase, and that they could not be read
        answer_write, answer_asked, answer_head = (answered.get_port(write_capable=True), answered.get_port(async_read=True),
            answered.get_port(async_read=True))
        self.specials += answered, answer_write, answer_asked, answer_head
        ready   = Signal()         # the line of `head`
        broken  = Signal()

        # Of the line of `asked`, as they are in this cycle: found out a cycle before.
        asked_known = Signal()
        asked_used  = Signal()
        match   = Signal()
        fetches = Signal()
        admit   = Signal()
        leave   = Signal()
        taken   = Signal()
        self.requests = requests = Place(read_layout())
        waits         = self._extended(layout, [("paged", 1), ("shift", shift_bits),
            ("index", index_bits), ("word", log2_int(PER_LINE)), ("number", len(number))])
        self.waiting  = waiting = BlockFIFO(waits, depth) if depth > 16 else stream.SyncFIFO(waits, depth)
        head = waiting.source
        self.comb += [
            numbered.source.connect(named.sink, omit={"page"}),
            Cat(named.sink.word, named.sink.line).eq(numbered.source.page),
            named.sink.index.eq(named.sink.line ^ named.sink.region),
            # Who is in front has given the line its own name by the time that this one is there.
            If(asked.valid & asked.paged & (named.sink.index == index),
                named.sink.named.eq(coming == name)
            ).Else(
                named.sink.named.eq(coming == holder.dat_r)
            ),
            match.eq(asked_known & asked.named),
            fetches.eq(asked.paged & ~match),
            taken.eq(asked.valid & waiting.sink.ready & ~directory.strobe),
            requests.source.connect(reads),
            requests.sink.valid.eq(taken & fetches & ~asked_used & pool.source.valid),
            requests.sink.last.eq(1),
            requests.sink.tag.eq(pool.source.tag),
            requests.sink.length.eq(LINE),
            requests.sink.address.eq(line_address(table_.dat_r + asked.line, address_bits)),
            pool.source.ready.eq(requests.sink.valid & requests.sink.ready),
            admit.eq(taken & (~fetches | pool.source.ready)),
            asked.connect(waiting.sink, omit={"valid", "ready", "region", "line", "named"}),
            asked.ready.eq(admit),
            waiting.sink.valid.eq(admit),
            waiting.sink.number.eq(number),
            holder.adr.eq(named.sink.index),
            holder_write.adr.eq(index),
            holder_write.dat_w.eq(name),
            holder_write.we.eq(pool.source.ready),
            latest_write.adr.eq(index),
            latest_write.dat_w.eq(number),
            latest_write.we.eq(admit & asked.paged),
            latest.adr.eq(head.index),
            answer_asked.adr.eq(index),
            phase_write.adr.eq(index),
            phase_write.dat_w.eq(~answer_asked.dat_r[0]),
            phase_write.we.eq(pool.source.ready),
            phase.adr.eq(head.index),
            answer_head.adr.eq(head.index),
            ready.eq(phase.dat_r == answer_head.dat_r[0]),
            broken.eq(answer_head.dat_r[1]),
        ]
        self.sync += If(admit, number.eq(number + 1))

        # Fill -------------------------------------------------------------------------------------

        # Whose an answer is, is found a cycle after it came.
        beat   = stream.Endpoint(completion_layout(data_width))
        final  = Signal()
        self.sync += [
            beat.valid.eq(answer.valid),
            final.eq(ends_read(answer)),
            *[getattr(beat, n).eq(getattr(answer, n)) for n in ("last", "dat", "tag", "status", "count", "bytes", "failed")],
        ]
        owners = Memory(index_bits + 1, max(tags, 2))  # line and phase of a tag
        own, of_answer, of_expired = (owners.get_port(write_capable=True), owners.get_port(async_read=True),
            owners.get_port(async_read=True))
        # No entry is read while its line is being filled; but one that was read may wait while its
        # line is filled anew.
        data   = Memory(address_bits*(width//8), lines*beats, name="page_entries")
        fill   = data.get_port(write_capable=True)
        entry  = data.get_port(has_re=True, mode=READ_FIRST)
        self.specials += owners, own, of_answer, of_expired, data, fill, entry
        onward = Signal(max=beats)
        first  = Signal(reset=1)
        filled = Signal()
        over   = Signal(index_bits + 1)   # the line, and its phase, that is answered or given up
        lost   = Signal()                 # it could not be read
        self.comb += [
            own.adr.eq(pool.source.tag),
            own.dat_w.eq(Cat(index, phase_write.dat_w)),
            own.we.eq(pool.source.ready),
            answer.ready.eq(1),
            pool.answered.eq(beat.tag),
            of_answer.adr.eq(beat.tag),
            of_expired.adr.eq(pool.expire_tag),
            pool.release.eq(final & ~beat.failed),
            pool.fail.eq(final & beat.failed),
            fill.adr.eq(Cat(Mux(first, (LINE - beat.count)[log2_int(width):], onward)[:log2_int(beats)], of_answer.dat_r[:index_bits])),
            fill.dat_w.eq(beat.dat if address_bits == 64 else
                Cat(*[narrow_entry(beat.dat[64*n:64*n + 64], address_bits) for n in range(width//8)])),
            fill.we.eq(beat.valid & pool.live & (beat.status == 0)),
            filled.eq(final & pool.live),
            over.eq(Mux(final, of_answer.dat_r, of_expired.dat_r)),
            lost.eq(pool.expire | (filled & (beat.status != 0))),
            answer_write.adr.eq(over),
            answer_write.dat_w.eq(Cat(over[index_bits], lost)),
            answer_write.we.eq(pool.expire | filled),
        ]
        self.sync += [
            If(beat.valid,
                first.eq(beat.last),
                onward.eq(fill.adr + 1),
            ),
            pulses["COMPLETION_UNEXPECTED"].eq(beat.valid & beat.last & ~pool.known),
            pulses["COMPLETION_ERROR"].eq(filled & (beat.status != 0) & ~beat.failed),
            pulses["COMPLETION_TIMEOUT"].eq(pool.expire),
        ]

        # State of the lines. What could not be read loses its name, so that whoever comes when its
        # users have left asks again.
        forgets = lambda n: (lost & (over[:index_bits] == n)) | directory.strobe
        frees   = lambda n: leave & (head.index == n) & (latest.dat_r == head.number)
        follows = Signal()   # the one in front of it wants the same line
        self.comb += follows.eq(named.sink.index == index)
        self.sync += [
            If(named.sink.ready,
                asked_known.eq(((known >> named.sink.index)[0] | (pool.source.ready & follows)) & ~forgets(named.sink.index)),
                asked_used.eq(((in_use >> named.sink.index)[0] & ~frees(named.sink.index)) | (admit & asked.paged & follows)),
            ).Else(
                asked_known.eq(asked_known & ~forgets(index)),
                asked_used.eq(asked_used & ~frees(index)),
            )
        ]
        for n in range(lines):
            self.sync += [
                If(frees(n), in_use[n].eq(0)),
                If(admit & asked.paged & (index == n), in_use[n].eq(1)),
                If(pool.source.ready & (index == n), known[n].eq(1)),
                If(forgets(n), known[n].eq(0)),
            ]

        # Answer -----------------------------------------------------------------------------------

        # The entry is read when the one who waits for it leaves the FIFO, and is there in the next
        # cycle.
        self.reading = reading = stream.PipeValid(self._extended(layout,
            [("paged", 1), ("shift", shift_bits), ("word", log2_int(PER_LINE)), ("broken", 1)]))
        found  = reading.source
        go     = Signal()
        page   = Signal(address_bits)
        # what is within the page, but its lowest bits, which wait for nothing
        mask   = Signal(SHIFT_MOST - SHIFT_LEAST)
        words  = width//8
        self.comb += [
            go.eq(~head.paged | ready),
            head.connect(reading.sink, omit={"valid", "ready", "index", "number"}),
            reading.sink.broken.eq(broken),
            reading.sink.valid.eq(head.valid & go),
            head.ready.eq(reading.sink.ready & go),
            leave.eq(head.valid & head.ready & head.paged),
            entry.adr.eq(Cat(head.word[log2_int(words):], head.index)),
            entry.re.eq(head.valid & head.ready),
            page.eq(Array(entry.dat_r[address_bits*n:address_bits*(n + 1)] for n in range(words))[found.word[:log2_int(words)]]
                if words > 1 else entry.dat_r),
            Case(found.shift, {n - SHIFT_LEAST: mask.eq(2**(n - SHIFT_LEAST) - 1) for n in range(SHIFT_LEAST, SHIFT_MOST + 1)}),
            found.connect(after, omit={"address", "paged", "shift", "word", "broken"}),
            after.address.eq(found.address),
            If(found.paged,
                after.address[SHIFT_LEAST:].eq(Cat(
                    (page[SHIFT_LEAST:SHIFT_MOST] & ~mask) | (found.address[SHIFT_LEAST:min(SHIFT_MOST, INDEX.start)] & mask),
                    page[SHIFT_MOST:])),
                self.fault.eq((found.broken | page[0]) & ~empty),
            )
        ]

    @staticmethod
    def _extended(layout, more):
        """`layout` with more parameters."""
        return stream.EndpointDescription(layout.payload_layout, layout.param_layout + more)

# Paged Pieces -------------------------------------------------------------------------------------

class PagedPieces(LiteXModule):
    """The pieces of walks, translated. From a piece whose page cannot be found on, its transfer has
    errors.

    Parameters
    ----------
    as of `Translator`

    Attributes
    ----------
    sink, source : Endpoint(piece_layout)
    ending       : Signal(), out    the last piece of a transfer was taken, and is in here
    directory, reads, completions, extended_tags, pulses : of the `Translator`
    """
    def __init__(self, data_width, address_bits=64, **translator):
        self.sink       = sink   = stream.Endpoint(piece_layout(address_bits))
        # Whether a piece is taken is heard a cycle later, by the translator and by the walk.
        self.gate       = gate   = Skid(piece_layout(address_bits))
        self.source     = gate.source
        self.ending     = Signal()
        self.translator = translator = Translator(piece_layout(address_bits), data_width, address_bits=address_bits, **translator)
        for name in ["directory", "reads", "completions", "extended_tags", "pulses"]:
            setattr(self, name, getattr(translator, name))

        # # #

        source = gate.sink
        failed = Signal()
        self.comb += [
            # One that only passes waits at the sink: the walk's end knows of it.
            self.ending.eq(translator.ending | (gate.held & gate.source.last)),
            sink.connect(translator.sink),
            # What lies outside the region is in no page.
            If(sink.error, translator.sink.address.eq(0)),
            translator.source.connect(source, omit={"error", "fault"}),
            source.fault.eq(translator.source.fault),
            If(translator.fault | failed, source.fault.eq(FAULT_READ)),
            source.error.eq(translator.source.error | (source.fault != 0)),
        ]
        self.sync += If(source.valid & source.ready, failed.eq((source.fault != 0) & ~source.last))
