"""Expressions of one-hot choices, for all values of a few bits."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from migen import *

from dibber.common.one_hot import lowest_one, number_of, value_of
from tests.gateware.models.compiled import run_simulation


class Choice(Module):
    def __init__(self, bits):
        self.bits = Signal(bits)
        self.lowest = Signal(bits)
        self.number = Signal(8)
        self.value = Signal(8)
        self.comb += [
            self.lowest.eq(lowest_one(self.bits)),
            self.number.eq(number_of(self.lowest)),
            self.value.eq(value_of(self.lowest, [10 * n + 3 for n in range(bits)])),
        ]


@pytest.mark.parametrize("bits", [1, 2, 7])
def test_the_lowest_1_is_found_and_its_number_and_its_value(bits):
    dut, seen = Choice(bits), []

    def main():
        for value in range(1 << bits):
            yield dut.bits.eq(value)
            yield
            seen.append([(yield dut.lowest), (yield dut.number), (yield dut.value)])

    run_simulation(dut, [main()])
    assert seen[0] == [0, 0, 0]
    for value in range(1, 1 << bits):
        number = (value & -value).bit_length() - 1
        assert seen[value] == [1 << number, number, 10 * number + 3]
