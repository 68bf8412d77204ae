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

def crc32_step(state, data, bytes_):
    """(statements, expression) of the register after the low `bytes_` bytes of `data`, 0 to 8.

    The register starts as INITIAL, and its complement is the FCS, lowest byte first. The step is
    linear in register and data, and zeros before the first byte add nothing to a register of 0. So
    the bytes are moved to the high end, and one tree serves each number of them.

    Parameters
    ----------
    state  : Signal(32)
    data   : Signal(64)
    bytes_ : Signal(4)
    """
    moved, ahead = Signal(64, name="crc_bytes"), Signal(32, name="crc_ahead")

    def total(sources, terms):
        return reduce(xor, [sources[n] for n in sorted(terms) if n in sources], Constant(0, 1))

    register = {n: state[n] for n in range(32)}
    last     = {32 + n: moved[n] for n in range(64)}
    cases    = {n: [
        moved.eq(Cat(Constant(0, 64 - 8*n), data[:8*n]) if 0 < n < 8 else data if n else 0),
        ahead.eq(Cat(*[total(register, terms) for terms in crc32_terms(n)])),
    ] for n in range(9)}
    return [Case(bytes_, cases)], Cat(*[
        ahead[k] ^ total(last, terms) for k, terms in enumerate(crc32_terms(8))])
