"""From one host's memory to the other's: send engine, packets handed over whole, scatter engine."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest

from dibber.interface.description import FLAG, PACKET_FLAG, STATUS

from tests.gateware.models.command import command
from tests.gateware.models.cut import cut, packets_of
from tests.gateware.models.deposit_path import (
    LENGTH,
    PUTS,
    SOURCE,
    TARGET,
    Path,
    expected_memory,
    memory,
    walk_of,
)
from tests.gateware.models.walk import touched


@pytest.mark.parametrize("data_width, busy", [(64, 1.0), (128, 0.7), (256, 0.9)])
def test_puts_are_byte_exact(data_width, busy):
    """Every kind of walk on each side; not one byte beside what was asked for is written."""
    flags = FLAG.NOTICE | FLAG.INTERRUPT | FLAG.SOLICIT
    path = Path(
        [(command(s, t, n, node=1, flags=flags, endpoint=4, notice=n), {}) for s, t, n in PUTS],
        data_width,
        busy=busy,
    ).run(lambda p: len(p.arrivals) == len(PUTS))
    assert path.writes.memory == expected_memory(PUTS)
    assert path.ended == [(n, STATUS.OK, 10 * n + 1) for n in range(len(PUTS))]
    assert path.arrivals == [(1, 4, n, n) for _, _, n in PUTS]
    last = PACKET_FLAG.LAST | PACKET_FLAG.NOTICE | PACKET_FLAG.INTERRUPT
    assert path.packets == [
        (1, 5, 10 * n, last | (PACKET_FLAG.FIRST if n == 0 else 0), len(t[3]), 2, n, 0, length)
        for n, (s, t, length) in enumerate(PUTS)
    ]


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_a_long_put_is_cut_into_packets(data_width):
    put = ((1, 3, 600, (1000,), (16,)), (2, 0, 48, (56, 1200), (20, 10)), 9600)
    data = command(*put, flags=FLAG.NOTICE, notice=9)
    path = Path([(data, dict(psn=65535))], data_width).run(lambda p: p.arrivals)
    assert path.writes.memory == expected_memory([put])
    last = PACKET_FLAG.LAST | PACKET_FLAG.NOTICE
    assert [p[2:4] + p[7:] for p in path.packets] == [
        (65535, 0, 0, 4096),
        (0, PACKET_FLAG.FIRST, 4096, 4096),
        (1, last, 8192, 1408),
    ]
    assert path.ended == [(0, STATUS.OK, 2)]


@pytest.mark.parametrize(
    "data_width, length", [(64, 512), (128, 4096), (64, 4097), (128, 0x8001), (256, 4099)]
)
def test_a_transfer_is_cut_where_it_must_be(data_width, length):
    put = ((1, 3, 0, (), ()), (2, 0, 0, (), ()), length)
    path = Path([(command(*put), {})], data_width).run(lambda p: len(p.done) == packets_of(length))
    assert path.writes.memory == expected_memory([put])
    assert [p[7:] for p in path.packets] == cut(length)


def test_a_job_may_start_in_the_middle():
    skip = 4096
    put = ((1, 3, 600, (1000,), (8,)), (2, 0, 48, (56,), (100,)), 4800)
    path = Path([(command(*put), dict(skip=skip, psn=77))], 64).run(
        lambda p: len(p.done) == len(cut(4800, skip))
    )
    source_bytes = [memory(a) for a in touched(walk_of(SOURCE, put[0], 4800))][skip:]
    assert path.writes.memory == dict(
        zip(touched(walk_of(TARGET, put[1], 4800))[skip:], source_bytes)
    )
    assert [p[7:] for p in path.packets] == cut(4800, skip)
    assert path.ended == [(0, STATUS.OK, 77 + len(cut(4800, skip)))]


def bad_jobs():
    """(command, job fields, status) of jobs that are wrong each in one way."""
    target = (2, 0, 0, (), ())
    plain = command((1, 0, 0, (), ()), target, 24)
    return [
        (command((9, 0, 0, (), ()), target, 8), {}, STATUS.BAD_KEY),
        (plain, dict(endpoint=3), STATUS.NOT_OWNER),
        (command((3, 0, 0, (), ()), target, 8), {}, STATUS.NOT_PERMITTED),
        (command((1, LENGTH - 7, 0, (), ()), target, 8), {}, STATUS.BOUNDS),
        (command((1, 8, 8, (-9,), (2,)), target, 16), {}, STATUS.BOUNDS),
        (command((1, 0, 8, (8,), (2,)), target, 24), {}, STATUS.BOUNDS),
        (command((1, 0, 0, (8,), (2,)), target, 16), {}, STATUS.BAD_COUNT),
        (command((1, 0, 8, (8, 8), (2, 0)), target, 16), {}, STATUS.BAD_COUNT),
        (plain[:2] + b"\x07" + plain[3:], {}, STATUS.BAD_LEVELS),
        (plain[:2] + b"\x70" + plain[3:], {}, STATUS.BAD_LEVELS),
        (plain, dict(skip=4096), STATUS.BAD_LENGTH),
    ]


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_bad_jobs_end_with_their_reason(data_width):
    """No packet leaves, what was read for it is void, and a good job after each is done."""
    good = command((1, 0, 0, (), ()), (2, 0, 0, (), ()), 5)
    jobs, ended = [], []
    for data, fields, status in bad_jobs():
        ended += [
            (len(jobs), status, 10 * len(jobs)),
            (len(jobs) + 1, STATUS.OK, 10 * len(jobs) + 11),
        ]
        jobs += [(data, fields), (good, {})]
    path = Path(jobs, data_width).run(lambda p: len(p.done) == len(jobs) // 2)
    assert path.ended == ended
    assert [p[2] for p in path.packets] == [10 * n for n in range(1, len(jobs), 2)]
    assert path.lines == []


def test_the_length_is_the_jobs_whatever_the_slot_says_by_now():
    put = command((1, 0, 0, (), ()), (2, 0, 0, (), ()), 24)
    path = Path([(put[:8] + bytes(4) + put[12:], dict(length=24))], 64).run(lambda p: p.done)
    assert [packet[-1] for packet in path.packets] == [24]


def test_a_read_error_ends_the_transfer_without_a_last_packet():
    """Errors in the first packet, at its start and in it, and in later ones; good jobs go on
    between.
    """
    places, jobs, bad, ended, last = (0, 104, 256, 1000, 4096, 5000), [], set(), [], []
    for place in places:
        n = len(jobs)
        start = 50000 * (n + 1)
        whole = len([begin for begin, size in cut(5600) if begin + size <= place])
        jobs += [
            (command((1, start, 8, (64,), (700,)), (2, 0, 0, (), ()), 5600), {}),
            (command((1, 8, 0, (), ()), (2, 0, 0, (), ()), 24), {}),
        ]
        bad.add(SOURCE + start + place // 8 * 64)
        ended += [(n, STATUS.READ_ERROR, 10 * n + whole), (n + 1, STATUS.OK, 10 * n + 11)]
        last += [0] * whole + [PACKET_FLAG.LAST]
    path = Path(jobs, 64, fault=lambda a: "error" if a in bad else None).run(
        lambda p: len(p.done) == len(last)
    )
    assert path.ended == ended
    assert [p[3] & PACKET_FLAG.LAST for p in path.packets] == last
    assert path.lines == []


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_elements_a_cycle(data_width):
    """8-byte elements from a stride, a read for each: one a cycle, from packet to packet too; 3 %
    for start and end.
    """
    put = ((1, 16 - SOURCE % 16, 8, (72,), (600,)), (2, 0, 0, (), ()), 4800)
    path = Path([(command(*put), dict(psn=1))], data_width, latency=(8, 8), tags=64).run(
        lambda p: p.done
    )
    assert path.cycle[-1] - path.cycle[0] <= 600 * 1.03
