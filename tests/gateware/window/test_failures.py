"""What fails in the window is named, counted, and told by the sequence; nothing hangs."""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from tests.gateware.window.world import World, control

from dibber.interface.description import OPCODE, STATUS, C

from tests.gateware.models.window import Page

WIDTHS = (64, 128)
PAGE = C.APERTURE_PAGE


def sequence(world, owner=0):
    status, data = yield from world.load(control(owner), 4, tag=99)
    assert status == 0
    return int.from_bytes(data, "little")


def failing(seed, width, scenario, **kwargs):
    """Run `scenario(world)`, which yields cycles and returns {register: count} that it expects."""
    world = World(width, random.Random(f"{seed} {width}"), **kwargs)
    seen = []

    def host():
        yield from world.start()
        yield from world.map(1, Page(node=1, key=1, offset=0, owner=2))
        expected = yield from scenario(world)
        for name, count in expected.items():
            assert (yield from world.read(name)) == count, name
        seen.append(True)

    world.run(host())
    assert seen
    return world


@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_that_is_not_mapped_takes_no_store_and_loads_all_ones(seed, width):
    def scenario(world):
        yield from world.store(5 * PAGE, [True] * 8)
        assert (yield from sequence(world)) == 1
        assert (yield from world.load(5 * PAGE + 16, 8)) == (0, b"\xff" * 8)
        assert (yield from sequence(world)) == 2
        return {"UNMAPPED": 2, "LOADS": 0, "PACKETS": 0}

    assert failing(seed, width, scenario).commands == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_without_the_right_takes_no_store_and_loads_all_ones(seed, width):
    def scenario(world):
        yield from world.map(6, Page(node=1, key=1, offset=0, store=False, owner=3))
        yield from world.map(7, Page(node=1, key=1, offset=0, load=False, owner=4))
        yield from world.map(8, Page(node=1, key=1, offset=(1 << 48) - PAGE + 1, owner=5))
        yield from world.store(6 * PAGE, [True] * 8)
        assert (yield from world.load(7 * PAGE, 8)) == (0, b"\xff" * 8)
        yield from world.store(8 * PAGE, [True] * 8)
        for owner, count in (2, 0), (3, 1), (4, 1), (5, 1):
            assert (yield from sequence(world, owner)) == count
        return {"FORBIDDEN": 3}

    assert failing(seed, width, scenario).commands == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_a_refused_store_and_a_refused_load_are_told_to_their_owner(seed, width):
    def refuse(command):
        return STATUS.REMOTE_BAD_KEY if command.offset >= 64 else STATUS.OK

    def scenario(world):
        yield from world.store(PAGE + 8, [True] * 8)
        assert (yield from sequence(world, 2)) == 0
        yield from world.store(PAGE + 64, [True] * 8)
        assert (yield from sequence(world, 2)) == 1
        assert (yield from world.load(PAGE + 72, 4)) == (0, b"\xff" * 4)
        assert (yield from sequence(world, 2)) == 2
        assert (yield from sequence(world, 1)) == 0
        return {"REFUSALS": 2, "LAST": STATUS.REMOTE_BAD_KEY, "LOADS": 0}

    failing(seed, width, scenario, refuse=refuse)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("start, count", [(60, 8), (0, 68), (32, 64), (0, 4096)])
def test_a_load_that_is_too_long_or_crosses_a_line_is_unsupported(seed, width, start, count):
    def scenario(world):
        status, _ = yield from world.load(PAGE + start, count)
        assert status == 1
        assert (yield from sequence(world)) == 1
        return {"MISSHAPED": 1}

    assert failing(seed, width, scenario).commands == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_an_atomic_load_of_another_shape_is_all_ones(seed, width):
    def scenario(world):
        yield from world.map(9, Page(node=1, key=1, offset=0, atomic=True))
        for n, (at, count) in enumerate([(0, 2), (4, 8), (0, 16), (1, 4)]):
            assert (yield from world.load(9 * PAGE + at, count)) == (0, b"\xff" * count)
            assert (yield from sequence(world)) == n + 1
        return {"MISSHAPED": 4}

    assert failing(seed, width, scenario).commands == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_a_full_store_queue_loses_stores_and_every_owner_is_told(seed, width):
    """No cycle waits: the test stores a line in each."""

    def scenario(world):
        world.deaf = True
        room = yield from world.read("ROOM")
        for n in range(1400):
            yield from world.store(PAGE + 64 * (n % 1000), [True] * 8, credit=False)
        left = yield from world.read("ROOM")
        world.deaf = False
        lost = yield from sequence(world, 2)
        assert (yield from sequence(world, 7)) == lost
        # The queue is full; 8 lines are in buffers, SLOTS under way, and some on their way.
        assert room == 512 and left == 0 and 1400 - 512 - 8 - C.SLOTS - 8 <= lost < 1400 - 512
        return {"OVERFLOWS": lost, "STORES": 1400 - lost, "PACKETS": 1400 - lost}

    failing(seed, width, scenario, busy=0.1)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_load_and_a_barrier_without_answer_end_at_their_limit(seed, width):
    def scenario(world):
        yield from world.write("LOAD_LIMIT", 2000)
        world.deaf = True
        begun = world.cycle
        assert (yield from world.load(PAGE, 8)) == (0, b"\xff" * 8)
        assert 2000 <= world.cycle - begun <= 2020
        begun = world.cycle
        assert (yield from world.load(control(2), 4)) == (0, b"\xff" * 4)
        assert 2000 <= world.cycle - begun <= 2020
        # The limit counts from the arrival: what waits behind does not wait twice.
        begun = world.cycle
        for tag in range(5):
            world.replies.pop(tag, None)
            yield from world.ask(PAGE + 8 * tag, 8, tag)
        while not all(tag in world.replies for tag in range(5)):
            yield
        assert world.cycle - begun <= 2200
        # Late answers are not taken for those of other loads.
        for n in range(8):
            world.memory[1, 1, 512 + n] = 0x11 * n
        world.deaf = False
        assert (yield from world.load(PAGE + 512, 8)) == (0, bytes(0x11 * n for n in range(8)))
        assert (yield from sequence(world, 3)) == 7
        return {"LATE": 7, "LOADS": 1}

    failing(seed, width, scenario)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_halt_of_the_control_program_turns_the_window_off_until_it_is_enabled(seed, width):
    def scenario(world):
        world.deaf = True
        for n in range(80):
            yield from world.store(PAGE + 64 * n, [True] * 8)
        yield from world.ask(PAGE, 8, tag=1)
        for _ in range(100):
            yield
        # As `Halt` does: the doorbell's counts become 0, and commands end nowhere.
        yield world.dut.halted.eq(1)
        world.halted = True
        yield
        world.waiting.clear()
        world.producer = world.consumer = world.given = 0
        for _ in range(700):
            yield
        yield world.dut.halted.eq(0)
        yield
        world.halted = False
        world.producer = world.consumer = world.given = 0
        world.stores.stored.clear()
        world.stores.arrived.clear()
        assert world.replies[1][:2] == (0, b"\xff" * 8)
        assert (yield from world.load(control(), 4)) == (0, b"\xff" * 4)
        world.deaf = False
        yield from world.write("CONTROL", 1)
        yield
        lost = yield from sequence(world)
        assert lost >= 2
        yield from world.store(PAGE + 256, [True] * 8)
        assert (yield from sequence(world)) == lost
        assert world.stores.all_arrived(world.stores.made())
        return {}

    failing(seed, width, scenario)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_host_that_opens_the_endpoint_anew_begins_with_the_counts_that_it_writes(seed, width):
    """The former host has gone with stores and a load under way. It did not turn the window off."""

    def scenario(world):
        before = yield from sequence(world)
        world.deaf = True
        for n in range(50):
            yield from world.store(PAGE + 64 * n, [True] * 8)
        yield from world.ask(PAGE, 8, tag=1)
        for _ in range(world.random.randrange(300)):
            yield
        # As the library does: the queue is empty, and all that was rung is passed over.
        world.bells += [("CQ_CONSUMER", 0)]
        while world.bells:
            yield
        for _ in range(100):
            yield
        assert world.consumer == 0, "the doorbell has a former count"
        assert world.replies[1][:2] == (0, b"\xff" * 8)
        # The queue's count of completions starts again; those of before may still come.
        late = len(world.waiting)
        world.begin()
        world.stores.stored.clear()
        world.stores.arrived.clear()
        world.deaf = False
        assert (yield from world.load(control(), 4)) == (0, b"\xff" * 4)
        yield from world.write("CONTROL", 1)
        yield
        lost = yield from sequence(world)
        assert lost > before and late
        for n in range(3 * C.SLOTS):
            yield from world.store(PAGE + 64 * n, [True] * 8)
        assert (yield from sequence(world)) == lost
        assert world.stores.all_arrived(world.stores.made())
        assert (yield from world.load(PAGE + 64, 8))[0] == 0
        # As many completions were taken as commands of this life ended.
        for _ in range(200):
            yield
        assert world.consumer == world.ended == 3 * C.SLOTS + 1
        return {}

    failing(seed, width, scenario)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_window_goes_on_behind_commands_that_others_rang_at_its_endpoint(seed, width):
    def scenario(world):
        world.bells += [("COMMAND_PRODUCER", 77), ("CQ_CONSUMER", 9)]
        while world.bells:
            yield
        for _ in range(100):
            yield
        world.producer = world.given = 77
        assert world.consumer == 9
        world.begin(consumer=9)
        yield from world.write("CONTROL", 1)
        for n in range(2 * C.SLOTS):
            yield from world.store(PAGE + 64 * n, [True] * 8)
        yield from sequence(world)
        for _ in range(100):
            yield
        assert world.stores.all_arrived(world.stores.made())
        assert world.producer == 77 + 2 * C.SLOTS and world.consumer == 9 + world.ended
        return {}

    failing(seed, width, scenario)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_load_that_ends_because_the_window_is_turned_off_is_counted(seed, width):
    """In whatever state of the load that happens."""

    def scenario(world):
        for cycles in range(40):
            before = yield from sequence(world)
            count = yield from world.read("LATE")
            count += yield from world.read("UNMAPPED")
            world.replies.pop(1, None)
            yield from world.ask(PAGE, 8, tag=1)
            for _ in range(cycles):
                yield
            yield from world.write("CONTROL", 0)
            while 1 not in world.replies:
                yield
            yield from world.write("CONTROL", 1)
            for _ in range(100):
                yield
            if world.replies[1][1] == b"\xff" * 8:
                lost.append(cycles)
                after = yield from world.read("LATE")
                after += yield from world.read("UNMAPPED")
                assert after > count, cycles
                assert (yield from sequence(world)) > before, cycles
        return {}

    lost = []
    failing(seed, width, scenario, busy=0.0, delay=20)
    assert len(lost) > 10


@pytest.mark.parametrize("width", WIDTHS)
def test_a_completion_of_no_command_changes_nothing(seed, width):
    def scenario(world):
        for n in range(5):
            cookie = n | (n % 2) << 5
            world.waiting.append((0, cookie, STATUS.TIMEOUT, 0))
        for _ in range(40):
            yield
        yield from world.store(PAGE, [True] * 8)
        assert (yield from sequence(world, 2)) == 0
        return {"REFUSALS": 0}

    world = failing(seed, width, scenario)
    assert [c.opcode for _, c in world.puts] == [OPCODE.PUT_INLINE]
