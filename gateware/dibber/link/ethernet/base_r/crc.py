"""The FCS of a frame whose bytes come eight at a time: IEEE 802.3-2018, 3.2.9."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import cache, reduce
from operator import xor

from migen import *

POLYNOMIAL = 0xedb88320  # its bits in the order of the wire, lowest first
INITIAL    = 0xffffffff
# The register behind a whole frame with a right FCS.
RESIDUE    = 0xdebb20e3

@cache
def crc32_terms(bytes_):
    """For each bit of the register after `bytes_` bytes: the set of what its XOR has.

    Number n below 32 is bit n of the register before; 32 + n is bit n of the bytes.
    """
    state = [{n} for n in range(32)]
    for n in range(8*bytes_):
        out   = state[0] ^ {32 + n}
        state = [state[k + 1] if k < 31 else set() for k in range(32)]
        state = [term ^ out if POLYNOMIAL >> k & 1 else term for k, term in enumerate(state)]
    return state

def crc32_next(state, data, bytes_):
    """The register after the low `bytes_` bytes of `data`, as an expression.

    The register starts as INITIAL, and its complement is the FCS, lowest byte first.
    """
    return Cat(*[
        reduce(xor, [state[n] if n < 32 else data[n - 32] for n in sorted(terms)])
        for terms in crc32_terms(bytes_)])
