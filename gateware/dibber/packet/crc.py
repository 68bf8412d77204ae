# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Cyclic redundancy checks: CRC-32C a 32-bit word a cycle, and CRC-8 of the start word's one byte."""

from functools import reduce
from operator import xor

from migen import *

from litex.gen import *

from dibber.interface.description import C

# CRC-32C ------------------------------------------------------------------------------------------

def _reflect(value, bits):
    return int(f"{value:0{bits}b}"[::-1], 2)

def _crc32c_bits(state, count):
    """`state` after `count` zero bits, reflected as in RFC 3720: bit 0 leaves first."""
    polynomial = _reflect(C.CRC_POLYNOMIAL, 32)
    for _ in range(count):
        state = (state >> 1) ^ (polynomial if state & 1 else 0)
    return state

def crc32c_next(state, word):
    """Expression of the CRC-32C register after one word, byte 0 of the wire in bits 7:0.

    The register starts as all ones and is inverted at the end (RFC 3720, section 12.1). State and
    word enter the same way, and the step is linear: each of the 32 bits of their sum contributes a
    constant, which makes an XOR tree of about 16 inputs a bit.
    """
    mixed = Signal(32)
    terms = [Mux(mixed[i], Constant(_crc32c_bits(1 << i, 32), 32), 0) for i in range(32)]
    return mixed, mixed.eq(state ^ word), reduce(xor, terms)

class CRC32C(LiteXModule):
    """The CRC-32C register of a word stream.

    Attributes
    ----------
    word  : Signal(32), in   next word, used in a cycle with `step`
    step  : Signal(), in
    load  : Signal(), in     start from `seed` instead; wins over `step`
    seed  : Signal(32), in   all ones for the standard CRC
    value : Signal(32), out  CRC of the words so far, as it stands on the wire

    Cycles: 1 from `step` or `load` to `value`.
    """
    def __init__(self):
        self.word  = Signal(32)
        self.step  = Signal()
        self.load  = Signal()
        self.seed  = Signal(32)
        self.value = Signal(32)

        # # #

        state = Signal(32, reset=0xffffffff)
        mixed, mix, advanced = crc32c_next(state, self.word)
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
    """The same as an expression."""
    return reduce(xor, [Mux(byte[i], Constant(crc8_byte(1 << i), 8), 0) for i in range(8)])
