"""The region table: memory that was registered, looked up by key."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.genlib.record import DIR_M_TO_S, DIR_S_TO_M, Record

from litex.gen import *

from dibber.deposit.pages import index_of, is_paged
from dibber.interface.description import C
from dibber.layouts import region_layout

# Lookup Port --------------------------------------------------------------------------------------

def lookup_port():
    """A lookup: `valid` for one cycle with `key`. `done` and the answer come 2 cycles later, for
    one cycle.
    """
    return Record(
        [("valid", 1, DIR_M_TO_S), ("key", 32, DIR_M_TO_S), ("done", 1, DIR_S_TO_M)] +
        [(name, width, DIR_S_TO_M) for name, width in region_layout()])

# Narrow Region ------------------------------------------------------------------------------------

class NarrowRegion(LiteXModule):
    """Convert a region to narrow addresses, and check that it fits.

    A contiguous region and its page table must end below 2**(address_bits - 1). The upper half of
    the addresses is for paged regions (deposit/pages.py); such a region must end within its own
    part. A region that does not fit is written as not valid, so that no lookup finds it.

    Parameters
    ----------
    address_bits : less than 64

    Attributes
    ----------
    base, length, table : Signal(64), in    as the control program writes them; `table` of a paged
                          region
    low  : Signal(address_bits), out        its first address
    size : Signal(address_bits - 1), out    its length in bytes
    fits : Signal(), out
    """
    def __init__(self, address_bits):
        self.base   = base   = Signal(64)
        self.length = length = Signal(64)
        self.table  = table  = Signal(64)
        self.low    = low    = Signal(address_bits)
        self.size   = size   = Signal(address_bits - 1)
        self.fits   = Signal()

        # # #

        index, wide = index_of(address_bits), index_of(64)
        paged_bit = address_bits - 1
        end       = Signal(address_bits)   # one past the last byte
        too_wide  = Signal()               # an address of it needs more bits
        self.comb += [
            size.eq(length),
            end.eq(Mux(is_paged(base), base[:index.start], base[:paged_bit]) + size),
            If(is_paged(base),
                low.eq(Cat(base[:index.start], base[wide], 1)),
                too_wide.eq(
                    (base[index.start:wide.start] != 0) | (end[index.start:] != 0) |
                    (table[paged_bit:] != 0))
            ).Else(
                low.eq(base[:paged_bit]),
                too_wide.eq((base[paged_bit:63] != 0) | end[paged_bit])
            ),
            self.fits.eq(~too_wide & (length[paged_bit:] == 0)),
        ]

# Region Table -------------------------------------------------------------------------------------

class RegionTable(LiteXModule):
    """`regions` entries; the low bits of a key are its index, and the whole key must match.

    The entries are in block RAM (boards/flow.py selects it by the memory's name), one copy a port.
    They are empty after configuration and keep their contents over a reset. The control program
    writes all of them when it starts.

    Parameters
    ----------
    regions      : entries, a power of two
    ports        : number of lookup ports
    address_bits : width of a region's base. If it is less than 64, a length has one bit less, see
                   `NarrowRegion`

    Attributes
    ----------
    ports  : list of lookup_port()
    index  : Signal, in      entry to write
    key, base, length, rights, owner, valid : Signals, in    its contents; base + length must be at
                                              most 2**address_bits - 1
    write  : Signal(), in    one cycle

    Cycles: 2 from `valid` to `done`; one lookup a cycle on each port. A lookup in the cycle of its
    entry's write finds no region, so it never sees a mixture of old and new.
    """
    def __init__(self, regions=C.REGIONS, ports=2, address_bits=64):
        self.ports  = [lookup_port() for _ in range(ports)]
        self.index  = Signal(max=regions)
        self.key    = Signal(32)
        self.base   = Signal(address_bits)
        self.length = Signal(address_bits if address_bits == 64 else address_bits - 1)
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
            held   = {
                name: Signal(len(getattr(self, name)), name=f"held{i}_{name}") for name in names}
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
                *[
                    getattr(port, name).eq(held[name])
                    for name in ("base", "length", "rights", "owner")],
            ]
