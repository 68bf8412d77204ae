"""Remote windows of libdibber on a mock card: what reaches the card, and each error that window.h
documents.
"""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes
import errno
import itertools
import os
import pathlib
import random
import resource
import sys
import types

import libdibber
import numpy as np
import pytest
from dibber.interface.description import DOORBELL, RIGHT, STATUS, C
from libdibber import DibberError, binding
from libdibber.binding import WindowOptions, library

from tests.software.mock_card import Card as Plain
from tests.software.mock_vfio_user import (
    DMA_MAP,
    ERROR,
    HEADER,
    REGION_INFO,
    REGION_READ,
    REPLY,
    Server,
)
from tests.software.mock_window import FAULTS, Card

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "software" / "lib" / "man"))

from header import Header  # noqa: E402

FOLDER = ROOT / "software" / "lib" / "include" / "dibber"
FUNCTIONS = Header(FOLDER / "window.h", Header(FOLDER / "dibber.h").errors).functions
PAGE = C.APERTURE_PAGE
BOTH = RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE


@pytest.fixture
def mock(folder, image):
    """mock(kind=Card) → device, server, card, endpoint (1), memory, key, as a namespace."""
    started, numbers = [], itertools.count()

    def start(kind=Card):
        m = types.SimpleNamespace(device=kind())
        path = f"{folder}/w{next(numbers)}"
        m.server = Server(path, m.device, C.BAR0_SIZE, C.CLOCK_MESSAGE)
        m.card = libdibber.Card(f"sim:{path}")
        m.card.load_firmware(image())
        m.endpoint = m.card.endpoint(1)
        m.memory = libdibber.alloc(3 * PAGE)
        m.key = m.endpoint.register(m.memory, BOTH).key
        started.append(m)
        return m

    yield start
    for m in started:
        m.server.tamper = None
        m.card.close()
        m.server.stop()


def test_stores_and_loads_of_any_place_reach_the_region(mock, seed):
    m, choice = mock(), random.Random(seed)
    window = m.endpoint.window(m.key, 2 * PAGE, 24, node=0)
    assert window.array is None
    expected = bytearray(2 * PAGE)
    for _ in range(200):
        width = choice.choice((1, 2, 4, 8))
        at = choice.randrange(2 * PAGE // width) * width
        value = expected[at : at + width] = choice.randbytes(width)
        window.store(at, value)
        at, length = choice.randrange(2 * PAGE), choice.randrange(1, 3000)
        data = choice.randbytes(min(length, 2 * PAGE - at))
        expected[at : at + len(data)] = data
        window.copy(at, data)
        at = choice.randrange(2 * PAGE)
        length = min(choice.randrange(1, 600), 2 * PAGE - at)
        assert window.load(at, length) == expected[at : at + length]
    window.barrier()
    assert m.memory[24 : 24 + 2 * PAGE].tobytes() == expected
    assert not m.memory[:24].any() and not m.memory[24 + 2 * PAGE :].any()


def test_a_store_is_one_access_and_a_copy_leaves_at_its_end(mock):
    m = mock()
    window = m.endpoint.window(m.key, PAGE, node=0)
    window.store(6, b"ab")
    window.check()
    assert m.device.stored == [(6, b"ab")] and m.device.flushes == 0
    window.copy(PAGE - 100, bytes(100))
    window.check()
    assert m.device.flushes == 1
    window.flush()
    window.check()
    assert m.device.flushes == 2


def test_each_entry_has_the_endpoint_as_its_owner_and_none_is_left(mock):
    m = mock()
    m.device.table = {n: (7, 0, 0xF001) for n in (0, 9, 254)}  # of a former program
    other = m.card.endpoint(2)
    one = m.endpoint.window(m.key, PAGE + 1, 8, node=5)
    two = other.window(m.key, 1, node=1, load=False, add=-3)
    three = other.window(m.key, 1, node=1, store=False)
    one.check()
    table = {page: entry for page, entry in m.device.table.items() if entry[2]}
    assert table == {
        0: (m.key, 8, 0xB105),
        1: (m.key, 8 + PAGE, 0xB105),
        2: (m.key, 0, 0xFFFD_F201),
        3: (m.key, 0, 0x9201),
    }
    one.close()
    assert m.endpoint.window(m.key, 1, node=1) and m.device.table[0][1] == 0
    other.close()
    assert [page for page, entry in m.device.table.items() if entry[2]] == [0]
    for window in (two, three):
        with pytest.raises(DibberError, match="the endpoint of this window was closed"):
            window.check()
        window.close()
    m.endpoint.close()
    assert not any(entry[2] for entry in m.device.table.values())
    m.card.close()
    assert list(m.device.queues) == [0] and m.device.window["CONTROL"] == 0
    assert not m.device.regions, "the scratch page is gone, too"


def test_a_window_of_a_card_that_was_closed_says_so_and_closes_once(mock):
    m = mock()
    window = m.endpoint.window(m.key, PAGE, node=0)
    handle, lib = window._handle, library()
    m.card.close()
    name, reason = failed(window.store, 0, b"1")
    assert name == "CLOSED" and reason == "the card of this window was closed"
    assert lib.dib_window_pointer(handle) is None
    assert [lib.dib_window_unmap(handle) for _ in range(2)] == [0, -17]


def test_an_adding_window_adds(mock):
    m = mock()
    window = m.endpoint.window(m.key, PAGE, node=0, add=-2)
    values = [int.from_bytes(window.load(8, 4), "little") for _ in range(3)]
    assert values == [0, 2**32 - 2, 2**32 - 4]
    for offset, length in ((8, 2), (4, 8), (8, 16)):
        with pytest.raises(DibberError, match="misaligned"):
            window.load(offset, length)


def test_no_store_is_made_without_room_in_the_queue(mock):
    m = mock()
    window = m.endpoint.window(m.key, PAGE, node=0)
    window.copy(0, bytes(511 * 8))  # and a word for the flush: the whole queue
    reads = len([1 for command, _ in m.server.messages if command == REGION_READ])
    m.device.full = 5
    window.store(0, bytes(8))
    looks = len([1 for command, _ in m.server.messages if command == REGION_READ]) - reads
    assert looks >= 5 and m.device.full == 0
    window.barrier()


# Faults -------------------------------------------------------------------------------------------


def failed(call, *arguments):
    with pytest.raises(DibberError) as caught:
        call(*arguments)
    return caught.value.name, caught.value.reason


def test_a_revoked_key_is_named_by_barrier_check_and_load_once(mock):
    m = mock()
    window = m.endpoint.window(m.key, PAGE, node=0)
    m.endpoint.regions[0].close()
    for call, arguments in ((window.barrier, ()), (window.check, ()), (window.load, (0, 8))):
        window.store(8, bytes(8))
        name, reason = failed(call, *arguments)
        assert name == "COMMAND" and reason.startswith("REFUSALS, REMOTE_BAD_KEY: ")
        window.check()


def test_ones_that_are_in_memory_are_no_fault(mock):
    m = mock()
    m.memory[:] = 0xFF
    window = m.endpoint.window(m.key, PAGE, node=0)
    assert window.load(3, 61) == b"\xff" * 61


@pytest.mark.parametrize("fault", FAULTS)
def test_each_kind_of_fault_has_its_name(mock, fault):
    m = mock()
    window = m.endpoint.window(m.key, PAGE, node=0)
    window.check()
    m.device.fault(fault, 1, STATUS.REMOTE_BOUNDS)
    name, reason = failed(window.check)
    expected = {"OVERFLOWS": "LIMIT", "LATE": "TIMEOUT", "UNMAPPED": "ARGUMENT"}
    expected |= {"MISSHAPED": "ARGUMENT", "FORBIDDEN": "COMMAND", "REFUSALS": "COMMAND"}
    assert name == expected[fault] and reason.startswith(fault)
    window.check()
    m.device.fault("REFUSALS", 1, STATUS.TIMEOUT)
    assert failed(window.check)[0] == "TIMEOUT"


def test_all_that_changed_is_named_together(mock):
    m = mock()
    window = m.endpoint.window(m.key, PAGE, node=0)
    window.check()
    for fault in FAULTS:
        m.device.fault(fault, 1, STATUS.REMOTE_BAD_HEADER)
    name, reason = failed(window.barrier)
    assert name == "LIMIT" and [
        part.split(":")[0].split(",")[0] for part in reason.split("; ")
    ] == [*FAULTS]


def test_a_fault_of_another_owner_is_not_told(mock):
    m = mock()
    window = m.endpoint.window(m.key, PAGE, node=0)
    m.device.fault("REFUSALS", 2, STATUS.REMOTE_BAD_KEY)
    window.barrier()


def test_a_fault_outlives_another_window_of_its_endpoint(mock):
    m = mock()
    window, other = (m.endpoint.window(m.key, PAGE, node=0) for _ in range(2))
    m.device.fault("REFUSALS", 1, STATUS.REMOTE_BAD_KEY)
    other.close()
    assert failed(window.check)[0] == "COMMAND"
    window.check()


def test_after_a_halt_windows_say_so_and_new_ones_can_be_mapped(mock, image):
    m = mock()
    window = m.endpoint.window(m.key, PAGE, node=0)
    m.device.halt()
    for call in (window.barrier, window.check):
        assert failed(call)[0] == "HALTED"
    assert failed(window.load, 0, 8)[0] == "HALTED"
    window.close()
    m.endpoint.close()
    m.card.load_firmware(image())
    endpoint = m.card.endpoint(1)
    key = endpoint.register(m.memory, BOTH).key
    again = endpoint.window(key, PAGE, node=0)
    again.copy(0, b"again")
    again.barrier()
    assert m.memory[:5].tobytes() == b"again"


@pytest.mark.parametrize("way", ["plain", "no BAR 2", "short"])
def test_a_card_without_a_window_says_so(mock, way):
    m = mock(Plain if way == "plain" else Card)
    if way != "plain":
        m.device.aperture_bytes = 0 if way == "no BAR 2" else PAGE
    name, reason = failed(lambda: m.endpoint.window(m.key, 1, node=0))
    assert name == "NOT_FOUND" and "remote window" in reason
    if way == "plain":
        m.card.endpoint(C.ENDPOINTS - 1)


def test_the_endpoint_of_the_window_is_nobodys(mock):
    m = mock()
    name, reason = failed(m.card.endpoint, C.ENDPOINTS - 1)
    assert name == "IN_USE" and "remote window" in reason


def test_a_window_that_a_former_program_has_used_begins_anew_without_a_halt(mock):
    """The window takes the count of completions that the library writes before it opens."""
    m = mock()
    last = C.ENDPOINT_BASE + (C.ENDPOINTS - 1) * C.ENDPOINT_STRIDE + C.DOORBELL_OFFSET
    m.device.registers[last] = 3  # COMMAND_PRODUCER
    m.device.registers[last + DOORBELL["CQ_CONSUMER"].offset] = 3
    m.device.writes.clear()
    m.endpoint.window(m.key, 1, node=0)
    assert m.device.registers[last + DOORBELL["CQ_CONSUMER"].offset] == 0
    assert last not in [offset for offset, _ in m.device.writes]
    assert C.ENDPOINTS - 1 in m.device.queues


def test_a_card_that_lies_about_its_window_is_refused(mock):
    m = mock()
    for geometry in (3 | 512 << 8, C.ENDPOINTS - 1 | 128 << 8):
        m.device.window["GEOMETRY"] = geometry
        assert failed(lambda: m.endpoint.window(m.key, 1, node=0))[0] == "IDENTITY"
    assert C.ENDPOINTS - 1 not in m.device.queues and len(m.device.regions) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"length": 0},
        {"length": C.APERTURE_BYTES + 1},
        {"offset": 1 << 48},
        {"node": C.NODES},
        {"load": False, "store": False},
    ],
)
def test_a_window_that_makes_no_sense_is_refused(mock, arguments):
    m = mock()
    assert failed(lambda: m.endpoint.window(m.key, **{"length": 1, "node": 0, **arguments}))[0] == (
        "ARGUMENT"
    )


def test_the_binding_checks_its_arguments(mock):
    m = mock()
    window = m.endpoint.window(m.key, PAGE, node=0)
    with pytest.raises(ValueError, match="add = 40000"):
        m.endpoint.window(m.key, 1, node=0, add=40000)
    with pytest.raises(TypeError, match="load = 2"):
        m.endpoint.window(m.key, 1, node=0, load=2)
    with pytest.raises(ValueError, match="not contiguous"):
        window.copy(0, np.zeros((8, 8), dtype=np.uint8)[:, 0])
    with pytest.raises(ValueError, match="offset = -1"):
        window.load(-1, 8)


# Documented errors --------------------------------------------------------------------------------


class Raw:
    """Handles of C on a mock card: card, endpoint (1) and, but for dib_window_map(), a window."""

    def __init__(self, mock, name):
        m = mock()
        self.device, self.server, self.lib, self.python = m.device, m.server, library(), m
        self.card, self.endpoint, self.window = m.card, m.endpoint._handle, ctypes.c_void_p()
        self.options = WindowOptions(key=m.key, length=PAGE, access=3)
        self.length, self.child = 8, False
        if name != "dib_window_map":
            binding.check(
                self.lib.dib_window_map(self.endpoint, self.options, ctypes.byref(self.window))
            )

    def refuse(self, *commands):
        self.server.tamper = lambda command, m: (
            HEADER.pack(
                int.from_bytes(m[:2], "little"), command, HEADER.size, REPLY | ERROR, errno.EIO
            )
            if command in commands
            else None
        )


BYTES = ctypes.create_string_buffer(8)
CALLS = {
    "dib_window_map": lambda r: r.lib.dib_window_map(
        r.endpoint, r.options, ctypes.byref(ctypes.c_void_p())
    ),
    "dib_window_unmap": lambda r: r.lib.dib_window_unmap(r.window),
    "dib_window_store": lambda r: r.lib.dib_window_store(r.window, 0, BYTES, r.length),
    "dib_window_copy": lambda r: r.lib.dib_window_copy(r.window, 0, BYTES, r.length),
    "dib_window_load": lambda r: r.lib.dib_window_load(r.window, 0, BYTES, r.length),
    "dib_window_flush": lambda r: r.lib.dib_window_flush(r.window),
    "dib_window_barrier": lambda r: r.lib.dib_window_barrier(r.window),
    "dib_window_check": lambda r: r.lib.dib_window_check(r.window),
}
VALUES = {"dib_window_pointer"}  # its only error is NULL


def closed(r):
    r.lib.dib_window_unmap(r.window) if r.window else r.python.endpoint.close()


def no_room(r):
    r.device.full = 1 << 60


def use_up_the_room(r):
    """The next store must ask for room. 511 words and the one of the flush."""
    binding.check(r.lib.dib_window_copy(r.window, 0, bytes(4088), 4088))


def of_another_kind(r):
    r.window, r.endpoint = r.endpoint, r.card._handle


def no_descriptor(r):
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (lowest, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    )


def distrusted(r):
    """The control program once did not answer."""
    r.device.silent = True
    assert r.lib.dib_window_map(r.endpoint, r.options, ctypes.byref(ctypes.c_void_p())) == -8
    r.device.silent = False


def no_clock(r):
    r.device.silent, r.device.fail_clock = True, errno.EBUSY


def noticed_halt(r):
    r.device.halt()
    assert r.lib.dib_wait(r.endpoint, 2_000_000) == -20


PROVOKE = {
    "ARGUMENT": of_another_kind,
    "NOT_FOUND": lambda r: setattr(r.device, "aperture_bytes", 0),
    "LIMIT": lambda r: r.device.fault("OVERFLOWS"),
    "NO_FIRMWARE": distrusted,
    "HALTED": lambda r: r.device.halt(),
    "COMMAND": lambda r: r.device.fault("REFUSALS", 1, STATUS.REMOTE_BAD_KEY),
    "TIMEOUT": lambda r: setattr(r.device, "late", True),
    "CLOCK": no_clock,
    "NO_MEMORY": no_descriptor,
    "CLOSED": closed,
    "LOST": lambda r: r.server.disconnect(),
    "PROTOCOL": lambda r: setattr(
        r.server, "tamper", lambda command, _: HEADER.pack(0, command, 3, REPLY, 0)
    ),
    "SYSTEM": lambda r: r.refuse(REGION_READ, REGION_INFO, DMA_MAP),
    "FORKED": lambda r: setattr(r, "child", True),
}
STORES = ("dib_window_store", "dib_window_copy", "dib_window_flush")
HERE = {
    ("dib_window_map", "LIMIT"): lambda r: setattr(r.options, "length", C.APERTURE_BYTES),
    ("dib_window_map", "COMMAND"): lambda r: setattr(
        r.device, "_administer", lambda command: STATUS.IN_USE
    ),
    ("dib_window_map", "HALTED"): noticed_halt,
    **{(name, "TIMEOUT"): no_room for name in STORES},
    ("dib_window_map", "TIMEOUT"): lambda r: setattr(r.device, "silent", True),
}


def test_every_call_is_tried():
    assert set(FUNCTIONS) == set(CALLS) | VALUES


@pytest.mark.fault
@pytest.mark.parametrize(
    "name, error", [(name, error) for name, f in FUNCTIONS.items() for error in f.errors]
)
def test_a_documented_error_comes(mock, name, error):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    r = Raw(mock, name)
    try:
        if name in STORES:
            use_up_the_room(r)
        provoke = HERE.get((name, error)) or PROVOKE[error]
        provoke(r)
        if name == "dib_window_load" and error in ("COMMAND", "LIMIT", "TIMEOUT"):
            r.python.memory[:] = 0xFF  # ones, so that the call looks for a fault
        if r.child:
            child = os.fork()
            if child == 0:
                os._exit(-CALLS[name](r) & 0xFF)
            result = -os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        else:
            result = CALLS[name](r)
        assert result < 0 and binding.ERRORS[-result - 1] == error, r.lib.dib_last_reason()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        r.device.silent, r.device.fail_clock, r.server.tamper = False, 0, None
        r.python.device.full = 0


@pytest.mark.parametrize("name", CALLS)
def test_the_same_call_succeeds_when_nothing_is_wrong(mock, name):
    r = Raw(mock, name)
    assert CALLS[name](r) == 0, r.lib.dib_last_reason()
