"""libdibber on a card behind a UART: memory by copies, and all faults of a line."""

# SPDX-License-Identifier: BSD-2-Clause

import os
import random
import termios
import threading
import time

import libdibber
import numpy as np
import pytest
from dibber.interface.description import COMMAND, OPCODE, RIGHT, C

from tests.boards.mock_uart import Bridge
from tests.software.expect import fails
from tests.software.mock_card import Card as MockCard
from tests.software.mock_card import encode, firmware_image

ALL = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE


@pytest.fixture
def bridge():
    bridge = Bridge(MockCard())
    yield bridge
    bridge.unplug()


@pytest.fixture(params=["uri"])
def endpoint(bridge, tmp_path, request):
    """One that is open, on a card whose control program runs."""
    image = tmp_path / "image"
    image.write_bytes(firmware_image())
    with libdibber.Card(getattr(bridge, request.param)) as card:
        card.load_firmware(str(image))
        with card.endpoint(1) as endpoint:
            endpoint.bridge = bridge
            yield endpoint


def finish(endpoint):
    assert endpoint.wait(10**9)
    (completion,) = endpoint.poll()
    return completion.status


# What works ---------------------------------------------------------------------------------------


def test_a_card_says_what_it_is(bridge):
    with libdibber.Card(bridge.uri) as card:
        info = card.info()
        assert (
            info["clock_hz"] == 125_000_000
            and info["copies"] == 1
            and info["shared_bytes"] == 64 * 1024
        )
        card.write_register("SCRATCH", 0x12345678)
        assert card.read_register("SCRATCH") == 0x12345678


def test_bytes_go_where_a_put_says_and_no_other_changes(endpoint, seed):
    rng = random.Random(seed)
    source = np.frombuffer(rng.randbytes(5001), np.uint8).copy()[1:]
    target = libdibber.alloc(9000)
    with endpoint.register(source, ALL) as here, endpoint.register(target, ALL) as there:
        wanted = bytearray(bytes(target))
        for _ in range(20):
            length = rng.randrange(1, 3000)
            start, place = rng.randrange(len(source) - length), rng.randrange(len(target) - length)
            change = rng.randrange(len(source))
            source[change] ^= 0x5A
            endpoint.put(here.key, start, there.key, place, length, node=1)
            assert finish(endpoint) == 0
            wanted[place : place + length] = bytes(source[start : start + length])
            assert bytes(target) == wanted


def test_only_what_changed_is_sent_again(endpoint):
    source, target = libdibber.alloc(8192), libdibber.alloc(4096)
    with endpoint.register(source, ALL) as here, endpoint.register(target, ALL) as there:
        endpoint.put(here.key, 0, there.key, 0, 64, node=1)
        finish(endpoint)
        before = len(endpoint.bridge.requests)
        source[4000] = 1
        endpoint.put(here.key, 4000, there.key, 0, 1, node=1)
        finish(endpoint)
        to_memory = [
            frame
            for frame in endpoint.bridge.requests[before:]
            if frame[2] and frame[7] == C.BRIDGED_MEMORY >> 24
        ]
        assert [frame[3] for frame in to_memory] == [1] and target[0] == 1


def test_an_event_is_not_seen_before_the_bytes_that_it_announces(endpoint, seed):
    """The card goes on writing during a copy: a put and its notice between any two frames."""
    target, rng = libdibber.alloc(8192), random.Random(seed)
    bridge = endpoint.bridge
    with endpoint.register(target, ALL) as there:
        base = bridge.device.regions[there.key]["base"]
        count = 0

        def write():
            nonlocal count
            if count < 40 and not bridge.hold and rng.random() < 0.5:
                count += 1
                bridge.write_memory(base + 200 * (count % 40), count.to_bytes(8, "little"))
                bridge.device.post(1, count, 2, 1, length=8, node=1, key=there.key)

        bridge.answered = lambda frame, reply: write()
        seen = 0
        for _ in range(400):
            for event in endpoint.poll_events():
                seen += 1
                assert event.notice == seen
                assert (
                    int.from_bytes(
                        bytes(target[200 * (seen % 40) : 200 * (seen % 40) + 8]), "little"
                    )
                    >= seen
                )
            if seen == 40:
                break
        assert seen == 40


def test_two_threads_share_a_line(endpoint):
    """Each has an endpoint of its own, and gets its own entries, although a poll of one also
    fetches the other's.
    """
    wrong = []

    def count(endpoint, rounds=30):
        memory = libdibber.alloc(64)
        with endpoint.register(memory, ALL) as region:
            for n in range(rounds):
                endpoint.fetch_add(region.key, 0, 1, node=1)
                while not (done := endpoint.poll()):
                    endpoint.wait(10**8)
                if done[0].status or done[0].value != n or memory[0] != n + 1:
                    wrong.append((endpoint.number, n, done[0], memory[0]))

    with endpoint.card.endpoint(2, own_clock=True) as other:
        threads = [threading.Thread(target=count, args=(one,)) for one in (endpoint, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_a_card_that_writes_without_end_is_held_for_the_moment_of_a_look(endpoint):
    target, bridge = libdibber.alloc(4096), endpoint.bridge
    with endpoint.register(target, ALL) as there:
        base, held = bridge.device.regions[there.key]["base"], []

        def look():
            held.append(bridge.hold)
            if not bridge.hold:
                bridge.write_memory(base, len(held).to_bytes(8, "little"))

        bridge.looked = look
        endpoint.poll()
        assert held == [0, 0, 0, 0, 1] and not bridge.hold
        assert int.from_bytes(bytes(target[:8]), "little") == 4
        bridge.looked = lambda: None


def test_what_came_is_there_when_memory_is_unregistered(endpoint):
    target = libdibber.alloc(4096)
    with endpoint.register(target, ALL) as there:
        endpoint.bridge.write_memory(endpoint.bridge.device.regions[there.key]["base"] + 5, b"late")
    assert bytes(target[5:9]) == b"late"


def test_memory_on_the_card_is_not_without_end(endpoint):
    with fails("LIMIT", "no room for 65536 bytes more in the 64 KiB of memory on the card"):
        endpoint.register(libdibber.alloc(1 << 16), ALL)


def test_there_are_no_interrupts_and_the_reason_says_what_to_do(endpoint):
    with fails("SYSTEM", "dib_wait() looks by itself"):
        endpoint.event_fd()


# What is wrong ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "uri, name, reason",
    [
        ("uart:/dev/none", "NOT_FOUND", "no port /dev/none"),
        ("uart:/dev/null", "NOT_FOUND", "is no serial port"),
        ("uart:/dev/none?baud=fast", "ARGUMENT", "'baud=fast'"),
        ("uart:/dev/none?baud=1000000&x=1", "ARGUMENT", "'x=1'"),
        ("uart:/dev/none?timeout=0", "ARGUMENT", "'timeout=0'"),
    ],
)
def test_a_port_that_is_none(uri, name, reason):
    with fails(name, reason):
        libdibber.Card(uri)


def test_nobody_answers(bridge):
    bridge.answered = lambda frame, reply: b""
    with fails("NOT_FOUND", f"nothing answers at {bridge.port} at 115200 baud"):
        libdibber.Card(f"{bridge.hasty}&baud=115200")


def test_what_answers_is_something_else(bridge):
    bridge.answered = lambda frame, reply: b"login: "
    with fails("IDENTITY", "are no frames of a Dibber card"):
        libdibber.Card(bridge.hasty)


def test_a_line_on_which_something_always_comes_is_given_up(bridge):
    stop = threading.Event()

    def flood():
        while not stop.is_set():
            os.write(bridge.master, b"\xb1rubbish")

    bridge.answered = lambda frame, reply: b""
    noise = threading.Thread(target=flood)
    noise.start()
    try:
        begin = time.monotonic()
        with fails("IDENTITY", "are no frames of a Dibber card"):
            libdibber.Card(bridge.hasty)
        assert time.monotonic() - begin < 60
    finally:
        stop.set()
        while noise.is_alive():  # it may wait for a reader
            termios.tcflush(bridge.slave, termios.TCIFLUSH)
            noise.join(0.01)


@pytest.mark.parametrize("change", [dict(magic=0), dict(size=12345), dict(size=1 << 31)])
def test_a_bridge_that_is_not_ours(bridge, change):
    vars(bridge).update(change)
    with fails("IDENTITY", "a Dibber card's has"):
        libdibber.Card(bridge.uri)


def test_no_card_behind_the_bridge(bridge):
    bridge.device.registers[0] = 0xFFFFFFFF
    with fails("IDENTITY", "BAR 0 begins with 0xffffffff"):
        libdibber.Card(bridge.uri)


def test_a_port_is_one_program_s(bridge):
    with libdibber.Card(bridge.uri), fails("IN_USE", "another program has it"):
        libdibber.Card(bridge.uri)


def damaged(rng, frame):
    """A reply that is lost, cut, changed, or has bytes before it."""
    at = rng.randrange(len(frame))
    return rng.choice(
        [
            b"",
            frame[:at],
            frame[:at] + bytes([frame[at] ^ 1 << rng.randrange(8)]) + frame[at + 1 :],
            rng.randbytes(at) + frame,
        ]
    )


@pytest.mark.parametrize("endpoint", ["hasty"], indirect=True)
def test_damaged_answers_are_asked_for_again_and_no_write_is_made_twice(endpoint, seed):
    rng, bridge = random.Random(seed), endpoint.bridge
    bridge.answered = lambda frame, reply: damaged(rng, reply) if rng.random() < 0.1 else None
    target = libdibber.alloc(64)
    with endpoint.register(target, ALL) as there:
        commands = len(bridge.device.commands)
        for _ in range(5):
            endpoint.fetch_add(there.key, 0, 1, node=1)
            finish(endpoint)
        bridge.answered = lambda frame, reply: None
        endpoint.poll()
        assert target[0] == 5 and len(bridge.device.commands) == commands + 5
    doubled = [a for a, b in zip(bridge.requests, bridge.requests[1:]) if a == b]
    assert doubled


def test_a_card_that_writes_while_it_is_held_is_told(endpoint):
    target, bridge = libdibber.alloc(4096), endpoint.bridge
    with endpoint.register(target, ALL) as there:
        base = bridge.device.regions[there.key]["base"]
        bridge.looked = lambda: bridge.write_memory(base, b"x")
        with fails("PROTOCOL", "writes while it is held"):
            endpoint.poll()
        assert not bridge.hold
        with fails("LOST", "was lost"):
            there.close()


def test_an_adapter_that_is_unplugged(endpoint):
    endpoint.submit(encode(COMMAND, opcode=OPCODE.NOP))
    endpoint.bridge.unplug()
    begin = time.monotonic()
    with fails("LOST", "is gone"):
        endpoint.poll()
    with fails("LOST", "was lost"):
        endpoint.submit(encode(COMMAND, opcode=OPCODE.NOP))
    assert time.monotonic() - begin < 30, "nobody waits for an answer"


@pytest.mark.parametrize("endpoint", ["hasty"], indirect=True)
def test_a_card_that_answers_no_more(endpoint):
    endpoint.bridge.answered = lambda frame, reply: b""
    with fails("LOST", "frames were sent again"):
        endpoint.poll()
