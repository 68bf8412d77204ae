"""The link's test equipment: transparent when it is off, and each loopback and error where it
says.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.interface.description import PRBS
from dibber.link.equipment import LinkEquipment

from tests.gateware.models.compiled import run_simulation


class Bench:
    """Drives both sides for some cycles and keeps (data, k) of every word that moved.

    Attributes
    ----------
    offered, sent : words taken from the port; given to the PHY
    came, heard   : words from the PHY; given to the port
    status        : locked, words, wrong
    """

    def __init__(self, seed, cycles=300, error_at=None, wire=False, **setup):
        self.dut, self.random = LinkEquipment(), Random(seed)
        self.offered, self.sent, self.came, self.heard = [], [], [], []
        run_simulation(self.dut, [self.drive(cycles, error_at, wire, setup)])

    def word(self):
        return self.random.getrandbits(32), self.random.getrandbits(4)

    def drive(self, cycles, error_at, wire, setup):
        dut = self.dut
        item = self.word()
        moved = False
        for name, value in setup.items():
            yield getattr(dut, name).eq(value)
        yield
        for cycle in range(cycles):
            came, valid = self.word(), self.random.random() < 0.5
            if wire:  # a cable of one word's length
                came, valid = (self.sent[-1], True) if moved else (came, False)
            yield dut.port_tx.valid.eq(1)
            yield dut.port_tx.data.eq(item[0])
            yield dut.port_tx.k.eq(item[1])
            yield dut.phy_tx.ready.eq(int(self.random.random() < 0.7))
            yield dut.phy_rx.valid.eq(int(valid))
            yield dut.phy_rx.data.eq(came[0])
            yield dut.phy_rx.k.eq(came[1])
            yield dut.error.eq(int(cycle == error_at))
            yield
            moved = (yield dut.phy_tx.valid) and (yield dut.phy_tx.ready)
            if valid:
                self.came.append(came)
            if moved:
                self.sent.append(((yield dut.phy_tx.data), (yield dut.phy_tx.k)))
            if (yield dut.port_rx.valid):
                self.heard.append(((yield dut.port_rx.data), (yield dut.port_rx.k)))
            if (yield dut.port_tx.ready):
                self.offered.append(item)
                item = self.word()
        self.status = ((yield dut.locked), (yield dut.words), (yield dut.wrong))


def differing_bits(a, b):
    return [bin(x[0] ^ y[0]).count("1") + bin(x[1] ^ y[1]).count("1") for x, y in zip(a, b)]


def test_without_a_test_it_is_not_there(seed):
    bench = Bench(seed)
    assert bench.sent == bench.offered and len(bench.sent) > 150
    assert bench.heard == bench.came and len(bench.heard) > 100
    assert bench.status == (0, 0, 0)


def test_one_error_is_one_bit_of_one_word(seed):
    bench = Bench(seed, error_at=100)
    assert sorted(differing_bits(bench.sent, bench.offered))[-2:] == [0, 1]
    assert len(bench.sent) == len(bench.offered)


def test_near_end_loopback_hears_what_is_sent(seed):
    bench = Bench(seed, near=1)
    assert bench.sent == bench.offered
    assert bench.heard in (bench.sent, bench.sent[:-1])  # a cycle later


def test_far_end_loopback_sends_what_is_heard(seed):
    bench = Bench(seed, far=1)
    idle = [word for word in bench.sent if word not in bench.came]
    echo = [word for word in bench.sent if word in bench.came]
    assert echo == bench.came[: len(echo)] and len(echo) > 100
    assert set(idle) == {(0xB5FF00BC, 1)}
    assert bench.heard == bench.came


@pytest.mark.parametrize("select", [PRBS.PRBS7, PRBS.PRBS15, PRBS.PRBS23, PRBS.PRBS31])
def test_a_sequence_goes_over_the_wire_without_error(select, seed):
    bench = Bench(seed, cycles=400, transmit=select, check=select, wire=True)
    locked, words, wrong = bench.status
    assert locked and words > 200 and wrong == 0
    assert all(k == 0 for _, k in bench.sent)


def test_an_error_in_the_sequence_is_counted(seed):
    bench = Bench(seed, cycles=400, transmit=PRBS.PRBS31, check=PRBS.PRBS31, near=1, error_at=200)
    assert bench.status[0] == 1 and bench.status[2] == 1
