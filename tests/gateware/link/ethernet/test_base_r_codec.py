"""Blocks of 10GBASE-R, compared with the model."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from migen import *

from dibber.link.ethernet.base_r.codec import BlockDecoder, BlockEncoder

from tests.gateware.models import base_r
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import sink, source


def random_word(random, number):
    """A word of a type of control block, or of data."""
    byte = lambda: random.randrange(256)
    codes = [byte_ for byte_ in base_r.CODES if byte_ != base_r.ERROR]
    make = {
        "D": lambda: (0, byte()),
        "C": lambda: (1, random.choice([base_r.IDLE, random.choice(codes)])),
        "O": lambda: (1, random.choice(list(base_r.ORDERS))),
        "S": lambda: (1, base_r.START),
        "T": lambda: (1, base_r.TERMINATE),
    }
    return [make[kind]() for kind in (base_r.kinds_of(number) if number else "D" * 8)]


def random_words(random, count, faults=0.0):
    """Idles, ordered sets and frames, as a MAC sends them; and what no MAC sends."""
    plain = [n for n in base_r.FIGURE if n not in base_r.STARTS and n not in base_r.ENDS]
    words = []
    while len(words) < count:
        words += [random_word(random, random.choice(plain)) for _ in range(random.randrange(3))]
        words.append(random_word(random, random.choice(list(base_r.STARTS))))
        words += [random_word(random, None) for _ in range(random.randrange(5))]
        words.append(random_word(random, random.choice(list(base_r.ENDS))))
        if random.random() < faults:
            lane, char = random.randrange(8), (random.randrange(2), random.randrange(256))
            words[-1] = [*words[-1][:lane], char, *words[-1][lane + 1 :]]
        if random.random() < faults:
            words.append(random_word(random, random.choice([None, *base_r.FIGURE])))
        if random.random() < faults:
            words.append(base_r.ERRORS)
    return words


def encode(words, random):
    dut, blocks = BlockEncoder(), []
    items = [dict(zip(("data", "control"), base_r.number_of(word))) for word in words]

    def main():
        while len(blocks) < len(words):
            yield

    run_simulation(
        dut,
        [
            main(),
            passive(source)(dut.sink, items, random, 0.8),
            passive(sink)(dut.source, ["header", "data"], blocks, random, 0.8),
        ],
    )
    return blocks


def decode(blocks, random, downs=()):
    """`downs`: numbers of blocks with which `up` is 0."""
    dut, words = BlockDecoder(), []

    def main():
        for n, (header, payload) in enumerate(blocks):
            yield dut.sink.valid.eq(1)
            yield dut.sink.header.eq(header)
            yield dut.sink.data.eq(payload)
            yield dut.up.eq(n not in downs)
            yield
            yield dut.sink.valid.eq(0)
            while random.random() < 0.2:
                yield
        yield
        yield

    @passive
    def watch():
        while True:
            yield
            if (yield dut.source.valid):
                words.append(base_r.word_of((yield dut.source.data), (yield dut.source.control)))

    run_simulation(dut, [main(), watch()])
    return words


def test_a_block_of_each_type_is_what_the_figure_of_the_standard_says():
    """Written out by hand for one of each shape."""
    idle = (1, base_r.IDLE)
    data = [(0, n) for n in range(0x11, 0x19)]
    table = [
        (data, (0b01, 0x1817161514131211)),
        ([idle] * 8, (0b10, 0x1E)),
        ([(1, base_r.START), *data[:7]], (0b10, 0x1716151413121178)),
        ([idle] * 4 + [(1, base_r.START), *data[:3]], (0b10, 0x1312110000000033)),
        ([(1, base_r.TERMINATE)] + [idle] * 7, (0b10, 0x87)),
        ([*data[:3], (1, base_r.TERMINATE), *[idle] * 4], (0b10, 0x131211B4)),
        ([*data[:7], (1, base_r.TERMINATE)], (0b10, 0x17161514131211FF)),
        (base_r.LOCAL_FAULT, (0b10, 0x0100000001000055)),
        ([idle] * 7 + [(1, 0x1C)], (0b10, 0x2D << 57 | 0x1E)),
        ([(1, base_r.SIGNAL), *data[:3], *[idle] * 4], (0b10, 0xF_131211_4B)),
    ]
    for word, block in table:
        assert base_r.encode(word) == block and base_r.decode(*block) == word


def test_each_word_becomes_its_block_and_each_block_its_word(seed):
    random = Random(seed)
    words = random_words(random, 600)
    kinds = {base_r.encode(word)[1] & 0xFF for word in words if any(c for c, _ in word)}
    assert kinds == set(base_r.FIGURE)
    blocks = encode(words, random)
    assert blocks == base_r.encoded(words) and base_r.ERROR_BLOCK not in blocks
    assert decode([*blocks, base_r.encode(base_r.IDLES)], random)[: len(words)] == words


def test_words_that_are_no_block_or_out_of_place_become_errors(seed):
    random = Random(seed)
    words = random_words(random, 600, faults=0.3)
    blocks = encode(words, random)
    assert blocks == base_r.encoded(words) and blocks.count(base_r.ERROR_BLOCK) > 50


def test_damaged_blocks_become_errors_as_the_figure_of_the_standard_says(seed):
    random = Random(seed)
    blocks = [list(block) for block in base_r.encoded(random_words(random, 900))]
    for block in random.sample(blocks, 250):
        if random.random() < 0.3:
            block[0] = random.randrange(4)
        else:
            block[1] ^= 1 << random.choice([random.randrange(8), random.randrange(64)])
    words = decode(blocks, random)
    assert words == base_r.decoded(blocks) and words.count(base_r.ERRORS) > 50


def test_without_block_lock_words_say_that_the_link_has_a_local_fault(seed):
    random = Random(seed)
    blocks = base_r.encoded(random_words(random, 60))
    words = decode(blocks, random, downs=range(20, 40))
    assert words[19:39] == [base_r.LOCAL_FAULT] * 20
    assert words[:19] == base_r.decoded(blocks)[:19]
