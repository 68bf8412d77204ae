"""Lanes that are bonded: markers, skew, and what happens when a lane is not as the others."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.link.bonding import LaneDeskew, LaneMarkers

from tests.gateware.models.bonding import CONTROL, Deskew, marked_rows, marker
from tests.gateware.models.compiled import run_simulation

DEPTH = 8
PERIOD = 32


def random_rows(random, count, lanes):
    """Rows of blocks; some are control blocks that differ from a marker in one bit."""

    def block(lane):
        if random.random() < 0.1:
            return CONTROL, marker(lane)[1] ^ 1 << random.randrange(64)
        return random.choice((0b01, 0b10)), random.getrandbits(64)

    return [tuple(block(lane) for lane in range(lanes)) for _ in range(count)]


def arrivals(rows, skews, random, most):
    """For each cycle, the block of each lane or None. Lane n is `skews[n]` blocks late, and less or
    more by jitter; no lane is more than `most` blocks before another one.
    """
    lanes, sent = len(skews), [-skew for skew in skews]
    while min(sent) < len(rows):
        blocks = []
        for lane in range(lanes):
            goes = random.random() < 0.7 and sent[lane] < min(sent) + most
            goes = goes and sent[lane] < len(rows)
            blocks.append(rows[sent[lane]][lane] if goes and sent[lane] >= 0 else None)
            sent[lane] += goes
        yield blocks


def observe(dut, cycles, lanes, locks=None):
    """[(row or None, lost, crossed, aligned)] of each cycle; the row is one cycle late."""
    seen = []

    def run():
        for number, blocks in enumerate(cycles):
            for sink, block in zip(dut.sinks, blocks):
                yield sink.valid.eq(block is not None)
                if block is not None:
                    yield sink.header.eq(block[0])
                    yield sink.data.eq(block[1])
            lock = locks[number] if locks else [True] * lanes
            yield dut.locked.eq(sum(bit << lane for lane, bit in enumerate(lock)))
            yield
            header, data = (yield dut.source.header), (yield dut.source.data)
            row = tuple(
                (header >> 2 * lane & 3, data >> 64 * lane & 2**64 - 1) for lane in range(lanes)
            )
            seen.append(
                (
                    row if (yield dut.source.valid) else None,
                    (yield dut.lost),
                    (yield dut.crossed),
                    (yield dut.aligned),
                )
            )

    run_simulation(dut, run())
    return seen


def settled(blocks, lanes):
    """Cycles without blocks before and behind, so that all that was stored leaves."""
    return [[None] * lanes] + list(blocks) + [[None] * lanes] * 8


def expected(cycles, lanes, locks=None):
    """What the model says, shifted as `observe` sees it."""
    model, said = Deskew(lanes, DEPTH, PERIOD), []
    for number, blocks in enumerate(cycles):
        before = model.aligned
        row, lost, crossed = model.cycle(blocks, locks[number] if locks else [True] * lanes)
        said.append((row, lost, sum(bit << lane for lane, bit in enumerate(crossed)), before))
    return said


def compare(seen, said):
    """Cycle by cycle: the events in their cycle, the row one cycle later."""
    assert [row for row, *_ in seen[1:]] == [row for row, *_ in said][:-1]
    assert [events for _, *events in seen] == [list(events) for _, *events in said]


@pytest.mark.parametrize("lanes, depth", [(1, 8), (2, 8), (4, 8), (4, 32)])
def test_lanes_within_the_limit_of_skew_lose_no_row_and_keep_the_order(lanes, depth, seed):
    period = 4 * depth
    for run in range(4):
        random = Random(f"{seed} {lanes} {depth} {run}")
        sent = random_rows(random, 300, lanes)
        # The first two lanes have the whole skew that is allowed.
        skews = [0, depth - 2, *(random.randrange(depth - 1) for _ in range(2))][:lanes]
        random.shuffle(skews)
        blocks = arrivals(list(marked_rows(sent, lanes, period)), skews, random, depth - 2)
        cycles = settled(blocks, lanes)
        seen = observe(LaneDeskew(lanes, depth, period), cycles, lanes)
        assert [row for row, *_ in seen if row] == sent
        assert not any(lost for _, lost, *_ in seen)


def faulty(blocks, lanes, random):
    """(blocks, locks) with lost, doubled, damaged and crossed blocks, and lost locks; rarely."""
    changed, locks, twice = [], [], {}
    for cycle in blocks:
        cycle = list(cycle)
        for lane in range(lanes):
            if lane in twice and cycle[lane] is None:
                cycle[lane] = twice.pop(lane)
            elif cycle[lane] is not None:
                fault = random.random()
                if fault < 0.001:
                    cycle[lane] = None
                elif fault < 0.002:
                    twice[lane] = cycle[lane]
                elif fault < 0.005 or (cycle[lane] == marker(lane) and fault < 0.2):
                    cycle[lane] = (cycle[lane][0], cycle[lane][1] ^ 1 << random.randrange(64))
                elif fault > 0.9995:
                    cycle[lane] = marker((lane + 1) % lanes)
        changed.append(cycle)
        locks.append([random.random() > 0.0005 for _ in range(lanes)])
    return changed, locks


@pytest.mark.parametrize("lanes", [2, 4])
def test_any_fault_of_a_lane_is_judged_as_the_model_judges_it(lanes, seed):
    random = Random(f"{seed} {lanes}")
    rows = list(marked_rows(random_rows(random, 4000, lanes), lanes, PERIOD))
    skews = [random.randrange(DEPTH - 3) for _ in range(lanes)]
    cycles, locks = faulty(settled(arrivals(rows, skews, random, DEPTH - 2), lanes), lanes, random)
    seen = observe(LaneDeskew(lanes, DEPTH, PERIOD), cycles, lanes, locks)
    said = expected(cycles, lanes, locks)
    compare(seen, said)
    assert sum(lost for _, lost, *_ in seen) > 10 and sum(bool(row) for row, *_ in seen) > 200


def test_a_lost_block_ends_the_alignment_at_the_next_marker_and_it_comes_back(seed):
    """Rows with blocks of two rows leave until the slip is seen, which is for one period at most.
    The CRCs of the packets are for these.
    """
    lanes, random = 4, Random(seed)
    sent = random_rows(random, 20 * PERIOD, lanes)
    cycles = settled(
        arrivals(list(marked_rows(sent, lanes, PERIOD)), [0] * lanes, random, 2), lanes
    )
    third = [number for number, blocks in enumerate(cycles) if blocks[2] is not None]
    cycles[third[5 * PERIOD + 3]][2] = None
    seen = observe(LaneDeskew(lanes, DEPTH, PERIOD), cycles, lanes)
    got, whole = [row for row, *_ in seen if row], set(sent)
    wrong = [number for number, row in enumerate(got) if row not in whole]
    assert 0 < len(wrong) < PERIOD and wrong == list(range(wrong[0], wrong[-1] + 1))
    assert sum(lost for _, lost, *_ in seen) >= 1
    # It is aligned again after two periods at the latest, and nothing is missing from there on.
    back = sent.index(got[wrong[-1] + 1])
    assert back - sent.index(got[wrong[0] - 1]) <= 3 * PERIOD
    assert got[wrong[-1] + 1 :] == sent[back:]


def test_crossed_lanes_and_too_much_skew_and_a_dead_lane_never_give_a_row(seed):
    lanes, random = 4, Random(seed)
    rows = list(marked_rows(random_rows(random, 6 * PERIOD, lanes), lanes, PERIOD))
    crossed = [(row[1], row[0], row[2], row[3]) for row in rows]
    late = [(None, *blocks) for blocks in ((r[1], r[2], r[3]) for r in rows[: DEPTH + 2])] + [
        (rows[n][0], *rows[n + DEPTH + 2][1:]) for n in range(len(rows) - DEPTH - 2)
    ]
    dead = [(None, *row[1:]) for row in rows]
    for cycles, crosses in ((crossed, True), (late, False), (dead, False)):
        seen = observe(LaneDeskew(lanes, DEPTH, PERIOD), settled(cycles, lanes), lanes)
        assert not any(row or aligned for row, _, _, aligned in seen)
        assert any(lost for _, lost, *_ in seen)
        assert any(lanes_ == 0b0011 for _, _, lanes_, _ in seen) == crosses


@pytest.mark.parametrize("pace", [1.0, 0.625])
def test_the_sender_puts_a_row_of_markers_in_each_period_and_loses_nothing(pace, seed):
    lanes, random = 4, Random(seed)
    sent = random_rows(random, 400, lanes)
    got, marks, cycles = [], [], [0]
    dut = LaneMarkers(lanes, PERIOD)

    def give():
        for row in sent:
            while pace < 1 and random.random() < 0.2:
                yield dut.sink.valid.eq(0)
                yield
            yield dut.sink.valid.eq(1)
            yield dut.sink.header.eq(sum(b[0] << 2 * n for n, b in enumerate(row)))
            yield dut.sink.data.eq(sum(b[1] << 64 * n for n, b in enumerate(row)))
            yield
            while not (yield dut.sink.ready):
                yield
        yield dut.sink.valid.eq(0)
        for _ in range(12):
            yield

    @passive
    def take():
        while True:
            ready = int(random.random() < pace)
            yield dut.source.ready.eq(ready)
            yield
            cycles[0] += len(got) < len(sent) + len(sent) // (PERIOD - 1)
            if ready and (yield dut.source.valid):
                header, data = (yield dut.source.header), (yield dut.source.data)
                got.append(
                    tuple((header >> 2 * n & 3, data >> 64 * n & 2**64 - 1) for n in range(lanes))
                )
                marks.append((yield dut.marks))

    run_simulation(dut, [give(), take()])
    assert got == list(marked_rows(sent, lanes, PERIOD))
    assert marks == [int(n % PERIOD == 0) for n in range(len(got))]
    if pace == 1.0:
        # A row a cycle: 8 GB/s at 250 MHz, where the lanes take 5.
        assert cycles[0] <= len(got) + 4
