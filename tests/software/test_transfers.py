"""Puts on a mock: bytes, commands, credits, completions and notices."""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes
import errno
import os
import select
import struct

import libdibber
import numpy as np
import pytest
from dibber.interface.description import COMMAND, FLAG, OPCODE, RIGHT, STATUS, C
from libdibber import Walk

from tests.software.expect import fails, matrix
from tests.software.mock_card import decode, encode

# Transfers ----------------------------------------------------------------------------------------


def test_a_strided_put_moves_its_bytes_and_no_others(loaded):
    mock = loaded()
    source, target = matrix(64, 32), matrix(48, 64)
    source[:] = np.arange(64 * 32).reshape(64, 32)
    target[:] = 0xEEEEEEEEEEEEEEEE
    with mock.endpoint.register(source) as a, mock.endpoint.register(target) as b:
        mock.endpoint.put_strided(a.walk(source[:48, 3]), b.walk(target[:, 5]), node=1, tag=1 << 40)
        assert mock.endpoint.wait(10**9)
        [done] = mock.endpoint.poll()
    assert (done.tag, done.status, done.length, done.node) == (1 << 40, STATUS.OK, 48 * 8, 1)
    expected = np.full((48, 64), 0xEEEEEEEEEEEEEEEE, dtype="u8")
    expected[:, 5] = source[:48, 3]
    assert np.array_equal(target, expected)


@pytest.mark.parametrize("clock", [True, False])
def test_any_memory_can_be_registered_at_any_alignment(loaded, clock):
    mock = loaded(clock=clock)
    heap = np.arange(20000, dtype="u1")
    store = np.full(20000, 0xEE, dtype="u1")
    with mock.endpoint.register(heap[3:9001]) as a, mock.endpoint.register(store[5:9003]) as b:
        mock.endpoint.put(a.key, 7, b.key, 11, 8001, node=1)
        assert mock.endpoint.wait(10**9)
        [done] = mock.endpoint.poll()
        assert done.status == STATUS.OK
    expected = np.full(20000, 0xEE, dtype="u1")
    expected[16 : 16 + 8001] = heap[10 : 10 + 8001]
    assert np.array_equal(store, expected)


def test_by_message_the_card_writes_nothing_outside_the_region(loaded):
    mock = loaded()
    store = np.zeros(20000, dtype="u1")
    with mock.endpoint.register(store[5000:5100]) as region:
        base = mock.device.regions[region.key]["base"]
        # The server's thread must answer a request for the write to be tried there.
        seen = []

        def poke(command, message):
            if not seen:
                for address in (base - 1, base + 100):
                    try:
                        mock.server.write_memory(address, b"x")
                        seen.append(0)
                    except OSError as error:
                        seen.append(error.errno)

        mock.server.tamper = poke
        mock.card.info()
        mock.server.tamper = None
    assert seen == [errno.EFAULT, errno.EFAULT] and not store.any()


def test_an_array_is_put_and_fetched_as_it_lies(loaded):
    mock = loaded()
    source, target, back = matrix(64, 32), matrix(4, 32), matrix(64, 32)
    source[:] = np.arange(64 * 32).reshape(64, 32)
    rights = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
    with (
        mock.endpoint.register(source),
        mock.endpoint.register(target, rights) as b,
        mock.endpoint.register(back, rights) as c,
    ):
        mock.endpoint.put_array(b.key, source[:, 3], 256, node=1)
        mock.endpoint.put_array(c.walk(back[::-1, 7]), source[:, 5], node=1)
        mock.endpoint.get_array(b.key, back[:, 1], 256, node=1)
        assert [done.status for done in all_of(mock, 3)] == [STATUS.OK] * 3
        assert np.array_equal(target.reshape(-1)[32:96], source[:, 3]) and np.array_equal(
            back[:, 1], source[:, 3]
        )
        assert np.array_equal(back[::-1, 7], source[:, 5])
    for array in (source[:, 3], np.zeros(4)):
        with pytest.raises(ValueError, match="not registered"):
            mock.endpoint.put_array(b.key, array, node=1)


def all_of(mock, count):
    done = []
    while len(done) < count:
        assert mock.endpoint.wait(10**9)
        done += mock.endpoint.poll()
    return done


def test_one_put_is_one_slot_and_one_doorbell_at_any_element_count(loaded):
    mock = loaded()
    for count in (10, 10_000):
        memory = libdibber.alloc(count * 64)
        with mock.endpoint.register(memory) as region:
            mock.card.info()  # posted writes have arrived
            del mock.device.writes[:], mock.device.doorbells[:]
            walk = Walk(region.key, 8, 0, ((count, 64),))
            mock.device.silent = True
            mock.endpoint.put_strided(walk, walk, node=1)
            mock.card.info()
            page = C.ENDPOINT_BASE + C.ENDPOINT_STRIDE
            slots = [w for w in mock.device.writes if page <= w[0] < page + C.DOORBELL_OFFSET]
            assert slots == [(slots[0][0], C.SLOT_BYTES)] and len(mock.device.writes) == 2
            assert [d[0] for d in mock.device.doorbells] == [1]
            mock.device.silent = False
            mock.device._take_commands(1, mock.device.doorbells[0][1])
            mock.endpoint.wait(10**9)
            assert len(mock.endpoint.poll()) == 1


def test_the_library_never_touches_payload(loaded):
    # A read or write of a page without rights would end this process.
    mock = loaded()
    memory = libdibber.alloc(1 << 20)
    libc = ctypes.CDLL(None, use_errno=True)
    with mock.endpoint.register(memory) as region:
        walk = Walk(region.key, 8, 0, ((10_000, 64),))
        assert libc.mprotect(ctypes.c_void_p(memory.ctypes.data), ctypes.c_size_t(1 << 20), 0) == 0
        mock.endpoint.put_strided(walk, walk, node=1)
        mock.endpoint.put(region.key, 0, region.key, 4096, 4096, node=1)
        mock.endpoint.wait(10**9)
        done = mock.endpoint.poll()
        assert libc.mprotect(ctypes.c_void_p(memory.ctypes.data), ctypes.c_size_t(1 << 20), 3) == 0
    assert done and done[0].status == STATUS.OK


def test_the_command_says_what_was_asked(loaded):
    mock = loaded()
    with mock.endpoint.register(libdibber.alloc(1 << 16)) as region:
        source = Walk(region.key, 3, 1000, ((5, -7), (2, 100), (4, 1 << 12)))
        target = Walk(region.key, 120, 64)
        mock.endpoint.put_strided(
            source, target, node=9, notice=0x1234, endpoint=1, interrupt=True, solicit=True
        )
        mock.card.info()
        command = decode(COMMAND, mock.device.commands[-1][1])
        assert mock.endpoint.wait(0)
        mock.endpoint.poll()
    assert command["opcode"] == OPCODE.PUT and command["levels"] == 3 and command["length"] == 120
    assert command["flags"] == FLAG.NOTICE | FLAG.INTERRUPT | FLAG.SOLICIT
    assert (command["node"], command["endpoint"], command["notice"]) == (9, 1, 0x1234)
    assert (
        command["source"]["block"],
        command["source"]["offset"],
        command["source"]["count"],
    ) == (3, 1000, (5, 2, 4))
    assert command["source"]["stride"] == (0xFFFFFFF9, 0xFFFFFFFF, 100, 0, 4096, 0)
    assert (command["target"]["block"], command["target"]["offset"]) == (120, 64)


@pytest.mark.parametrize(
    "source, target, reason",
    [
        (Walk(1, 8, 0, ((4, 8),)), Walk(1, 8, 0, ((5, 8),)), "32 bytes, the target 40"),
        (Walk(1, 0), Walk(1, 0), "source: a block or count of 0"),
        (Walk(1, 8), Walk(1, 8, 0, ((0, 8),)), "target: a block or count of 0"),
        (Walk(1, 8, 1 << 48), Walk(1, 8), "offset"),
        (Walk(1, 1 << 31, 0, ((2, 0),)), Walk(1, 8), "more than"),
        (Walk(1, 1 << 31, 0, ((1 << 31, 0), (1 << 31, 0), (4, 0))), Walk(1, 8), "more than"),
    ],
)
def test_walks_that_make_no_sense(loaded, source, target, reason):
    mock = loaded()
    with fails("ARGUMENT", reason):
        mock.endpoint.put_strided(source, target, node=1)
    mock.card.info()  # posted writes have arrived
    assert (1, 1) not in mock.device.doorbells


def test_too_many_levels_are_refused_by_the_library_too(loaded):
    from libdibber.binding import Delivery, library

    mock = loaded()
    walk = Walk(1, 8).as_c()
    walk.levels = 4
    assert library().dib_put_strided(mock.endpoint._handle, Delivery(), walk, walk) == -1
    assert b"4 stride levels" in library().dib_last_reason()


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (dict(length=0), "0 bytes"),
        (dict(source_offset=1 << 48), "offset"),
        (dict(target_offset=1 << 60), "offset"),
        (dict(interrupt=True), "NOTICE"),
    ],
)
def test_puts_that_make_no_sense(loaded, arguments, reason):
    defaults = dict(source_key=1, source_offset=0, target_key=1, target_offset=0, length=8, node=1)
    with fails("ARGUMENT", reason):
        loaded().endpoint.put(**{**defaults, **arguments})


def test_what_the_card_refuses_comes_in_the_completion_and_the_next_command_works(loaded):
    mock = loaded()
    with (
        mock.endpoint.register(libdibber.alloc(4096)) as a,
        mock.endpoint.register(libdibber.alloc(4096), RIGHT.LOCAL_READ) as b,
    ):
        for source, target, length, status in (
            (99, a.key, 8, STATUS.BAD_KEY),
            (a.key, 99, 8, STATUS.REMOTE_BAD_KEY),
            (a.key, a.key, 5000, STATUS.BOUNDS),
            (a.key, b.key, 8, STATUS.REMOTE_NOT_PERMITTED),
            (a.key, a.key, 8, STATUS.OK),
        ):
            mock.endpoint.put(source, 0, target, 0, length, node=1, tag=status)
            assert mock.endpoint.wait(10**9)
            [done] = mock.endpoint.poll()
            assert done.status == status == done.tag


def test_a_command_as_it_stands(loaded):
    mock = loaded()
    for opcode, status in ((0x77, STATUS.BAD_OPCODE), (OPCODE.NOP, STATUS.OK)):
        mock.endpoint.submit(encode(COMMAND, opcode=opcode), tag=5)
        assert mock.endpoint.wait(10**9)
        [done] = mock.endpoint.poll()
        assert (done.status, done.tag) == (status, 5)


def test_slots_are_credits(loaded):
    mock = loaded()
    mock.device.silent = True
    for i in range(C.SLOTS):
        mock.endpoint.submit(encode(COMMAND), tag=i)
    with fails("AGAIN", "32 commands are under way"):
        mock.endpoint.submit(encode(COMMAND), tag=99)
    mock.card.info()  # posted writes have arrived
    mock.device.silent = False
    mock.device._take_commands(1, C.SLOTS)
    assert [c.tag for c in mock.endpoint.poll(5)] == [0, 1, 2, 3, 4]
    for i in range(5):
        mock.endpoint.submit(encode(COMMAND), tag=100 + i)
    with fails("AGAIN", "under way"):
        mock.endpoint.submit(encode(COMMAND))
    tags = []
    while len(tags) < 32:
        tags += [c.tag for c in mock.endpoint.poll()]
    assert tags == [*range(5, 32), *range(100, 105)]


def test_a_queue_is_used_again_and_again(loaded):
    mock = loaded()
    for i in range(300):
        mock.endpoint.submit(encode(COMMAND), tag=i)
        assert mock.endpoint.wait(10**9)
        assert [c.tag for c in mock.endpoint.poll()] == [i]
    consumer = C.ENDPOINT_BASE + C.ENDPOINT_STRIDE + C.DOORBELL_OFFSET + 4
    mock.card.info()
    assert 300 - mock.device.registers[consumer] < 32


def test_a_completion_of_nothing_is_reported(loaded):
    mock = loaded()
    mock.device.post(1, 7)
    with fails("PROTOCOL", "not under way"):
        mock.endpoint.poll()
    mock.endpoint.submit(encode(COMMAND), tag=3)
    mock.endpoint.wait(10**9)
    assert [c.tag for c in mock.endpoint.poll()] == [3]


# Notices ------------------------------------------------------------------------------------------


def test_a_notice_comes_with_its_value_and_its_interrupt(loaded):
    mock = loaded()
    memory = libdibber.alloc(4096)
    fd = mock.endpoint.event_fd()
    assert mock.endpoint.event_fd() == fd
    with mock.endpoint.register(memory) as region:
        mock.endpoint.put(
            region.key, 0, region.key, 64, 8, node=2, notice=0xABCD, endpoint=1, interrupt=True
        )
        assert mock.endpoint.wait(10**9)
        [event] = mock.endpoint.poll_events()
        assert (event.notice, event.length, event.key, event.node, event.overruns) == (
            0xABCD,
            8,
            region.key,
            2,
            0,
        )
        assert select.select([fd], [], [], 600)[0] == [fd]
        assert struct.unpack("<Q", os.read(fd, 8))[0] == 1
        assert [c.status for c in mock.endpoint.poll()] == [STATUS.OK]


def test_nothing_to_poll(loaded):
    for clock in (True, False):
        mock = loaded(clock=clock)
        assert mock.endpoint.poll() == [] and mock.endpoint.poll_events() == []
        assert mock.endpoint.wait(1000) is False
