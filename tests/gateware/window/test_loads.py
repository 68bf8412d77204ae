"""Loads of the window get what lies at the other node, behind the stores before them."""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from tests.gateware.window.world import World

from dibber.interface.description import OPCODE, C

from tests.gateware.models.window import Page

WIDTHS = (64, 128, 256)
PAGE = C.APERTURE_PAGE


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("busy", [0.0, 0.5])
def test_loads_of_1_to_64_bytes_return_what_is_there(seed, width, busy):
    choice = random.Random(f"{seed} {width} {busy}")
    world = World(width, choice, busy)

    def host():
        yield from world.start()
        yield from world.map(4, Page(node=6, key=0x99, offset=0x10_0003))
        for n in range(PAGE):
            world.memory[6, 0x99, 0x10_0003 + n] = choice.randrange(256)
        for turn in range(90):
            start = choice.randrange(64)
            count = choice.randrange(1, 65 - start) if turn < 60 else choice.choice([1, 2, 4])
            count = min(count, 64 - start)
            line = 64 * choice.randrange(PAGE // 64)
            status, data = yield from world.load(4 * PAGE + line + start, count, tag=turn)
            expected = [world.memory[6, 0x99, 0x10_0003 + line + start + n] for n in range(count)]
            assert status == 0 and list(data) == expected

    world.run(host())
    assert world.commands == 90


@pytest.mark.parametrize("width", WIDTHS)
def test_a_load_is_answered_when_its_bytes_have_passed_and_before_its_command_ends(seed, width):
    choice = random.Random(f"{seed} {width}")
    world = World(width, choice, busy=0.3)

    def host():
        yield from world.start()
        yield from world.map(1, Page(node=1, key=1, offset=0))
        for n in range(4096):
            world.memory[1, 1, n] = choice.randrange(256)
        world.unended = True
        for tag in range(C.SLOTS):
            start = choice.randrange(64)
            count = choice.randrange(1, 65 - start)
            at = 64 * choice.randrange(64) + start
            status, data = yield from world.load(PAGE + at, count, tag=tag)
            assert (status, list(data)) == (0, [world.memory[1, 1, at + n] for n in range(count)])
        # No slot is free until commands have ended.
        yield from world.ask(PAGE, 8, tag=99)
        for _ in range(400):
            yield
        assert 99 not in world.replies and len(world.waiting) == C.SLOTS
        world.unended = False
        while 99 not in world.replies:
            yield
        assert world.replies[99] == (0, bytes(world.memory[1, 1, n] for n in range(8)), 8)

    world.run(host())


@pytest.mark.parametrize("width", WIDTHS)
def test_a_load_sees_every_store_before_it(seed, width):
    choice = random.Random(f"{seed} {width}")
    world = World(width, choice, busy=0.3)

    def host():
        yield from world.start(hold=255)
        yield from world.map(1, Page(node=1, key=1, offset=0))
        for turn in range(60):
            at = PAGE + 64 * choice.randrange(4) + 8 * choice.randrange(8)
            for _ in range(choice.randrange(4)):
                other = PAGE + 64 * choice.randrange(4) + 8 * choice.randrange(8)
                yield from world.store(other, [True] * 8)
            yield from world.store(at, [True] * 8)
            status, data = yield from world.load(at, 8, tag=turn)
            where = [(1, 1, at - PAGE + n) for n in range(8)]
            assert status == 0 and all(
                world.stores.arrived[w] == world.stores.stored[w] for w in where
            )
            assert list(data) == [world.memory[w] for w in where]

    world.run(host())


@pytest.mark.parametrize("width", WIDTHS)
def test_an_atomic_load_adds_and_returns_the_value_before(seed, width):
    world = World(width, random.Random(seed), busy=0.2)
    seen = []

    def host():
        yield from world.start()
        yield from world.map(1, Page(node=1, key=1, offset=0, atomic=True, addend=-1))
        yield from world.map(2, Page(node=1, key=1, offset=0, atomic=True, addend=300))
        for page, at, count in (2, 8, 8), (2, 8, 8), (1, 8, 8), (2, 20, 4), (2, 20, 4), (2, 24, 4):
            status, data = yield from world.load(page * PAGE + at, count)
            seen.append((status, int.from_bytes(data, "little")))

    world.run(host())
    assert seen == [(0, 0), (0, 300), (0, 600), (0, 0), (0, 300), (0, 0)]


@pytest.mark.parametrize("width", WIDTHS)
def test_reads_that_wait_are_answered_in_their_order_with_their_own_tags(seed, width):
    world = World(width, random.Random(seed), busy=0.2, delay=20)

    def host():
        yield from world.start()
        yield from world.map(1, Page(node=1, key=1, offset=0))
        for n in range(40 * 8):
            world.memory[1, 1, n] = n * 7 & 0xFF
        for n in range(40):
            yield from world.ask(PAGE + 8 * n, 8, tag=n)
        for _ in range(20_000):
            if len(world.replies) == 40:
                break
            yield

    world.run(host())
    for n in range(40):
        assert world.replies[n] == (0, bytes((8 * n + k) * 7 & 0xFF for k in range(8)), 8)
    assert list(world.replies) == list(range(40))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_read_of_no_bytes_is_answered_and_asks_no_node(seed, width):
    world = World(width, random.Random(seed))
    seen = []

    def host():
        yield from world.start()
        seen.append((yield from world.load(5 * PAGE, 0)))

    world.run(host())
    assert seen == [(0, b"\0")] and world.commands == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_no_byte_of_an_older_command_goes_with_a_get(seed, width):
    """The card sends the whole slot of a get to the other node."""
    world = World(width, random.Random(seed), busy=0.0)
    slots = []

    def host():
        yield from world.start(hold=0)
        yield from world.map(1, Page(node=1, key=1, offset=0))
        for n in range(2 * C.SLOTS):
            yield from world.store(PAGE + 64 * n, [True] * 64)
        yield from world.load(PAGE, 8)
        slot = (world.producer - 1) % C.SLOTS
        slots.append(bytes(world.slots[slot * C.SLOT_BYTES : (slot + 1) * C.SLOT_BYTES]))

    world.run(host())
    assert slots[0][0] == OPCODE.GET and slots[0][92:] == bytes(36) and slots[0][40:76] == bytes(36)
