"""The walker's RTL against its model."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.deposit.walker import Walker

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, sink, source
from tests.gateware.models.walk import Walk, pieces

FIELDS = ("address", "length", "last", "error")


def random_walk(random):
    levels = random.randrange(4)
    block = random.choice([1, 2, 8, 8, 16, 24, 100, 257, 700])
    counts = tuple(random.choice([1, 2, 3, 5, 9]) for _ in range(levels))
    strides = tuple(random.choice([block, 0, random.randint(-9000, 9000)]) for _ in range(levels))
    total = random.randint(1, 3000)
    if levels:
        total = block
        for count in counts:
            total *= count
    skip = random.choice([0, random.randrange(total)])
    length = min(random.randint(1, total - skip), 2500)
    start = 2**40 + random.randrange(8192)
    bounds = random.random() < 0.3
    return Walk(
        start,
        low=start - random.choice([0, 64, 20000]) if bounds else 0,
        high=start + random.choice([0, 64, 4000, 20000]) if bounds else 2**64 - 1,
        block=block,
        strides=strides,
        counts=counts,
        length=length + (random.randrange(block) if levels and random.random() < 0.1 else 0),
        skip=skip,
    )


def run(walks, max_piece, seed=1, busy=1.0, cycles=20000):
    """Pieces that the walker gives, and the cycle of each."""
    dut, got, when = Walker(), [], []
    lasts = lambda: sum(last for _, _, last, _ in got) >= len(walks)

    def set_up():
        yield dut.max_piece.eq(max_piece)
        yield from finish(lasts, cycles)

    random = Random(seed)
    run_simulation(
        dut,
        [
            set_up(),
            source(dut.sink, [w.fields() for w in walks], random, busy),
            sink(dut.source, FIELDS, got, random, busy, when),
        ],
    )
    return got, when


def expected(walks, max_piece):
    return [(p.address, p.length, p.last, p.error) for w in walks for p in pieces(w, max_piece)]


def without_error_addresses(got):
    return [(0 if error else address, length, last, error) for address, length, last, error in got]


@pytest.mark.parametrize("max_piece, busy", [(128, 1.0), (256, 0.6), (512, 1.0), (4096, 0.7)])
def test_random_walks(max_piece, busy):
    random = Random(max_piece)
    walks = [random_walk(random) for _ in range(60)]
    got, _ = run(walks, max_piece, busy=busy)
    assert without_error_addresses(got) == expected(walks, max_piece)


def test_skip_anywhere():
    walks = [
        Walk(2**33 + 5, 0, 2**64 - 1, 7, (-32, 1001, 5000), (3, 4, 2), 7 * 24 - skip, skip)
        for skip in range(0, 7 * 24, 13)
    ]
    got, _ = run(walks, 256)
    assert got == expected(walks, 256)


def test_large_indices():
    """Counters beyond 16 bits, a stride beyond 32."""
    walk = Walk(
        2**40,
        0,
        2**64 - 1,
        8,
        (-(2**34), 2**20),
        (100003, 70001),
        24,
        8 * (100003 * 69999 + 100001) % 2**32,
    )
    got, _ = run([walk], 256) if walk.skip < 8 * 100003 * 70001 else ([], [])
    q = walk.skip // 8
    first = (2**40 - 2**34 * (q % 100003) + 2**20 * (q // 100003)) % 2**64
    assert got[0] == (first, 8, 0, 0)


def test_one_piece_a_cycle():
    """8-byte elements: 200 pieces leave in 200 cycles, the first 5 cycles after the walk came."""
    walk = Walk(2**32, 0, 2**64 - 1, 8, (24, 4096), (20, 10), 1600)
    got, when = run([walk, walk], 256)
    assert len(got) == 400
    assert when[199] - when[0] == 199
    assert when[399] - when[200] == 199
    assert when[200] - when[199] <= 3
    assert when[0] == 1 + 5


def test_setup_runs_while_the_former_transfer_is_walked():
    first = Walk(2**32, 0, 2**64 - 1, 8, (24,), (250,), 2000)
    second = Walk(2**32, 0, 2**64 - 1, 8, (24, 100, 1000), (5, 5, 9), 800, 1000)
    got, when = run([first, second], 256)
    assert when[250] - when[249] <= 3


@pytest.mark.parametrize("levels, bound", [(1, 45), (2, 90), (3, 140)])
def test_setup_time(levels, bound):
    """Skip's cycles for packet-sized indices: stated in its docstring."""
    walk = Walk(2**32, 0, 2**64 - 1, 8, (24, 100, 1000)[:levels], (200, 5, 9)[:levels], 8, 8 * 199)
    _, when = run([walk], 256)
    assert when[0] - 6 <= bound


def aborted(first, after, walks):
    """Pieces of `first`, which the consumer aborts once it has taken `after` of them, and of
    `walks`.
    """
    dut, got = Walker(), []

    def consumer():
        yield dut.max_piece.eq(256)
        yield dut.source.ready.eq(1)
        for _ in range(80):
            yield
            if (yield dut.source.valid):
                values = []
                for name in FIELDS:
                    values.append((yield getattr(dut.source, name)))
                got.append(tuple(values))
            yield dut.abort.eq(int(len(got) >= after and not any(last for _, _, last, _ in got)))

    run_simulation(
        dut, [consumer(), source(dut.sink, [w.fields() for w in [first] + walks], Random(1))]
    )
    end = [last for _, _, last, _ in got].index(1)
    return got[: end + 1], got[end + 1 :]


@pytest.mark.parametrize("after", [1, 2, 7])
def test_abort_ends_the_transfer_at_once(after):
    long = Walk(2**32, 0, 2**64 - 1, 8, (24,), (10**6,), 8 * 10**6)
    short = Walk(2**40, 0, 2**64 - 1, 8, (24,), (5,), 40)
    head, tail = aborted(long, after, [short])
    assert head[-1][1:] == (0, 1, 1)
    assert len(head) <= after + 3
    assert tail == expected([short], 256)


@pytest.mark.parametrize("count", range(3, 9))
def test_abort_at_the_end_leaves_the_next_transfer_alone(count):
    """The walker may be in the next transfer already when the one before is aborted."""
    first = Walk(2**32, 0, 2**64 - 1, 8, (24,), (count,), 8 * count)
    short = Walk(2**40, 0, 2**64 - 1, 8, (24,), (5,), 40)
    _, tail = aborted(first, 3, [short])
    assert tail == expected([short], 256)
