"""The window's page table, in block RAM."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.description import C
from dibber.window.layouts import PAGE_BITS, page_layout

class PageTable(LiteXModule):
    """From the number of a page of the aperture to what it maps.

    No reset reaches the memory. After power-up all its entries are 0, so no page is valid.

    Attributes
    ----------
    write : Record, in     with `strobe`, `entry` becomes that of `page`
    entry : Record(page_layout), in
    page  : Signal, in
    found : Record(page_layout), out   the entry of `page`, one cycle later

    Cycles: 1. A lookup in the cycle of a write to the same page gives the old entry or the new one.
    """
    def __init__(self):
        pages      = C.APERTURE_BYTES >> PAGE_BITS
        self.write = write = Record([("strobe", 1), ("page", log2_int(pages))])
        self.entry = entry = Record(page_layout())
        self.page  = page  = Signal(max=pages)
        self.found = found = Record(page_layout())

        # # #

        memory = Memory(len(entry.raw_bits()), pages, name="window_pages")
        enter  = memory.get_port(write_capable=True, mode=READ_FIRST)
        look   = memory.get_port(mode=READ_FIRST)
        self.specials += memory, enter, look
        self.comb += [
            enter.adr.eq(write.page),
            enter.dat_w.eq(entry.raw_bits()),
            enter.we.eq(write.strobe),
            look.adr.eq(page),
            found.raw_bits().eq(look.dat_r),
        ]
