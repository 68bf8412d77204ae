# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.deposit.reads import ReadArbiter, Reader

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, sink, source

READERS = [Reader(24, 64), Reader(6, 16), Reader(1, 1)]


def test_reads_keep_their_order_and_answers_find_their_reader(seed):
    """Every tag of every reader has one of its own on the bus, and comes back as what it was."""
    random = Random(seed)
    dut = ReadArbiter(64, READERS)
    asked = [
        [dict(address=4096 * n + 8 * tag, length=8 + tag, tag=tag) for tag in range(reader.tags)]
        for n, reader in enumerate(READERS)
    ]
    taken, answers = [], [[] for _ in READERS]

    @passive
    def reader(n):
        while True:
            yield
            if (yield dut.completions[n].valid):
                answers[n].append(((yield dut.completions[n].tag), (yield dut.completions[n].dat)))

    def bench():
        yield from finish(lambda: len(taken) == sum(reader.tags for reader in READERS), 1000)
        for address, length, tag in random.sample(taken, len(taken)):
            yield dut.sink.tag.eq(tag)
            yield dut.sink.dat.eq(address)
            yield dut.sink.valid.eq(1)
            yield
            assert (yield dut.sink.ready)
        yield dut.sink.valid.eq(0)
        yield

    run_simulation(
        dut,
        [bench(), sink(dut.source, ("address", "length", "tag"), taken, random, 0.7)]
        + [source(dut.reads[n], asked[n], random, 0.6) for n in range(len(READERS))]
        + [reader(n) for n in range(len(READERS))],
    )
    for n, reader in enumerate(READERS):
        assert [(address, length) for address, length, _ in taken if address // 4096 == n] == [
            (read["address"], read["length"]) for read in asked[n]
        ]
        assert sorted(answers[n]) == [(tag, 4096 * n + 8 * tag) for tag in range(reader.tags)]
    tags = {(address // 4096, (address % 4096) // 8): tag for address, _, tag in taken}
    assert len(set(tags.values())) == len(tags), "a tag is used twice"
    for n, reader in enumerate(READERS):
        assert all(tags[n, tag] < 32 for tag in range(reader.base)), "not without extended tags"


def test_an_answer_to_nobody_is_the_first_readers_to_count():
    dut = ReadArbiter(64, READERS)

    def bench():
        yield dut.sink.valid.eq(1)
        for tag in (31, 150, 255):
            yield dut.sink.tag.eq(tag)
            yield
            assert (yield dut.completions[0].valid) and (yield dut.completions[0].tag) == 255
            assert not (yield dut.completions[1].valid) and not (yield dut.completions[2].valid)

    run_simulation(dut, bench())


def test_a_reader_alone_reads_every_cycle_and_none_starves():
    dut, taken, cycle = ReadArbiter(64, READERS), [], []
    reads = lambda n: [dict(address=n, tag=0) for _ in range(50)]
    both = lambda: len(taken) == 100
    run_simulation(
        dut,
        [
            finish(both, 300),
            sink(dut.source, ("address",), taken, Random(1), cycle=cycle),
            source(dut.reads[0], reads(0), Random(1)),
            source(dut.reads[1], reads(1), Random(1)),
        ],
    )
    assert abs([n for (n,) in taken[:20]].count(0) - 10) <= 1


def test_more_readers_than_there_are_tags_are_an_error():
    with pytest.raises(ValueError, match="do not fit"):
        ReadArbiter(64, [Reader(24, 64), Reader(9, 9)])
