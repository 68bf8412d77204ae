"""Numbers that are wider than their field: an error, and nothing is sent. No number is silently
cut.
"""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes
import pathlib
import subprocess

import pytest
from dibber.interface.description import FLAG, OPCODE, RIGHT, STATUS, C
from libdibber.binding import Atomic, CWalk, Delivery, Pages, library

from tests.gateware.models.flash import Flash
from tests.software.expect import matrix

pytestmark = pytest.mark.fault

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIB = ROOT / "software" / "lib"
ARGUMENT = -1


def test_the_compiler_sees_no_conversion_that_may_lose_bits():
    sources = sorted((LIB / "src").glob("*.c"))
    assert len(sources) > 30
    subprocess.run(
        [
            "cc",
            "-std=c11",
            "-fsyntax-only",
            "-Wall",
            "-Wextra",
            "-Wconversion",
            "-Wsign-conversion",
            "-Werror",
            "-D_POSIX_C_SOURCE=200809L",
            f"-I{LIB}/include",
            f"-I{ROOT}/build/generated",
            *sources,
        ],
        check=True,
    )


CALLS = {
    "put": lambda lib, e, d: lib.dib_put(e, d, 1, 0, 1, 0, 8),
    "put_strided": lambda lib, e, d: lib.dib_put_strided(
        e, d, CWalk(key=1, block=8), CWalk(key=1, block=8)
    ),
    "put_inline": lambda lib, e, d: lib.dib_put_inline(e, d, b"12345678", 1, 0, 8),
}
TWO_SIDED = {
    "send": lambda lib, e, d: lib.dib_send(e, d, 1, 0, 8),
    "receive": lambda lib, e, d: lib.dib_receive(e, d, 1, 0, 8),
    "send_strided": lambda lib, e, d: lib.dib_send_strided(e, d, CWalk(key=1, block=8)),
}


def sends_nothing(mock, call):
    """The call's result; fails if a command went to the card."""
    before, result = len(mock.device.doorbells), call()
    mock.card.info()  # posted writes have come
    assert len(mock.device.doorbells) == before + (result == 0)
    return result


@pytest.mark.parametrize("name", [*CALLS, *TWO_SIDED])
def test_an_endpoint_that_no_card_has(loaded, name):
    mock, call = loaded(), {**CALLS, **TWO_SIDED}[name]
    flags = FLAG.NOTICE if name in CALLS else 0
    run = lambda endpoint, flags: sends_nothing(
        mock,
        lambda: call(
            library(), mock.endpoint._handle, Delivery(node=1, endpoint=endpoint, flags=flags)
        ),
    )
    assert [run(n, flags) for n in (C.ENDPOINTS, 9, 128, 255)] == [ARGUMENT] * 4
    assert run(C.ENDPOINTS - 1, flags) == 0
    if name in CALLS:
        assert run(255, 0) == 0, "without a notice it is not used"


@pytest.mark.parametrize("name", ["operand", "compare", "mask"])
@pytest.mark.parametrize(
    "value, good",
    [
        (0, True),
        (2**32 - 1, True),
        (2**64 - 1, True),
        (2**64 - 2**31, True),
        (2**32, False),
        (2**40, False),
        (2**63, False),
        (2**64 - 2**31 - 1, False),
    ],
)
def test_an_atomic_of_4_bytes_takes_32_bits(loaded, name, value, good):
    mock = loaded()
    opcode = {
        "operand": OPCODE.FETCH_ADD,
        "compare": OPCODE.COMPARE_SWAP,
        "mask": OPCODE.MASKED_SWAP,
    }[name]
    for size in (4, 8):
        atomic = Atomic(opcode=opcode, size=size, key=1, **{name: value})
        result = sends_nothing(
            mock,
            lambda atomic=atomic: library().dib_atomic(
                mock.endpoint._handle, Delivery(node=1), atomic
            ),
        )
        assert result == (0 if good or size == 8 else ARGUMENT)


@pytest.mark.parametrize("length", [2**64 - 4096, 2**64 - 1, 2**32, 2**63])
def test_a_length_of_the_flash_that_wraps(loaded, length):
    mock = loaded()
    mock.card.close()
    mock.device.fit_flash(Flash())
    card, place = ctypes.c_void_p(), ctypes.create_string_buffer(16)
    lib = library()
    assert lib.dib_open(mock.uri.encode(), None, ctypes.byref(card)) == 0
    assert lib.dib_flash_allow(card, 0, 1 << 16) == 0
    assert lib.dib_flash_read(card, 4096, place, length) == ARGUMENT
    assert lib.dib_flash_write(card, 4096, place, length) == ARGUMENT
    assert lib.dib_close(card) == 0


def test_lengths_of_regions_and_counts_of_pages_at_their_ends(loaded):
    mock = loaded()
    lib, region = library(), ctypes.c_void_p()
    for length in (2**48, 2**63, 2**64 - 1):
        assert (
            lib.dib_register(mock.endpoint._handle, 4096, length, 1, ctypes.byref(region))
            == ARGUMENT
        )
    for rights in (0x101, 0x10000 | RIGHT.LOCAL_READ, 2**32 - 1):
        assert (
            lib.dib_register(
                mock.endpoint._handle,
                ctypes.create_string_buffer(64),
                64,
                rights,
                ctypes.byref(region),
            )
            == ARGUMENT
        )
    bus = (ctypes.c_uint64 * 8)()
    for change in (
        dict(length=2**64 - 1),
        dict(first=4095, length=2**64 - 4095),
        dict(shift=2**32 - 1),
        dict(first=2**32 - 1),
    ):
        pages = Pages(**{**dict(bus=bus, count=8, shift=12, length=4096), **change})
        assert (
            lib.dib_register_pages(mock.endpoint._handle, pages, 1, ctypes.byref(region))
            == ARGUMENT
        )


@pytest.mark.parametrize("opcode", [OPCODE.GET, OPCODE.PUT])
def test_the_owner_of_a_target_is_looked_up_when_the_card_refuses_it(loaded, opcode):
    mock = loaded()
    mock.device._execute = lambda *_: STATUS.NOT_PERMITTED
    with (
        mock.card.endpoint(2) as other,
        other.register(matrix(2, 2)) as foreign,
        mock.endpoint.register(matrix(2, 2)) as own,
    ):
        call = mock.endpoint.get if opcode == OPCODE.GET else mock.endpoint.put
        for target, expected in (
            (foreign.key, STATUS.NOT_OWNER if opcode == OPCODE.GET else STATUS.NOT_PERMITTED),
            (own.key, STATUS.NOT_PERMITTED),
            (foreign.key + 256, STATUS.NOT_PERMITTED),
            (0xFF, STATUS.NOT_PERMITTED),
        ):
            call(1, 0, target, 0, 8, node=1)
            mock.endpoint.wait()
            assert [done.status for done in mock.endpoint.poll()] == [expected]
