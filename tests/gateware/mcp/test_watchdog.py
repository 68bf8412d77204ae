# SPDX-License-Identifier: BSD-2-Clause

import random

from migen import *

from dibber.mcp.watchdog import Watchdog

from tests.gateware.models.compiled import run_simulation


def kick(dut, cycles):
    yield dut.cycles.eq(cycles)
    yield dut.kick.eq(1)
    yield
    yield dut.kick.eq(0)
    yield dut.cycles.eq(0)


def until(signal, limit=2000):
    """Cycles until the signal is 1, or None."""
    for n in range(limit):
        if (yield signal):
            return n
        yield
    return None


def test_it_interrupts_after_its_cycles_and_bites_after_as_many_again():
    dut = Watchdog()

    def bench():
        for cycles in [1, 2, 100, 1000]:
            yield from kick(dut, cycles)
            yield
            assert not (yield dut.interrupt) and not (yield dut.bite), "a kick takes back what was"
            assert (yield from until(dut.interrupt)) == cycles
            assert not (yield dut.bite)
            assert (yield from until(dut.bite)) == cycles
            for _ in range(3 * cycles):
                assert (yield dut.interrupt) and (yield dut.bite), "it stays"
                yield

    run_simulation(dut, bench())


def test_a_program_that_starts_it_in_time_is_left_alone(seed):
    """Also when the kick falls into the very cycle in which it would have ended."""
    rng, dut = random.Random(seed), Watchdog()

    def bench():
        for n in range(200):
            cycles = rng.randint(1, 30)
            yield from kick(dut, cycles)
            for _ in range(cycles if n % 3 == 0 else rng.randint(0, cycles)):
                yield
                assert not (yield dut.interrupt) and not (yield dut.bite)

    run_simulation(dut, bench())


def test_an_interrupt_that_is_answered_is_not_followed_by_a_bite():
    dut = Watchdog()

    def bench():
        yield from kick(dut, 20)
        yield from until(dut.interrupt)
        yield from kick(dut, 50)
        yield
        assert (yield from until(dut.bite, 45)) is None

    run_simulation(dut, bench())


def test_zero_cycles_stop_it_and_it_begins_stopped():
    dut = Watchdog()

    def bench():
        assert (yield from until(dut.interrupt, 100)) is None
        yield from kick(dut, 10)
        yield
        yield from kick(dut, 0)
        assert (yield from until(dut.interrupt, 100)) is None
        assert not (yield dut.bite)

    run_simulation(dut, bench())


def test_it_stands_still_while_it_is_held(seed):
    """In the cycle in which it would have ended, too; what was left is left afterwards."""
    rng, dut = random.Random(seed), Watchdog()

    def bench():
        for _ in range(40):
            cycles = rng.randint(2, 30)
            yield from kick(dut, cycles)
            for _ in range(cycles - 1):
                yield dut.hold.eq(1)
                yield
                for _ in range(rng.randint(0, 40)):
                    yield
                    assert not (yield dut.interrupt)
                yield dut.hold.eq(0)
                yield
            assert (yield from until(dut.interrupt)) <= 3
            yield dut.hold.eq(1)
            for _ in range(100):
                yield
                assert not (yield dut.bite)
            yield dut.hold.eq(0)
            assert (yield from until(dut.bite)) is not None

    run_simulation(dut, bench())
