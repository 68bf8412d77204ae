# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from migen import *

from litex.soc.interconnect import wishbone

from dibber.common.sram import SharedSRAM

from tests.gateware.models.lines import LineDriver

SIZE = 1024


def burst(bus, adr, words):
    """Read `words` words from word address `adr` in one incrementing burst; returns (data,
    cycles).
    """
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


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_both_ports_see_one_memory(data_width):
    dut = SharedSRAM(SIZE, data_width)
    driver = LineDriver(dut.port)
    rng = random.Random(1)
    words = [rng.getrandbits(32) for _ in range(SIZE // 4)]

    def bench():
        for n, word in enumerate(words):
            if n % 2:
                yield from driver.write(4 * n, word)
            else:
                yield from dut.dbus.write(n, word)
        for n, word in enumerate(words):
            assert (yield from driver.read(4 * n)) == word
        assert (yield from burst(dut.ibus, 8, 8))[0] == words[8:16]

    run_simulation(dut, bench())


def test_stores_change_only_the_selected_bytes():
    dut = SharedSRAM(SIZE, 128)
    driver = LineDriver(dut.port)

    def bench():
        yield from dut.dbus.write(5, 0x11223344)
        yield from dut.dbus.write(5, 0xAABBCCDD, sel=0b0101)
        assert (yield from driver.read(20)) == 0x11BB33DD
        yield from driver.write(20, 0x55667788, enables=0b1000)
        assert (yield from dut.dbus.read(5)) == 0x55BB33DD

    run_simulation(dut, bench())


def test_a_burst_moves_a_word_a_cycle_after_the_first():
    dut = SharedSRAM(SIZE, 128)

    def bench():
        _, cycles = yield from burst(dut.ibus, 0, 8)
        assert cycles == 9

    run_simulation(dut, bench())


class Master:
    """One of the processor's buses, driven as its caches do, with random pauses.

    Parameters
    ----------
    bus    : wishbone.Interface
    stalls : random.Random, not shared
    most   : cycles of the longest pause
    """

    def __init__(self, bus, stalls, most=3):
        self.bus, self.stalls, self.most = bus, stalls, most
        self.waited = 0  # longest time from a request to its answer, in cycles

    def transfer(self, adr, we=0, data=0, sel=0xF, cti=wishbone.CTI_BURST_NONE):
        """One word; `cti` says whether the next one follows. Returns what was read."""
        for name, value in {
            "adr": adr,
            "we": we,
            "dat_w": data,
            "sel": sel,
            "cti": cti,
            "cyc": 1,
            "stb": 1,
        }.items():
            yield getattr(self.bus, name).eq(value)
        yield
        waited = 1
        while not (yield self.bus.ack):
            yield
            waited += 1
        self.waited = max(self.waited, waited)
        return (yield self.bus.dat_r)

    def rest(self, cyc=0):
        """`cyc` stays in the middle of a burst."""
        pause = self.stalls.randrange(self.most + 1)
        if pause:
            yield self.bus.stb.eq(0)
            yield self.bus.cyc.eq(cyc)
            for _ in range(pause):
                yield

    def line(self, number):
        """The eight words of a line of a cache; the master may pause between them."""
        words = []
        for n in range(8):
            last = n == 7
            cti = wishbone.CTI_BURST_END if last else wishbone.CTI_BURST_INCREMENTING
            words.append((yield from self.transfer(8 * number + n, cti=cti)))
            if self.stalls.random() < 0.2:
                yield from self.rest(cyc=1)
        return words

    def close(self):
        yield self.bus.cyc.eq(0)
        yield self.bus.stb.eq(0)
        yield


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_bursts_of_both_buses_and_the_host_under_random_stalls(data_width, seed):
    """Fetches of a third of the memory that does not change; loads and stores of the second, and
    the host's of the last.
    """
    dut = SharedSRAM(SIZE, data_width)
    rng = random.Random(seed + data_width)
    words = [rng.getrandbits(32) for _ in range(SIZE // 4)]
    lines, third = SIZE // 32, SIZE // 32 // 3
    left = ["loads", "host"]
    ready = []
    fetch, data = (Master(bus, random.Random(rng.getrandbits(32))) for bus in (dut.ibus, dut.dbus))
    host = LineDriver(dut.port)

    def fetches():
        count = 0
        while not ready:
            yield
        while left:
            line = fetch.stalls.randrange(third)
            assert (yield from fetch.line(line)) == words[8 * line : 8 * line + 8]
            yield from fetch.rest()
            count += 1
        yield from fetch.close()
        assert count > 100

    def loads():
        for n, word in enumerate(words):
            yield from data.transfer(n, we=1, data=word)
        ready.append(True)
        for _ in range(400):
            line = third + data.stalls.randrange(third)
            what = data.stalls.randrange(3)
            if what == 0:
                assert (yield from data.line(line)) == words[8 * line : 8 * line + 8]
            elif what == 1:
                n = 8 * line + data.stalls.randrange(8)
                assert (yield from data.transfer(n)) == words[n]
            else:
                n, value, sel = (
                    8 * line + data.stalls.randrange(8),
                    data.stalls.getrandbits(32),
                    data.stalls.randrange(16),
                )
                mask = sum(0xFF << 8 * byte for byte in range(4) if sel >> byte & 1)
                words[n] = words[n] & ~mask | value & mask
                yield from data.transfer(n, we=1, data=value, sel=sel)
            yield from data.rest()
        yield from data.close()
        left.remove("loads")

    def accesses():
        while not ready:
            yield
        stalls = random.Random(rng.getrandbits(32))
        for _ in range(200):
            n = stalls.randrange(16 * third, 8 * lines)
            if stalls.random() < 0.5:
                words[n] = stalls.getrandbits(32)
                yield from host.write(4 * n, words[n])
            else:
                assert (yield from host.read(4 * n)) == words[n]
            for _ in range(stalls.randrange(3)):
                yield
        left.remove("host")

    run_simulation(dut, [fetches(), loads(), accesses()])
    assert data.waited <= 2, "the data side waits for nobody"


def test_a_fetch_loses_no_more_than_the_cycles_that_loads_and_stores_take():
    dut = SharedSRAM(SIZE, 128)
    spent = []

    def fetches():
        for _ in range(20):
            _, cycles = yield from burst(dut.ibus, 0, 8)
            spent.append(cycles)

    @passive
    def stores():
        # A store every third cycle, each of one.
        while True:
            yield dut.dbus.cyc.eq(1)
            yield dut.dbus.stb.eq(1)
            yield dut.dbus.we.eq(1)
            yield
            yield dut.dbus.cyc.eq(0)
            yield dut.dbus.stb.eq(0)
            yield
            yield

    run_simulation(dut, [fetches(), stores()])
    assert max(spent) <= 14, "9 cycles, and half as many of the other side"


def test_fetches_and_loads_at_once_each_get_their_own_words():
    dut = SharedSRAM(SIZE, 128)
    rng = random.Random(2)
    words = [rng.getrandbits(32) for _ in range(SIZE // 4)]
    ready = []

    def fetches():
        while not ready:
            yield
        for _ in range(60):
            line = 8 * rng.randrange(SIZE // 32)
            assert (yield from burst(dut.ibus, line, 8))[0] == words[line : line + 8]

    def loads():
        for n, word in enumerate(words):
            yield from dut.dbus.write(n, word)
        ready.append(True)
        for _ in range(120):
            for _ in range(rng.randrange(4)):
                yield
            if rng.random() < 0.3:
                n = rng.randrange(SIZE // 4)
                yield from dut.dbus.write(n, words[n])
            elif rng.random() < 0.5:
                line = 8 * rng.randrange(SIZE // 32)
                assert (yield from burst(dut.dbus, line, 8))[0] == words[line : line + 8]
            else:
                n = rng.randrange(SIZE // 4)
                assert (yield from dut.dbus.read(n)) == words[n]

    run_simulation(dut, [fetches(), loads()])
