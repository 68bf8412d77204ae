"""Walks with index lists: walker and list reader against the model of a walk."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from hypothesis import given, settings, strategies as st

from migen import *

from litex.gen import *

from dibber.deposit.lists import ListReader
from dibber.deposit.walker import Walker

from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.drive import finish, sink, source
from tests.gateware.models.hostread import HostRead
from tests.gateware.models.walk import Walk, pieces

FIELDS = ("address", "length", "last", "error", "fault")
TIMEOUT = 200
WHOLE = dict(low=0, high=2**64 - 1)


class Listed(LiteXModule):
    def __init__(self, data_width, address_bits=64):
        self.walker = Walker(address_bits)
        self.lists = ListReader(
            data_width, timeout=TIMEOUT, quarantine=1000, address_bits=address_bits
        )
        self.comb += [
            self.walker.order.connect(self.lists.sink),
            self.lists.source.connect(self.walker.base),
            self.lists.drop.eq(self.walker.drop),
            self.walker.max_piece.eq(256),
            self.lists.extended_tags.eq(1),
        ]


class Bench:
    """Walks through walker and reader; entries that are None lie in lines that are answered with an
    error.
    """

    def __init__(self, walks, data_width=64, seed=1, busy=1.0, latency=(5, 60)):
        self.dut = dut = shared(Listed, data_width)
        self.random = Random(seed)
        self.walks, self.busy, self.got, self.when = walks, busy, [], []
        entries = {
            walk.place + 8 * n: entry
            for walk in walks
            for n, entry in enumerate(walk.entries or ())
        }
        memory = lambda address: (entries[address & ~7] or 0) >> 8 * (address & 7) & 0xFF
        self.host = HostRead(
            dut.lists.reads,
            dut.lists.completions,
            memory,
            self.random,
            latency,
            fault=lambda address: "error" if entries[address & ~7] is None else None,
        )

    def run(self, *processes, cycles=20000):
        dut = self.dut
        ends = lambda: sum(values[2] for values in self.got) >= len(self.walks)
        feed = [*[None] * (TIMEOUT + 60), *[walk.fields() for walk in self.walks]]
        processes = processes or [
            finish(ends, cycles),
            sink(dut.walker.source, FIELDS, self.got, self.random, self.busy, self.when),
        ]
        run_simulation(
            dut,
            [*processes, self.host.run(), source(dut.walker.sink, feed, self.random, self.busy)],
        )
        return self

    def check(self):
        assert [(0 if p[3] else p[0], *p[1:]) for p in self.got] == expected(self.walks)


def expected(walks):
    return [
        (p.address, p.length, p.last, p.error, p.fault) for walk in walks for p in pieces(walk, 256)
    ]


@st.composite
def walks(draw, number):
    """With a list, and sometimes without, or with one that is too short, or that cannot be read
    everywhere.
    """
    levels = draw(st.integers(0, 2))
    block = draw(st.sampled_from([1, 8, 8, 24, 100, 300]))
    strides = tuple(
        draw(st.one_of(st.just(block), st.integers(-9000, 9000))) for _ in range(levels)
    )
    counts = tuple(draw(st.sampled_from([1, 2, 3, 5])) for _ in range(levels))
    size = block
    for count in counts:
        size *= count
    total = draw(st.integers(1, min(40 * size, 6000)))
    skip = draw(st.one_of(st.just(0), st.integers(0, total - 1)))
    start = 2**40 + draw(st.integers(0, 8191))
    bounds = (
        dict(low=start - 60000, high=start + draw(st.integers(0, 60000)))
        if draw(st.integers(0, 5)) == 0
        else WHOLE
    )
    walk = Walk(
        start, block=block, strides=strides, counts=counts, length=total - skip, skip=skip, **bounds
    )
    if draw(st.integers(0, 5)) == 0:
        return walk
    needed = -(-total // size)
    place = (number << 20) + 8 * draw(st.integers(0, 15))
    length = max(0, needed + draw(st.sampled_from([0, 0, 0, 1, 9, -1, -5])))
    random = draw(st.randoms(use_true_random=False))
    entries = [random.randint(-40000, 40000) for _ in range(length)]
    if length and draw(st.integers(0, 5)) == 0:
        bad = (place + 8 * random.randrange(length)) // 64
        entries = [
            None if (place + 8 * n) // 64 == bad else entry for n, entry in enumerate(entries)
        ]
    return Walk(
        start,
        block=block,
        strides=strides,
        counts=counts,
        length=total - skip,
        skip=skip,
        entries=tuple(entries),
        place=place,
        **bounds,
    )


@given(
    st.tuples(*[walks(n + 1) for n in range(6)]),
    st.sampled_from([64, 128, 256]),
    st.sampled_from([1.0, 0.6]),
    st.integers(0, 100),
)
@settings(max_examples=12)
def test_pieces_are_the_model_s(batch, data_width, busy, seed):
    Bench(batch, data_width, seed, busy).run().check()


def test_one_piece_a_cycle_while_entries_are_there():
    """8-byte elements: after the first lines no cycle is lost, and between packets 6."""
    entries = tuple(24 * n ^ 8 for n in range(512))
    batch = [
        Walk(
            2**40,
            **WHOLE,
            block=8,
            strides=(),
            counts=(),
            length=4096,
            entries=entries,
            place=2**30,
        ),
        Walk(
            2**40,
            **WHOLE,
            block=8,
            strides=(),
            counts=(),
            length=4096 - 160,
            skip=160,
            entries=entries,
            place=2**31,
        ),
    ]
    bench = Bench(batch, 128, latency=(40, 40)).run()
    got, when = bench.got, bench.when
    assert len(got) == 512 + 492
    assert when[511] - when[100] == 411
    assert when[-1] - when[512] == 491
    assert when[512] - when[511] <= 6


def test_places_and_lengths_beyond_any_transfer_end_as_a_list_that_is_too_short():
    batch = [
        Walk(
            2**40,
            **WHOLE,
            block=8,
            strides=(),
            counts=(),
            length=64,
            skip=2**32 - 8,
            entries=(0,) * 4,
            place=2**30,
        ),
        Walk(
            2**40,
            **WHOLE,
            block=2**31,
            strides=(),
            counts=(),
            length=64,
            skip=2**32 - 32,
            entries=(0, 64),
            place=2**31,
        ),
    ]
    bench = Bench(batch).run()
    assert bench.got[0][1:] == (0, 1, 1, 2)
    assert bench.got[1:] == [(2**40 + 64 + 2**31 - 32, 32, 0, 0, 0), (bench.got[2][0], 0, 1, 1, 2)]


@pytest.mark.parametrize("after", [1, 2, 9, 40])
@pytest.mark.parametrize("follower", ["listed", "strided", "both"])
def test_an_abort_takes_the_rest_of_its_own_list_and_of_no_other(after, follower, seed):
    """The consumer gives a walk of a hundred thousand entries up; the next walks have been set up
    meanwhile.
    """
    many = {n: n * 16 for n in range(100000)}
    long = Walk(
        2**40,
        **WHOLE,
        block=8,
        strides=(),
        counts=(),
        length=8 * len(many),
        entries=tuple(many.values()),
        place=2**30,
    )
    listed = Walk(
        2**41,
        **WHOLE,
        block=8,
        strides=(100,),
        counts=(2,),
        length=150,
        skip=20,
        entries=tuple(range(0, 30000, 1000)),
        place=2**31 + 24,
    )
    strided = Walk(2**42, **WHOLE, block=8, strides=(24,), counts=(9,), length=72)
    behind = dict(
        listed=[listed, listed], strided=[strided, strided, listed], both=[listed, strided, listed]
    )[follower]
    bench = Bench([long, *behind], seed=seed)
    walker, got = bench.dut.walker, bench.got

    def consumer():
        for cycle in range(3000):
            yield walker.abort.eq(int(len(got) >= after and not any(values[2] for values in got)))
            yield walker.source.ready.eq(1)
            yield
            if (yield walker.source.valid):
                values = []
                for name in FIELDS:
                    values.append((yield getattr(walker.source, name)))
                got.append(tuple(values))
            if sum(values[2] for values in got) == 1 + len(behind):
                return

    bench.run(consumer())
    end = [values[2] for values in got].index(1)
    assert got[end][1:] == (0, 1, 1, 0) and end <= after + 3
    assert got[end + 1 :] == expected(behind)
    assert sum(address < 2**31 for address, *_ in bench.host.issued) < 80, (
        "reading ahead has stopped"
    )


def test_many_aborts_at_any_moment_leave_the_others_whole(seed):
    random = Random(seed)
    batch = []
    for n in range(24):
        entries = tuple(random.randrange(9000) for _ in range(random.choice([1, 3, 20, 300])))
        batch.append(
            Walk(
                (n + 1) << 40,
                **WHOLE,
                block=8,
                strides=(),
                counts=(),
                length=8 * len(entries) - 3,
                entries=entries,
                place=(n + 1) << 20,
            )
            if random.random() < 0.8
            else Walk((n + 1) << 40, **WHOLE, block=8, strides=(24,), counts=(40,), length=320)
        )
    bench = Bench(batch, seed=seed, latency=(5, 20))
    walker, got = bench.dut.walker, [[]]

    def consumer():
        patience = random.randrange(200)
        for _ in range(12000):
            yield walker.abort.eq(int(len(got[-1]) > 0 and patience <= 0))
            yield walker.source.ready.eq(int(random.random() < 0.8))
            yield
            patience -= 1
            if (yield walker.source.valid) and (yield walker.source.ready):
                values = []
                for name in FIELDS:
                    values.append((yield getattr(walker.source, name)))
                got[-1].append(tuple(values))
                if values[2]:
                    got.append([])
                    patience = random.choice([1, 5, 60, 1000])
                    yield walker.abort.eq(0)
            if len(got) > len(batch):
                return

    bench.run(consumer())
    got.pop()
    assert len(got) == len(batch)
    cut = 0
    for walk, mine in zip(batch, got):
        whole = expected([walk])
        if mine[-1][3]:
            cut += 1
            assert mine[:-1] == [(*p[:2], 0, *p[3:]) for p in whole[: len(mine) - 1]] and mine[-1][
                1:
            ] == (0, 1, 1, 0)
        else:
            assert mine == whole
    assert 4 < cut < 20
