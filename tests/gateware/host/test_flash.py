"""The way to the flash, behind the host's registers, with a flash in Python at its pins."""

# SPDX-License-Identifier: BSD-2-Clause

import random
import struct

import pytest

from migen import Signal

from litex.gen import LiteXModule

from dibber.host.flash import FlashPort, flash_pads
from dibber.interface.description import C, COUNTERS, HOST
from dibber.mcp.host_registers import HostRegisters

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.flash import ENABLE, IDENTITY, LATCH, PROGRAM, READ, STATUS, Flash, Pins
from tests.gateware.models.lines import LineDriver

FIELDS = {f.name: f for f in HOST["FLASH_TRANSFER"].fields}


class Bench(LiteXModule):
    """Both at one port, as in the core, and a flash."""

    def __init__(self, data_width, divider=6):
        self.pads = flash_pads(1e6)
        self.flash = flash = FlashPort(data_width, divider * 1e6, self.pads)
        self.identity = identity = HostRegisters(
            data_width, 125e6, {name: Signal() for name, _ in COUNTERS}, "ecpix5", flash
        )
        self.comb += [
            getattr(identity.port, name).eq(getattr(flash.port, name))
            for name in ["adr", "dat_w", "be", "we", "re"]
        ]
        self.shown = Signal(data_width)
        self.comb += self.shown.eq(flash.port.dat_r | identity.port.dat_r)
        self.driver = LineDriver(flash.port)
        self.model = Flash(1 << 16)
        self.edges = 0  # rising, of the clock

    def wires(self, finished):
        pins, before = Pins(self.model), 0
        while not finished:
            levels = []
            for name in ["cs_n", "clk", "mosi"]:
                levels.append((yield getattr(self.pads, name)))
            self.edges += levels[1] and not before
            before = levels[1]
            yield self.pads.miso.eq(pins.step(*levels))
            yield

    def read(self, address):
        yield from self.driver.read(address)
        line = yield self.shown
        return line >> 8 * (address % self.driver.bytes) & 0xFFFFFFFF

    def status(self):
        word = yield from self.read(HOST["FLASH_STATUS"].offset)
        return {f.name: word >> f.lsb & (1 << f.bits) - 1 for f in HOST["FLASH_STATUS"].fields}

    def transfer(self, command, sent=b""):
        """What came behind the command."""
        padded = sent + bytes(-len(sent) % 4)
        for at in range(0, len(padded), 4):
            yield from self.driver.write(
                C.FLASH_BUFFER + at, struct.unpack_from("<I", padded, at)[0]
            )
        yield from self.driver.write(
            HOST["FLASH_TRANSFER"].offset, command | len(sent) << FIELDS["bytes"].lsb
        )
        for cycles in range(40_000):
            if not (yield from self.status())["busy"]:
                break
        else:
            assert False, "it does not end"
        came = b""
        for at in range(0, len(padded), 4):
            came += struct.pack("<I", (yield from self.read(C.FLASH_BUFFER + at)))
        return came[: len(sent)]

    def unlock(self, key=C.FLASH_KEY):
        yield from self.driver.write(HOST["FLASH_UNLOCK"].offset, key)


def run(bench, scenario):
    finished = []

    def whole():
        yield from scenario
        finished.append(True)

    run_simulation(bench, [whole(), bench.wires(finished)])


@pytest.mark.parametrize("data_width, divider", [(64, 6), (128, 7)])
def test_bytes_go_out_and_come_back_in_order_whatever_their_number(data_width, divider, seed):
    bench = Bench(data_width, divider)
    rng = random.Random(seed)
    bench.model.data[:] = rng.randbytes(len(bench.model.data))

    def scenario():
        came = yield from bench.transfer(IDENTITY, bytes(3))
        assert came == bench.model.jedec
        for count in [1, 2, 7, 8, 9, 16, 17, C.FLASH_BYTES - 3]:
            at = rng.randrange(len(bench.model.data) - count)
            came = yield from bench.transfer(READ, at.to_bytes(3, "big") + bytes(count))
            assert came[3:] == bench.model.data[at : at + count]
            assert (yield from bench.status())["last"] == came[-1]

    run(bench, scenario())
    assert bench.model.wrong == []


def test_a_page_is_programmed_and_the_status_shows_it():
    bench = Bench(64)
    page = bytes(range(256))

    def scenario():
        yield from bench.unlock()
        yield from bench.transfer(ENABLE)
        assert (yield from bench.transfer(STATUS, bytes(1))) == bytes([LATCH])
        yield from bench.transfer(PROGRAM, b"\0\x12\0" + page)
        assert (yield from bench.transfer(STATUS, bytes(1))) == b"\1"
        assert (yield from bench.transfer(STATUS, bytes(1))) == b"\0"

    run(bench, scenario())
    assert bench.model.data[0x1200:0x1300] == page and bench.model.data[:0x1200] == b"\xff" * 0x1200


def test_nothing_but_reading_is_sent_while_it_is_locked():
    bench = Bench(64)

    def scenario():
        assert not (yield from bench.status())["unlocked"]
        for key in (0, C.FLASH_KEY ^ 1, None):
            if key is not None:
                yield from bench.unlock(key)
            for command in set(range(256)) - {0x03, 0x13, 0x05, 0x9F, 0xFF}:
                before = bench.edges
                yield from bench.driver.write(HOST["FLASH_TRANSFER"].offset, command)
                status = yield from bench.status()
                assert status["refused"] and not status["busy"] and bench.edges == before
        for command in (0x03, 0x13, 0x05, 0x9F, 0xFF):
            before = bench.edges
            yield from bench.transfer(command)
            assert not (yield from bench.status())["refused"] and bench.edges == before + 8
        yield from bench.unlock()
        assert (yield from bench.status())["unlocked"]
        yield from bench.transfer(ENABLE)
        assert bench.model.status == LATCH
        yield from bench.unlock(0)
        yield from bench.transfer(0x04)
        assert (yield from bench.status())["refused"] and bench.model.status == LATCH

    run(bench, scenario())


def test_the_host_never_waits_and_a_transfer_under_way_is_finished():
    """Writes and reads go on while it is busy; another transfer is not begun."""
    bench = Bench(64)

    def scenario():
        yield from bench.unlock()
        yield from bench.driver.write(C.FLASH_BUFFER, 0)
        yield from bench.driver.write(
            HOST["FLASH_TRANSFER"].offset, IDENTITY | 64 << FIELDS["bytes"].lsb
        )
        yield from bench.driver.write(HOST["FLASH_TRANSFER"].offset, ENABLE)
        for n in range(8):
            yield from bench.driver.write(HOST["SCRATCH"].offset, n)
            assert (yield from bench.read(HOST["SCRATCH"].offset)) == n
        assert (yield from bench.status())["busy"]
        for _ in range(6000):
            yield
        assert not (yield from bench.status())["busy"]
        assert (yield from bench.read(C.FLASH_BUFFER)) & 0xFFFFFF == int.from_bytes(
            bench.model.jedec, "little"
        )

    run(bench, scenario())
    assert bench.model.status == 0 and bench.edges == 8 * 65


def test_the_flash_is_not_selected_before_it_is_told_anything():
    bench = Bench(64)

    def scenario():
        for _ in range(20):
            assert (yield bench.pads.cs_n) == 1 and (yield bench.pads.clk) == 0
            yield

    run_simulation(bench, scenario())


def test_the_card_says_that_it_has_a_flash_and_which_board_it_is():
    bench = Bench(64)

    def scenario():
        assert (yield from bench.read(HOST["FEATURES"].offset)) & 1
        name = b""
        for n in range(4):
            name += struct.pack("<I", (yield from bench.read(HOST["BOARD"].offset + 4 * n)))
        assert name.rstrip(b"\0") == b"ecpix5"

    run_simulation(bench, scenario())
