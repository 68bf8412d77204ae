# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The table of memory that was granted, looked up by key."""

from migen import *
from migen.genlib.record import DIR_M_TO_S, DIR_S_TO_M, Record

from litex.gen import *

from dibber.interface.description import C
from dibber.layouts import region_layout

# Lookup Port --------------------------------------------------------------------------------------

def lookup_port():
    """A lookup: `valid` for one cycle with `key`; 2 cycles later `done` and the answer, for one cycle."""
    return Record(
        [("valid", 1, DIR_M_TO_S), ("key", 32, DIR_M_TO_S), ("done", 1, DIR_S_TO_M)] +
        [(name, width, DIR_S_TO_M) for name, width in region_layout()])

# Region Table -------------------------------------------------------------------------------------

class RegionTable(LiteXModule):
    """`regions` entries; the low bits of a key are its index, and the whole key must match.

    The entries are in block RAM (flow.py asks for that by the name), one copy a port, and empty after configuration. They keep their
    contents over a reset: the control program writes all of them when it starts.

    Parameters
    ----------
    regions : entries, a power of two
    ports   : lookup ports

    Attributes
    ----------
    ports  : list of lookup_port()
    index  : Signal, in      entry to write
    key, base, length, rights, owner, valid : Signals, in    what to write there; base + length <= 2**64 - 1
    write  : Signal(), in    one cycle

    Cycles: 2 from `valid` to `done`, a lookup a cycle on each port. A lookup in the cycle in which its entry is
    written finds nothing, so that it never gets a mixture: an entry that comes or goes is not there yet, or no more.
    """
    def __init__(self, regions=C.REGIONS, ports=2):
        self.ports  = [lookup_port() for _ in range(ports)]
        self.index  = Signal(max=regions)
        self.key    = Signal(32)
        self.base   = Signal(64)
        self.length = Signal(64)
        self.rights = Signal(4)
        self.owner  = Signal(8)
        self.valid  = Signal()
        self.write  = Signal()

        # # #

        names = ("key", "base", "length", "rights", "owner", "valid")
        entry = Cat(*[getattr(self, name) for name in names])
        for i, port in enumerate(self.ports):
            memory = Memory(len(entry), regions, name="block_regions")
            write  = memory.get_port(write_capable=True)
            read   = memory.get_port(mode=READ_FIRST)
            self.specials += memory, write, read
            held   = {name: Signal(len(getattr(self, name)), name=f"held{i}_{name}") for name in names}
            asked  = Signal()
            struck = Signal()  # its entry is being written
            key    = Signal(32)
            self.comb += [
                write.adr.eq(self.index),
                write.dat_w.eq(entry),
                write.we.eq(self.write),
                read.adr.eq(port.key[:len(read.adr)]),
                Cat(*held.values()).eq(read.dat_r),
            ]
            self.sync += [
                asked.eq(port.valid),
                key.eq(port.key),
                struck.eq(self.write & (self.index == port.key[:len(self.index)])),
                port.done.eq(asked),
                port.found.eq(held["valid"] & (held["key"] == key) & ~struck),
                *[getattr(port, name).eq(held[name]) for name in ("base", "length", "rights", "owner")],
            ]
