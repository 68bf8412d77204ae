"""Streams and records of the remote window."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.soc.interconnect.stream import EndpointDescription

from dibber.interface.description import C

LINE_BYTES = 64  # of a stream buffer, and of a line of the aperture
LINE_BITS  = log2_int(LINE_BYTES)
PAGE_BITS  = log2_int(C.APERTURE_PAGE)
BUFFERS    = 8
SLOT_BITS  = log2_int(C.SLOTS)
OWNER_BITS = log2_int(C.ENDPOINTS)

def line_address_bits():
    """Bits that number the lines of 64 bytes of the aperture."""
    return log2_int(C.APERTURE_BYTES) - LINE_BITS

def page_layout():
    """An entry of the page table. `addend` is what an atomic load adds, with its sign."""
    return [
        ("offset", 48), ("key", 32), ("addend", 16), ("node", log2_int(C.NODES)), ("owner", OWNER_BITS),
        ("load", 1), ("store", 1), ("atomic", 1), ("valid", 1)]

def closed_layout():
    """A closed stream buffer; `line` counts lines of 64 bytes from the aperture's start."""
    return EndpointDescription([("buffer", log2_int(BUFFERS)), ("line", line_address_bits())])

def load_layout():
    """A load of `bytes` bytes, 1 to 64, from byte `start` of its line of 64 bytes. They end within
    the line.
    """
    return EndpointDescription(
        [("line", line_address_bits()), ("start", LINE_BITS), ("bytes", LINE_BITS + 1)])

def line_write_layout(data_width, address_bits=20):
    """A write to the pages of the endpoints, as the host would make it; see line_port."""
    return EndpointDescription([("adr", address_bits), ("dat", data_width), ("be", data_width//8)])

def fault_layout():
    """A store or load of `owner` failed, in a cycle with `strobe`."""
    return [("strobe", 1), ("owner", OWNER_BITS)]
