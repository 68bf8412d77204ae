"""TLPs on the beats of a LitePCIe PHY, made and read with cocotbext-pcie's TLP classes.

The TLP classes are not ours, and so neither is the judgement of what is a legal TLP.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random
import struct

from migen import Signal

from litex.gen import LiteXModule

from litex.soc.interconnect import stream

from litepcie.common import get_bar_mask, phy_layout

from cocotbext.pcie.core.tlp import CplStatus, Tlp, TlpType
from cocotbext.pcie.core.utils import PcieId

from dibber.host.interface import HostInterface

from tests.gateware.models.compiled import run_simulation

# The ways in which a PHY may carry TLPs, and one of them for each width.
PHYS = [(width, order) for width in (64, 128, 256) for order in ("little", "big")]
WIDTHS = [(64, "big"), (128, "little"), (256, "big")]

# PHY ----------------------------------------------------------------------------------------------


class FakePHY(LiteXModule):
    """What HostInterface uses of a LitePCIe PHY."""

    qword_aligned = False

    def __init__(self, data_width, endianness):
        self.data_width = data_width
        self.endianness = endianness
        self.sink = stream.Endpoint(phy_layout(data_width))
        self.source = stream.Endpoint(phy_layout(data_width))
        self.id = Signal(16, reset=0x0300)
        self.bar0_size = 0x100000
        self.bar0_mask = get_bar_mask(self.bar0_size)
        self.max_payload_size = Signal(16, reset=256)
        self.max_request_size = Signal(16, reset=512)
        self.msix_enable = Signal(reset=1)
        self.bus_master = Signal(reset=1)


# Beats --------------------------------------------------------------------------------------------


def to_dwords(tlp, endianness):
    """A Tlp as the DWs that the PHY shows."""
    raw = bytes(tlp.pack())
    header = 4 * tlp.get_header_size_dw()
    order = ">" if endianness == "big" else "<"
    return list(struct.unpack(f">{header // 4}I", raw[:header])) + list(
        struct.unpack(f"{order}{len(raw[header:]) // 4}I", raw[header:])
    )


def to_beats(dwords, data_width):
    """DWs as [(dat, be, first, last)]; lanes without a DW hold rubbish, as they may."""
    lanes = data_width // 32
    beats = []
    for n in range(0, len(dwords), lanes):
        part = dwords[n : n + lanes]
        be = (1 << 4 * len(part)) - 1
        part += [0xDEADBEEF] * (lanes - len(part))
        beats.append(
            (sum(dw << 32 * i for i, dw in enumerate(part)), be, n == 0, n + lanes >= len(dwords))
        )
    return beats


def from_beats(beats, data_width, endianness):
    """Beats that the card sent as a Tlp. Asserts that `be`, `first` and `last` are what they
    should.
    """
    lanes = data_width // 32
    dwords = []
    for n, (dat, be, first, last) in enumerate(beats):
        assert first == (n == 0) and last == (n == len(beats) - 1)
        used = bin(be).count("1") // 4
        assert be == (1 << 4 * used) - 1 and used > 0 and (last or used == lanes)
        dwords += [(dat >> 32 * i) & 0xFFFFFFFF for i in range(used)]
    header = 4 if dwords[0] >> 29 & 1 else 3
    order = ">" if endianness == "big" else "<"
    tlp = Tlp.unpack(
        struct.pack(f">{header}I", *dwords[:header])
        + struct.pack(f"{order}{len(dwords) - header}I", *dwords[header:])
    )
    assert tlp.check()
    assert tlp.get_size_dw() == len(dwords)
    return tlp


# TLPs that the host sends -------------------------------------------------------------------------


def write(address, data):
    tlp = Tlp()
    tlp.fmt_type = TlpType.MEM_WRITE_64 if address >> 32 else TlpType.MEM_WRITE
    tlp.set_addr_be_data(address, data)
    return tlp


def read(address, length, tag=0, requester=0x0008):
    tlp = Tlp()
    tlp.fmt_type = TlpType.MEM_READ_64 if address >> 32 else TlpType.MEM_READ
    tlp.set_addr_be(address, length)
    tlp.tag = tag
    tlp.requester_id = PcieId.from_int(requester)
    return tlp


def completion(tag, lower, count, data, status=CplStatus.SC):
    """A completion for our read whose first byte lies at `lower` (modulo 128)."""
    tlp = Tlp()
    tlp.fmt_type = TlpType.CPL_DATA if status == CplStatus.SC else TlpType.CPL
    tlp.requester_id = PcieId.from_int(0x0300)
    tlp.tag = tag
    tlp.status = status
    tlp.byte_count = count
    tlp.lower_address = lower
    if status == CplStatus.SC:
        data = bytes(lower % 4) + data
        tlp.set_data(data + bytes(-len(data) % 4))
    return tlp


def written(tlp):
    """(address, bytes) of a memory write by its byte enables, which must be contiguous."""
    enables = [tlp.first_be] + [0xF] * (tlp.length - 2) + ([tlp.last_be] if tlp.length > 1 else [])
    bits = [e >> b & 1 for e in enables for b in range(4)]
    low = bits.index(1)
    high = len(bits) - bits[::-1].index(1)
    assert all(bits[low:high])
    return tlp.address + low, bytes(tlp.data[low:high])


# Bench --------------------------------------------------------------------------------------------


class Bench:
    """A HostInterface, its PHY, and memories behind its ports, cycle by cycle.

    `send(tlp)` queues a TLP (or raw beats) to the card; `received` are the card's as (cycle of its
    first beat, cycle of its last, Tlp). `memory[name]` is a dict of bytes behind a port. `lines`
    are completions as they came. Every cycle it is asserted that the card takes what the PHY
    offers, up to 128 bits.
    """

    def __init__(self, data_width, endianness, gaps=0.0, stalls=0.0, seed=1):
        self.phy = FakePHY(data_width, endianness)
        self.dut = HostInterface(self.phy, data_width, 0x10000)
        self.data_width = data_width
        self.gaps = gaps  # probability that the PHY has no beat
        self.stalls = stalls  # probability that the PHY takes no beat
        self.random = random.Random(seed)
        self.queue = []
        self.received = []
        self.memory = {name: {} for name in self.dut.ports}
        self.stores = []  # (name, byte address) in order
        self.reads = []  # (name, line, be)
        self.lines = []
        self.count = {name: 0 for name in self.dut.counters}
        self.marks = []  # cycles of `marked`
        self.cycle = 0
        self.done = False

    def send(self, *tlps):
        for tlp in tlps:
            beats = (
                tlp
                if isinstance(tlp, list)
                else to_beats(to_dwords(tlp, self.phy.endianness), self.data_width)
            )
            self.queue += beats

    def phy_process(self):
        sink, source = self.phy.sink, self.phy.source
        beats = []
        started = None
        yield sink.ready.eq(1)
        yield
        while not self.done:
            taken = yield source.ready
            assert taken or self.data_width == 256, "the card refused a beat"
            if (yield sink.valid) and (yield sink.ready):
                started = self.cycle if started is None else started
                beats.append(
                    ((yield sink.dat), (yield sink.be), (yield sink.first), (yield sink.last))
                )
                if (yield sink.last):
                    tlp = from_beats(beats, self.data_width, self.phy.endianness)
                    self.received.append((started, self.cycle, tlp))
                    beats, started = [], None
            if (yield self.dut.marked):
                self.marks.append(self.cycle)
            for name, pulse in self.dut.counters.items():
                self.count[name] += yield pulse
            completions = self.dut.completions
            if (yield completions.valid):
                line = {}
                for field in ("dat", "last", "tag", "status", "lower", "count", "bytes"):
                    line[field] = yield getattr(completions, field)
                self.lines.append(line)
            yield sink.ready.eq(self.random.random() >= self.stalls)
            if not taken and (yield source.valid):
                pass
            elif self.queue and self.random.random() >= self.gaps:
                dat, be, first, last = self.queue.pop(0)
                yield source.valid.eq(1)
                yield source.dat.eq(dat)
                yield source.be.eq(be)
                yield source.first.eq(first and self.data_width > 64)  # 7-series: none at 64 bits
                yield source.last.eq(last)
            else:
                yield source.valid.eq(0)
            self.cycle += 1
            yield

    def port_process(self):
        """Memories with the timing of a line_port: `dat_r` two cycles after `re`."""
        size = self.data_width // 8
        delay = {name: [0] for name in self.memory}
        while not self.done:
            for name, port in self.dut.ports.items():
                we, re = (yield port.we), (yield port.re)
                assert not (we and re)
                adr = yield port.adr
                memory = self.memory[name]
                if we:
                    dat, be = (yield port.dat_w), (yield port.be)
                    for n in range(size):
                        if be >> n & 1:
                            memory[adr * size + n] = dat >> 8 * n & 0xFF
                            self.stores.append((name, adr * size + n))
                # What is read now is shown at the end of the next cycle; otherwise 0.
                line = 0
                if re:
                    self.reads.append((name, adr, (yield port.be)))
                    line = sum(memory.get(adr * size + n, 0) << 8 * n for n in range(size))
                yield port.dat_r.eq(delay[name].pop(0))
                delay[name].append(line)
            yield

    def run(self, scenario=None, others=(), cycles=4000, settle=60):
        """Run `scenario(bench)` (a generator) until it ends and nothing has moved for `settle`
        cycles.

        `others` are further generators that run beside it.
        """

        def main():
            if scenario is not None:
                yield from scenario(self)
            quiet = 0
            while quiet < settle:
                busy = bool(self.queue) or (yield self.phy.sink.valid)
                quiet = 0 if busy else quiet + 1
                assert self.cycle < cycles, "did not come to rest"
                yield
            self.done = True

        run_simulation(self.dut, [main(), self.phy_process(), self.port_process(), *others])


def lines_of(address, data, data_width):
    """Consecutive bytes as address-aligned lines."""
    size = data_width // 8
    start = address % size
    raw = bytes(start) + data
    raw += bytes(-len(raw) % size)
    return [int.from_bytes(raw[n : n + size], "little") for n in range(0, len(raw), size)]


def offer(endpoint, lines, **params):
    """Drive one packet of lines into a sink, without gaps."""
    for n, line in enumerate(lines):
        yield endpoint.valid.eq(1)
        yield endpoint.last.eq(n == len(lines) - 1)
        if line is not None:
            yield endpoint.dat.eq(line)
        for name, value in params.items():
            yield getattr(endpoint, name).eq(value)
        yield
        while not (yield endpoint.ready):
            yield
    yield endpoint.valid.eq(0)
