"""The four streams of the PCIe block of UltraScale and UltraScale+, and the fields in them.

A packet begins with a descriptor of 4 DWs (CQ, RQ) or 3 DWs (RC, CC), and its payload follows
without a gap ("DWORD aligned"). PG156 is the manual of the UltraScale block, PG213 that of
UltraScale+. Both draw the descriptors alike.
"""

# SPDX-License-Identifier: BSD-2-Clause

from litex.soc.interconnect.stream import EndpointDescription

# Bits of `user` by stream, for widths of up to 256 bits.
ULTRASCALE      = {"cq": 85, "cc": 33, "rq": 60, "rc": 75}
ULTRASCALE_PLUS = {"cq": 88, "cc": 33, "rq": 62, "rc": 75}

# Bits of `user` (PG156 and PG213, tables of the sideband signals).
CQ_FIRST_BE    = slice(0, 4)
CQ_LAST_BE     = slice(4, 8)
CQ_DISCONTINUE = 41
RC_DISCONTINUE = 42
RQ_BYTE_ENABLES = slice(0, 8)  # first, then last
RQ_NUMBER      = 24            # lowest bit of the sequence number

# Types of requests in the descriptors of CQ and RQ.
MEMORY_READ, MEMORY_WRITE, IO_READ, IO_WRITE, FETCH_ADD, SWAP, CAS, READ_LOCKED = range(8)

# Error codes in the descriptor of RC, which are no error of the completion's own.
RC_NORMAL, RC_POISONED = 0, 1

def axis_layout(data_width, user_bits):
    """A stream of the block. `keep` has a bit for each DW."""
    return EndpointDescription(
        [("data", data_width), ("keep", data_width//32), ("user", user_bits)])
