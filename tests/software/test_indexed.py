"""Index lists on a mock: bytes, commands, and refusals of the library and the card."""

# SPDX-License-Identifier: BSD-2-Clause

import libdibber
import numpy as np
import pytest
from dibber.interface.description import COMMAND, FLAG, OPCODE, RIGHT, STATUS, C
from libdibber import List, Walk

from tests.software.expect import fails, matrix
from tests.software.mock_card import decode

ALL = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE


def ended(mock, count=1):
    """Statuses of so many commands."""
    found = []
    while len(found) < count:
        assert mock.endpoint.wait(10**9)
        found += [STATUS.name_of(done.status) for done in mock.endpoint.poll()]
    return found


def numbers(rows, columns):
    array = matrix(rows, columns)
    array[:] = np.arange(rows * columns).reshape(rows, columns)
    return array


# Arrays and indices -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "index",
    [
        [5],
        [3, 60, 0, 3, 3],
        [-1, -64, 7],
        np.arange(64) % 3 == 0,
        slice(50, 3, -7),
        np.array([[1, 2], [3, 4]]),
    ],
)
@pytest.mark.parametrize("columns", [slice(None), slice(3, 4), slice(1, 20, 4), slice(7, 9)])
def test_rows_by_an_index_are_put_and_fetched_as_they_lie(loaded, index, columns):
    mock = loaded()
    source, target, back = numbers(64, 32), matrix(64, 32), matrix(64, 32)
    rows, right = source[:, columns], np.zeros((64, 32), dtype="u8")
    taken = rows[index].reshape(-1, rows.shape[1])
    with (
        mock.endpoint.register(source),
        mock.endpoint.register(target, ALL) as there,
        mock.endpoint.register(back, ALL),
        mock.endpoint.indexed(rows, index) as some,
        mock.endpoint.indexed(back[:, columns], index) as others,
    ):
        mock.endpoint.put_array(there.key, some, 64, node=1)
        mock.endpoint.get_array(there.key, others, 64, node=1)
        assert ended(mock, 2) == ["OK", "OK"]
    assert np.array_equal(target.reshape(-1)[8 : 8 + taken.size], taken.reshape(-1))
    right[:, columns][index] = rows[index]
    assert np.array_equal(back, right)


def test_both_sides_have_lists_and_the_other_node_is_told_its_own(loaded):
    mock = loaded()
    source, target = numbers(64, 4), matrix(64, 4)
    leave, land = (
        np.random.default_rng(1).permutation(64)[:20],
        np.random.default_rng(2).permutation(64)[:20],
    )
    with (
        mock.endpoint.register(source),
        mock.endpoint.register(target),
        mock.endpoint.indexed(source, leave) as here,
        mock.endpoint.indexed(target, land) as there,
    ):
        mock.endpoint.put_array(there.walk, here, node=1)
        assert ended(mock) == ["OK"]
        assert there.walk.length == here.walk.length == 20 * 32
        # The list may be changed between two transfers.
        here.entries[:] = here.entries[::-1].copy()
        mock.endpoint.put_array(there.walk, here, node=1)
        assert ended(mock) == ["OK"]
    right = np.zeros_like(target)
    right[land] = source[leave[::-1]]
    assert np.array_equal(target, right)


def test_an_index_that_the_array_has_not(loaded):
    mock = loaded()
    array = matrix(64, 32)
    with mock.endpoint.register(array):
        with pytest.raises(IndexError):
            mock.endpoint.indexed(array, [64])
        with pytest.raises(ValueError, match="3 stride levels"):
            mock.endpoint.indexed(array.reshape(2, 4, 8, 8, 4)[:, :3, :5, :7, ::2], [0])
    with pytest.raises(ValueError, match="not registered"):
        mock.endpoint.indexed(array, [0])


def test_a_list_is_withdrawn_when_it_is_closed_and_stays_until_then(loaded):
    mock = loaded()
    array = matrix(64, 32)
    with mock.endpoint.register(array):
        some = mock.endpoint.indexed(array, [1, 2])
        assert some.region in mock.endpoint.regions and len(mock.device.regions) == 2
        some.close()
        assert some.region not in mock.endpoint.regions and len(mock.device.regions) == 1


# Walks --------------------------------------------------------------------------------------------


def test_the_command_says_what_was_asked(loaded):
    mock = loaded()
    source = Walk(0x105, 3, 1000, ((5, -7), (2, 100)), List(0x207, 4, 24))
    target = Walk(0x309, 8, 64, (), List(0x40B, 15, 1 << 40))
    mock.endpoint.put_indexed(
        source, target, node=9, notice=0x1234, endpoint=1, checksum=True, fence=True
    )
    mock.endpoint.get_indexed(source, Walk(0x309, 119), 119, node=9)
    mock.endpoint.send_indexed(source, node=9, endpoint=3)
    mock.endpoint.receive_indexed(target, 7, node=9, endpoint=3)
    mock.card.info()
    put, get, send, receive = [
        decode(COMMAND, slot) for endpoint, slot in mock.device.commands if endpoint
    ]
    listed = C.LIST
    assert (put["opcode"], put["levels"], put["length"]) == (
        OPCODE.PUT,
        listed + 2 | listed << 4,
        120,
    )
    assert put["flags"] == FLAG.NOTICE | FLAG.CHECKSUM | FLAG.FENCE and put["notice"] == 0x1234
    assert put["source"] == {
        "key": 0x105,
        "block": 3,
        "offset": 1000,
        "count": (5, 2, 0x207),
        "stride": (0xFFFFFFF9, 0xFFFFFFFF, 100, 0, 24, 0),
    }
    assert put["target"] == {
        "key": 0x309,
        "block": 8,
        "offset": 64,
        "count": (0, 0, 0x40B),
        "stride": (0, 0, 0, 0, 0, 1 << 8),
    }
    assert (get["opcode"], get["levels"], get["length"], get["target"]["block"]) == (
        OPCODE.GET,
        listed + 2,
        119,
        119,
    )
    assert (send["opcode"], send["levels"], send["length"], send["source"]) == (
        OPCODE.SEND,
        listed + 2,
        120,
        put["source"],
    )
    assert (receive["opcode"], receive["levels"], receive["length"]) == (
        OPCODE.RECEIVE,
        listed << 4,
        7,
    )
    assert receive["target"] == put["target"]


def test_messages_between_lists(loaded):
    mock = loaded()
    source, target = numbers(64, 4), matrix(64, 4)
    with (
        mock.endpoint.register(source),
        mock.endpoint.register(target, ALL),
        mock.endpoint.indexed(source, [5, 9, 2]) as some,
        mock.endpoint.indexed(target, [1, 0, 8, 7]) as others,
    ):
        mock.endpoint.receive_indexed(others.walk, node=1, endpoint=1)
        mock.endpoint.send_indexed(some.walk, 80, node=1, endpoint=1)
        assert ended(mock, 2) == ["OK", "OK"]
    right = np.zeros_like(target)
    right[1], right[0], right[8, :2] = source[5], source[9], source[2, :2]
    assert np.array_equal(target, right)


GOOD = Walk(1, 8, 0, (), List(2, 8))


@pytest.mark.parametrize(
    "walk, length, reason",
    [
        (Walk(1, 8, 0, ((2, 8), (2, 8), (2, 8)), List(2, 1)), 64, "3 stride levels under a list"),
        (Walk(1, 8, 0, (), List(2, 8, 4)), 64, "at offset 0x4, no multiple of 8"),
        (Walk(1, 0, 0, (), List(2, 8)), 64, "a block or count of 0"),
        (Walk(1, 8, 0, ((0, 8),), List(2, 8)), 64, "a block or count of 0"),
        (Walk(1, 8, 1 << 48, (), List(2, 8)), 64, "offset 0x1000000000000"),
        (Walk(1, 1 << 31, 0, ((4, 0),), List(2, 8)), 64, "more than 4294967295 bytes"),
        (Walk(1, 63), 64, "has 63 bytes, the transfer 64"),
        (GOOD, 0, "a transfer of 0 bytes"),
    ],
)
def test_sides_that_make_no_sense(loaded, walk, length, reason):
    mock = loaded()
    for side, call in (
        ("source", lambda: mock.endpoint.put_indexed(walk, GOOD, length, node=1)),
        ("target", lambda: mock.endpoint.put_indexed(GOOD, walk, length, node=1)),
        ("source", lambda: mock.endpoint.get_indexed(walk, GOOD, length, node=1)),
        ("source", lambda: mock.endpoint.send_indexed(walk, length, node=1)),
        ("target", lambda: mock.endpoint.receive_indexed(walk, length, node=1)),
    ):
        with fails("ARGUMENT", reason):
            call()
        if "transfer of" not in reason:
            with fails("ARGUMENT", side):
                call()
    mock.card.info()  # posted writes have arrived
    assert (1, 1) not in mock.device.doorbells


def test_walks_of_two_lengths_need_one_to_be_named(loaded):
    mock = loaded()
    with pytest.raises(ValueError, match="64 bytes, the target 63"):
        mock.endpoint.put_indexed(GOOD, Walk(1, 63), node=1)


def test_no_side_at_all(loaded):
    from libdibber.binding import Delivery, library

    mock = loaded()
    side = GOOD.as_side()
    assert library().dib_put_indexed(mock.endpoint._handle, Delivery(), None, side, 64) == -1
    assert b"no source given" in library().dib_last_reason()
    assert library().dib_receive_indexed(mock.endpoint._handle, Delivery(), None, 64) == -1
    assert b"no target given" in library().dib_last_reason()


def test_what_the_card_refuses_comes_in_the_completion(loaded):
    mock, other = loaded(), None
    data, places = libdibber.alloc(4096), libdibber.alloc(64).view("i8")
    places[:] = 16 * np.arange(8)
    other = mock.card.endpoint(2)
    with (
        mock.endpoint.register(data, ALL) as a,
        mock.endpoint.register(places, RIGHT.LOCAL_READ) as here,
        mock.endpoint.register(places, RIGHT.REMOTE_READ) as blind,
        other.register(places, ALL) as foreign,
    ):
        flat = Walk(a.key, 64)
        for places_, status in (
            (List(here.key, 8), "OK"),
            (List(99, 8), "BAD_LIST"),
            (List(here.key, 8, 8), "BAD_LIST"),
            (List(blind.key, 8), "BAD_LIST"),
            (List(foreign.key, 8), "BAD_LIST"),
        ):
            walk = Walk(a.key, 8, 0, (), places_)
            mock.endpoint.put_indexed(walk, flat, node=1)
            mock.endpoint.put_indexed(flat, walk, node=1)
            assert ended(mock, 2) == [status, status if status == "OK" else f"REMOTE_{status}"]
        for entry in (-1, 4089):
            places[7] = entry
            mock.endpoint.put_indexed(Walk(a.key, 8, 0, (), List(here.key, 8)), flat, node=1)
            mock.endpoint.put_indexed(flat, Walk(a.key, 8, 0, (), List(here.key, 8)), node=1)
            assert ended(mock, 2) == ["BOUNDS", "REMOTE_BOUNDS"]
    other.close()
