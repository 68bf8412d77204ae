"""Fragments that the packer makes of words, when the block before it is reset at any cycle."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from migen import *

from dibber.link.ethernet.sender import Packer

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive

LIMIT = 2  # units of a fragment


def test_no_fragment_is_empty_whenever_the_sender_is_reset(seed):
    """The sender withdraws a word that it offered, as a block in reset does, and begins anew."""
    random = Random(seed)
    dut = Packer(limit=LIMIT, depth=64)
    fragments, units, resets = [], [], [0]

    def sender():
        sink, left, first = dut.sink, 0, True
        yield dut.up.eq(1)
        for _ in range(10):
            yield
        for number in range(3000):
            if left == 0 or random.random() < 0.1:
                resets[0] += left != 0
                left, first = random.randrange(1, 12), True
                if random.random() < 0.5:
                    yield sink.valid.eq(0)
                    yield
            yield from drive(sink, valid=1, data=number, first=int(first), last=int(left == 1))
            yield
            if (yield sink.ready):
                left, first = left - 1, False
        # A last packet ends the one that is begun.
        yield from drive(sink, valid=1, first=1, last=1)
        yield
        while not (yield sink.ready):
            yield
        yield sink.valid.eq(0)
        for _ in range(100):
            yield

    @passive
    def taker():
        fragment, unit = dut.fragments, dut.units
        yield fragment.ready.eq(1)
        yield unit.ready.eq(1)
        while True:
            yield
            if (yield fragment.valid):
                fragments.append((yield fragment.units))
            units.append((yield unit.valid))

    run_simulation(dut, [sender(), taker()])
    assert resets[0] > 100
    assert all(1 <= count <= LIMIT for count in fragments)
    assert sum(fragments) == sum(units)
