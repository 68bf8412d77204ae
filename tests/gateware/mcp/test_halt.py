# SPDX-License-Identifier: BSD-2-Clause

import random

from migen import *

from dibber.mcp.halt import Cutter, Halt, HaltInserter


class StartInserter(ResetInserter):
    """A reset of all registers, as that of the clock domain."""

    control_name = "start"


def test_packets_are_whole_or_bad_whenever_their_source_is_reset():
    rng = random.Random(5)
    dut, received = Cutter(), []

    def source():
        """Packets of ten words; in a reset the packet is forgotten and a new one starts after
        it.
        """
        number = 0
        while number < 40:
            number += 1
            yield dut.sink.channel.eq(number % 3)
            for n in range(10):
                yield dut.sink.data.eq(100 * number + n)
                yield dut.sink.last.eq(n == 9)
                yield dut.sink.valid.eq(1)
                yield
                while not (yield dut.sink.ready) and not (yield dut.reset):
                    yield
                if (yield dut.reset):
                    break
            yield dut.sink.valid.eq(0)
            while (yield dut.reset):
                yield

    @passive
    def resets():
        while True:
            for _ in range(rng.randint(5, 60)):
                yield
            yield dut.reset.eq(1)
            for _ in range(rng.randint(20, 40)):
                yield
            yield dut.reset.eq(0)

    @passive
    def link():
        words, channels = [], set()
        while True:
            yield
            if (yield dut.source.valid) and (yield dut.source.ready):
                words.append((yield dut.source.data))
                channels.add((yield dut.source.channel))
                if (yield dut.source.last):
                    received.append((words, channels, (yield dut.source.bad)))
                    words, channels = [], set()
            yield dut.source.ready.eq(rng.random() < 0.7)

    run_simulation(dut, [source(), resets(), link()])
    whole = [words for words, _, bad in received if not bad]
    assert all(
        words == [words[0] + n for n in range(10)] and words[0] % 100 == 0 for words in whole
    )
    assert all(len(channels) == 1 for _, channels, _ in received)
    assert len(whole) > 5 and len(received) - len(whole) > 5


def test_every_start_finds_an_empty_region_table():
    dut, cleared = Halt(8), []

    @passive
    def watch():
        while True:
            if (yield dut.clear):
                assert (yield dut.reset)
                cleared.append((yield dut.index))
            yield

    def started():
        """Cycles until the reset ends."""
        cycles = 0
        while (yield dut.reset):
            yield
            cycles += 1
        return cycles

    def bench():
        for _ in range(20):
            yield
            assert (yield dut.reset), "halted after power-up"
        yield dut.run.eq(1)
        yield
        yield from started()
        assert cleared == list(range(8))
        cleared.clear()
        yield dut.run.eq(0)
        yield
        yield dut.run.eq(1)  # at once
        yield
        yield
        assert (yield from started()) >= 7
        assert cleared == list(range(8))

    run_simulation(dut, [bench(), watch()])


def test_every_halt_of_what_has_run_is_counted():
    dut, told = Halt(8), []

    def bench():
        for _ in range(20):
            yield
        assert (yield dut.halts) == 0, "it has not run yet"
        for n in range(260):
            yield dut.run.eq(1)
            while (yield dut.reset):
                yield
            assert (yield dut.halts) == n % 256 and len(told) == n
            yield dut.run.eq(0)
            while not (yield dut.reset):
                yield
            assert (yield dut.halts) == (n + 1) % 256

    @passive
    def watch():
        while True:
            if (yield dut.halted):
                told.append((yield dut.halts))
            yield

    run_simulation(dut, [bench(), watch()])
    assert told == [n % 256 for n in range(260)], "one cycle each, as the count changes"


def test_a_reset_of_the_clock_domain_halts_from_its_next_cycle_until_all_tables_are_empty():
    dut, rng = StartInserter()(Halt(8)), random.Random(3)

    def bench():
        yield dut.run.eq(1)
        for _ in range(40):
            while (yield dut.reset):
                yield
            for _ in range(rng.randint(1, 5)):
                assert not (yield dut.reset)
                yield
            yield dut.start.eq(1)
            yield
            for _ in range(rng.randint(1, 5)):
                yield
                assert (yield dut.reset)
            yield dut.start.eq(0)
            yield
            for _ in range(8):
                assert (yield dut.reset)
                yield

    run_simulation(dut, bench())


def test_a_halt_resets_what_it_is_inserted_in_and_the_clock_domain_does_not():
    class Part(Module):
        def __init__(self):
            self.count, self.kept = Signal(8, reset=7), Signal(8, reset_less=True)
            self.sync += self.count.eq(self.count + 1), self.kept.eq(self.kept + 1)

    class Card(Module):
        def __init__(self):
            self.submodules.part = HaltInserter()(Part())
            self.submodules.other = Part()

    dut = StartInserter()(Card())

    def cycle(**signals):
        """Count, kept and the other's count after a cycle with these signals."""
        yield dut.part.halt.eq(signals.get("halt", 0))
        yield dut.start.eq(signals.get("start", 0))
        yield
        yield dut.part.halt.eq(0)
        yield dut.start.eq(0)
        yield
        return (yield dut.part.count), (yield dut.part.kept), (yield dut.other.count)

    def bench():
        assert (yield from cycle()) == (9, 2, 9)
        assert (yield from cycle(start=1)) == (11, 4, 7)
        assert (yield from cycle(halt=1)) == (7, 6, 9)

    run_simulation(dut, bench())
