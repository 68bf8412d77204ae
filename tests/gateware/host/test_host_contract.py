"""HostInterface keeps what each host side promises: behind a PCIe PHY, and before the root complex
of the bridge.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from cocotbext.pcie.core.tlp import CplStatus
from dibber.bridge.root import BAR_BASE, MEMORY_BASE, RootComplex
from dibber.host.interface import HostInterface
from tests.gateware.models.compiled import shared
from tests.gateware.models.host_contract import PATIENCE, HostBench, HostContract, observed
from migen import Memory, passive
from tests.gateware.host.tlps import (
    FakePHY,
    completion,
    from_beats,
    read,
    to_beats,
    to_dwords,
    write,
    written,
)

BAR = 0x7F00_0000


def tlp_side(data_width, endianness):
    phy = FakePHY(data_width, endianness)
    dut = observed(HostInterface(phy, data_width, 0x10000, patience=PATIENCE))
    dut.phy = phy
    return dut


def root_side(data_width, size):
    root = RootComplex(data_width, size)
    dut = observed(
        HostInterface(root, data_width, 0x10000, address_bits=32, patience=PATIENCE), root
    )
    dut.root = root
    return dut


class TLPBench(HostBench):
    """A HostInterface, and a host that speaks TLPs; it answers reads in parts, and out of order."""

    base, size = 0x12_3456_0000, 0x4000

    def __init__(self, random, data_width, endianness):
        super().__init__(shared(tlp_side, data_width, endianness), random)
        self.phy = self.dut.phy
        self.ram = bytearray(self.size)
        self.queue, self.parts, self.loads = [], [], {}

    def send(self, tlp):
        self.queue += to_beats(to_dwords(tlp, self.phy.endianness), self.phy.data_width)

    def receive(self, tlp):
        kind = tlp.fmt_type.name
        if kind.startswith("MEM_WRITE"):
            address, data = written(tlp)
            assert self.base <= address and address + len(data) <= self.base + self.size
            self.ram[address - self.base :][: len(data)] = b""
            place = address - self.base
            self.ram[place : place + len(data)] = data
        elif kind.startswith("MEM_READ"):
            first = tlp.address + [b for b in range(4) if tlp.first_be >> b & 1][0]
            last = tlp.last_be if tlp.length > 1 else tlp.first_be
            end = tlp.address + 4 * (tlp.length - 1) + last.bit_length()
            self.answer_read(tlp.tag, first, end - first)
        else:
            self.loads[tlp.tag] = tlp

    def answer_read(self, tag, address, length):
        if not self.base <= address < self.base + self.size:
            self.parts.append([completion(tag, 0, 4, b"", CplStatus.UR)])
            return
        queue = []
        while length:
            # A completion has at most the maximum payload, which is 256 bytes.
            most = 64 * self.random.choice((1, 2, 3, 4, 4, 4))
            part = min(length, most - address % 64)
            place = address - self.base
            queue.append(
                completion(tag, address % 128, length, bytes(self.ram[place : place + part]))
            )
            address, length = address + part, length - part
        self.parts.append(queue)

    @passive
    def host_process(self):
        sink, source, beats = self.phy.sink, self.phy.source, []
        ready = offered = 1
        yield sink.ready.eq(1)
        while True:
            yield
            assert not offered or (yield source.ready), "the card refused a beat"
            if ready and (yield sink.valid):
                beats.append(
                    ((yield sink.dat), (yield sink.be), (yield sink.first), (yield sink.last))
                )
                if beats[-1][3]:
                    self.receive(from_beats(beats, self.phy.data_width, self.phy.endianness))
                    beats = []
            if self.parts and not self.queue and self.random.random() < 0.3:
                chosen = self.random.choice(self.parts[:3])
                self.send(chosen.pop(0))
                self.parts = [queue for queue in self.parts if queue]
            if ready != (self.random.random() < 0.7):
                ready = 1 - ready
                yield sink.ready.eq(ready)
            if offered:
                offered = 0
                yield source.valid.eq(0)
            if self.queue and self.random.random() < 0.8:
                dat, be, first, last = self.queue.pop(0)
                offered = 1
                yield source.valid.eq(1)
                yield source.dat.eq(dat)
                yield source.be.eq(be)
                yield source.first.eq(first)
                yield source.last.eq(last)

    def processes(self):
        return [self.host_process()]

    def peek(self, address, length):
        place = address - self.base
        return bytes(self.ram[place : place + length])
        yield

    def poke(self, address, data):
        place = address - self.base
        self.ram[place : place + len(data)] = data
        return
        yield

    def store(self, offset, word):
        self.send(write(BAR + offset, word.to_bytes(4, "little")))
        while self.queue:
            yield

    def load(self, offset):
        self.send(read(BAR + offset, 4, tag=7))
        while 7 not in self.loads:
            yield
        tlp = self.loads.pop(7)
        if tlp.status != CplStatus.SC:
            return 0xFFFFFFFF  # as the root complex of a PC does
        return int.from_bytes(bytes(tlp.get_data()), "little")

    def withdraw(self):
        yield self.phy.bus_master.eq(0)

    def allow(self):
        yield self.phy.bus_master.eq(1)


class RootBench(HostBench):
    """A HostInterface before the root complex on the card; the program is at the bus."""

    base, size = MEMORY_BASE, 0x2000

    def __init__(self, random, data_width):
        super().__init__(shared(root_side, data_width, self.size), random)
        self.root, self.lanes = self.dut.root, data_width // 32

    def processes(self):
        return []

    def banks(self):
        memories = [s for s in self.root.memory._fragment.specials if isinstance(s, Memory)]
        return sorted(memories, key=lambda memory: memory.name_override)

    def peek(self, address, length):
        """Bytes of the memory itself, in the same cycle."""
        banks, first = self.banks(), (address - self.base) // 4
        data = b""
        for n in range(first, (address - self.base + length - 1) // 4 + 1):
            word = yield banks[n % self.lanes][n // self.lanes]
            data += word.to_bytes(4, "little")
        start = (address - self.base) % 4
        return data[start : start + length]

    def poke(self, address, data):
        assert address % 4 == 0
        data += bytes(-len(data) % 4)
        banks = self.banks()
        for n in range(0, len(data), 4):
            word = (address - self.base + n) // 4
            yield banks[word % self.lanes][word // self.lanes].eq(
                int.from_bytes(data[n : n + 4], "little")
            )
        yield

    def store(self, offset, word):
        yield from self.root.bus.write((BAR_BASE + offset) // 4, word)

    def load(self, offset):
        return (yield from self.root.bus.read((BAR_BASE + offset) // 4))


@pytest.fixture(params=[(64, "little"), (128, "big")], ids=lambda phy: f"{phy[0]}-{phy[1]}")
def phy(request):
    return request.param


class TestHostInterface(HostContract):
    @pytest.fixture(autouse=True)
    def of(self, phy):
        self.phy = phy

    def bench(self, random):
        return TLPBench(random, *self.phy)


class TestRootComplex(HostContract):
    """Its host always takes requests."""

    withdraws = False
    request = 512

    @pytest.fixture(params=[64, 128], autouse=True)
    def of(self, request):
        self.data_width = request.param

    def bench(self, random):
        return RootBench(random, self.data_width)
