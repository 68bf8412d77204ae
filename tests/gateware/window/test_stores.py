"""Stores into the window arrive, each byte once and in its order, in as few packets as may be."""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from tests.gateware.window.world import World, control

from dibber.interface.description import OPCODE, C

from tests.gateware.models.window import Page

WIDTHS = (64, 128)


def number(answer):
    status, data = answer
    assert status == 0
    return int.from_bytes(data, "little")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("busy, hold, gaps", [(0.0, 32, 0.0), (0.4, 3, 0.3), (0.8, 200, 0.1)])
def test_random_stores_arrive_once_and_in_order(seed, width, busy, hold, gaps):
    choice = random.Random(f"{seed} {width} {busy}")
    world = World(width, choice, busy)
    lines = [choice.randrange(C.APERTURE_PAGE // 64) * 64 for _ in range(12)]

    def host():
        yield from world.start(hold)
        yield from world.map(3, Page(node=5, key=0xABCD, offset=0x12345))
        yield from world.map(200, Page(node=2, key=0x77, offset=0x7FFF_FFF0_0000))
        for _ in range(220):
            page = choice.choice([3, 200])
            line = choice.choice(lines)
            start = choice.randrange(64)
            count = choice.randrange(1, 65 - start)
            dense = choice.choice([1.0, 1.0, 0.5])
            enables = [choice.random() < dense for _ in range(count)]
            yield from world.store(page * C.APERTURE_PAGE + line + start, enables)
            while choice.random() < gaps:
                yield
        made = world.stores.made()
        assert number((yield from world.load(control(), 4))) == 0
        assert world.stores.all_arrived(made)

    world.run(host())
    assert world.commands == len(world.puts) > 50


@pytest.mark.parametrize("width", WIDTHS)
def test_a_full_line_is_one_packet_whatever_the_order_of_its_parts(seed, width):
    choice = random.Random(f"{seed} {width}")
    world = World(width, choice, busy=0.2)

    def host():
        yield from world.start(hold=255)
        yield from world.map(1, Page(node=1, key=1, offset=0))
        parts = [(line, part) for line in range(7) for part in range(0, 64, 8)]
        choice.shuffle(parts)
        for line, part in parts:
            yield from world.store(C.APERTURE_PAGE + 64 * line + part, [True] * 8)
        yield from world.load(control(), 4)

    world.run(host())
    assert sorted(put.offset for _, put in world.puts) == [64 * n for n in range(7)]
    assert all(put.length == 64 for _, put in world.puts)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_pattern_of_enables_becomes_its_runs(seed, width):
    choice = random.Random(f"{seed} {width}")
    world = World(width, choice, busy=0.1)
    patterns = [[choice.random() < density for _ in range(64)] for density in (0.1, 0.5, 0.9) * 3]
    patterns += [[n == 63 for n in range(64)], [n % 2 == 0 for n in range(64)]]

    def host():
        yield from world.start(hold=255)
        yield from world.map(1, Page(node=1, key=1, offset=0x100))
        for n, enables in enumerate(patterns):
            yield from world.store(C.APERTURE_PAGE + 64 * n, enables)
            yield from world.load(control(), 4)

    world.run(host())
    expected = []
    for n, enables in enumerate(patterns):
        at = 0
        while at < 64:
            if not enables[at]:
                at += 1
                continue
            stop = next((k for k in range(at, 64) if not enables[k]), 64)
            expected.append((0x100 + 64 * n + at, stop - at))
            at = stop
    assert [(put.offset, put.length) for _, put in world.puts] == expected


@pytest.mark.parametrize("width", WIDTHS)
def test_a_partial_line_leaves_after_the_hold_time(seed, width):
    world = World(width, random.Random(seed), busy=0.0)
    times = []

    def host():
        yield from world.start(hold=100)
        yield from world.map(1, Page(node=1, key=1, offset=0))
        begun = world.cycle
        yield from world.store(C.APERTURE_PAGE + 8, [True] * 8)
        for _ in range(200):
            yield
        times.append(world.puts[0][0] - begun)

        # A store to the control page closes it at once.
        begun = world.cycle
        yield from world.store(C.APERTURE_PAGE + 16, [True] * 8)
        yield from world.store(control(), [True] * 4)
        for _ in range(60):
            yield
        times.append(world.puts[1][0] - begun)

    world.run(host())
    assert 100 < times[0] < 125 and times[1] < 30


@pytest.mark.parametrize("width", WIDTHS)
def test_lines_of_64_bytes_and_of_8_leave_faster_than_the_link_takes_them(seed, width):
    """The link takes 26 and 12 cycles for their packets: docs/design/packets.md, overhead."""
    for size, most in (64, 26), (8, 12):
        world = World(width, random.Random(seed), busy=0.0, delay=8)

        def host(world=world, size=size):
            yield from world.start(hold=255)
            yield from world.map(1, Page(node=1, key=1, offset=0))
            for n in range(60):
                yield from world.store(C.APERTURE_PAGE + 64 * n, [True] * size)
            yield from world.load(control(), 4)

        world.run(host())
        cycles = [cycle for cycle, _ in world.puts]
        assert len(cycles) == 60 and (cycles[50] - cycles[10]) / 40 <= most
        print(f"{width} bits, {size} bytes: {(cycles[50] - cycles[10]) / 40} cycles")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_barrier_waits_for_every_store_before_it(seed, width):
    choice = random.Random(f"{seed} {width}")
    world = World(width, choice, busy=0.5, delay=200)
    ends = []

    def host():
        yield from world.start(hold=255)
        yield from world.map(1, Page(node=1, key=1, offset=0))
        yield from world.map(2, Page(node=2, key=2, offset=0))
        for _ in range(25):
            for _ in range(choice.randrange(12)):
                line = choice.choice([1, 2]) * C.APERTURE_PAGE + 64 * choice.randrange(40)
                yield from world.store(line + 8 * choice.randrange(4), [True] * 8)
            made = world.stores.made()
            before = world.producer
            yield from world.ask(control(), 4, 1)
            world.replies.pop(1, None)
            while 1 not in world.replies:
                if choice.random() < 0.01:  # stores behind the barrier
                    yield from world.store(C.APERTURE_PAGE + 64 * choice.randrange(40), [True] * 8)
                else:
                    yield
            assert world.stores.all_arrived(made)
            ends.append(before)

    world.run(host())
    assert len(ends) == 25 and all(c.opcode == OPCODE.PUT_INLINE for _, c in world.puts)
