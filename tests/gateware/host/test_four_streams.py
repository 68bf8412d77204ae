"""HostInterface before the PCIe block of UltraScale: the promises of a host side, and what the four
streams of this block ask.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest
from cocotbext.pcie.core.tlp import CplStatus, TlpType
from cocotbext.pcie.xilinx.us.tlp import ErrorCode, Tlp_us
from dibber.host.interface import HostInterface
from dibber.interface.description import C
from dibber.phy.ultrascale.arrival import Arrival
from dibber.phy.ultrascale.departure import Departure
from dibber.phy.ultrascale.streams import ULTRASCALE, ULTRASCALE_PLUS
from litex.gen import LiteXModule
from migen import Signal
from tests.gateware.host.test_host_contract import BAR, TLPBench
from tests.gateware.host.tlps import completion, read, write
from tests.gateware.models.compiled import shared
from tests.gateware.models.drive import finish
from tests.gateware.models.host_contract import PATIENCE, HostBench, HostContract, observed
from tests.gateware.models.pcie_block import PCIeBlock

# Bits of a beat, bits of `user`, reports in a cycle: a KCU105's block, and one of UltraScale+.
SHAPES = {"128": (128, ULTRASCALE, 1), "256": (256, ULTRASCALE_PLUS, 2)}


class StreamPHY(LiteXModule):
    """A PHY whose four streams lie open, in one clock domain."""

    qword_aligned, endianness, quads = False, "little", True

    def __init__(self, data_width, user, reports):
        self.data_width = data_width
        self.departure = Departure(data_width, user, reports)
        self.arrival = Arrival(data_width, user)
        self.sink, self.source = self.departure.sink, self.arrival.source
        self.id = Signal(16)
        self.bar0_size = C.BAR0_SIZE
        self.max_payload_size = Signal(16, reset=256)
        self.max_request_size = Signal(16, reset=512)
        self.msix_enable = Signal(reset=1)
        self.bus_master = Signal(reset=1)


def side(name):
    phy = StreamPHY(*SHAPES[name])
    dut = observed(HostInterface(phy, phy.data_width, 0x10000, patience=PATIENCE), phy)
    dut.phy = phy
    return dut


class StreamBench(TLPBench):
    """TLPBench's host behind the block."""

    def __init__(self, random, name, **options):
        HostBench.__init__(self, shared(side, name), random)
        self.phy = phy = self.dut.phy
        self.ram = bytearray(self.size)
        self.parts, self.loads = [], {}
        self.block = PCIeBlock(
            phy.departure, phy.arrival, random, self.receive, self.answers_of_host, **options
        )

    queue = property(lambda self: self.block.waiting)

    def send(self, tlp, **options):
        self.block.send(tlp, **options)

    def answers_of_host(self):
        if self.parts and self.random.random() < 0.3:
            chosen = self.random.choice(self.parts[:3])
            self.send(chosen.pop(0))
            self.parts = [queue for queue in self.parts if queue]

    def processes(self):
        return [self.block.run()]


class TestFourStreams(HostContract):
    @pytest.fixture(params=SHAPES, autouse=True)
    def of(self, request):
        self.shape = request.param

    def bench(self, random):
        return StreamBench(random, self.shape)


# Order up -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_a_load_is_answered_when_the_block_has_reported_each_write_before_it(shape, seed):
    """While it reports nothing, no completion leaves; writes do."""
    bench = StreamBench(Random(seed), shape)
    seen = []

    def load():
        seen.append((yield from bench.load(C.MSIX_TABLE_BASE)))

    def main():
        yield from bench.vector(0, 0x1234, 5)
        bench.block.quiet = True
        for n in range(5):
            yield from bench.write(bench.base + n, bytes([n + 1]), 1)
        yield from finish(lambda: len(bench.marks) == 5, 1000)
        yield from load()

    def later():
        yield from bench.pause(1500)
        assert seen == [] and bytes(bench.ram[:5]) == bytes(range(1, 6))
        bench.block.quiet = False
        yield from finish(lambda: seen, 500)

    bench.run(main(), later())
    assert seen == [0x1234]


@pytest.mark.parametrize("shape", SHAPES)
def test_reads_are_no_reason_to_hold_a_completion(shape, seed):
    """The block reports them too, with number 0."""
    bench = StreamBench(Random(seed), shape)

    def main():
        bench.block.quiet = True
        for n in range(6):
            yield from bench.read(bench.base + 8 * n, 8, n)
        for n in range(6):
            yield from bench.answer(n, 8)
        yield from bench.load(C.MSIX_TABLE_BASE)

    bench.run(main())


@pytest.mark.parametrize("shape", SHAPES)
def test_a_report_of_a_read_stands_for_no_write(shape, seed):
    bench = StreamBench(Random(seed), shape)
    block, seen = bench.block, []

    def main():
        block.quiet = True
        yield from bench.write(bench.base, b"abc", 1)
        yield from finish(lambda: block.reports == [1], 500)
        block.reports[:] = [0] * 4
        block.quiet = False
        seen.append((yield from bench.load(C.MSIX_TABLE_BASE)))

    def later():
        yield from bench.pause(700)
        assert seen == [] and not block.reports
        block.reports.append(1)
        yield from finish(lambda: seen, 500)

    bench.run(main(), later())


@pytest.mark.parametrize("shape", SHAPES)
def test_reports_of_nothing_change_nothing(shape, seed):
    bench = StreamBench(Random(seed), shape)

    def main():
        bench.block.reports += [1, 1, 1, 0, 1]
        yield from bench.pause(40)
        yield from bench.write(bench.base, b"abc", 1)
        yield from bench.load(C.MSIX_TABLE_BASE)
        assert bytes(bench.ram[:3]) == b"abc"

    bench.run(main())


# Order down ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_a_completion_comes_behind_the_stores_before_it(shape, seed):
    """The host stores, and then answers a read. When the answer is there, the stores are done."""
    random = Random(seed)
    bench = StreamBench(random, shape, gap=0.5)
    done = bench.memory["endpoints"]

    def answer(tag, address, length):
        n = 1 + len(answered)
        for k in range(random.randrange(1, 4)):
            bench.send(write(BAR + C.ENDPOINT_BASE + 4 * k, bytes([n] * 4)))
        bench.send(completion(tag, address % 128, length, bytes(length)))
        answered.append(n)

    answered = []
    bench.answer_read = answer

    def main():
        for n in range(30):
            yield from bench.read(bench.base, 8, n % 8)
            yield from bench.answer(n % 8, 8)
            assert done[0] == n + 1

    bench.run(main())


@pytest.mark.parametrize("shape", SHAPES)
def test_requests_and_completions_take_turns(shape, seed):
    """A host that stores without end does not keep the answer of a read away."""
    bench = StreamBench(Random(seed), shape, gap=0.0)
    cycles = []

    def answer(tag, address, length):
        bench.block.send(completion(tag, address % 128, length, bytes(length)))
        # The model's own rule would hold the answer behind the stores that are queued.
        bench.block.posted.clear()

    bench.answer_read = answer

    def main():
        for _ in range(200):
            bench.send(write(BAR + C.ENDPOINT_BASE, bytes(4)))
        yield from bench.read(bench.base, 8, 1)
        yield from bench.answer(1, 8)
        cycles.append(bench.cycle)
        assert bench.block.cq.packets

    bench.run(main())


# What only this block has -------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("status", [CplStatus.UR, CplStatus.CA])
def test_a_refused_read_ends_with_the_host_s_status(status, shape, seed):
    bench = StreamBench(Random(seed), shape)
    bench.answer_read = lambda tag, *_: bench.send(completion(tag, 0, 4, b"", status))

    def main():
        yield from bench.read(bench.base, 8, 3)
        assert (yield from bench.answer(3, 8)) == (status, b"")

    bench.run(main())
    assert bench.counts["TLP_MALFORMED"] == 0


ERRORS = [
    code for code in ErrorCode if code not in (ErrorCode.NORMAL_TERMINATION, ErrorCode.BAD_STATUS)
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.name)
def test_an_error_of_the_block_ends_the_read_and_its_bytes_are_not_used(error, shape, seed):
    """With an error code, the fields but for the tag need not be right."""
    bench = StreamBench(Random(seed), shape)

    def answer(tag, address, length):
        tlp = completion(tag, address % 128, length, bytes(length))
        # A poisoned completion may be told by its code, or by its bit.
        by_bit = error == ErrorCode.POISONED and length == 64
        tlp.ep = by_bit
        bench.send(tlp, error=ErrorCode.NORMAL_TERMINATION if by_bit else error)

    bench.answer_read = answer

    def main():
        for n, length in enumerate((8, 64, 200)):
            yield from bench.read(bench.base, length, n)
            status, data = yield from bench.answer(n, length)
            assert status and not data
        yield from bench.pause(50)

    bench.run(main())
    assert not bench.answers


@pytest.mark.parametrize("shape", SHAPES)
def test_a_packet_that_the_block_takes_back_leaves_nothing_and_is_counted(shape, seed):
    """`discontinue` in its last beat: the block found an error in its own memory."""
    bench = StreamBench(Random(seed), shape)
    place = BAR + C.ENDPOINT_BASE

    def answer(tag, address, length):
        tlp = completion(tag, address % 128, length, bytes(length))
        bench.send(tlp, discontinue=True)

    bench.answer_read = answer

    def main():
        for length in (4, 8, 16, 32):
            bench.send(write(place, b"x" * length), discontinue=True)
            bench.send(write(place + 64, bytes([length] * 4)))
        bench.send(read(place, 4, tag=9), discontinue=True)
        for n, length in enumerate((4, 40)):
            yield from bench.read(bench.base, length, n)
            status, data = yield from bench.answer(n, length)
            assert status and not data
        yield from finish(lambda: not bench.block.waiting, 500)
        yield from bench.pause(50)

    bench.run(main())
    assert bench.memory["endpoints"] == {64 + n: 32 for n in range(4)} and not bench.loads
    assert bench.counts["TLP_MALFORMED"] == 7


ATOMICS = [TlpType.FETCH_ADD, TlpType.SWAP, TlpType.CAS, TlpType.FETCH_ADD_64]


@pytest.mark.parametrize("shape", SHAPES)
def test_requests_that_the_card_does_not_serve_are_refused_and_messages_are_dropped(shape, seed):
    bench = StreamBench(Random(seed), shape)
    kinds = [*ATOMICS, TlpType.MEM_READ_LOCKED, TlpType.IO_READ, TlpType.IO_WRITE]

    def main():
        for tag, kind in enumerate(kinds):
            tlp = read(BAR + C.ENDPOINT_BASE, 4, tag=tag)
            tlp.fmt_type = kind
            if kind in ATOMICS or kind == TlpType.IO_WRITE:
                tlp.set_data(bytes(4 if kind != TlpType.CAS else 8))
            # Of these, `discontinue` has nothing to spoil: the header is all that goes on.
            bench.send(tlp, discontinue=kind in (TlpType.IO_READ, TlpType.IO_WRITE))
            for code in (0b1000, 0b1100, 0b1101, 0b1110):  # configuration, messages
                tlp = write(BAR + C.ENDPOINT_BASE, bytes(4 * bench.random.randrange(1, 20)))
                frame = Tlp_us(tlp).pack_us_cq()
                frame.data[2] = frame.data[2] & ~(0xF << 11) | code << 11
                frame.discontinue = bench.random.random() < 0.5
                bench.block.send_frame(bench.block.cq, frame)
        yield from finish(lambda: len(bench.loads) == len(kinds), 2000)
        yield from bench.pause(50)

    bench.run(main())
    assert all(bench.loads[tag].status == CplStatus.UR for tag in range(len(kinds)))
    assert bench.counts["TLP_MALFORMED"] == 0 and bench.counts["TLP_UNSUPPORTED"] == len(kinds)
    assert not bench.memory["endpoints"]


@pytest.mark.parametrize("shape", SHAPES)
def test_an_address_below_4_gib_has_a_descriptor_like_all_others(shape, seed):
    bench = StreamBench(Random(seed), shape)
    bench.base = 0x1000_0000
    data = bytes(range(100))

    def main():
        yield from bench.write(bench.base + 5, data, 1)
        yield from finish(lambda: bench.marks, 500)
        yield from bench.read(bench.base + 5, 100, 0)
        assert (yield from bench.answer(0, 100)) == (0, data)

    bench.run(main())


# Rate ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape, cycles", [("128", 2), ("256", 1)])
def test_a_write_of_8_bytes_takes_its_beats_and_no_more(shape, cycles, seed):
    bench = StreamBench(Random(seed), shape, gap=0.0, stall=0.0, delay=30)
    spans = []

    def main():
        for n in range(20):
            yield from bench.write(bench.base + 32 * n, bytes(8))
        start = bench.cycle
        for n in range(200):
            yield from bench.write(bench.base + 32 * n, bytes(8))
        spans.append(bench.cycle - start)

    bench.run(main())
    assert spans[0] <= 200 * cycles + 4
