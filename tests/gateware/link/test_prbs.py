"""PRBS generator and checker against the recurrences of ITU-T O.150, and what the checker makes of
faults.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.interface.description import PRBS
from dibber.link.prbs import LOCK_WORDS, PRBSChecker, PRBSGenerator

from tests.gateware.models.compiled import run_simulation

SEQUENCES = {
    PRBS.PRBS7: (7, 6, 0),
    PRBS.PRBS15: (15, 14, 1),
    PRBS.PRBS23: (23, 18, 1),
    PRBS.PRBS31: (31, 28, 1),
}


def sequence(select, words):
    """Words of a sequence from a state of all ones: bit n is the sum of bits n - length and n -
    tap.
    """
    length, tap, inverted = SEQUENCES[select]
    bits = [1] * length
    for _ in range(32 * words):
        bits.append(bits[-length] ^ bits[-tap])
    bits = [bit ^ inverted for bit in bits[length:]]
    return [sum(bit << i for i, bit in enumerate(bits[32 * n : 32 * n + 32])) for n in range(words)]


def check(select, items, then=None):
    """Feed (word, errors) items; returns (locked, words, wrong) at the end. None is a cycle without
    a word.
    """
    checker = PRBSChecker()
    result = []

    def feed():
        yield checker.select.eq(select)
        yield
        yield
        for item in items:
            yield checker.valid.eq(int(item is not None))
            if item is not None:
                yield checker.word.eq(item[0])
                yield checker.errors.eq(item[1])
            yield
        yield checker.valid.eq(0)
        for _ in range(5):
            yield
        result.append(((yield checker.locked), (yield checker.words), (yield checker.wrong)))
        if then is not None:
            yield checker.select.eq(then)
            for _ in range(4):
                yield
            result.append(((yield checker.locked), (yield checker.words), (yield checker.wrong)))

    run_simulation(checker, feed())
    return result


def stalled(random, items):
    for item in items:
        while random.random() < 0.3:
            yield None
        yield item


@pytest.mark.parametrize("select", SEQUENCES)
def test_the_generator_follows_the_recurrence(select, seed):
    generator, random, words = PRBSGenerator(), Random(seed), []

    def collect():
        yield generator.select.eq(select)
        yield
        while len(words) < 60:
            step = int(random.random() < 0.7)
            yield generator.step.eq(step)
            yield
            if step:
                words.append((yield generator.word))

    run_simulation(generator, collect())
    # It starts with its seed, a whole word of ones.
    assert words == [0 if SEQUENCES[select][2] else 0xFFFFFFFF] + sequence(select, 59)


@pytest.mark.parametrize("select", SEQUENCES)
@pytest.mark.parametrize("shift", [0, 8, 24])
def test_it_locks_wherever_the_symbols_stand(select, shift, seed):
    stream = sum(word << 32 * n for n, word in enumerate(sequence(select, 120))) >> shift
    items = [((stream >> 32 * n) & 0xFFFFFFFF, 0) for n in range(100)]
    [(locked, words, wrong)] = check(select, stalled(Random(seed), items))
    assert locked and wrong == 0 and 100 - LOCK_WORDS - 6 <= words <= 100


@pytest.mark.parametrize("select", SEQUENCES)
def test_each_wrong_symbol_counts_once(select, seed):
    random, items, wrong = Random(seed), [(word, 0) for word in sequence(select, 400)], 0
    for n in range(40, 390, 5):
        symbol = random.randrange(4)
        if random.random() < 0.5:
            items[n] = (items[n][0] ^ random.randrange(1, 256) << 8 * symbol, 0)
        else:
            items[n] = (items[n][0], 1 << symbol)
        wrong += 1
    [(locked, _, counted), cleared] = check(select, items, then=PRBS.OFF)
    assert locked and counted == wrong
    assert cleared == (0, 0, 0)


@pytest.mark.parametrize("select", SEQUENCES)
@pytest.mark.parametrize("level", [0, 0xFFFFFFFF])
def test_a_line_that_stands_still_is_no_sequence(select, level):
    [(locked, words, _)] = check(select, [(level, 0)] * 60)
    assert not locked and words == 0


def test_another_sequence_is_none():
    [(locked, words, _)] = check(PRBS.PRBS15, [(word, 0) for word in sequence(PRBS.PRBS23, 200)])
    assert not locked and words == 0


def test_after_a_slip_it_locks_again_and_says_how_much_was_wrong():
    words = sequence(PRBS.PRBS31, 260)
    [(locked, counted, wrong)] = check(
        PRBS.PRBS31, [(word, 0) for word in words[:100] + words[137:]]
    )
    assert locked and 20 < wrong < 80
    assert counted > 200
