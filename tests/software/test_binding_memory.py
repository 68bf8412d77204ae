"""Memory that a card can reach lives until it is unregistered or the card is closed, even if the
program drops its references.
"""

# SPDX-License-Identifier: BSD-2-Clause

import array
import gc
import mmap
import struct
import subprocess
import sys
import textwrap
import time
import weakref

import libdibber
import numpy as np
import pytest
from dibber.interface.description import ADMIN, OPCODE, RIGHT, STATUS

from tests.software.mock_card import decode

pytestmark = pytest.mark.fault

ALL = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE


class Tracked(np.ndarray):
    """An array that is watched by a weak reference. A view of one refers to it as
    its base.
    """


def tracked(length, watched):
    """Zeroes on the heap at a page's start, and a weak reference to their owner in `watched`."""
    owner = np.zeros(length + 4096, "u1").view(Tracked)
    watched.append(weakref.ref(owner.base))
    start = -owner.ctypes.data % 4096
    return owner[start : start + length]


# Each makes memory that the card can reach, drops all of its own references, and returns the key.


def _region(endpoint, watched):
    return endpoint.register(tracked(8192, watched), ALL).key


def _region_of_a_view(endpoint, watched):
    return endpoint.register(tracked(8192, watched).view("u4").reshape(64, 32)[32:], ALL).key


def _region_of_a_memoryview(endpoint, watched):
    return endpoint.register(memoryview(tracked(8192, watched)), ALL).key


def _pages(endpoint, watched):
    return endpoint.register_pages(
        [tracked(4096, watched), tracked(4096, watched)], 12, rights=ALL
    ).key


def _pages_with_a_hole(endpoint, watched):
    return endpoint.register_pages(
        [tracked(4096, watched), None, tracked(4096, watched)], 12, rights=ALL
    ).key


def _on_an_endpoint_that_nobody_keeps(endpoint, watched):
    return endpoint.card.endpoint(2).register(tracked(8192, watched), ALL).key


def written_by_the_card(mock, key):
    """Let the card write all bytes of a region (paged or not), as a get would."""
    region = mock.device.regions[key]
    if not region["page"]:
        return mock.server.write_memory(region["base"], b"\x5a" * region["length"])
    size = 1 << region["page"]
    count = region["length"] // size
    for entry in struct.unpack(f"<{count}Q", mock.server.read_memory(region["base"], 8 * count)):
        if not entry & 1:
            mock.server.write_memory(entry, b"\x5a" * size)


REACHABLE = [
    _region,
    _region_of_a_view,
    _region_of_a_memoryview,
    _pages,
    _pages_with_a_hole,
    _on_an_endpoint_that_nobody_keeps,
]


@pytest.fixture
def collecting():
    """Collect garbage at every call and return in the binding."""
    count = [0]

    def profile(frame, event, _):
        if "libdibber" in frame.f_code.co_filename:
            count[0] += 1
            gc.collect()

    gc.collect()
    gc.freeze()  # what was there before costs no time
    sys.setprofile(profile)
    yield count
    sys.setprofile(None)
    gc.unfreeze()


@pytest.mark.parametrize("make", REACHABLE, ids=lambda make: make.__name__.strip("_"))
def test_reachable_memory_lives_with_garbage_collected_between_every_two_calls(
    loaded, collecting, make
):
    mock, watched = loaded(), []
    key = make(mock.endpoint, watched)
    gc.collect()
    assert all(ref() is not None for ref in watched)
    others = [np.zeros(4096, "u1") for _ in range(64)]  # what would lie where freed memory was
    mock.device.on_ring = lambda: written_by_the_card(mock, key)
    mock.endpoint.submit(bytes(128))
    assert mock.endpoint.wait() and mock.endpoint.poll()
    assert all(ref() is not None and (np.asarray(ref()) == 0x5A).any() for ref in watched)
    assert not any(other.any() for other in others)
    assert collecting[0] > 20


def test_an_index_list_lives_though_nobody_keeps_it(loaded, collecting):
    mock = loaded()
    matrix = np.arange(64 * 8, dtype="u1").reshape(64, 8)
    target = np.zeros(64, "u1")
    mock.endpoint.register(matrix, RIGHT.LOCAL_READ)
    key = mock.endpoint.register(target, RIGHT.REMOTE_WRITE).key
    for rows in ([7, 3, 20], [1, 2, 3]):
        mock.endpoint.put_array(key, mock.endpoint.indexed(matrix, rows), node=1)
        gc.collect()
        assert mock.endpoint.wait() and mock.endpoint.poll()[0].status == STATUS.OK
        assert target[:24].tobytes() == matrix[rows].tobytes()


def test_memory_goes_when_it_is_unregistered_and_not_before(loaded):
    mock, watched = loaded(), []
    region = mock.endpoint.register(tracked(8192, watched), ALL)
    pages = mock.endpoint.register_pages([tracked(4096, watched)], 12, rights=ALL)
    mock.endpoint.close()
    gc.collect()
    assert all(ref() is not None for ref in watched), "closing an endpoint withdraws nothing"
    region.close()
    pages.close()
    del region, pages
    gc.collect()
    assert all(ref() is None for ref in watched)


def test_memory_goes_when_the_card_is_closed(serve, image):
    mock, watched = serve(), []
    card = libdibber.Card(mock.uri)
    card.load_firmware(image())
    card.endpoint(1).register(tracked(8192, watched), ALL)
    gc.collect()
    assert watched[0]() is not None
    card.close()
    gc.collect()
    assert watched[0]() is None


def test_memory_that_was_refused_is_not_kept(loaded):
    mock, watched = loaded(), []
    with pytest.raises(libdibber.DibberError):
        mock.endpoint.register(tracked(4096, watched), 16)
    gc.collect()
    assert watched[0]() is None and mock.endpoint.regions == []


@pytest.mark.parametrize(
    "make, change",
    [
        (lambda: bytearray(4096), lambda memory: memory.extend(bytes(4096))),
        (lambda: bytearray(4096), lambda memory: memory.clear()),
        (lambda: array.array("u", "x" * 4096), lambda memory: memory.append("x")),
        (lambda: array.array("d", bytes(4096)), lambda memory: memory.pop()),
        (lambda: np.zeros(4096, "u1"), lambda memory: memory.resize(1 << 24, refcheck=False)),
        (lambda: np.zeros(4096, "u1"), lambda memory: memory.resize(16, refcheck=False)),
        (lambda: mmap.mmap(-1, 4096), lambda memory: memory.close()),
        (lambda: mmap.mmap(-1, 4096), lambda memory: memory.resize(1 << 20)),
    ],
)
def test_memory_is_not_resized_or_closed_while_it_is_registered(loaded, make, change):
    mock = loaded()
    memory = make()
    region = mock.endpoint.register(memory, ALL)
    gc.collect()
    with pytest.raises((BufferError, ValueError)):
        change(memory)
    region.close()
    del region
    gc.collect()
    change(memory)


def test_the_owner_of_a_registered_view_is_not_resized(loaded):
    mock = loaded()
    memory = np.zeros(8192, "u1")
    with mock.endpoint.register(memory[4096:], ALL):
        with pytest.raises(ValueError):
            memory.resize(1 << 24, refcheck=False)


def test_the_temporary_behind_a_put_or_a_message_may_go_at_once(loaded, collecting):
    mock = loaded()
    target = np.zeros(64, "u1")
    key = mock.endpoint.register(target, RIGHT.REMOTE_WRITE).key
    for n in range(8):
        mock.endpoint.put_inline(np.full(8, n + 1, "u1"), key, 8 * n, node=1)
    while sum(8 for _ in mock.endpoint.poll()) and mock.endpoint.wait(1000):
        pass
    assert target.tolist() == [n + 1 for n in range(8) for _ in range(8)]


# The interpreter's end ----------------------------------------------------------------------------


def _run(mock, image, text, timeout=30):
    """Run a program that does not close the card `mock`; returns (exit code, stderr, seconds)."""
    program = textwrap.dedent("""\
        import numpy as np, sys, threading, time
        import libdibber
        from libdibber import Right
        card = libdibber.Card(sys.argv[1])
        card.load_firmware(sys.argv[2])
        endpoint = card.endpoint(1)
        ALL = Right.LOCAL_READ | Right.LOCAL_WRITE | Right.REMOTE_READ | Right.REMOTE_WRITE
        """) + textwrap.dedent(text)
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, mock.uri, image],
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    return done.returncode, done.stderr, time.monotonic() - begin


def _withdrawn(device):
    return [
        decode(ADMIN, command)["key"]
        for endpoint, command in device.commands
        if command[0] == OPCODE.REGION_REMOVE
    ]


@pytest.mark.parametrize(
    "text",
    [
        "endpoint.register(np.zeros(8192, 'u1'), ALL)",
        "endpoint.register_pages([libdibber.alloc(4096)], 12, rights=ALL)",
        "kept = endpoint.register(libdibber.alloc(4096), ALL); del card, endpoint",
        "kept = endpoint.register(libdibber.alloc(4096), ALL); raise SystemExit(0)",
    ],
)
def test_a_program_that_ends_without_closing_withdraws_its_memory_first(serve, image, text):
    mock = serve()
    code, said, _ = _run(mock, image(), text)
    assert (code, said) == (0, "")
    assert len(_withdrawn(mock.device)) == 1


@pytest.mark.parametrize(
    "text",
    [
        # A thread is inside the library: closing would take its card from under it.
        """
    endpoint.register(np.zeros(8192, 'u1'), ALL)
    threading.Thread(target=lambda: endpoint.wait(), daemon=True).start()
    time.sleep(0.2)
    """,
        # The end of the program by an error.
        """
    endpoint.register(np.zeros(8192, 'u1'), ALL)
    threading.Thread(target=lambda: time.sleep(60), daemon=True).start()
    """,
    ],
)
def test_a_program_that_ends_with_a_thread_left_ends_quietly_and_soon(serve, image, text):
    code, said, seconds = _run(serve(), image(), text)
    assert (code, said) == (0, "") and seconds < 15


def test_a_program_that_ends_while_its_card_does_not_answer_ends_soon(serve, image):
    mock = serve()

    def fall_silent():
        mock.device.silent = any(
            command[0] == OPCODE.REGION_ADD for _, command in mock.device.commands
        )

    mock.device.on_ring = fall_silent
    code, said, seconds = _run(mock, image(), "endpoint.register(np.zeros(8192, 'u1'), ALL)")
    assert (code, said) == (0, "") and seconds < 15 and mock.device.silent
