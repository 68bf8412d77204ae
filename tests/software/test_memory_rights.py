"""Memory that may not be written or read, or is unmapped: refused at registration, an error at a
later access.
"""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes
import errno
import mmap
import os
import pathlib
import subprocess

import pytest
from dibber.interface.description import RIGHT
from libdibber.binding import Pages, check, library

from tests.fuzz import sanitized

pytestmark = pytest.mark.fault

PAGE = mmap.PAGESIZE
READS = (RIGHT.LOCAL_READ, RIGHT.REMOTE_READ, RIGHT.LOCAL_READ | RIGHT.REMOTE_READ)
WRITES = (RIGHT.LOCAL_WRITE, RIGHT.REMOTE_WRITE, RIGHT.LOCAL_READ | RIGHT.REMOTE_WRITE, 15)

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype, libc.mmap.argtypes = (
    ctypes.c_void_p,
    [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long],
)
libc.mprotect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
libc.munmap.argtypes = ctypes.c_void_p, ctypes.c_size_t


def pages(count, rights=mmap.PROT_READ | mmap.PROT_WRITE, file=-1):
    """Address of new pages between two pages without rights."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS if file < 0 else mmap.MAP_SHARED
    whole = libc.mmap(None, (count + 2) * PAGE, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    return libc.mmap(whole + PAGE, count * PAGE, rights, flags | 0x10, file, 0)  # MAP_FIXED


def protect(address, count, rights):
    assert libc.mprotect(address, count * PAGE, rights) == 0


def register(mock, address, length, rights):
    """(error or 0, region)."""
    region = ctypes.c_void_p()
    return library().dib_register(
        mock.endpoint._handle, address, length, rights, ctypes.byref(region)
    ), region


def register_pages(mock, addresses, rights):
    listed = Pages(
        memory=(ctypes.c_void_p * len(addresses))(*addresses),
        count=len(addresses),
        shift=12,
        length=len(addresses) * 4096,
    )
    region = ctypes.c_void_p()
    return library().dib_register_pages(
        mock.endpoint._handle, listed, rights, ctypes.byref(region)
    ), region


@pytest.mark.parametrize("rights", READS + WRITES)
def test_read_only_memory_is_taken_for_reading_alone(loaded, rights):
    mock, at = loaded(), pages(3)
    ctypes.memset(at, 7, 3 * PAGE)
    protect(at, 3, mmap.PROT_READ)
    rc, region = register(mock, at + 5, 2 * PAGE, rights)
    assert rc == (0 if rights in READS else -1)
    rc_pages, paged = register_pages(mock, [at, at + 2 * PAGE], rights)
    assert rc_pages == rc
    if rc:
        assert b"cannot be written" in library().dib_last_reason()
        assert mock.device.regions == {}
    for handle in (region, paged):
        check(library().dib_unregister(handle))
    assert ctypes.string_at(at, 3 * PAGE) == bytes([7]) * 3 * PAGE


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("hole", [mmap.PROT_READ, 0, None])
def test_one_page_that_is_not_right_is_found_wherever_it_lies(loaded, hole, place):
    mock, at = loaded(), pages(3)
    if hole is None:
        assert libc.munmap(at + place * PAGE, PAGE) == 0
    else:
        protect(at + place * PAGE, 1, hole)
    assert register(mock, at + 100, 3 * PAGE - 200, RIGHT.REMOTE_WRITE)[0] == -1
    assert register_pages(mock, [at, at + PAGE, at + 2 * PAGE], RIGHT.REMOTE_WRITE)[0] == -1
    assert register(mock, at + 100, 3 * PAGE - 200, RIGHT.LOCAL_READ)[0] == (
        0 if hole == mmap.PROT_READ else -1
    )


def test_memory_around_a_region_does_not_matter(loaded):
    mock, at = loaded(), pages(2)
    for begin, length in ((at, 2 * PAGE), (at + 1, 2 * PAGE - 1), (at, 1), (at + 2 * PAGE - 1, 1)):
        rc, region = register(mock, begin, length, 15)
        assert rc == 0
        check(library().dib_unregister(region))
    for begin, length in (
        (at - 1, 2),
        (at + 2 * PAGE - 1, 2),
        (at + 2 * PAGE, 1),
        (at - PAGE, 1 << 30),
    ):
        assert register(mock, begin, length, 15)[0] == -1


def test_both_ways_to_ask_the_kernel_agree(tmp_path):
    """The question for one mapping is not known before Linux 6.11; then the text of all mappings is
    read.
    """
    source = pathlib.Path(__file__).with_name("protection.c")
    for options in ([], ["-Wl,--wrap=ioctl"]):
        program = sanitized.build([source], tmp_path / "protection", sanitizer="", options=options)
        done = subprocess.run([program], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr


def gone_by_unmapping(at, _):
    assert libc.munmap(at + PAGE, PAGE) == 0


def gone_by_protecting(at, _):
    protect(at + PAGE, 1, 0)


def gone_by_truncating(at, file):
    os.ftruncate(file, PAGE)


@pytest.mark.parametrize("where", [0, 100, PAGE - 8])
@pytest.mark.parametrize("go", [gone_by_unmapping, gone_by_protecting, gone_by_truncating])
def test_a_page_that_goes_away_is_an_error_for_the_card_and_not_the_end_of_the_process(
    loaded, go, where
):
    mock = loaded()
    file = os.memfd_create("shorter")
    os.ftruncate(file, 3 * PAGE)
    at = pages(3, file=file)
    rc, region = register(mock, at, 3 * PAGE, 15)
    check(rc)
    base = mock.device.regions[library().dib_key(region)]["base"]
    ctypes.memset(at, 7, 3 * PAGE)
    go(at, file)
    seen = []

    def on_ring():
        # As when packets arrive: the library has to serve these while it waits for an answer.
        for access in (
            lambda: mock.server.read_memory(base + PAGE + where, 8),
            lambda: mock.server.write_memory(base + PAGE + where, b"12345678"),
            lambda: mock.server.read_memory(base + PAGE - 8, 16),
            lambda: mock.server.write_memory(base + PAGE - 8, bytes(16)),
        ):
            try:
                seen.append(access())
            except OSError as error:
                seen.append(error.errno)
        seen.append(mock.server.read_memory(base + 8, 4))

    bar_read, mock.device.bar_read = (
        mock.device.bar_read,
        lambda *a: (on_ring() if not seen else None, bar_read(*a))[1],
    )
    mock.card.info()
    assert seen == [errno.EFAULT] * 4 + [bytes([7] * 4)]
    check(library().dib_unregister(region))
    os.close(file)


def test_memory_that_becomes_read_only_is_not_written(loaded):
    mock, at = loaded(), pages(1)
    rc, region = register(mock, at, PAGE, 15)
    check(rc)
    base = mock.device.regions[library().dib_key(region)]["base"]
    protect(at, 1, mmap.PROT_READ)
    seen = []

    def write():
        try:
            mock.server.write_memory(base, b"1234")
        except OSError as error:
            seen.append(error.errno)

    bar_read, mock.device.bar_read = (
        mock.device.bar_read,
        lambda *a: (write() if not seen else None, bar_read(*a))[1],
    )
    mock.card.info()
    assert seen == [errno.EFAULT] and ctypes.string_at(at, 4) == bytes(4)
