"""The pages of single addresses, found one after the other for several who ask."""

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
    """An address whose page is wanted: `valid` and a paged `address` stand until `done`, one cycle
    with the answer.

    `page` are bits 12 and up of the bus address; the others are those of `address`. `fault`: there
    is no such page, or its table cannot be read. Who takes `valid` back hears no more of it.
    """
    return Record([("valid", 1, DIR_M_TO_S), ("address", address_bits, DIR_M_TO_S), ("done", 1, DIR_S_TO_M),
        ("page", address_bits - SHIFT_LEAST, DIR_S_TO_M), ("fault", 1, DIR_S_TO_M)])

# Page Finder --------------------------------------------------------------------------------------

class PageFinder(LiteXModule):
    """Find the pages of one address after the other, for those who have no stream of them.

    A step of the way a cycle: the place of the table, the page's number, the line of the table, its
    entry. Who is served waits for the host when the line is not here, and so do all others. A
    line's entries come in order (PCIe Base 3.0, 2.3.1.1: the completions of one request do); whose
    read ran out of time, or fails, gets `fault`, and the next who wants the line reads it again.

    Parameters
    ----------
    data_width : 64 or 128
    ports      : who ask, by turns
    lines      : of the tables that are kept, a power of two; direct-mapped by region and place in
                 the table
    tags       : one is in use, the others are spare for those in quarantine; with none left,
                 `fault`
    base       : of them without extended tags
    timeout, quarantine : cycles, see `Tags`
    address_bits : 64 or 32

    Attributes
    ----------
    ports       : list of finder_port()
    directory   : Record(directory_layout), in   also forgets all lines; without a shift it does no
                  more
    reads       : Endpoint(read_layout), out
    completions : Endpoint(completion_layout), in   always ready
    extended_tags : Signal(), in
    pulses      : COMPLETION_UNEXPECTED, COMPLETION_ERROR, COMPLETION_TIMEOUT

    Cycles: 5 from `valid` to `done` with pages of 4 KiB whose line is here, of 2 MiB 8, of 1 GiB
    11; one more when it was another's turn.
    """
    def __init__(self, data_width, ports, lines=16, tags=4, base=4, timeout=6250, quarantine=2**23, address_bits=64):
        self.ports       = ports = [finder_port(address_bits) for _ in range(ports)]
        self.directory   = directory = Record(directory_layout())
        self.reads       = reads  = stream.Endpoint(read_layout())
        self.completions = stream.Endpoint(completion_layout(data_width))
        self.tags        = pool   = Tags(tags, timeout, quarantine, base)
        self.extended_tags = pool.extended
        self.pulses      = pulses = {name: Signal(name=f"finder_{name.lower()}") for name in (
            "COMPLETION_UNEXPECTED", "COMPLETION_ERROR", "COMPLETION_TIMEOUT")}

        # # #

        self.fsm = fsm = FSM(reset_state="IDLE")
        width = data_width//8
        words = width//8             # entries of a line of the data path
        INDEX = index_of(address_bits)
        beats = LINE//width
        word_bits, line_bits = log2_int(PER_LINE), log2_int(lines)
        page_bits = INDEX.start - SHIFT_LEAST
        low_bits  = SHIFT_MOST - SHIFT_LEAST

        # What an answer is, is found out a cycle after it came.
        answer = stream.Endpoint(completion_layout(data_width))
        final  = Signal()
        self.sync += [
            answer.valid.eq(self.completions.valid),
            final.eq(ends_read(self.completions)),
            *[getattr(answer, n).eq(getattr(self.completions, n)) for n in ("last", "dat", "tag", "status", "count", "bytes", "failed")],
        ]

        # Turn -------------------------------------------------------------------------------------

        self.turn = turn = RoundRobin(len(ports), SP_CE)
        address   = Signal(address_bits)
        wanted    = Signal()   # who is served has not gone away
        asks      = Signal()
        self.comb += [
            turn.request.eq(Cat(*[port.valid for port in ports])),
            asks.eq(Array(port.valid for port in ports)[turn.grant]),
            address.eq(Array(port.address for port in ports)[turn.grant]),
        ]

        # Directory --------------------------------------------------------------------------------

        # Nothing of a region is under way while its entry is written.
        shift_bits = len(directory.shift)
        tables  = Memory(address_bits - log2_int(LINE) + shift_bits, C.REGIONS, name="block_tables")
        enter   = tables.get_port(write_capable=True)
        table   = tables.get_port(has_re=True, mode=READ_FIRST)
        self.specials += tables, enter, table
        self.comb += [
            enter.adr.eq(directory.index),
            enter.dat_w.eq(Cat((directory.shift - SHIFT_LEAST)[:shift_bits], directory.table[log2_int(LINE):address_bits])),
            enter.we.eq(directory.strobe & (directory.shift != 0)),
            table.adr.eq(address[INDEX]),
            table.re.eq(fsm.ongoing("IDLE")),
        ]

        # Lines ------------------------------------------------------------------------------------

        # What is known of the page's number: it is shifted to its place, while the mask of what is
        # within the page grows.
        page   = Signal(page_bits)
        left   = Signal(shift_bits)
        within = Signal(low_bits)
        region = Signal(log2_int(C.REGIONS))
        line   = page[word_bits:]
        index  = Signal(line_bits)
        name   = Cat(region, line)
        names  = Memory(len(name), lines)
        holder, named = names.get_port(write_capable=True), names.get_port(async_read=True)
        data   = Memory(address_bits*words, lines*beats, name="block_entries")
        fill   = data.get_port(write_capable=True)
        entry  = data.get_port(mode=READ_FIRST)
        self.specials += names, holder, named, data, fill, entry
        known  = Signal(lines)
        same   = Signal()
        hit    = Signal()
        beat   = Signal(max=max(beats, 2))
        lost   = Signal()
        broken = Signal()
        found  = Signal(address_bits)
        self.comb += [
            index.eq(line ^ region),
            named.adr.eq(index),
            holder.adr.eq(index),
            holder.dat_w.eq(name),
            entry.adr.eq(Cat(page[log2_int(words):word_bits], index)),
            fill.adr.eq(Cat(beat, index)),
            fill.dat_w.eq(answer.dat if address_bits == 64 else
                Cat(*[narrow_entry(answer.dat[64*n:64*n + 64], address_bits) for n in range(words)])),
            found.eq(Array(entry.dat_r[address_bits*n:address_bits*(n + 1)] for n in range(words))[page[:log2_int(words)]] if words > 1 else entry.dat_r),
        ]
        for port in ports:
            self.comb += [
                port.page.eq(Cat((found[SHIFT_LEAST:SHIFT_MOST] & ~within) | (address[SHIFT_LEAST:min(SHIFT_MOST, INDEX.start)] & within), found[SHIFT_MOST:])),
                port.fault.eq(broken | found[0]),
            ]
        self.sync += [
            same.eq(named.dat_r == name),
            hit.eq((known >> index)[0]),
        ]

        # Read -------------------------------------------------------------------------------------

        self.requests = requests = Place(read_layout())
        mine = Signal()
        self.comb += [
            requests.source.connect(reads),
            requests.sink.last.eq(1),
            requests.sink.tag.eq(pool.source.tag),
            requests.sink.length.eq(LINE),
            requests.sink.address.eq(line_address(table.dat_r[shift_bits:] + line, address_bits)),
            self.completions.ready.eq(1),
            pool.answered.eq(answer.tag),
            # Nothing else is under way that did not run out of time.
            mine.eq(answer.valid & pool.live),
            pool.release.eq(final & ~answer.failed),
            pool.fail.eq(final & answer.failed),
            fill.we.eq(mine & (answer.status == 0)),
            lost.eq((mine & (answer.status != 0)) | pool.expire),
        ]
        self.sync += [
            pulses["COMPLETION_UNEXPECTED"].eq(answer.valid & answer.last & ~pool.known),
            pulses["COMPLETION_ERROR"].eq(mine & final & (answer.status != 0) & ~answer.failed),
            pulses["COMPLETION_TIMEOUT"].eq(pool.expire),
        ]

        # Control ----------------------------------------------------------------------------------

        fsm.act("IDLE",
            turn.ce.eq(~asks),
            NextValue(wanted, 1),
            NextValue(broken, 0),
            NextValue(region, address[INDEX]),
            NextValue(page, address[SHIFT_LEAST:INDEX.start]),
            NextValue(within, 0),
            NextValue(beat, 0),
            If(asks, NextState("TABLE"))
        )
        fsm.act("TABLE",
            NextValue(left, table.dat_r[:shift_bits]),
            NextState("SHIFT")
        )
        fsm.act("SHIFT",
            If(left[2:] != 0,
                NextValue(page, page[4:]),
                NextValue(within, Cat(Constant(0xf, 4), within)),
                NextValue(left, left - 4)
            ).Elif(left[:2] != 0,
                NextValue(page, page[1:]),
                NextValue(within, Cat(Constant(1, 1), within)),
                NextValue(left, left - 1)
            ).Else(
                NextState("LOOK")
            )
        )
        fsm.act("LOOK",
            NextState("JUDGE")
        )
        fsm.act("JUDGE",
            If(same & hit,
                NextState("DONE")
            ).Elif(pool.source.valid & requests.sink.ready,
                requests.sink.valid.eq(1),
                pool.source.ready.eq(1),
                holder.we.eq(1),
                NextState("FILL")
            ).Elif(pool.exhausted,
                NextValue(broken, 1),
                NextState("DONE")
            )
        )
        fsm.act("FILL",
            If(fill.we, NextValue(beat, beat + 1)),
            If(lost, NextValue(broken, 1)),
            If(lost | (mine & final), NextState("ENTRY"))
        )
        fsm.act("ENTRY",
            NextState("DONE")
        )
        fsm.act("DONE",
            turn.ce.eq(1),
            NextState("IDLE")
        )
        for n, port in enumerate(ports):
            self.comb += port.done.eq(fsm.ongoing("DONE") & wanted & port.valid & (turn.grant == n))
        self.sync += If(~fsm.ongoing("IDLE") & ~asks, wanted.eq(0))
        for n in range(lines):
            self.sync += [
                If(holder.we & (index == n), known[n].eq(1)),
                If((fsm.ongoing("FILL") & lost & (index == n)) | directory.strobe, known[n].eq(0)),
            ]
