# SPDX-License-Identifier: BSD-2-Clause

import random
from functools import partial

import pytest
from migen import *
from migen.genlib.roundrobin import RoundRobin, SP_CE

from dibber.common.arbiter import Arbiter
from dibber.interface.description import C
from dibber.mcp.processor import SlotBridge
from dibber.endpoint.slots import Slots

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive
from tests.gateware.models.lines import LineDriver

ENDPOINTS, SETS, SLOTS = 2, 3, 4
BYTES = ENDPOINTS * SLOTS * 128


def fill(dut, rng):
    """Write random words into all slots; returns the lines."""
    driver = LineDriver(dut.port)
    words = [rng.getrandbits(32) for _ in range(BYTES // 4)]
    for n, word in enumerate(words):
        yield from driver.write(4 * n, word)
    lanes = driver.bytes // 4
    return [
        sum(word << 32 * k for k, word in enumerate(words[n : n + lanes]))
        for n in range(0, len(words), lanes)
    ]


@pytest.mark.parametrize(
    "clients, favourite, late",
    [
        (2, 0, ()),
        (3, 1, ()),
        (10, 5, ()),
        (10, 9, ()),
        (3, 1, (0, 2)),
        (10, 5, (0, 7)),
        (10, 0, (0, 9)),
        (10, 7, (3, 4)),
    ],
)
def test_turns_are_those_of_a_round_robin(clients, favourite, late):
    class Both(Module):
        def __init__(self):
            self.request = Signal(clients)
            self.submodules.turn = Arbiter(clients, favourite, late)
            self.submodules.known = RoundRobin(clients, SP_CE)
            self.comb += [
                self.turn.request.eq(self.request),
                self.known.request.eq(Mux(self.request == 0, 1 << favourite, self.request)),
                self.known.ce.eq(1),
            ]

    dut = Both()
    rng = random.Random(clients)
    seen = set()

    def bench():
        for _ in range(4000):
            request = rng.getrandbits(clients) & rng.getrandbits(clients) & rng.getrandbits(clients)
            if sum(request >> n & 1 for n in late) > 1:
                request &= ~(1 << rng.choice(late))
            yield dut.request.eq(request)
            yield
            assert (yield dut.turn.grant) == 1 << (yield dut.known.grant)
            seen.add((yield dut.turn.grant))

    run_simulation(dut, bench())
    assert len(seen) == clients


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_readers_that_ask_at_once_get_their_lines_two_cycles_later(data_width):
    dut = Slots(data_width, 3, 1, ENDPOINTS, SETS, SLOTS)
    rng = random.Random(3)
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
    dut = Slots(128, 2, 1, ENDPOINTS, SETS, SLOTS)
    driver = LineDriver(dut.port)

    def busy():
        yield dut.readers[0].valid.eq(1)
        yield dut.readers[1].valid.eq(1)
        yield

    def host():
        for n in range(BYTES // 4):
            yield from driver.write(4 * n, n ^ 0x5A5A5A5A)
        for n in range(BYTES // 4):
            assert (yield from driver.read(4 * n)) == n ^ 0x5A5A5A5A

    run_simulation(dut, [busy(), host()])


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_writers_of_the_card_reach_sets_that_the_host_does_not(data_width):
    dut = Slots(data_width, 1, 2, ENDPOINTS, SETS, SLOTS)
    driver = LineDriver(dut.port)
    width = data_width // 8
    first = BYTES // width
    count = SLOTS * 128 // width
    rng = random.Random(5)
    model = [0] * count
    done = []

    def writer(n):
        port = dut.writers[n]
        for line in range(n, count, 2):
            for be in [2**width - 1, rng.getrandbits(width)]:
                dat = rng.getrandbits(data_width)
                yield port.adr.eq(first + line)
                yield port.dat_w.eq(dat)
                yield port.be.eq(be)
                yield port.valid.eq(1)
                yield
                while not (yield port.ready):
                    yield
                yield port.valid.eq(0)
                mask = sum(0xFF << 8 * i for i in range(width) if be >> i & 1)
                model[line] = model[line] & ~mask | dat & mask
                if rng.random() < 0.3:
                    yield
        done.append(n)

    def host():
        for n in range(0, SLOTS * 128, 4):
            yield from driver.write(BYTES + n, 0xFFFFFFFF)
        while len(done) < 2:
            yield
        assert (yield from driver.read(BYTES)) == 0
        port = dut.readers[0]
        for line in range(count):
            yield port.adr.eq(first + line)
            yield port.valid.eq(1)
            yield
            while not (yield port.ready):
                yield
            yield port.valid.eq(0)
            yield
            yield
            assert (yield port.dat_r) == model[line]

    run_simulation(dut, [writer(0), writer(1), host()])


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_sets_that_there_are_not_take_no_memory_and_those_behind_them_keep_their_addresses(
    data_width,
):
    build = partial(Slots, data_width, 1, 1, endpoints=8, sets=10, slots=SLOTS, present=4)
    dut = build()
    driver = LineDriver(dut.port)
    lines = SLOTS * 128 * 8 // data_width  # of a set
    [memory] = [
        special for special in build().get_fragment().specials if isinstance(special, Memory)
    ]
    assert memory.depth == 6 * lines

    def bench():
        writer, reader = dut.writers[0], dut.readers[0]
        for n in range(8):
            yield from driver.write(n * SLOTS * 128, 0x100 + n)
        for n in (8, 9):
            yield from drive(
                writer, valid=1, adr=n * lines, dat_w=0x100 + n, be=2 ** (data_width // 8) - 1
            )
            yield
            while not (yield writer.ready):
                yield
            yield writer.valid.eq(0)
            yield
        for n in range(8):
            assert (yield from driver.read(n * SLOTS * 128)) == (0x100 + n if n < 4 else 0)
        for n in (0, 1, 2, 3, 8, 9):
            yield from drive(reader, valid=1, adr=n * lines)
            yield
            while not (yield reader.ready):
                yield
            yield reader.valid.eq(0)
            yield
            yield
            assert (yield reader.dat_r) & 0xFFFFFFFF == 0x100 + n

    run_simulation(dut, bench())


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_the_processor_loads_words_of_every_set_and_stores_those_of_the_outbox(data_width):
    class Joined(Module):
        def __init__(self):
            self.submodules.slots = Slots(data_width, 2, 1)
            self.submodules.bridge = SlotBridge(data_width)
            self.comb += [
                self.bridge.reader.connect(self.slots.readers[1]),
                self.bridge.writer.connect(self.slots.writers[0]),
            ]

    dut = Joined()
    bus = dut.bridge.bus
    driver = LineDriver(dut.slots.port)
    rng = random.Random(4)
    words = C.SLOTS * C.SLOT_BYTES // 4

    def bench():
        base = C.MCP_SLOT_BASE // 4
        yield dut.slots.readers[0].valid.eq(1)
        for n in [0, 1, 2, 3, 5 * words + 7, C.ENDPOINTS * words - 1]:
            value = rng.getrandbits(32)
            yield from driver.write(4 * n, value)
            assert (yield from bus.read(base + n)) == value
            yield from bus.write(base + n, ~value & 0xFFFFFFFF)
            assert (yield from bus.read(base + n)) == value
        stored = {C.OUTBOX * words + n: rng.getrandbits(32) for n in [0, 1, 2, 3, 6, 9, words - 1]}
        for n, value in stored.items():
            yield from bus.write(base + n, value)
        for n, value in stored.items():
            assert (yield from bus.read(base + n)) == value
            yield from bus.write(base + n, 0, sel=3)
            assert (yield from bus.read(base + n)) == value, "not a whole word"
        yield from bus.write(base + C.INBOX * words, 1)
        assert (yield from bus.read(base + C.INBOX * words)) == 0

    run_simulation(dut, bench())
