# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from migen import *

from dibber.mcp.processor import SlotBridge
from dibber.mcp.slots import CommandSlots

from lines import LineDriver

ENDPOINTS, SLOTS = 2, 4
BYTES = ENDPOINTS*SLOTS*128


def fill(dut, rng):
    """Write random words into all slots; returns the lines."""
    driver = LineDriver(dut.port)
    words  = [rng.getrandbits(32) for _ in range(BYTES//4)]
    for n, word in enumerate(words):
        yield from driver.write(4*n, word)
    lanes = driver.bytes//4
    return [sum(word << 32*k for k, word in enumerate(words[n:n + lanes])) for n in range(0, len(words), lanes)]


@pytest.mark.parametrize("data_width", [64, 128])
def test_readers_that_ask_at_once_get_their_lines_two_cycles_later(data_width):
    dut   = CommandSlots(data_width, readers=3, endpoints=ENDPOINTS, slots=SLOTS)
    rng   = random.Random(3)
    lines = []
    turns = [0, 0, 0]

    def writer():
        lines.extend((yield from fill(dut, rng)))

    def reader(n):
        port, expected = dut.readers[n], {}
        while not lines:
            yield
        for cycle in range(400):
            yield
            if (yield port.valid) and (yield port.ready):
                expected[cycle + 2] = lines[(yield port.adr)]
                turns[n] += 1
            if cycle in expected:
                assert (yield port.dat_r) == expected.pop(cycle)
            if not (yield port.valid) or (yield port.ready):
                yield port.valid.eq(n == 0 or rng.random() < 0.7)
                yield port.adr.eq(rng.randrange(len(lines)))

    run_simulation(dut, [writer()] + [reader(n) for n in range(3)])
    assert min(turns) > 50, f"a reader starves: {turns}"


def test_host_writes_are_kept_while_readers_are_busy():
    dut    = CommandSlots(128, readers=2, endpoints=ENDPOINTS, slots=SLOTS)
    driver = LineDriver(dut.port)

    def busy():
        yield dut.readers[0].valid.eq(1)
        yield dut.readers[1].valid.eq(1)
        yield

    def host():
        for n in range(BYTES//4):
            yield from driver.write(4*n, n ^ 0x5a5a5a5a)
        for n in range(BYTES//4):
            assert (yield from driver.read(4*n)) == n ^ 0x5a5a5a5a

    run_simulation(dut, [busy(), host()])


@pytest.mark.parametrize("data_width", [64, 128])
def test_the_processor_loads_single_words(data_width):
    class Joined(Module):
        def __init__(self):
            self.submodules.slots  = CommandSlots(data_width, readers=2, endpoints=ENDPOINTS, slots=SLOTS)
            self.submodules.bridge = SlotBridge(data_width)
            self.comb += self.bridge.reader.connect(self.slots.readers[1])

    dut  = Joined()
    bus  = dut.bridge.bus
    rng  = random.Random(4)

    def bench():
        lines = yield from fill(dut.slots, rng)
        yield dut.slots.readers[0].valid.eq(1)
        for n in rng.sample(range(BYTES//4), 40):
            line, lane = divmod(4*n, data_width//8)
            assert (yield from bus.read(n)) == lines[line] >> 8*lane & 0xffffffff
        yield from bus.write(0, ~lines[0] & 0xffffffff)
        assert (yield from bus.read(0)) == lines[0] & 0xffffffff

    run_simulation(dut, bench())
