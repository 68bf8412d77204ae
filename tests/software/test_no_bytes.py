"""Transfers, regions, lists and messages of no bytes: one rule (dibber.h, "Nothing"), and no
misleading reason.
"""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes

import libdibber
import numpy as np
import pytest
from dibber.interface.description import RIGHT, C
from libdibber import Walk
from libdibber.binding import library
from libdibber.walk import List

from tests.software.expect import fails

pytestmark = pytest.mark.fault

NONE = "at least one byte"
GOOD = Walk(1, 8)
LISTS = Walk(1, 8, 0, (), List(2, 8))
ALL = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_WRITE


@pytest.fixture
def quiet(loaded):
    """A mock card; no command may have reached it when the test is over."""
    mock = loaded()
    yield mock
    mock.card.info()  # posted writes have arrived
    assert (1, 1) not in mock.device.doorbells


@pytest.mark.parametrize(
    "transfer",
    [
        lambda e: e.put(1, 0, 1, 0, 0, node=1),
        lambda e: e.put(1, 0, 1, 0, 0, node=1, notice=5),
        lambda e: e.put(1, 1 << 48, 1, 0, 0, node=1),
        lambda e: e.get(1, 0, 1, 0, 0, node=1),
        lambda e: e.send(1, 0, 0, node=1),
        lambda e: e.receive(1, 0, 0, node=1),
        lambda e: e.put_inline(b"", 1, 0, node=1),
        lambda e: e.put_inline(np.empty((0, 5)), 1, 0, node=1),
        lambda e: e.put_indexed(LISTS, LISTS, 0, node=1),
        lambda e: e.get_indexed(LISTS, LISTS, 0, node=1),
        lambda e: e.send_indexed(LISTS, 0, node=1),
        lambda e: e.receive_indexed(LISTS, 0, node=1),
        lambda e: e.put_indexed(
            Walk(1, 8, 0, (), List(2, 0)), Walk(1, 8, 0, (), List(2, 0)), node=1
        ),
        lambda e: e.send_indexed(Walk(1, 8, 0, (), List(2, 0)), node=1),
        lambda e: e.receive_indexed(Walk(1, 8, 0, (), List(2, 0)), node=1),
    ],
)
def test_a_transfer_of_no_bytes_is_refused_and_the_reason_says_so(quiet, transfer):
    with fails("ARGUMENT", NONE):
        transfer(quiet.endpoint)


@pytest.mark.parametrize(
    "walk",
    [
        Walk(1, 0),
        Walk(1, 0, 0, ((2, 8),)),
        Walk(1, 8, 0, ((0, 8),)),
        Walk(1, 8, 0, ((2, 8), (0, 8))),
        Walk(1, 8, 0, ((2, 8), (2, 8), (0, 8))),
        Walk(1, 1 << 31, 0, ((4, 0), (0, 8))),
        Walk(1, 8, 0, ((1 << 31, 0), (1 << 31, 0), (0, 0))),
    ],
)
@pytest.mark.parametrize(
    "transfer",
    [
        lambda e, w: e.put_strided(w, GOOD, node=1),
        lambda e, w: e.put_strided(GOOD, w, node=1),
        lambda e, w: e.get_strided(w, GOOD, node=1),
        lambda e, w: e.get_strided(GOOD, w, node=1),
        lambda e, w: e.send_strided(w, node=1),
        lambda e, w: e.receive_strided(w, node=1),
        lambda e, w: e.put_indexed(w, GOOD, 8, node=1),
        lambda e, w: e.get_indexed(GOOD, w, 8, node=1),
    ],
)
def test_a_block_or_count_of_0_is_named_whatever_the_others_are(quiet, walk, transfer):
    with fails("ARGUMENT", f"a block or count of 0: a transfer has {NONE}"):
        transfer(quiet.endpoint, walk)


@pytest.mark.parametrize(
    "pick",
    [
        lambda a: a[0:0],
        lambda a: a[5:5],
        lambda a: a[:, 0:0],
        lambda a: a[8:],
        lambda a: a[0:0].T,
        lambda a: a[::-1][0:0],
        lambda a: a.reshape(-1)[0:0],
        lambda a: np.empty(0),
        lambda a: np.empty((3, 0, 2)),
        lambda a: np.empty(4, dtype="V0"),
    ],
)
@pytest.mark.parametrize("registered", [True, False])
def test_an_array_without_elements_is_not_called_unregistered(quiet, pick, registered):
    memory = libdibber.alloc(512)
    array = pick(memory.view(np.float64).reshape(8, 8))
    if registered:
        quiet.endpoint.register(memory, ALL)
    for call in (
        lambda: quiet.endpoint.put_array(1, array, node=1),
        lambda: quiet.endpoint.get_array(1, array, node=1),
        lambda: quiet.endpoint.indexed(array, []),
    ):
        with pytest.raises(ValueError, match=f"array has no bytes .*{NONE}"):
            call()


def test_a_walk_over_an_array_without_elements_is_refused(quiet):
    memory = libdibber.alloc(512)
    region = quiet.endpoint.register(memory)
    assert region.holds(memory[0:0])
    with pytest.raises(ValueError, match=NONE):
        region.walk(memory[0:0])


@pytest.mark.parametrize(
    "index", [[], slice(0, 0), slice(5, 2), np.zeros(8, dtype=bool), np.empty(0, dtype=int)]
)
def test_an_index_that_names_no_row_makes_a_transfer_of_no_bytes(quiet, index):
    memory = libdibber.alloc(512)
    quiet.endpoint.register(memory, ALL)
    with quiet.endpoint.indexed(memory.reshape(8, 64), index) as rows:
        for call in (
            lambda: quiet.endpoint.put_array(1, rows, node=1),
            lambda: quiet.endpoint.get_array(1, rows, node=1),
        ):
            with fails("ARGUMENT", NONE):
                call()


@pytest.mark.parametrize(
    "memory", [b"", bytearray(), np.empty(0), np.empty((0, 7)), memoryview(b"")]
)
def test_a_region_of_no_bytes_is_refused(quiet, memory):
    with pytest.raises(ValueError, match="has no bytes"):
        quiet.endpoint.register(memory, RIGHT.LOCAL_READ)


@pytest.mark.parametrize(
    "pages, how", [([1 << 20], dict(length=0)), ([], {}), ([1 << 20], dict(first=4096))]
)
def test_a_region_of_no_pages_or_of_no_bytes_in_them_is_refused(quiet, pages, how):
    with fails("ARGUMENT", "a region of 0 bytes"):
        quiet.endpoint.register_pages(pages, 12, **how)


def test_what_c_says_to_no_bytes(quiet):
    memory, handle = libdibber.alloc(64), ctypes.c_void_p()
    assert (
        library().dib_register(
            quiet.endpoint._handle, memory.ctypes.data, 0, RIGHT.LOCAL_READ, ctypes.byref(handle)
        )
        < 0
    )
    assert library().dib_last_reason() == b"a region of 0 bytes: a region has at least one byte"
    assert library().dib_alloc(0, ctypes.byref(handle)) < 0
    assert library().dib_last_reason() == b"cannot allocate 0 bytes"
    with pytest.raises(ValueError, match="length = 0 is outside 1"):
        libdibber.alloc(0)


def test_a_poll_with_room_for_no_entries_says_so(quiet):
    for poll in (quiet.endpoint.poll, quiet.endpoint.poll_events):
        with pytest.raises(ValueError, match="limit = 0 is outside 1"):
            poll(0)
    entries = (libdibber.binding.Completion * 1)()
    assert library().dib_poll(quiet.endpoint._handle, entries, 0) < 0
    assert library().dib_last_reason() == b"room for 0 entries: at least one is needed"


def test_an_atomic_of_no_bytes_says_what_is_possible(quiet):
    with fails("ARGUMENT", "an atomic of 0 bytes at offset 0x0: 4 and 8 are possible"):
        quiet.endpoint.atomic(libdibber.Opcode.SWAP, 1, 0, 0, node=1, size=0)


def test_no_bytes_of_the_control_programs_memory_are_read_and_written(quiet):
    quiet.card.write_firmware(0, b"")
    assert len(quiet.card.read_firmware(0, 0)) == 0


def test_a_command_as_it_stands_has_a_slots_bytes(quiet):
    with pytest.raises(ValueError, match=f"command has 0 bytes; a slot has {C.SLOT_BYTES}"):
        quiet.endpoint.submit(b"")
