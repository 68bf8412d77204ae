"""Counters are exact in the cycle in which they are asked for, whatever the scanner does."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest
from migen import *

from dibber.common.counters import LOW, Counters

from tests.gateware.models.compiled import run_simulation


@pytest.mark.parametrize(
    "data_width, words, first, most",
    [
        (64, 48, 0, 1),
        (128, 48, 40, 3),
        (64, 3, 0, 3),
        (64, 47, 36, 1),
        (32, 57, 0, 3),
        (256, 48, 0, 8),
    ],
)
def test_every_read_shows_the_events_of_all_cycles_before_it(data_width, words, first, most, seed):
    random = Random(seed)
    lanes = data_width // 32
    # The second word has no counter.
    pulses = {
        first + word: Signal(max=1 + (most if word % 2 == 0 else 1), name=f"pulse{word}")
        for word in range(words)
        if word != 1
    }
    dut = Counters(pulses, data_width)
    # Some count always, some seldom; those that always do come round many times.
    often = {word: random.choice([0, 0.01, 0.5, 1]) for word in pulses}
    often[first] = 1

    def bench():
        for _ in range(len(dut.adr) ** 2 + words):
            yield
        counts, answers = dict.fromkeys(pulses, 0), []
        for cycle in range(20 << LOW):
            # In every second stretch only the first counts, so that the scanner rests in between.
            now = {
                word: random.randrange(1, 2 ** len(pulses[word]))
                if random.random() < share and (cycle & 128 == 0 or word == first)
                else 0
                for word, share in often.items()
            }
            # For a while one line is read in every cycle in which it may be.
            read = random.random() < (0.9 if cycle & 256 else 0.3)
            line = first // lanes + (
                0 if cycle & 512 and cycle % 3 else random.randrange(-(-words // lanes))
            )
            here = random.random() < 0.9
            for word, pulse in pulses.items():
                yield pulse.eq(now[word])
            yield dut.adr.eq(line)
            yield dut.re.eq(read)
            yield dut.here.eq(here)
            yield
            answers.append(
                [counts.get(lanes * line + n, 0) if read and here else 0 for n in range(lanes)]
            )
            for word, pulsed in now.items():
                counts[word] += pulsed
            if cycle >= 2:
                shown = yield dut.dat_r
                assert [shown >> 32 * n & 0xFFFFFFFF for n in range(lanes)] == answers[-3], cycle
        assert counts[first] > 16 << LOW

    run_simulation(dut, bench())
