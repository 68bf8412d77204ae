"""Stores as x86 makes them: TLPs of write-combining buffers, whole and in parts, in any order."""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest

from migen import Signal, passive

from litex.gen import LiteXModule

from dibber.host.interface import HostInterface
from dibber.interface.description import C
from dibber.window.window import RemoteWindow

from tests.gateware.models.window import Page


from tests.gateware.host.tlps import FakePHY, from_beats, read, to_beats, to_dwords, write
from tests.gateware.window.world import ENDPOINT, World, control

APERTURE = 0xD8_0000_0000
PHYS = [(64, "big"), (128, "little"), (256, "big")]
BUFFERS = 10  # of a core: Intel 64 and IA-32 Optimization Reference Manual, write combining


class WriteCombiner:
    """A core's write-combining buffers. `tlps` are the stores in the order in which they leave.

    A buffer that is full leaves as one TLP of 64 bytes. When it is evicted, each aligned 8 bytes
    with a store leave as one TLP with byte enables.
    """

    def __init__(self, random):
        self.random = random
        self.lines = {}  # address -> [bytes or None] * 64
        self.tlps = []

    def store(self, address, data):
        line, offset = address // 64 * 64, address % 64
        if line not in self.lines and len(self.lines) == BUFFERS:
            self.evict(self.random.choice(list(self.lines)))
        bytes_ = self.lines.setdefault(line, [None] * 64)
        bytes_[offset : offset + len(data)] = data
        if None not in bytes_:
            del self.lines[line]
            self.tlps.append(write(APERTURE + line, bytes(bytes_)))

    def evict(self, line):
        bytes_ = self.lines.pop(line)
        parts = [n for n in range(0, 64, 8) if any(b is not None for b in bytes_[n : n + 8])]
        for part in parts:
            word = bytes_[part : part + 8]
            enables = [sum((word[4 * h + b] is not None) << b for b in range(4)) for h in range(2)]
            data = bytes(b or 0 for b in word)
            if all(enables):
                tlp = write(APERTURE + line + part, data)
                tlp.first_be, tlp.last_be = enables
            else:
                half = enables.index(max(enables))
                tlp = write(APERTURE + line + part + 4 * half, data[4 * half :][:4])
                tlp.first_be = enables[half]
            self.tlps.append(tlp)

    def fence(self):
        while self.lines:
            self.evict(self.random.choice(list(self.lines)))


class Card(LiteXModule):
    """The window behind a HostInterface. Its registers and its endpoint are the world's."""

    def __init__(self, data_width, endianness):
        self.phy = FakePHY(data_width, endianness)
        self.phy.in_aperture = Signal()
        self.host = host = HostInterface(self.phy, data_width, 0x10000, aperture=C.APERTURE_BYTES)
        self.window = window = RemoteWindow(data_width, ENDPOINT)
        for name in ("port", "pages", "endpoints", "ends", "written", "queue", "halted"):
            setattr(self, name, getattr(window, name))

        # # #

        self.comb += [
            host.aperture.stores.connect(window.stores),
            host.aperture.loads.connect(window.requests),
            window.replies.connect(host.aperture.answers),
        ]


class TLPWorld(World):
    """The world behind a PHY: stores and loads are TLPs, and so are the answers."""

    def __init__(self, data_width, endianness, random, **kwargs):
        self.endianness = endianness
        self.beats = []  # to the card: (dat, be, first, last, in_aperture)
        super().__init__(data_width, random, **kwargs)
        self.cpu = WriteCombiner(random)

    def make(self, data_width):
        return Card(data_width, self.endianness)

    def send(self, tlp, in_aperture=True):
        beats = to_beats(to_dwords(tlp, self.endianness), 8 * self.width)
        self.beats += [(*beat, in_aperture) for beat in beats]

    def store(self, address, enables, credit=True):
        assert all(enables)
        self.cpu.store(address, self.stores.store(address, enables))
        while self.cpu.tlps:
            self.send(self.cpu.tlps.pop(0))
        while credit and ((yield self.dut.queue.room) < 64 or len(self.beats) > 16):
            yield

    def ask(self, address, count, tag=0):
        """A load; the core's stores leave first, as with a fence."""
        self.cpu.fence()
        while self.cpu.tlps:
            self.send(self.cpu.tlps.pop(0))
        self.send(read(APERTURE + address, count, tag))
        yield

    @passive
    def answers(self):
        phy = self.dut.phy
        beats = []
        while True:
            yield phy.sink.ready.eq(self.random.random() >= self.busy)
            beat = self.beats.pop(0) if self.beats and self.random.random() >= self.busy else None
            yield phy.source.valid.eq(beat is not None)
            if beat is not None:
                dat, be, first, last, in_aperture = beat
                yield phy.source.dat.eq(dat)
                yield phy.source.be.eq(be)
                yield phy.source.first.eq(first)
                yield phy.source.last.eq(last)
                yield phy.in_aperture.eq(in_aperture)
            yield
            assert (yield phy.source.ready), "the receive path waits"
            if (yield phy.sink.valid) and (yield phy.sink.ready):
                beat = yield phy.sink.dat
                enables, first, last = (
                    (yield phy.sink.be),
                    (yield phy.sink.first),
                    (yield phy.sink.last),
                )
                beats.append((beat, enables, first, last))
                if beats[-1][-1]:
                    tlp = from_beats(beats, 8 * self.width, self.endianness)
                    skip = tlp.lower_address % 4
                    data = bytes(tlp.data)[skip : skip + tlp.byte_count]
                    self.replies[tlp.tag] = int(tlp.status), data, tlp.byte_count
                    beats = []


@pytest.mark.parametrize("width, endianness", PHYS)
def test_stores_through_write_combining_buffers_arrive(seed, width, endianness):
    choice = random.Random(f"{seed} {width}")
    world = TLPWorld(width, endianness, choice, busy=0.3)
    lines = [choice.randrange(C.APERTURE_PAGE // 64) * 64 for _ in range(30)]

    def host():
        yield from world.start()
        yield from world.map(7, Page(node=5, key=0xABCD, offset=0x1230))
        for turn in range(6):
            for _ in range(60):
                start = 8 * choice.randrange(8)
                count = choice.choice([8, 8, 8, 4, 2, 1])
                address = 7 * C.APERTURE_PAGE + choice.choice(lines) + start
                yield from world.store(address, [True] * count)
            for at in range(0, 64, 8):  # and a whole line
                yield from world.store(7 * C.APERTURE_PAGE + lines[turn] + at, [True] * 8)
            made = world.stores.made()
            status, data = yield from world.load(control(), 4, tag=turn)
            assert (status, int.from_bytes(data, "little")) == (0, 0)
            assert world.stores.all_arrived(made)

    world.run(host())
    assert len(world.puts) > 100


@pytest.mark.parametrize("width, endianness", PHYS)
def test_reads_of_both_bars_are_answered_and_neither_waits_for_the_other(seed, width, endianness):
    choice = random.Random(f"{seed} {width}")
    world = TLPWorld(width, endianness, choice, busy=0.2)

    def host():
        yield from world.start()
        yield from world.map(2, Page(node=5, key=3, offset=0))
        for n in range(64):
            world.memory[5, 3, n] = 3 * n
        world.deaf = True
        yield from world.ask(2 * C.APERTURE_PAGE + 5, 22, tag=1)
        for tag in range(2, 12):  # BAR 0: registers of the window, which read 0 here
            world.send(read(0x7F00_0000 + C.APERTURE_REGISTERS, 4, tag), in_aperture=False)
        for _ in range(600):
            yield
        assert world.replies.keys() == set(range(2, 12)), "BAR 0 waits for the window"
        world.deaf = False
        for _ in range(600):
            yield
        assert world.replies[1] == (0, bytes(3 * n for n in range(5, 27)), 22)
        # What crosses a line is unsupported, and the card goes on.
        assert (yield from world.load(2 * C.APERTURE_PAGE + 60, 8, tag=20))[0] == 1
        assert (yield from world.load(2 * C.APERTURE_PAGE + 8, 4, tag=21))[1] == bytes(
            [24, 27, 30, 33]
        )

    world.run(host())
