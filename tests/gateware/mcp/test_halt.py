# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

import random

from migen import *

from dibber.mcp.halt import Cutter, Halt


def test_packets_are_whole_or_bad_whenever_their_source_is_reset():
    rng = random.Random(5)
    dut, received = Cutter(), []

    def source():
        """Packets of ten words; in a reset the packet is forgotten and a new one starts after it."""
        number = 0
        while number < 40:
            number += 1
            yield dut.sink.channel.eq(number % 3)
            for n in range(10):
                yield dut.sink.data.eq(100*number + n)
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
    assert all(words == [words[0] + n for n in range(10)] and words[0] % 100 == 0 for words in whole)
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
