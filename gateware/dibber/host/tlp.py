"""Format of TLPs on LitePCIe's PHY stream, and the stream types inside the host layer.

A beat has `data_width//32` DWs; DW 0 of the TLP is in bits 31:0 of the first beat. A header DW is
as drawn in PCIe Base 3.0: byte 0 of the figure in bits 31:24. A payload DW has its lowest byte in
bits 7:0 (`endianness` "little") or in bits 31:24 ("big": the Xilinx 7-series core).

Shift: the payload follows a header of 3 or 4 DWs, but in a line it is at the lane of its address.
Both directions shift a window of two neighbouring beats or lines by `shift` = lane of the first
payload DW, plus 1 with a 3-DW header: 0…data_width//32. With 256 bits the header and the first payload
DWs share a beat.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect.stream import EndpointDescription

# Formats and Types (PCIe Base 3.0, 2.2.1, table 2-3) ----------------------------------------------

FMT_QUAD = 0b001  # bit of fmt: the header has 4 DWs
FMT_DATA = 0b010  # bit of fmt: payload follows

TYPE_MEMORY      = 0b00000
TYPE_READ_LOCKED = 0b00001
TYPE_IO          = 0b00010
TYPE_CONFIG_0    = 0b00100
TYPE_CONFIG_1    = 0b00101
TYPE_COMPLETION  = 0b01010
TYPE_FETCH_ADD   = 0b01100
TYPE_SWAP        = 0b01101
TYPE_CAS         = 0b01110

STATUS_SUCCESS     = 0b000
STATUS_UNSUPPORTED = 0b001

def shift_bits(data_width):
    """Bits of a shift; 3 hold it at 64 bits, too."""
    return max(3, bits_for(data_width//32))

# Layouts ------------------------------------------------------------------------------------------

def line_layout(data_width, address_bits):
    """A line written by the host: `adr` counts lines from the start of BAR 0. Valid only."""
    return EndpointDescription([("adr", address_bits), ("dat", data_width), ("be", data_width//8)])

def request_layout(offset_bits):
    """A non-posted request of the host, which needs a completion.

    `offset` counts DWs from the start of BAR 0; `length` is in DWs, 0 stands for 1024. `refused`:
    answer with Unsupported Request. `memory`: the request was a memory read.
    """
    return EndpointDescription([
        ("requester", 16), ("tag", 8), ("attr", 3), ("tc", 3), ("length", 10),
        ("first_be", 4), ("last_be", 4), ("memory", 1), ("refused", 1), ("offset", offset_bits)])

def reply_layout(data_width):
    """A completion to send, as lines. `length` in DWs (0: one beat without data), `count` in bytes.
    """
    return EndpointDescription(
        [("dat", data_width)],
        [("requester", 16), ("tag", 8), ("attr", 3), ("tc", 3), ("status", 3), ("length", 6),
         ("count", 13), ("lower", 7)])

def tlp_layout(data_width):
    """A TLP to send: each of its lines has the header beside it (DW 0 in bits 31:0).

    `dwords` counts header and payload. A TLP without payload is one beat with `last`.
    """
    return EndpointDescription(
        [("dat", data_width)],
        [("header", 128), ("shift", shift_bits(data_width)), ("dwords", 11), ("mark", 1)])

# Helpers ------------------------------------------------------------------------------------------

def payload_bytes(dat, endianness):
    """`dat` with the bytes of each payload DW in the PHY's order, or back: the function is its own
    inverse.
    """
    assert endianness in ("little", "big")
    if endianness == "little":
        return dat
    return Cat(*[dat[32*n + 8*b:32*n + 8*b + 8] for n in range(len(dat)//32) for b in (3, 2, 1, 0)])

def lowest(be):
    """Index of the lowest enabled byte of a DW; 0 if none is enabled."""
    return Mux(be[0], 0, Mux(be[1], 1, Mux(be[2], 2, Mux(be[3], 3, 0))))

def above(be):
    """Number of bytes of a DW above the highest enabled one; 3 if none is enabled."""
    return Mux(be[3], 0, Mux(be[2], 1, Mux(be[1], 2, 3)))
