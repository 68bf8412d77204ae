"""Inline puts, gets, atomics and registers on a mock: arguments and answers."""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes

import libdibber
import numpy as np
import pytest
from dibber.interface.description import ATOMIC, COMMAND, FLAG, INLINE, OPCODE, RIGHT, STATUS, C
from libdibber.binding import check, library

from tests.software.expect import fails
from tests.software.mock_card import decode

ALL = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE


def done(mock):
    """The one completion that must come."""
    assert mock.endpoint.wait(10**9)
    [completion] = mock.endpoint.poll()
    return completion


def last_slot(mock):
    return mock.device.commands[-1][1]


@pytest.mark.parametrize("length", [1, 8, C.INLINE_BYTES])
def test_an_inline_put_carries_its_bytes(loaded, length):
    mock, store = loaded(), libdibber.alloc(4096)
    data = bytes(range(100, 100 + length))
    with mock.endpoint.register(store) as region:
        mock.endpoint.put_inline(
            data, region.key, 17, node=3, tag=5, notice=9, endpoint=2, fence=True
        )
        completion, slot = done(mock), last_slot(mock)
    assert (completion.tag, completion.status, completion.length, completion.node) == (
        5,
        STATUS.OK,
        length,
        3,
    )
    assert (
        bytes(store[17 : 17 + length]) == data
        and not store[:17].any()
        and not store[17 + length :].any()
    )
    command, inline = decode(COMMAND, slot), decode(INLINE, slot)
    assert (command["opcode"], command["flags"], command["endpoint"], command["notice"]) == (
        OPCODE.PUT_INLINE,
        FLAG.NOTICE | FLAG.FENCE,
        2,
        9,
    )
    assert command["levels"] == 0 and inline["block"] == length
    assert bytes(inline["data"]) == data.ljust(64, b"\0")


@pytest.mark.parametrize("data, offset", [(bytes(C.INLINE_BYTES + 1), 0), (b"x", 1 << 48)])
def test_inline_puts_that_make_no_sense(loaded, data, offset):
    with fails("ARGUMENT", "64 are possible"):
        loaded().endpoint.put_inline(data, 1, offset, node=1)


def test_a_get_moves_from_there_to_here(loaded):
    mock = loaded()
    there, here = np.arange(512, dtype="u8"), np.zeros((64, 8), dtype="u8")
    with mock.endpoint.register(there, ALL) as a, mock.endpoint.register(here, ALL) as b:
        mock.endpoint.get_strided(a.walk(there[::8]), b.walk(here[:, 2]), node=1, solicit=True)
        assert done(mock).status == STATUS.OK
        command = decode(COMMAND, last_slot(mock))
        mock.endpoint.get(a.key, 8, b.key, 0, 8, node=1)
        assert done(mock).length == 8
    assert np.array_equal(here[:, 2], there[::8]) and here[0, 0] == 1
    assert (command["opcode"], command["flags"], command["levels"]) == (
        OPCODE.GET,
        FLAG.SOLICIT,
        0x11,
    )
    assert command["source"]["key"] == a.key and command["target"]["key"] == b.key


@pytest.mark.parametrize("first", ["send", "receive"])
def test_a_send_meets_a_receive(loaded, first):
    mock = loaded()
    there, here = np.arange(512, dtype="u8"), np.zeros((64, 8), dtype="u8")
    with mock.endpoint.register(there, ALL) as a, mock.endpoint.register(here, ALL) as b:
        keys = a.key, b.key
        post = {
            "send": lambda: mock.endpoint.send_strided(
                a.walk(there[:240:8]), node=3, endpoint=1, tag=5, fence=True
            ),
            "receive": lambda: mock.endpoint.receive_strided(
                b.walk(here[:, 2]), node=4, endpoint=1, tag=6, solicit=True
            ),
        }
        post.pop(first)()
        assert not mock.endpoint.poll()
        [last] = post.values()
        last()
        assert sorted((e.tag, e.status, e.length, e.node) for e in done_all(mock, 2)) == [
            (5, 0, 240, 3),
            (6, 0, 240, 4),
        ]
        slots = [decode(COMMAND, slot) for endpoint, slot in mock.device.commands if endpoint]
        mock.endpoint.receive(b.key, 0, 8, node=1, endpoint=1)
        mock.endpoint.send(a.key, 8, 9, node=1, endpoint=1)
        assert [STATUS.name_of(e.status) for e in done_all(mock, 2)] == ["TRUNCATED"] * 2
    assert (
        np.array_equal(here[:30, 2], there[:240:8])
        and not here[30:].any()
        and not here[:, :2].any()
    )
    send, receive = sorted(slots, key=lambda slot: slot["opcode"])
    assert (send["opcode"], send["flags"], send["levels"], send["length"]) == (
        OPCODE.SEND,
        FLAG.FENCE,
        1,
        240,
    )
    assert (receive["opcode"], receive["flags"], receive["levels"], receive["length"]) == (
        OPCODE.RECEIVE,
        FLAG.SOLICIT,
        0x10,
        512,
    )
    assert send["source"]["key"] == keys[0] and receive["target"]["key"] == keys[1]
    assert send["target"]["key"] == receive["source"]["key"] == 0


def done_all(mock, count):
    ended = []
    while len(ended) < count:
        assert mock.endpoint.wait(10**9)
        ended += mock.endpoint.poll()
    return ended


@pytest.mark.parametrize("length, offset", [(0, 0), (8, 1 << 48)])
def test_sends_and_receives_that_make_no_sense(loaded, length, offset):
    endpoint = loaded().endpoint
    for call in (endpoint.send, endpoint.receive):
        with fails("ARGUMENT", "source" if call == endpoint.send else "target"):
            call(1, offset, length, node=1)


@pytest.mark.parametrize(
    "opcode, compare, mask, after",
    [
        (OPCODE.FETCH_ADD, 0, 0, 0x1122334455667798),
        (OPCODE.SWAP, 0, 0, 0x10),
        (OPCODE.COMPARE_SWAP, 0x1122334455667788, 0, 0x10),
        (OPCODE.COMPARE_SWAP, 1, 0, 0x1122334455667788),
        (OPCODE.MASKED_SWAP, 0, 0xFF, 0x1122334455667710),
    ],
)
def test_an_atomic_tells_what_was_there(loaded, opcode, compare, mask, after):
    mock, store = loaded(), np.full(4, 0x1122334455667788, dtype="u8")
    with mock.endpoint.register(store, ALL) as region:
        mock.endpoint.atomic(opcode, region.key, 8, 0x10, node=1, compare=compare, mask=mask, tag=7)
        completion, slot = done(mock), last_slot(mock)
    assert (completion.tag, completion.value, completion.length) == (7, 0x1122334455667788, 0)
    assert store[1] == after and store[0] == store[2] == 0x1122334455667788
    atomic = decode(ATOMIC, slot)
    assert (
        atomic["key"],
        atomic["offset"],
        atomic["operand"],
        atomic["compare"],
        atomic["mask"],
    ) == (region.key, 8, 0x10, compare, mask)
    assert decode(COMMAND, slot)["length"] == 8


def test_an_atomic_of_four_bytes(loaded):
    mock, store = loaded(), np.full(4, 0xFFFFFFFE, dtype="u4")
    with mock.endpoint.register(store, ALL) as region:
        mock.endpoint.fetch_add(region.key, 4, 3, node=1, size=4)
        assert done(mock).value == 0xFFFFFFFE
        mock.endpoint.compare_swap(region.key, 4, 1, 5, node=1, size=4)
        assert done(mock).value == 1
    assert list(store) == [0xFFFFFFFE, 5, 0xFFFFFFFE, 0xFFFFFFFE]


@pytest.mark.parametrize(
    "opcode, size, reason",
    [
        (OPCODE.PUT, 8, "no atomic"),
        (OPCODE.SWAP, 2, "4 and 8"),
        (OPCODE.MASKED_SWAP + 1, 8, "no atomic"),
    ],
)
def test_atomics_that_make_no_sense(loaded, opcode, size, reason):
    with fails("ARGUMENT", reason):
        loaded().endpoint.atomic(opcode, 1, 0, 0, size=size, node=1)


def test_flags_are_those_of_the_operation(loaded):
    endpoint = loaded().endpoint
    for call in (
        lambda: endpoint.get(1, 0, 1, 0, 8, node=1, notice=1),
        lambda: endpoint.put_inline(b"x", 1, 0, node=1, checksum=True),
        lambda: endpoint.send(1, 0, 8, node=1, checksum=True),
        lambda: endpoint.receive(1, 0, 8, node=1, notice=1),
        lambda: endpoint.fetch_add(1, 0, 1, node=1, checksum=True),
    ):
        with fails("ARGUMENT", "this operation knows"):
            call()


def test_a_completion_carries_the_checksum(loaded):
    mock = loaded()
    with mock.endpoint.register(libdibber.alloc(4096)) as region:
        mock.device.silent = True
        mock.endpoint.put(region.key, 0, region.key, 64, 8, node=1, checksum=True)
        mock.card.info()  # posted writes have arrived
        [(_, producer)] = mock.device.doorbells[-1:]
        assert (
            decode(COMMAND, bytes(mock.device.slots[1][: C.SLOT_BYTES]))["flags"] == FLAG.CHECKSUM
        )
        mock.device.post(1, producer - 1, length=8, key=0xBEEF)
        assert done(mock).value == 0xBEEF
        mock.device.silent = False


def test_registers_by_name(loaded):
    mock = loaded()
    mock.card.write_register("SCRATCH", 0x12345678)
    assert mock.card.read_register("SCRATCH") == 0x12345678
    assert mock.card.read_register("MAGIC") == C.MAGIC


@pytest.mark.parametrize("offset", [2, C.MSIX_TABLE_BASE, C.ENDPOINT_BASE])
def test_what_is_no_register_of_the_bank(loaded, offset):
    card, value = loaded().card, ctypes.c_uint32()
    for call in (
        lambda: library().dib_register_read(card._handle, offset, value),
        lambda: library().dib_register_write(card._handle, offset, 0),
    ):
        with fails("ARGUMENT", "no register"):
            check(call())
