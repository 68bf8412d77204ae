"""The CRC registers against the bit-by-bit model."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random
import struct

from migen import *

from dibber.common.crc import CRC32C, crc8

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.link import crc8 as crc8_model
from tests.gateware.models.packet import crc32c
from tests.gateware.models.pairs import pairs_of


def test_crc32c_register_follows_the_model(seed):
    dut, random = CRC32C(), Random(seed)

    def stimulus():
        for length in (1, 2, 8, 30):
            state, words = random.getrandbits(32), [random.getrandbits(32) for _ in range(length)]
            yield dut.seed.eq(state)
            yield dut.load.eq(1)
            yield
            yield dut.load.eq(0)
            for word in words:
                yield dut.word.eq(word)
                yield dut.step.eq(1)
                yield
            yield dut.step.eq(0)
            yield
            assert (yield dut.value) == crc32c(struct.pack(f"<{length}I", *words), state)

    run_simulation(dut, stimulus())


def test_crc32c_register_takes_two_words_at_once(seed):
    dut, random = CRC32C(64), Random(seed)

    def stimulus():
        for length in (1, 2, 8, 30, 31):
            words = [random.getrandbits(32) for _ in range(length)]
            yield dut.seed.eq(0xFFFFFFFF)
            yield dut.load.eq(1)
            yield
            yield dut.load.eq(0)
            for data, half in pairs_of(words, random):
                # The high half of a single word is not looked at.
                yield dut.word.eq(data | (random.getrandbits(32) << 32 if half else 0))
                yield dut.half.eq(half)
                yield dut.step.eq(1)
                yield
            yield dut.step.eq(0)
            yield
            assert (yield dut.value) == crc32c(struct.pack(f"<{length}I", *words))

    run_simulation(dut, stimulus())


def test_crc8_expression_follows_the_model():
    dut = Module()
    byte, value = Signal(8), Signal(8)
    dut.comb += value.eq(crc8(byte))

    def stimulus():
        for n in range(256):
            yield byte.eq(n)
            yield
            yield
            assert (yield value) == crc8_model([n])

    run_simulation(dut, stimulus())
