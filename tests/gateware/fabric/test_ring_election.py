"""How a ring node finds its scrubber: which nonces count, and how often it sends its own words."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from migen import *

from dibber.fabric.ring.election import KEEP_WORDS, RingElection
from dibber.link.symbols import K_PING, NONCE_TRAIN_WORDS
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.link import control, nonce_word


def come(dut, word):
    yield dut.aligned.eq(1)
    yield dut.came.valid.eq(1)
    yield dut.came.data.eq(word[0])
    yield
    keep = yield dut.keep.valid
    yield dut.came.valid.eq(0)
    yield
    return keep


@pytest.mark.parametrize("nonce", [0, 5])
def test_a_nonce_of_0_makes_no_scrubber_and_is_not_passed(nonce):
    dut, seen = RingElection(), []

    def main():
        yield dut.nonce.eq(nonce)
        yield
        keep = yield from come(dut, nonce_word(0))
        seen.append((keep, (yield dut.scrubber), (yield dut.peer_known)))

    run_simulation(dut, [main()])
    assert seen == [(0, 0, 0)]


def test_a_lower_nonce_passes_a_higher_one_does_not_and_the_own_one_makes_the_scrubber():
    dut, passed, scrubber = RingElection(), [], []

    def main():
        yield dut.nonce.eq(5)
        yield
        for nonce in 6, 5, 4:
            passed.append((yield from come(dut, nonce_word(nonce))))
            scrubber.append((yield dut.scrubber))

    run_simulation(dut, [main()])
    assert passed == [0, 0, 1] and scrubber == [0, 1, 0]


@pytest.mark.parametrize("up, period", [(0, NONCE_TRAIN_WORDS), (1, KEEP_WORDS)])
def test_the_scrubber_sends_its_number_once_in_each_period(up, period):
    dut, cycles = RingElection(), []

    def main():
        yield dut.nonce.eq(5)
        yield dut.up.eq(up)
        yield dut.single.ready.eq(1)
        yield
        yield from come(dut, nonce_word(5))
        for cycle in range(5 * period):
            yield
            if (yield dut.single.valid) and (yield dut.single.data) & 0xFF == K_PING:
                cycles.append(cycle)

    run_simulation(dut, [main()])
    assert len(cycles) >= 4
    assert {later - earlier for earlier, later in zip(cycles, cycles[1:])} == {period}


def test_a_scrubber_takes_no_number_of_another_scrubber_though_the_epoch_is_the_same():
    """When two rings are joined, the other ring's NUMBER comes with another count."""
    dut, sizes, sent = RingElection(), [], []

    def main():
        yield dut.nonce.eq(0x1205)
        yield dut.single.ready.eq(1)
        yield
        yield from come(dut, nonce_word(0x1205))
        while not sent:
            yield
            if (yield dut.single.valid) and (yield dut.single.data) & 0xFF == K_PING:
                sent.append((yield dut.single.data))
        number, tag = sent[0] >> 8 & 0xFF, sent[0] >> 24
        for count, other in ((7, 1), (4, 0), (9, 0xFF)):
            value = number + count - 1
            yield from come(dut, control(K_PING, value, value ^ 0xFF, tag ^ other))
            sizes.append((yield dut.size))

    run_simulation(dut, [main()])
    assert sent[0] >> 24 == 0x12 ^ 0x05 and sizes == [0, 4, 4]


def test_a_node_passes_a_number_with_its_tag_and_one_more():
    dut, kept = RingElection(), []

    def main():
        yield dut.nonce.eq(5)
        yield dut.aligned.eq(1)
        yield
        yield dut.came.valid.eq(1)
        yield dut.came.data.eq(control(K_PING, 3, 3 ^ 0xFF, 0xAB)[0])
        yield
        kept.append(((yield dut.keep.valid), (yield dut.keep.data)))
        yield dut.came.valid.eq(0)
        yield
        kept.append((yield dut.address))

    run_simulation(dut, [main()])
    assert kept == [(1, control(K_PING, 4, 4 ^ 0xFF, 0xAB)[0]), 3]
