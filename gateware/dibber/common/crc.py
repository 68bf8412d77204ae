"""CRCs: CRC-32C of one 32-bit word a cycle, and CRC-8 of the one byte of a start word."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import cache, reduce
from operator import xor

from migen import *

from litex.gen import *

from dibber.interface.description import C

# CRC-32C ------------------------------------------------------------------------------------------

def _reflect(value, bits):
    return int(f"{value:0{bits}b}"[::-1], 2)

def _crc32c_bits(state, count):
    """`state` after `count` zero bits, in the reflected form of RFC 3720: bit 0 leaves first."""
    polynomial = _reflect(C.CRC_POLYNOMIAL, 32)
    for _ in range(count):
        state = (state >> 1) ^ (polynomial if state & 1 else 0)
    return state

def _shared(sums, inputs):
    """Factor out common terms of XOR sums; returns (sums, new terms).

    `sums` are sets of terms 0 to `inputs` - 1. A new term is a list of the two to four terms that
    it sums; the first new term has number `inputs`. The search is greedy: each step takes the
    common term that saves most. A LUT4 adds three terms to a sum.
    """
    sums, new = [set(terms) for terms in sums], []
    while True:
        in_sums = [
            sum(1 << n for n, terms in enumerate(sums) if term in terms)
            for term in range(inputs + len(new))]
        most, best = 3, None
        def extend(common, all_of, first):
            nonlocal most, best
            for term in range(first, len(in_sums)):
                users = all_of & in_sums[term]
                terms = [*common, term]
                if 3*users.bit_count() <= most:
                    continue
                if (len(terms) - 1)*users.bit_count() > most:
                    most, best = (len(terms) - 1)*users.bit_count(), terms
                if len(terms) < 4:
                    extend(terms, users, term + 1)
        extend([], -1, 0)
        if best is None:
            return sums, new
        sums = [terms - {*best} | {len(in_sums)} if terms >= {*best} else terms for terms in sums]
        new.append(best)

@cache
def _crc32c_sums():
    """The XOR sum of each bit of the next register, see crc32c_next, factored by _shared."""
    columns = [_crc32c_bits(1 << i, 32) for i in range(32)]
    return _shared([{i for i in range(32) if columns[i] >> bit & 1} for bit in range(32)], 32)

def crc32c_next(state, word):
    """(statements, expression) of the CRC-32C register after one word; byte 0 of the wire is bits
    7:0.

    The register starts as all ones and is inverted at the end (RFC 3720, section 12.1). State and
    word enter in the same way, and the step is linear. So each bit of their sum contributes a
    constant, which gives an XOR tree of about 16 inputs for each bit. Common parts of the trees are
    shared here, because synthesis does not find them.
    """
    sums, new = _crc32c_sums()
    terms     = [Signal(name="crc_term") for _ in range(32 + len(new))]
    total     = lambda numbers: reduce(xor, [terms[n] for n in sorted(numbers)])
    return ([*[term.eq(state[n] ^ word[n]) for n, term in enumerate(terms[:32])],
        *[
            term.eq(total(numbers))
            for term, numbers in zip(terms[32:], new)]], Cat(*map(total, sums)))

def crc32c_zeros(state, words):
    """`state` (int) of the CRC-32C register after `words` words of zeros."""
    return _crc32c_bits(state, 32*words)

def block_seed(header_crc, number):
    """What the CRC of block `number` of a packet's payload starts from. Blocks count from 1.

    `header_crc` is the CRC that ends the packet's header, as it stands on the wire. So a block is
    good only in its own packet and in its own place.
    """
    return header_crc ^ number

def crc32c_after_two(state, words):
    """Expression of the CRC-32C register after two words, the first in bits 31:0 of `words`.

    Each bit is a balanced tree of about 32 inputs. Each input is a bit of the second word, or a bit
    of the first word with that of the state.
    """
    terms   = [state[n] ^ words[n] for n in range(32)] + [words[n] for n in range(32, 64)]
    columns = [_crc32c_bits(1 << n % 32, 64 if n < 32 else 32) for n in range(64)]
    def tree(parts):
        if len(parts) == 1:
            return parts[0]
        return tree(parts[:len(parts)//2]) ^ tree(parts[len(parts)//2:])
    return Cat(*[tree([terms[n] for n in range(64) if columns[n] >> bit & 1]) for bit in range(32)])

class CRC32C(LiteXModule):
    """The CRC-32C register of a word stream.

    Parameters
    ----------
    width : 32; or 64: two words in a cycle, or with `half` one

    Attributes
    ----------
    word  : Signal(width), in   next word, used in a cycle with `step`
    half  : Signal(), in        only with a width of 64: bits 31:0 are one word, and the others none
    step  : Signal(), in
    load  : Signal(), in     start from `seed` instead; has priority over `step`
    seed  : Signal(32), in   all ones for the standard CRC
    value : Signal(32), out  CRC of the words so far, in the form of the wire

    Cycles: 1 from `step` or `load` to `value`.
    """
    def __init__(self, width=32):
        self.word  = Signal(width)
        self.step  = Signal()
        self.load  = Signal()
        self.seed  = Signal(32)
        self.value = Signal(32)

        # # #

        state = Signal(32, reset=0xffffffff)
        low = self.word
        if width == 64:
            self.half = Signal()
            low       = Signal(32)
            self.comb += low.eq(self.word[:32])
        mix, advanced = crc32c_next(state, low)
        if width == 64:
            advanced  = Mux(self.half, advanced, crc32c_after_two(state, self.word))
        self.comb += [mix, self.value.eq(~state)]
        self.sync += [
            If(self.step, state.eq(advanced)),
            If(self.load, state.eq(self.seed)),
        ]

# CRC-8 --------------------------------------------------------------------------------------------

CRC8_POLYNOMIAL = 0x07  # x⁸ + x² + x + 1, as ITU-T I.432.1 uses it for header errors

def crc8_byte(byte):
    """CRC-8 of one byte (int), register starting as 0."""
    for _ in range(8):
        byte = ((byte << 1) ^ (CRC8_POLYNOMIAL if byte & 0x80 else 0)) & 0xff
    return byte

def crc8(byte):
    """CRC-8 of one byte, as an expression."""
    return reduce(xor, [Mux(byte[i], Constant(crc8_byte(1 << i), 8), 0) for i in range(8)])
