"""Host memory as the engines use it: what was granted, and the way to it."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.common.pulses import Pulses
from dibber.deposit.expected import ExpectedTable
from dibber.deposit.finder import PageFinder
from dibber.deposit.keys import KeyCount
from dibber.deposit.reads import ReadArbiter
from dibber.deposit.regions import NarrowRegion, RegionTable
from dibber.deposit.writes import WriteArbiter
from dibber.host.completions import REASONS, CompletionChecker
from dibber.interface.description import C
from dibber.layouts import expect_layout

# Layouts ------------------------------------------------------------------------------------------

def region_write_layout():
    """The control program writes entry `index` of the region table, in a cycle with `we`. `table`
    and `page` are those of a paged region.
    """
    return [("we", 1), ("index", 8), ("key", 32), ("base", 64), ("length", 64), ("rights", 4), ("owner", 8), ("valid", 1),
        ("table", 64), ("page", 5)]

def clear_layout():
    """Entry `index` of each table becomes empty, in a cycle with `strobe`."""
    return [("strobe", 1), ("index", log2_int(max(C.REGIONS, C.ENDPOINTS*C.SLOTS)))]

# Host Memory --------------------------------------------------------------------------------------

class HostMemory(LiteXModule):
    """The tables of what was granted, the page finder, and the arbiters before the host interface.

    Parameters
    ----------
    data_width : 64, 128 or 256
    reach      : FAR or NEAR (deposit/reach.py): where the memory is that the PHY reads
    lookups    : how many users look up regions
    finders    : how many users look up the page of an address
    writers    : how many users write

    Attributes
    ----------
    entry       : Record(region_write_layout), in   the region to enter; a key that is not fresh
                  makes no entry
    expect      : Record, in          in a cycle with `we`: an entry of the table of gets under way
    clear       : Record(clear_layout), in   goes before `entry` and `expect`
    lookups     : list of lookup_port()
    expected    : expected_port()
    pages       : list of finder_port()
    readers     : list of (Endpoint(read_layout) in, Endpoint(completion_layout) out), one for each
                  reader of `reach`
    writers     : list of Endpoint(write_layout), in
    landed      : list of Signal(), out   a write of this writer with `mark` was taken by the PHY
    reads, completions, writes, marked : the host interface's
    id          : Signal(16), in      requester ID of the card
    keys        : KeyCount            `draw`, `advance`, `fresh`, `generation`, `next` and `left`
                  are its own
    """
    def __init__(self, data_width, reach, lookups, finders, writers):
        bits  = reach.address
        users = [reach.gather, reach.atomic, reach.walked.reader, reach.walked.reader, reach.found.reader,
            reach.listed.reader, reach.listed.reader]
        self.reader   = reader   = ReadArbiter(data_width, users)
        self.checker  = checker  = CompletionChecker(data_width, reader.tags)
        self.writer   = writer   = WriteArbiter(data_width, sinks=writers)
        self.regions  = regions  = RegionTable(C.REGIONS, ports=lookups, address_bits=bits)
        self.contexts = contexts = ExpectedTable(C.ENDPOINTS*C.SLOTS)
        self.finder   = finder   = PageFinder(data_width, ports=finders, address_bits=bits, **reach.found.parameters)
        self.keys     = keys     = KeyCount()

        self.entry       = entry  = Record(region_write_layout())
        self.expect      = expect = Record([("we", 1)] + expect_layout().payload_layout)
        self.clear       = clear  = Record(clear_layout())
        self.lookups     = regions.ports
        self.expected    = contexts.port
        self.pages       = finder.ports
        self.readers     = list(zip(reader.reads, reader.completions))
        self.writers     = writer.sinks
        self.landed      = writer.landed
        self.reads       = checker.requests
        self.completions = checker.sink
        self.writes      = writer.source
        self.marked      = writer.marked
        self.id          = checker.id

        # # #

        # Regions ----------------------------------------------------------------------------------

        if bits < 64:
            self.narrow = narrow = NarrowRegion(bits)
            self.comb  += [getattr(narrow, name).eq(getattr(entry, name)) for name in ["base", "length", "table"]]
            base, length, fits = narrow.low, narrow.size, narrow.fits
        else:
            base, length, fits = entry.base, entry.length, 1
        self.comb += [
            keys.key.eq(entry.key),
            keys.enter.eq(entry.we & entry.valid),
            regions.write.eq(entry.we | clear.strobe),
            regions.index.eq(Mux(clear.strobe, clear.index, entry.index)),
            regions.valid.eq(entry.valid & keys.fresh & ~clear.strobe & fits),
            *[getattr(regions, name).eq(getattr(entry, name)) for name in ["key", "rights", "owner"]],
            regions.base.eq(base),
            regions.length.eq(length),
        ]

        # Gets Under Way ---------------------------------------------------------------------------

        self.comb += [
            contexts.write.eq(expect.we | clear.strobe),
            contexts.context.eq(Mux(clear.strobe, clear.index, expect.context)),
            contexts.valid.eq(expect.granted & ~clear.strobe),
            contexts.key.eq(expect.key),
            contexts.node.eq(expect.node),
        ]

        # Pages and Reads --------------------------------------------------------------------------

        reads, completions = self.readers[4]
        self.comb += [
            finder.reads.connect(reads),
            completions.connect(finder.completions),
            self.connect_directory(finder),
            reader.source.connect(checker.reads),
            checker.source.connect(reader.sink),
        ]

    def connect_directory(self, pages):
        """Statements that tell a user of page tables each region that is entered."""
        entry = self.entry
        return [pages.directory.strobe.eq(entry.we)] + [getattr(pages.directory, name).eq(getattr(entry, field))
            for name, field in [("index", "index"), ("table", "table"), ("shift", "page")]]

    def count(self, readers):
        """Counters of reads: dict of name -> Signal(), with the pulses of `readers` added up."""
        counters = {name: self.checker.pulses[name] for name in REASONS}
        for name in self.finder.pulses:
            sources = [*readers, self.finder, *([self.checker] if name in self.checker.pulses else [])]
            self.add_module(f"count_{name.lower()}", joined := Pulses(*[source.pulses[name] for source in sources], bits=5))
            counters[name] = joined.pulse
        return counters
