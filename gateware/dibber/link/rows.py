"""Control words of the bonded link's rows; see docs/design/bonded-link.md.

A row is a block of 64b/66b of each of four lanes. Its control word, if it has one, is word 0: the
low half of lane 0's block. Octet 0, in bits 7:0, is the type of the block. Octet 3 is the CRC-8 of
octets 1 and 2.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.link.bonding import CONTROL_BLOCK, DATA_BLOCK
from dibber.link.symbols import nonce_crc

LANES = 4
WORDS = 2*LANES  # 32-bit words of a row

# IEEE 802.3-2018, figure 82-5: types of blocks. Any two differ in four bits.
T_FLOW   = 0x1e
T_RESUME = 0x4b
T_START  = 0x78
T_END    = 0x87
T_NONCE  = 0x99
T_PING   = 0xaa
T_PONG   = 0xb4

CONTROL_ROW = CONTROL_BLOCK | sum(DATA_BLOCK << 2*n for n in range(1, LANES))
DATA_ROW    = sum(DATA_BLOCK << 2*n for n in range(LANES))

ENDS_BIT = 4  # of octet 2: the packet ends in this row; bits 3:0 are its words in the row
BAD_BIT  = 5  # of octet 2, with ENDS_BIT: it must be dropped

def control_word(kind, first, second=None):
    """A control word, as an expression; `kind`, `first` and `second` (or 0) are octets 0 to 2."""
    if second is None:
        second = Constant(0, 8)
    return Cat(kind, first, second, nonce_crc(Cat(first, second)))
