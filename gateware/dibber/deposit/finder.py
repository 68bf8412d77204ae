"""Page finder: translation of single addresses of paged regions, shared by several users."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.genlib.record import DIR_M_TO_S, DIR_S_TO_M, Record
from migen.genlib.roundrobin import RoundRobin, SP_CE

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.deposit.pages import LINE, PER_LINE, SHIFT_LEAST, SHIFT_MOST, directory_layout, index_of, line_address, narrow_entry
from dibber.deposit.tags import Tags
from dibber.interface.description import C
from dibber.layouts import completion_layout, ends_read, read_layout
from dibber.common.places import Place

# Port ---------------------------------------------------------------------------------------------

def finder_port(address_bits=64):
    """A request to translate one address: `valid` and a paged `address` stay until `done`.

    `done` is 1 for one cycle, with the answer. `page` is bits 12 and up of the bus address; the
    other bits are those of `address`. `fault`: there is no such page, or its table cannot be read.
    If the user withdraws `valid`, no answer comes.
    """
    return Record(
        [("valid", 1, DIR_M_TO_S), ("address", address_bits, DIR_M_TO_S), ("done", 1, DIR_S_TO_M),
        ("page", address_bits - SHIFT_LEAST, DIR_S_TO_M), ("fault", 1, DIR_S_TO_M)])

# Page Finder --------------------------------------------------------------------------------------

class PageFinder(LiteXModule):
    """Translate single addresses of paged regions, one after the other (a small page table cache).

    One step a cycle: the place of the table, the page number, the table's line, its entry. On a
    cache miss the user waits for the host, and all other users wait too. The entries of a line come
    in order (PCIe Base 3.0, 2.3.1.1: the completions of one request do). If the read fails or times
    out, the user gets `fault`, and the next user of this line reads it again.

    Parameters
    ----------
    data_width : 64, 128 or 256
    ports      : number of users, served round-robin
    lines      : lines of the cache, a power of two; direct-mapped by region and position in the
                 table
    tags       : tags of the reads; one is in use, the others are spares for tags in quarantine. If
                 none is left, the answer is `fault`
    base       : number of tags without extended tags
    timeout, quarantine : cycles, see `Tags`
    address_bits : 64 or 32

    Attributes
    ----------
    ports       : list of finder_port()
    directory   : Record(directory_layout), in   writes a region's entry and invalidates all lines;
                  with shift 0 it only invalidates
    reads       : Endpoint(read_layout), out
    completions : Endpoint(completion_layout), in   always ready
    extended_tags : Signal(), in
    pulses      : COMPLETION_UNEXPECTED, COMPLETION_ERROR, COMPLETION_TIMEOUT

    Cycles from `valid` to `done` on a hit: 5 with pages of 4 KiB, 8 with 2 MiB, 11 with 1 GiB; one
    more if the grant changes.
    """
    def __init__(
        self, data_width, ports, lines=16, tags=4, base=4, timeout=6250, quarantine=2**23,
        address_bits=64):
        self.ports       = ports = [finder_port(address_bits) for _ in range(ports)]
        self.directory   = directory = Record(directory_layout())
        self.reads       = reads  = stream.Endpoint(read_layout())
        self.completions = stream.Endpoint(completion_layout(data_width))
        self.tags        = pool   = Tags(tags, timeout, quarantine, base)
        self.extended_tags = pool.extended
        self.pulses      = pulses = {
            name: Signal(name=f"finder_{name.lower()}") for name in (
            "COMPLETION_UNEXPECTED", "COMPLETION_ERROR", "COMPLETION_TIMEOUT")}

        # # #

        self.fsm = fsm = FSM(reset_state="IDLE")
        width          = data_width//8
        entries_a_word = width//8    # page table entries in a line of the data path
        INDEX          = index_of(address_bits)
        words_a_line   = LINE//width
        word_bits, line_bits = log2_int(PER_LINE), log2_int(lines)
        page_bits = INDEX.start - SHIFT_LEAST
        low_bits  = SHIFT_MOST - SHIFT_LEAST

        # Pipeline stage: a completion is evaluated one cycle after it came.
        answer = stream.Endpoint(completion_layout(data_width))
        final  = Signal()
        self.sync += [
            answer.valid.eq(self.completions.valid),
            final.eq(ends_read(self.completions)),
            *[
                getattr(answer, n).eq(getattr(self.completions, n))
                for n in (
                    "last", "dat", "tag", "tag_phase", "status", "count", "bytes", "failed")],
        ]

        # Turn -------------------------------------------------------------------------------------

        self.turn = turn = RoundRobin(len(ports), SP_CE)
        address      = Signal(address_bits)
        still_wanted = Signal()  # the user has not withdrawn its request
        asks         = Signal()
        self.comb += [
            turn.request.eq(Cat(*[port.valid for port in ports])),
            asks.eq(Array(port.valid for port in ports)[turn.grant]),
            address.eq(Array(port.address for port in ports)[turn.grant]),
        ]

        # Directory --------------------------------------------------------------------------------

        # No request of a region is under way while its entry is written.
        shift_bits  = len(directory.shift)
        tables  = Memory(address_bits - log2_int(LINE) + shift_bits, C.REGIONS, name="block_tables")
        table_write = tables.get_port(write_capable=True)
        table       = tables.get_port(has_re=True, mode=READ_FIRST)
        self.specials += tables, table_write, table
        self.comb += [
            table_write.adr.eq(directory.index),
            table_write.dat_w.eq(
                Cat(
                    (directory.shift - SHIFT_LEAST)[:shift_bits],
                    directory.table[log2_int(LINE):address_bits])),
            table_write.we.eq(directory.strobe & (directory.shift != 0)),
            table.adr.eq(address[INDEX]),
            table.re.eq(fsm.ongoing("IDLE")),
        ]

        # Lines ------------------------------------------------------------------------------------

        # The page number is shifted right by the page size, while the mask of the offset bits in
        # the page grows.
        page         = Signal(page_bits)
        shift_left   = Signal(shift_bits)
        in_page_mask = Signal(low_bits)
        region       = Signal(log2_int(C.REGIONS))
        line         = page[word_bits:]
        index        = Signal(line_bits)
        line_name    = Cat(region, line)
        line_names   = Memory(len(line_name), lines)
        name_write, name_read = line_names.get_port(
            write_capable=True), line_names.get_port(async_read=True)
        data  = Memory(address_bits*entries_a_word, lines*words_a_line, name="block_entries")
        fill  = data.get_port(write_capable=True)
        entry = data.get_port(mode=READ_FIRST)
        self.specials += line_names, name_write, name_read, data, fill, entry
        line_valid   = Signal(lines)
        name_matches = Signal()
        hit          = Signal()
        beat         = Signal(max=max(words_a_line, 2))
        read_failed  = Signal()
        fault        = Signal()
        found        = Signal(address_bits)
        self.comb += [
            index.eq(line ^ region),
            name_read.adr.eq(index),
            name_write.adr.eq(index),
            name_write.dat_w.eq(line_name),
            entry.adr.eq(Cat(page[log2_int(entries_a_word):word_bits], index)),
            fill.adr.eq(Cat(beat, index)),
            fill.dat_w.eq(answer.dat if address_bits == 64 else
                Cat(
                    *[
                        narrow_entry(answer.dat[64*n:64*n + 64], address_bits)
                        for n in range(entries_a_word)])),
            found.eq(
                Array(
                    entry.dat_r[address_bits*n:address_bits*(n + 1)]
                    for n in range(entries_a_word))[page[:log2_int(entries_a_word)]]
                if entries_a_word > 1 else entry.dat_r),
        ]
        for port in ports:
            self.comb += [
                port.page.eq(
                    Cat(
                        (found[SHIFT_LEAST:SHIFT_MOST] & ~in_page_mask) | (
                            address[SHIFT_LEAST:min(SHIFT_MOST, INDEX.start)] & in_page_mask),
                        found[SHIFT_MOST:])),
                port.fault.eq(fault | found[0]),
            ]
        self.sync += [
            name_matches.eq(name_read.dat_r == line_name),
            hit.eq((line_valid >> index)[0]),
        ]

        # Read -------------------------------------------------------------------------------------

        self.requests = requests = Place(read_layout())
        is_live = Signal()
        self.comb += [
            requests.source.connect(reads),
            requests.sink.last.eq(1),
            requests.sink.tag.eq(pool.source.tag),
            requests.sink.tag_phase.eq(pool.source.phase),
            requests.sink.length.eq(LINE),
            requests.sink.address.eq(line_address(table.dat_r[shift_bits:] + line, address_bits)),
            self.completions.ready.eq(1),
            pool.answered.eq(answer.tag),
            pool.answered_phase.eq(answer.tag_phase),
            # At most one read is live; all others have timed out.
            is_live.eq(answer.valid & pool.live),
            pool.release.eq(final & ~answer.failed),
            pool.fail.eq(final & answer.failed),
            fill.we.eq(is_live & (answer.status == 0)),
            read_failed.eq((is_live & (answer.status != 0)) | pool.expire),
        ]
        self.sync += [
            pulses["COMPLETION_UNEXPECTED"].eq(answer.valid & answer.last & ~pool.known),
            pulses["COMPLETION_ERROR"].eq(is_live & final & (answer.status != 0) & ~answer.failed),
            pulses["COMPLETION_TIMEOUT"].eq(pool.expire),
        ]

        # Control ----------------------------------------------------------------------------------

        fsm.act("IDLE",
            turn.ce.eq(~asks),
            NextValue(still_wanted, 1),
            NextValue(fault, 0),
            NextValue(region, address[INDEX]),
            NextValue(page, address[SHIFT_LEAST:INDEX.start]),
            NextValue(in_page_mask, 0),
            NextValue(beat, 0),
            If(asks, NextState("TABLE"))
        )
        fsm.act("TABLE",
            NextValue(shift_left, table.dat_r[:shift_bits]),
            NextState("SHIFT")
        )
        fsm.act("SHIFT",
            If(shift_left[2:] != 0,
                NextValue(page, page[4:]),
                NextValue(in_page_mask, Cat(Constant(0xf, 4), in_page_mask)),
                NextValue(shift_left, shift_left - 4)
            ).Elif(shift_left[:2] != 0,
                NextValue(page, page[1:]),
                NextValue(in_page_mask, Cat(Constant(1, 1), in_page_mask)),
                NextValue(shift_left, shift_left - 1)
            ).Else(
                NextState("LOOK")
            )
        )
        fsm.act("LOOK",
            NextState("JUDGE")
        )
        fsm.act("JUDGE",
            If(name_matches & hit,
                NextState("DONE")
            ).Elif(pool.source.valid & requests.sink.ready,
                requests.sink.valid.eq(1),
                pool.source.ready.eq(1),
                name_write.we.eq(1),
                NextState("FILL")
            ).Elif(pool.exhausted,
                NextValue(fault, 1),
                NextState("DONE")
            )
        )
        fsm.act("FILL",
            If(fill.we, NextValue(beat, beat + 1)),
            If(read_failed, NextValue(fault, 1)),
            If(read_failed | (is_live & final), NextState("ENTRY"))
        )
        fsm.act("ENTRY",
            NextState("DONE")
        )
        fsm.act("DONE",
            turn.ce.eq(1),
            NextState("IDLE")
        )
        for n, port in enumerate(ports):
            self.comb += port.done.eq(
                fsm.ongoing("DONE") & still_wanted & port.valid & (turn.grant == n))
        self.sync += If(~fsm.ongoing("IDLE") & ~asks, still_wanted.eq(0))
        for n in range(lines):
            self.sync += [
                If(name_write.we & (index == n), line_valid[n].eq(1)),
                If((fsm.ongoing("FILL") & read_failed & (index == n)) | directory.strobe,
                    line_valid[n].eq(0)
                ),
            ]
