"""Words of four symbols through a transceiver of two: they come out as they went in, wherever they
begin.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from dibber.link.symbols import K_COMMA
from dibber.phy.pairs import FILL, STRIKES, PairsToWords, WordsToPairs

from tests.gateware.models.compiled import run_simulation

COMMA = K_COMMA | 0x5A << 8 | 0xA5 << 16 | 0xB5 << 24


def words(rng, number, every=6):
    """(data, k): random data words, and a word with a comma every few."""
    return [(COMMA, 1) if n % every == 0 else (rng.getrandbits(32), 0) for n in range(number)]


def receive(symbols):
    """The words, as (data, k, code_error), that come of a list of (data, k, error)."""
    dut, got = PairsToWords(), []

    def drive():
        for n in range(0, len(symbols) - 1, 2):
            yield dut.pair.data.eq(symbols[n][0] | symbols[n + 1][0] << 8)
            yield dut.pair.k.eq(symbols[n][1] | symbols[n + 1][1] << 1)
            yield dut.pair.error.eq(symbols[n][2] | symbols[n + 1][2] << 1)
            yield
            if (yield dut.source.valid):
                got.append(
                    ((yield dut.source.data), (yield dut.source.k), (yield dut.source.code_error))
                )

    run_simulation(dut, drive())
    return got


def symbols_of(sent):
    return [(data >> 8 * n & 0xFF, k >> n & 1, 0) for data, k in sent for n in range(4)]


@pytest.mark.parametrize("slip", range(4))
def test_words_are_found_wherever_they_begin(slip, seed):
    rng = random.Random(seed)
    sent = words(rng, 120)
    got = receive(
        [(rng.getrandbits(8), 0, 0) for _ in range(slip)] + symbols_of(sent) + [(0, 0, 0)] * 8
    )
    # After so many commas the place is held; from then on nothing is missing.
    found = [(data, k, 0) for data, k in sent[6 * (STRIKES + 1) :]]
    start = got.index(found[0], 4 * STRIKES)
    assert any(got[n : n + len(found)] == found for n in range(start, len(got)))


def test_an_error_that_looks_like_a_comma_moves_nothing_and_is_told(seed):
    rng = random.Random(seed)
    sent = words(rng, 120)
    symbols = symbols_of(sent)
    # Two false commas between true ones; one symbol that is no code.
    for word in [61, 63]:
        symbols[4 * word + 2] = (K_COMMA, 1, 0)
    symbols[4 * 80 + 1] = (symbols[4 * 80 + 1][0], 0, 1)
    got = receive(symbols + [(0, 0, 0)] * 8)
    expected = []
    for n, (data, k) in enumerate(sent):
        if n in [61, 63]:
            data, k = data & ~0xFF0000 | K_COMMA << 16, 0b0100
        expected.append((data, k, 0b0010 if n == 80 else 0))
    assert any(got[n : n + 70] == expected[50:] for n in range(len(got)))


def test_a_lost_symbol_is_made_good(seed):
    rng = random.Random(seed)
    sent = words(rng, 160)
    symbols = symbols_of(sent)
    del symbols[4 * 60 + 1]
    got = receive(symbols + [(0, 0, 0)] * 9)
    tail = [(data, k, 0) for data, k in sent[60 + 6 * (STRIKES + 2) :]]
    assert any(got[n : n + len(tail)] == tail for n in range(len(got)))


def test_a_word_becomes_two_pairs_and_nothing_becomes_fill(seed):
    rng = random.Random(seed)
    dut = WordsToPairs()
    sent, got = words(rng, 60), []
    queue = list(sent)

    def drive():
        """Like a FIFO's source: what is offered stays until it is taken."""
        while queue:
            if (yield dut.sink.valid) and (yield dut.sink.ready):
                queue.pop(0)
                yield dut.sink.valid.eq(0)
            elif not (yield dut.sink.valid) and rng.random() < 0.7:
                yield dut.sink.valid.eq(1)
                yield dut.sink.data.eq(queue[0][0])
                yield dut.sink.k.eq(queue[0][1])
            got.append(((yield dut.pair.data), (yield dut.pair.k)))
            yield
        for _ in range(4):
            got.append(((yield dut.pair.data), (yield dut.pair.k)))
            yield

    run_simulation(dut, drive())
    for odd in range(2):
        heard = [
            (low[0] | high[0] << 16, low[1] | high[1] << 2)
            for low, high in zip(got[odd::2], got[odd + 1 :: 2])
        ]
        if [word for word in heard[1:] if word != (FILL, 1)] == sent:
            return
    raise AssertionError("the words did not come out")
