"""Arbiter of read requests: several readers of host memory share one port; each has own tags."""

# SPDX-License-Identifier: BSD-2-Clause

from collections import namedtuple

from migen import *
from migen.genlib.roundrobin import RoundRobin, SP_CE

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import completion_layout, read_layout
from dibber.common.places import Skid

# Readers ------------------------------------------------------------------------------------------

EXTENDED = 32  # the first tag that only a host with extended tags takes (PCIe Base 3.0, 2.2.6.2)

Reader = namedtuple("Reader", "base tags")
Reader.__doc__ = """A reader uses tags 0…tags-1, without extended tags 0…base-1 only."""

def at_least(tag, least):
    """Whether tag >= least. For 0 it is the constant 1, because tools warn of such a comparison."""
    return tag >= least if least else 1

# Read Arbiter -------------------------------------------------------------------------------------

class ReadArbiter(LiteXModule):
    """Share one read port between several readers, round-robin; route completions by tag.

    On the bus, the first `base` tags of all readers are consecutive from tag 0; the others are
    consecutive from EXTENDED on. A completion whose tag belongs to no reader goes to the first
    reader with tag 255, which that reader never uses.

    Parameters
    ----------
    data_width : bits of a completion's line
    readers    : list of Reader

    Attributes
    ----------
    reads       : list of Endpoint(read_layout), in
    completions : list of Endpoint(completion_layout), out   valid only, `ready` is ignored
    source      : Endpoint(read_layout), out
    sink        : Endpoint(completion_layout), in            always ready
    tags        : int, number of tags on the bus, from 0 on

    Cycles: 0 each way, but 1 when the grant changes; one read a cycle.
    """
    def __init__(self, data_width, readers):
        self.reads       = [stream.Endpoint(read_layout()) for _ in readers]
        self.completions = [stream.Endpoint(completion_layout(data_width)) for _ in readers]
        self.pipe        = pipe   = Skid(read_layout())
        self.source      = pipe.source
        self.sink        = sink   = stream.Endpoint(completion_layout(data_width))
        if sum(reader.base for reader in readers) > EXTENDED or readers[0].tags > 255:
            raise ValueError(f"{readers} do not fit into the tags that there are")

        # # #

        source = pipe.sink

        # Tags: ranges (reader, first tag of the reader, first tag on the bus, count).
        ranges, low, high = [], 0, EXTENDED
        for n, reader in enumerate(readers):
            ranges += [(n, 0, low, reader.base), (n, reader.base, high, reader.tags - reader.base)]
            low    += reader.base
            high   += reader.tags - reader.base
        ranges = [r for r in ranges if r[3]]
        self.tags = max(bus + count for _, _, bus, count in ranges)

        # Reads ------------------------------------------------------------------------------------

        self.turn = turn = RoundRobin(len(readers), SP_CE)
        self.comb += turn.ce.eq(~source.valid | source.ready)
        cases = {}
        for n, reads in enumerate(self.reads):
            self.comb += turn.request[n].eq(reads.valid)
            cases[n] = [reads.connect(source, omit={"tag"})]
            for owner, own, bus, count in ranges:
                if owner == n:
                    # Ranges are in ascending order: the last one that starts at or below the
                    # tag applies.
                    cases[n].append(
                        If(at_least(reads.tag, own), source.tag.eq(reads.tag + (bus - own))))
        self.comb += Case(turn.grant, cases)

        # Completions ------------------------------------------------------------------------------

        known = Signal()
        self.comb += sink.ready.eq(1)
        for completions in self.completions:
            self.comb += sink.connect(completions, omit={"valid", "ready", "tag"})
        first = self.completions[0]
        self.comb += [
            first.valid.eq(sink.valid & ~known),
            first.tag.eq(255),
        ]
        for n, own, bus, count in ranges:
            self.comb += If(at_least(sink.tag, bus) & (sink.tag < bus + count),
                known.eq(1),
                self.completions[n].valid.eq(sink.valid),
                self.completions[n].tag.eq(sink.tag - (bus - own)),
            )
