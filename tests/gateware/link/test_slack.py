"""The slack buffer when STOP is not heeded."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from migen import *

from dibber.link.slack import SlackBuffer

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish


def test_a_full_slack_buffer_drops_whole_packets_and_says_so(seed):
    """Words come on whatever the buffer says."""
    random, dut = Random(seed), SlackBuffer(256)
    packets, words, overflows = [], [], []

    def stimulus():
        for n in range(40):
            for i in range(20):
                yield dut.sink.valid.eq(1)
                yield dut.sink.data.eq(n << 8 | i)
                yield dut.sink.first.eq(int(i == 0))
                yield dut.sink.last.eq(int(i == 19))
                yield
        yield dut.sink.valid.eq(0)
        yield from finish(
            lambda: len(words) == 0 and len(packets) and packets[-1][0][0] >> 8 == 39, 1500
        )

    @passive
    def drain():
        cycle = 0
        while True:
            # Long pauses, so that whole packets find no room from their first word on.
            cycle += 1
            ready = int(cycle // 150 % 2 and random.random() < 0.9)
            yield dut.source.ready.eq(ready)
            yield
            overflows.append((yield dut.overflow))
            if ready and (yield dut.source.valid):
                words.append((yield dut.source.data))
                if (yield dut.source.last):
                    packets.append((list(words), (yield dut.source.bad)))
                    words.clear()

    run_simulation(dut, [stimulus(), drain()])
    good = [words for words, bad in packets if not bad]
    bad = [words for words, bad in packets if bad]
    assert all(words == [words[0] & ~0xFF | i for i in range(20)] for words in good)
    assert all(words[0] & 0xFF == 0 and 1 < len(words) <= 20 for words in bad)
    assert sum(overflows) == 40 - len(good) > 4 and bad


def test_level_counts_the_words_that_are_held(seed):
    random, dut = Random(seed), SlackBuffer(256)
    held, levels = [0], []

    def stimulus():
        yield dut.sink.last.eq(1)
        for n in range(400):
            yield dut.sink.valid.eq(int(held[0] < 200 and random.random() < 0.6))
            yield dut.source.ready.eq(int(random.random() < 0.4))
            yield
            levels.append(((yield dut.level), held[0]))
            held[0] += (yield dut.sink.valid) - (
                (yield dut.source.valid) and (yield dut.source.ready)
            )

    run_simulation(dut, stimulus())
    assert all(level == count for level, count in levels) and max(levels)[0] > 50
