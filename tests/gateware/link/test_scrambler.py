"""The scrambler of rows is the one of IEEE 802.3, and the descrambler undoes it."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.link.scrambler import RowDescrambler, RowScrambler, scrambled_terms

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish


def scrambled(rows, lanes):
    """Bit by bit, by IEEE 802.3-2018, figure 49-8; the register begins as all ones."""
    register, result = [1] * 58, []
    for row in rows:
        value = 0
        for n in range(64 * lanes):
            bit = row >> n & 1 ^ register[38] ^ register[57]
            register = [bit, *register[:-1]]
            value |= bit << n
        result.append(value)
    return result


class Both(Module):
    """A scrambler and a descrambler; `change` turns bits over between them."""

    def __init__(self, lanes):
        self.submodules.tx = RowScrambler(lanes)
        self.submodules.rx = RowDescrambler(lanes)
        self.change = Signal(64 * lanes)
        self.ready = Signal()
        self.comb += [
            self.tx.source.ready.eq(self.ready),
            self.rx.sink.valid.eq(self.tx.source.valid & self.ready),
            self.rx.sink.header.eq(self.tx.source.header),
            self.rx.sink.data.eq(self.tx.source.data ^ self.change),
        ]


def run(lanes, rows, random, change=lambda number: 0):
    """(rows between the two, rows behind them), with their headers, under random stalls."""
    dut, wire, got = Both(lanes), [], []

    def give():
        for header, data in rows:
            while random.random() < 0.3:
                yield dut.tx.sink.valid.eq(0)
                yield
            yield dut.tx.sink.valid.eq(1)
            yield dut.tx.sink.header.eq(header)
            yield dut.tx.sink.data.eq(data)
            yield
            while not (yield dut.tx.sink.ready):
                yield
        yield dut.tx.sink.valid.eq(0)
        yield from finish(lambda: len(got) == len(rows), 1000)

    @passive
    def take():
        while True:
            yield dut.ready.eq(int(random.random() < 0.625))
            yield dut.change.eq(change(len(wire)))
            yield
            if (yield dut.rx.source.valid):
                got.append(((yield dut.rx.source.header), (yield dut.rx.source.data)))
            if (yield dut.rx.sink.valid):
                source = dut.tx.source
                wire.append(((yield source.header), (yield source.data)))

    run_simulation(dut, [give(), take()])
    return wire, got


def some_rows(random, count, lanes):
    return [(random.getrandbits(2 * lanes), random.getrandbits(64 * lanes)) for _ in range(count)]


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_rows_are_scrambled_bit_by_bit_and_come_back(lanes, seed):
    random = Random(f"{seed} {lanes}")
    rows = some_rows(random, 80, lanes) + [(0, 0)] * 40
    wire, got = run(lanes, rows, random)
    assert [data for _, data in wire] == scrambled([data for _, data in rows], lanes)
    assert [header for header, _ in wire] == [header for header, _ in rows]
    # The descrambler does not know what left before the first row.
    assert got[1:] == rows[1:] and got[0][1] >> 58 == rows[0][1] >> 58


def test_a_wrong_bit_on_the_wire_makes_three_and_no_more(seed):
    random = Random(seed)
    rows = some_rows(random, 40, 4)
    for place in (0, 100, 216, 217, 255):
        _, got = run(4, rows, random, lambda number, p=place: 1 << p if number == 20 else 0)
        wrong = [
            256 * number + n
            for number, ((_, a), (_, b)) in enumerate(zip(rows, got))
            if number
            for n in range(256)
            if (a ^ b) >> n & 1
        ]
        at = 256 * 20 + place
        assert wrong == [at, at + 39, at + 58]


def test_no_bit_of_a_row_is_a_sum_of_more_than_19():
    assert max(map(len, scrambled_terms(256))) == 19
