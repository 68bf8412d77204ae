"""Sizes that depend on where the host memory is: reads in flight, cache lines, address width."""

# SPDX-License-Identifier: BSD-2-Clause

from collections import namedtuple

from dibber.deposit.reads import Reader
from dibber.deposit.tags import UNEXTENDED

# Reach --------------------------------------------------------------------------------------------

class Table(namedtuple("Table", "reader lines")):
    """A reader of tables in lines of 64 bytes: its tags, and the lines of its cache, a power of
    two.
    """
    @property
    def parameters(self):
        """Parameters for `Translator`, `PageFinder` and `ListReader`."""
        return {"lines": self.lines, "tags": self.reader.tags, "base": self.reader.base}


Reach = namedtuple("Reach", "gather atomic walked found listed address")
Reach.__doc__ = """
gather  : Reader of payload
atomic  : Reader of operands: one is in use, the others are spare for those in quarantine
walked  : Table of pages, of each walk
found   : Table of pages, of single addresses
listed  : Table of indices, of each walk
address : bits of a bus address, 64 or 32
"""

# Host memory behind PCIe, 400 ns away or more: 64 reads of payload in flight, 16 of tables.
FAR  = Reach(
    Reader(UNEXTENDED, 64), Reader(1, 8), Table(Reader(1, 16), 64), Table(Reader(4, 8), 16),
    Table(Reader(2, 16), 32), 64)

# The same for a card that can begin a read each 4 ns, at 256 bits and 250 MHz. A read of 8 bytes
# holds its tag for 112 cycles there, so 64 tags allow 143 million reads a second, and 128 allow 286.
WIDE = FAR._replace(gather=Reader(UNEXTENDED, 128))

# Memory beside the core, some cycles away. A page table of 64 KiB has 16 pages: two lines of a
# table. Its root complex decodes 31 address bits.
NEAR = Reach(
    Reader(16, 16), Reader(4, 4), Table(Reader(2, 2), 8), Table(Reader(2, 2), 4),
    Table(Reader(2, 2), 8), 32)
