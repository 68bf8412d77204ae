"""The count of keys and generations, compared with a model in Python."""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import random

import pytest

from migen import *

from dibber.deposit.keys import KeyCount

NUMBERS = 2**32


@dataclasses.dataclass
class Model:
    next: int = 0
    left: int = NUMBERS - 1
    drawn: bool = False
    generation: int = 0

    def distance(self, key):
        return (key - self.next) % NUMBERS

    def is_fresh(self, key):
        return self.distance(key) < self.left

    def enter(self, key):
        if self.is_fresh(key):
            self.left -= self.distance(key) + 1
            self.next = (key + 1) % NUMBERS

    def draw(self, value):
        if not self.drawn:
            self.drawn, self.next, self.left = True, value, NUMBERS - 1
            self.generation ^= value >> 26

    def advance(self):
        self.generation = (self.generation + 1) % 64


def pulse(signal):
    yield signal.eq(1)
    yield
    yield signal.eq(0)


def act(dut, model, rng, given):
    """One random action on both."""
    action = rng.choice(["key"] * 6 + ["draw", "advance", "reset"])
    if action == "key":
        key = rng.choice(
            [
                model.next,
                model.next + rng.randrange(64),
                model.next - 1 - rng.randrange(64),
                model.next + model.left - 1,
                model.next + model.left,
                rng.getrandbits(32),
                *given[-3:],
            ]
        )
        key = (
            key % NUMBERS
            if rng.random() < 0.98
            else (model.next + rng.randrange(max(1, model.left))) % NUMBERS
        )
        yield dut.key.eq(key)
        for _ in range(3 + rng.randrange(3)):
            yield
        assert (yield dut.fresh) == model.is_fresh(key)
        if rng.random() < 0.7:
            if model.is_fresh(key):
                given.append(key)
            model.enter(key)
            yield from pulse(dut.enter)
    elif action == "draw":
        value = rng.choice([0, NUMBERS - 1, NUMBERS - 20, rng.getrandbits(32)])
        if not model.drawn:
            given.clear()
        model.draw(value)
        yield dut.draw.value.eq(value)
        yield from pulse(dut.draw.strobe)
    elif action == "advance":
        model.advance()
        yield from pulse(dut.advance)
    else:
        yield dut.reset.eq(1)
        for _ in range(rng.randrange(1, 4)):
            yield
        yield dut.reset.eq(0)
    for _ in range(3):
        yield
    assert ((yield dut.next), (yield dut.left), (yield dut.generation)) == (
        model.next,
        model.left,
        model.generation,
    )


@pytest.mark.fault
@pytest.mark.parametrize("seed", range(4))
def test_no_key_is_fresh_twice_whatever_is_drawn_entered_and_reset(seed):
    rng, dut, model, given = random.Random(seed), ResetInserter()(KeyCount()), Model(), []

    def stimulus():
        for _ in range(400):
            yield from act(dut, model, rng, given)
            assert len(given) == len(set(given))

    run_simulation(dut, stimulus())
    assert len(given) > 20 or model.left < 64


@pytest.mark.fault
def test_the_last_number_is_the_end_until_power_is_lost():
    dut = KeyCount()

    def stimulus():
        def enter(key):
            yield dut.key.eq(key)
            for _ in range(3):
                yield
            fresh = yield dut.fresh
            yield from pulse(dut.enter)
            for _ in range(3):
                yield
            return fresh

        yield dut.draw.value.eq(0x8000_0005)
        yield from pulse(dut.draw.strobe)
        for _ in range(3):
            yield
        assert (yield from enter(0x8000_0003)) == 1, "the last of all but one"
        assert (yield dut.left) == 0
        for key in (0x8000_0003, 0x8000_0004, 0x8000_0005, 0, 0xFFFF_FFFF):
            assert (yield from enter(key)) == 0
        assert (yield dut.left) == 0

    run_simulation(dut, stimulus())


@pytest.mark.fault
def test_a_former_key_names_a_present_region_with_one_chance_in_two_to_the_32():
    """Two lives of a card begin at numbers that are drawn independently. Each bit of the difference
    of a key of one life and a
    key of the other is as often 1 as 0, and the bits are independent in pairs. The entry's bits are
    part of that."""
    rng, ones, pairs, count = random.Random(7), [0] * 32, {}, 20_000
    places = [(a, b) for a in range(0, 32, 5) for b in range(a + 1, 32, 7)]
    for _ in range(count):
        former, present = Model(), Model()
        former.draw(rng.getrandbits(32))
        present.draw(rng.getrandbits(32))
        for _ in range(rng.randrange(40)):
            former.enter(former.next)
        for _ in range(rng.randrange(40)):
            present.enter((present.next + rng.randrange(4)) % NUMBERS)
        difference = former.next ^ present.next
        assert difference
        for bit in range(32):
            ones[bit] += difference >> bit & 1
        for a, b in places:
            pairs[a, b] = pairs.get((a, b), 0) + (difference >> a & difference >> b & 1)
    # Six standard deviations of a binomial distribution.
    assert all(abs(n - count / 2) < 6 * (count / 4) ** 0.5 for n in ones)
    assert all(abs(n - count / 4) < 6 * (count * 3 / 16) ** 0.5 for n in pairs.values())
