# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from migen import *

from litex.soc.interconnect import wishbone

from dibber.mcp.sram import SharedSRAM

from lines import LineDriver

SIZE = 1024


def burst(bus, adr, words):
    """Read `words` words from word address `adr` in one incrementing burst; returns (data, cycles)."""
    data, cycles = [], 0
    yield bus.cyc.eq(1)
    yield bus.stb.eq(1)
    yield bus.we.eq(0)
    for n in range(words):
        yield bus.adr.eq(adr + n)
        last = n == words - 1
        yield bus.cti.eq(wishbone.CTI_BURST_END if last else wishbone.CTI_BURST_INCREMENTING)
        yield
        cycles += 1
        while not (yield bus.ack):
            yield
            cycles += 1
        data.append((yield bus.dat_r))
    yield bus.cyc.eq(0)
    yield bus.stb.eq(0)
    yield
    return data, cycles


@pytest.mark.parametrize("data_width", [64, 128])
def test_both_ports_see_one_memory(data_width):
    dut    = SharedSRAM(SIZE, data_width)
    driver = LineDriver(dut.port)
    rng    = random.Random(1)
    words  = [rng.getrandbits(32) for _ in range(SIZE//4)]

    def bench():
        for n, word in enumerate(words):
            if n % 2:
                yield from driver.write(4*n, word)
            else:
                yield from dut.dbus.write(n, word)
        for n, word in enumerate(words):
            assert (yield from driver.read(4*n)) == word
        assert (yield from burst(dut.ibus, 8, 8))[0] == words[8:16]

    run_simulation(dut, bench())


def test_stores_change_only_the_selected_bytes():
    dut    = SharedSRAM(SIZE, 128)
    driver = LineDriver(dut.port)

    def bench():
        yield from dut.dbus.write(5, 0x11223344)
        yield from dut.dbus.write(5, 0xaabbccdd, sel=0b0101)
        assert (yield from driver.read(20)) == 0x11bb33dd
        yield from driver.write(20, 0x55667788, enables=0b1000)
        assert (yield from dut.dbus.read(5)) == 0x55bb33dd

    run_simulation(dut, bench())


def test_a_burst_moves_a_word_a_cycle_after_the_first():
    dut = SharedSRAM(SIZE, 128)

    def bench():
        _, cycles = yield from burst(dut.ibus, 0, 8)
        assert cycles == 9

    run_simulation(dut, bench())


def test_fetches_and_loads_at_once_each_get_their_own_words():
    dut   = SharedSRAM(SIZE, 128)
    rng   = random.Random(2)
    words = [rng.getrandbits(32) for _ in range(SIZE//4)]
    ready = []

    def fetches():
        while not ready:
            yield
        for _ in range(60):
            line = 8*rng.randrange(SIZE//32)
            assert (yield from burst(dut.ibus, line, 8))[0] == words[line:line + 8]

    def loads():
        for n, word in enumerate(words):
            yield from dut.dbus.write(n, word)
        ready.append(True)
        for _ in range(120):
            for _ in range(rng.randrange(4)):
                yield
            if rng.random() < 0.3:
                n = rng.randrange(SIZE//4)
                yield from dut.dbus.write(n, words[n])
            elif rng.random() < 0.5:
                line = 8*rng.randrange(SIZE//32)
                assert (yield from burst(dut.dbus, line, 8))[0] == words[line:line + 8]
            else:
                n = rng.randrange(SIZE//4)
                assert (yield from dut.dbus.read(n)) == words[n]

    run_simulation(dut, [fetches(), loads()])
