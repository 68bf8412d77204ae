"""The flash of the simulator against the one in Python, transfer by transfer; and both against
the datasheets.
"""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes
import pathlib
import random
import subprocess

import pytest

from tests.gateware.models.flash import (
    BUSY,
    DISABLE,
    ENABLE,
    ERASES,
    IDENTITY,
    LATCH,
    PROGRAM,
    PROGRAM4,
    READ,
    READ4,
    STATUS,
    Flash,
    Pins,
)

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZE = 1 << 18
MODEL = """
#include "flash.h"
extern "C" {
void* make(uint32_t size) { return new dibber::Flash(size); }
void drop(void* flash) { delete static_cast<dibber::Flash*>(flash); }
int step(void* flash, int cs_n, int clk, int mosi) {
    return static_cast<dibber::Flash*>(flash)->step(cs_n, clk, mosi); }
void rest(void* flash, uint32_t cycles) {
    while (cycles--) static_cast<dibber::Flash*>(flash)->step(true, false, false); }
int at(void* flash, uint32_t address) { return static_cast<dibber::Flash*>(flash)->at(address); }
}
"""


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flash")
    (folder / "model.cc").write_text(MODEL)
    subprocess.run(
        [
            "g++",
            "-std=c++20",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsanitize=undefined",
            "-fno-sanitize-recover",
            "-shared",
            "-fPIC",
            f"-I{ROOT / 'hw' / 'sim' / 'flash'}",
            "-o",
            folder / "model.so",
            folder / "model.cc",
            ROOT / "hw" / "sim" / "flash" / "flash.cc",
        ],
        check=True,
    )
    library = ctypes.CDLL(str(folder / "model.so"))
    library.make.restype = ctypes.c_void_p
    for name in ("drop", "step", "rest", "at"):
        getattr(library, name).argtypes = [
            ctypes.c_void_p,
            *[ctypes.c_uint32] * {"drop": 0, "step": 3, "rest": 1, "at": 1}[name],
        ]
    return library


class Compiled:
    """The simulator's, as Pins are."""

    def __init__(self, library):
        self.library, self.flash = library, library.make(SIZE)

    def step(self, cs_n, clk, mosi):
        return self.library.step(self.flash, cs_n, clk, mosi)

    def rest(self, cycles=6000):
        self.library.rest(self.flash, cycles)

    def contents(self):
        return bytes(self.library.at(self.flash, n) for n in range(SIZE))


@pytest.fixture
def simulated(compiled):
    model = Compiled(compiled)
    yield model
    compiled.drop(model.flash)


def transfer(pins, sent, bits=0):
    """The answer to bytes and some bits more, which cut the transfer short of a whole byte."""
    answer, miso = 0, pins.step(0, 0, 0)
    for n in range(8 * len(sent) + bits):
        mosi = n < 8 * len(sent) and sent[n // 8] >> 7 - n % 8 & 1
        pins.step(0, 0, mosi)
        answer = answer << 1 | miso
        pins.step(0, 1, mosi)
        miso = pins.step(0, 0, mosi)
    pins.step(1, 0, 0)
    return (answer >> bits).to_bytes(len(sent), "big")


def address(rng, wide):
    return rng.choice(
        [rng.randrange(SIZE), rng.randrange(SIZE // 4096) * 4096, SIZE - rng.randrange(1, 300)]
    ).to_bytes(4 if wide else 3, "big")


def anything(rng):
    """A transfer of any kind, with the latch set before it mostly."""
    kind = rng.choice(
        [
            READ,
            READ4,
            IDENTITY,
            STATUS,
            ENABLE,
            DISABLE,
            PROGRAM,
            PROGRAM,
            PROGRAM4,
            *ERASES,
            0xFF,
            rng.randrange(256),
        ]
    )
    if kind in (READ, READ4):
        return bytes([kind]) + address(rng, kind == READ4) + bytes(rng.randrange(1, 40))
    if kind in (PROGRAM, PROGRAM4):
        return (
            bytes([kind])
            + address(rng, kind == PROGRAM4)
            + rng.randbytes(rng.choice([0, 1, 5, 256, 300]))
        )
    if kind in ERASES:
        return bytes([kind]) + address(rng, ERASES[kind][0] == 4) + bytes(rng.choice([0, 0, 0, 1]))
    if kind in (IDENTITY, STATUS):
        return bytes([kind]) + bytes(rng.randrange(5))
    return bytes([kind])


def test_both_answer_and_hold_the_same(simulated, seed):
    rng = random.Random(seed)
    model = Flash(SIZE, b"\xef\x40\x12")
    pins = Pins(model)
    for _ in range(400):
        sent = anything(rng)
        bits = rng.choice([0, 0, 0, 0, 0, 3])
        if rng.random() < 0.7:
            for side in (pins, simulated):
                transfer(side, bytes([ENABLE]))
        assert transfer(simulated, sent, bits) == transfer(pins, sent, bits), sent
        simulated.rest()
        model.busy = 0
    assert simulated.contents() == bytes(model.data)


class Both:
    """The same transfer to one of them; `rest` lets a change end."""

    def __init__(self, pins, rest):
        self.pins, self.rest = pins, rest

    def __call__(self, *sent):
        return transfer(
            self.pins, b"".join(bytes([part]) if isinstance(part, int) else part for part in sent)
        )


@pytest.fixture(params=["simulator", "Python"])
def flash(request):
    if request.param == "simulator":
        pins = request.getfixturevalue("simulated")
        return Both(pins, pins.rest)
    model = Flash(SIZE, b"\xef\x40\x12", busy=4)
    return Both(Pins(model), lambda: setattr(model, "busy", 0))


def change(flash, *sent):
    flash(ENABLE)
    flash(*sent)
    flash.rest()


def test_programming_clears_bits_and_erasing_sets_those_of_a_sector(flash):
    change(flash, PROGRAM, b"\0\0\0", b"\xf0\x0f")
    change(flash, PROGRAM, b"\0\0\0", b"\xcc\xff")
    assert flash(READ, b"\0\0\0", bytes(3))[4:] == b"\xc0\x0f\xff"
    change(flash, PROGRAM, b"\1\0\0", b"\0")
    change(flash, 0xD8, b"\0\x12\x34")
    assert (
        flash(READ, b"\0\0\0", bytes(3))[4:] == b"\xff\xff\xff"
        and flash(READ, b"\1\0\0\0")[4:] == b"\0"
    )


def test_a_page_wraps_and_of_more_bytes_the_last_ones_count(flash):
    change(flash, PROGRAM, b"\0\1\xfe", b"\1\2\3\4")
    assert (
        flash(READ, b"\0\1\xfe", bytes(2))[4:] == b"\1\2"
        and flash(READ, b"\0\1\0", bytes(2))[4:] == b"\3\4"
    )
    assert flash(READ, b"\0\2\0", bytes(2))[4:] == b"\xff\xff"
    change(flash, PROGRAM, b"\0\3\0", bytes(range(1, 256)) + b"\0" + b"\x55")
    assert flash(READ, b"\0\3\0", bytes(2))[4:] == b"\x55\2"


def test_nothing_changes_without_the_latch_which_each_change_clears(flash):
    flash(PROGRAM, b"\0\0\0", b"\0")
    assert flash(STATUS, 0)[1] == 0
    flash(ENABLE)
    assert flash(STATUS, 0)[1] == LATCH
    flash(DISABLE)
    flash(PROGRAM, b"\0\0\0", b"\0")
    change(flash, PROGRAM, b"\0\0\1", b"\0")
    flash(PROGRAM, b"\0\0\2", b"\0")
    assert flash(STATUS, 0)[1] == 0
    assert flash(READ, b"\0\0\0", bytes(3))[4:] == b"\xff\0\xff"


def test_busy_it_answers_its_status_alone(flash):
    flash(ENABLE)
    flash(0xD8, b"\0\0\0")
    assert flash(STATUS, 0)[1] == BUSY
    assert flash(IDENTITY, bytes(3)) == b"\xff" * 4
    flash(ENABLE)
    flash.rest()
    assert flash(STATUS, 0)[1] == 0 and flash(IDENTITY, bytes(3))[1:] == b"\xef\x40\x12"


def test_the_status_is_repeated_until_it_is_ready(flash):
    flash(ENABLE)
    flash(PROGRAM, b"\0\0\0", b"\0")
    states = flash(STATUS, bytes(60))[1:]
    assert states[0] == BUSY and states[-1] == 0 and states == bytes(sorted(states, reverse=True))
