"""CorundumHost keeps what each host side promises, and what Corundum's DMA interface asks."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest
from tests.gateware.models import compiled
from tests.gateware.models.compiled import shared
from tests.gateware.models.corundum import ERRORS, POISONED, UNSUPPORTED, CorundumDMA
from dibber.host.completions import CompletionChecker
from dibber.host.corundum import CorundumHost
from dibber.interface.description import C
from tests.gateware.models.drive import finish
from tests.gateware.models.host_contract import PATIENCE, HostBench, HostContract, observed
from litex.gen import LiteXModule
from migen import passive

STALL = 250  # cycles without progress; longer than the model's longest delays together

# The model: a write lands late, and its status comes later.
SLOW = {"delay": (4, 100), "lag": (0, 60)}

# (bits of a line, segments, bits of a segment): Corundum's PCIe has half the bits of all segments.
SHAPES = [(64, 2, 128), (128, 2, 128), (128, 2, 256), (128, 8, 128), (64, 2, 512)]


# Small RAMs and few tags, so that they run out.
SMALL = (("write_bytes", 2048), ("read_bytes", 4096), ("writes", 16), ("reads", 16))


def corundum_side(data_width, segments, segment_width, sizes):
    return observed(
        CorundumHost(
            data_width,
            0x10000,
            segments,
            segment_width,
            patience=PATIENCE,
            stall_cycles=STALL,
            **dict(sizes),
        )
    )


class CorundumBench(HostBench):
    base, size = 0x12_3456_0000, 0x4000

    def __init__(self, random, shape, sizes=SMALL, **options):
        super().__init__(shared(corundum_side, *shape, sizes), random)
        self.bytes = {}
        self.dma = CorundumDMA(
            self.host, self.bytes, random, **{"refuse": self.refuse, **SLOW, **options}
        )

    def refuse(self, kind, address):
        inside = self.base <= address < self.base + self.size
        return 0 if inside else UNSUPPORTED

    def processes(self):
        return [self.dma.run()]

    def peek(self, address, length):
        return bytes(self.bytes.get(address + n, 0) for n in range(length))
        yield

    def poke(self, address, data):
        self.bytes.update((address + n, byte) for n, byte in enumerate(data))
        return
        yield

    def store(self, offset, word, strobes=0xF):
        """AXI-lite: address and data may come one after the other."""
        bar = self.host.bar
        address_first = self.random.randrange(3)
        yield bar.aw.addr.eq(offset)
        yield bar.w.data.eq(word)
        yield bar.w.strb.eq(strobes)
        yield (bar.aw if address_first else bar.w).valid.eq(1)
        if address_first < 2:
            yield from self.pause(self.random.randrange(3))
        yield bar.aw.valid.eq(1)
        yield bar.w.valid.eq(1)
        yield
        while not (yield bar.aw.ready):
            yield
        assert (yield bar.w.ready)
        yield bar.aw.valid.eq(0)
        yield bar.w.valid.eq(0)
        yield from self.pause(self.random.randrange(3))
        yield bar.b.ready.eq(1)
        yield
        while not (yield bar.b.valid):
            yield
        yield bar.b.ready.eq(0)

    def load(self, offset):
        bar = self.host.bar
        yield bar.ar.addr.eq(offset)
        yield bar.ar.valid.eq(1)
        yield
        while not (yield bar.ar.ready):
            yield
        yield bar.ar.valid.eq(0)
        yield from self.pause(self.random.randrange(12))
        yield bar.r.ready.eq(1)
        yield
        while not (yield bar.r.valid):
            yield
        word = yield bar.r.data
        yield bar.r.ready.eq(0)
        return word

    def withdraw(self):
        self.dma.writes.stuck = self.dma.reads.stuck = True
        return
        yield

    def allow(self):
        self.dma.writes.stuck = self.dma.reads.stuck = False
        return
        yield


class TestCorundumHost(HostContract):
    @pytest.fixture(params=SHAPES, ids=lambda shape: "-".join(map(str, shape)), autouse=True)
    def of(self, request):
        self.shape = request.param

    def bench(self, random):
        return CorundumBench(random, self.shape)


# Rate ---------------------------------------------------------------------------------------------

# The bits of Corundum's PCIe, and the shape that fits.
WIDTHS = {128: (128, 2, 128), 256: (128, 2, 256), 512: (128, 2, 512)}


def cycles_each(shape, length, stride, count):
    """Cycles of the engine for each of many marked writes, after the first third.

    The engine takes a descriptor in 2 cycles. Its status comes 100 cycles after the last byte was
    fetched, which is 400 ns at 250 MHz.
    """
    bench = CorundumBench(Random(1), shape, (), busy=1.0, delay=(100, 100), lag=(0, 0))
    data = {n: bytes([n % 256]) * length for n in range(count)}

    def main():
        for n in range(count):
            yield from bench.write(bench.base + stride * n, data[n], 1)
        yield from finish(lambda: len(bench.marks) == count, 2000)

    bench.run(main())
    for n in range(count):
        landed = bytes(bench.bytes[bench.base + stride * n + b] for b in range(length))
        assert landed == data[n]
    assert len(bench.bytes) == count * length
    taken = bench.dma.writes.cycles
    first = count // 3
    return (taken[-1] - taken[first]) / (count - 1 - first)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_write_of_8_bytes_takes_at_most_2_1_cycles(width, figure):
    """Offsets at every alignment: the stride is odd."""
    cycles = cycles_each(WIDTHS[width], 8, 37, 240)
    assert figure(f"corundum-{width}-bits-8-byte-write", cycles, "cycles", at_most=2.1)


def test_a_write_of_256_bytes_takes_as_many_cycles_as_it_has_lines():
    assert cycles_each(WIDTHS[256], 256, 256, 60) <= 16.1


def test_a_read_of_8_bytes_takes_2_cycles(figure):
    """More reads are under way than a core has tags; each tag is used once."""
    bench = CorundumBench(Random(1), WIDTHS[256], (), busy=1.0, delay=(100, 100), lag=(0, 0))
    bench.bytes.update({bench.base + n: n * 7 % 256 for n in range(0x4000)})

    def main():
        for n in range(240):
            yield from bench.read(bench.base + 37 * n, 8, n)
        yield from finish(lambda: len(bench.answers) == 240, 2000)

    bench.run(main())
    for n in range(240):
        ((status, lower, count, data),) = bench.answers[n]
        assert (status, lower, count) == (0, (bench.base + 37 * n) % 128, 8)
        assert data == bytes((37 * n + k) * 7 % 256 for k in range(8))
    taken = bench.dma.reads.cycles
    cycles = (taken[-1] - taken[80]) / (239 - 80)
    assert figure("corundum-256-bits-8-byte-read", cycles, "cycles", at_most=2.1)


# Statuses -----------------------------------------------------------------------------------------


def test_marks_come_in_order_although_statuses_do_not(seed):
    """Also: a status of no descriptor changes nothing, and is counted."""
    random = Random(seed)
    bench = CorundumBench(random, SHAPES[1], delay=(1, 90), lag=(0, 0))
    ended = []
    end = bench.dma.writes.end

    def watched(descriptor, error):
        end(descriptor, error)
        ended.append(bench.dma.writes.due[-1])

    bench.dma.writes.end = watched

    def main():
        for n in range(60):
            yield from bench.write(bench.base + 8 * n, random.randbytes(8), 1)
            if n % 10 == 5:
                # 16 tags are in use; these are others.
                bench.dma.writes.strays.append((random.randrange(16, 2**16), 0))
                bench.dma.reads.strays.append((random.randrange(2**16), 3))
        yield from finish(lambda: len(bench.marks) == 60, 4000)
        yield from bench.pause(100)

    bench.run(main())
    due = [cycle for cycle, _, _ in ended]
    assert due != sorted(due)
    # The mark of a write comes after its own status and after all earlier ones.
    for n, mark in enumerate(bench.marks):
        assert mark > max(due[: n + 1])
    assert bench.counts["TLP_MALFORMED"] == 12


# Errors -------------------------------------------------------------------------------------------


class Checked(LiteXModule):
    """A CorundumHost with the checker of completions behind it, as in a card."""

    def __init__(self):
        self.host = CorundumHost(128, 0x10000, write_bytes=2048, read_bytes=4096, reads=16)
        self.checker = CompletionChecker(128)
        self.comb += [
            self.checker.id.eq(self.host.id),
            self.checker.requests.connect(self.host.reads),
            self.host.completions.connect(self.checker.sink),
        ]


@pytest.mark.parametrize("error", ERRORS)
def test_each_error_of_a_read_ends_this_read_and_no_other(error, seed):
    """Through the completion checker: a refused read ends at once. Only poisoned data count as a
    fault of a completion, and then the tag is free again at once.
    """
    random = Random(seed)
    dut = Checked()
    memory = {n: random.randrange(256) for n in range(8192)}
    bad = {n for n in range(24) if random.random() < 0.3}
    dma = CorundumDMA(
        dut.host,
        memory,
        random,
        refuse=lambda kind, address: error if kind == "read" and address // 256 in bad else 0,
    )
    reads = [(256 * n + random.randrange(100), random.randrange(1, 150)) for n in range(24)]
    lines, pulses = {n: [] for n in range(24)}, dict.fromkeys(dut.checker.pulses, 0)

    @passive
    def collect():
        source = dut.checker.source
        while True:
            if (yield source.valid):
                tag = yield source.tag
                beat = {}
                for name in ("dat", "status", "failed", "bytes", "lower", "count", "last"):
                    beat[name] = yield getattr(source, name)
                lines[tag].append(beat)
            for name, pulse in dut.checker.pulses.items():
                pulses[name] += yield pulse
            yield

    def main():
        for _ in range(260):
            yield  # the checker clears its memory
        for n, (address, length) in enumerate(reads):
            yield dut.checker.reads.valid.eq(1)
            yield dut.checker.reads.address.eq(address)
            yield dut.checker.reads.length.eq(length)
            yield dut.checker.reads.tag.eq(n)
            yield
            while not (yield dut.checker.reads.ready):
                yield
            yield dut.checker.reads.valid.eq(0)

        def ended(n):
            # A poisoned read ends when the host owes nothing more.
            last = [beat for beat in lines[n] if beat["last"]]
            return len(last) == (2 if error == POISONED and n in bad else 1)

        yield from finish(lambda: all(ended(n) for n in range(24)), 8000)
        for _ in range(200):
            yield

    compiled.run_simulation(dut, [main(), collect(), dma.run()])
    assert bad
    for n, (address, length) in enumerate(reads):
        if n in bad:
            assert all(beat["status"] for beat in lines[n])
            assert [beat["failed"] for beat in lines[n]] == ([1, 0] if error == POISONED else [0])
            continue
        data = b"".join(beat["dat"].to_bytes(16, "little") for beat in lines[n])
        assert not any(beat["status"] for beat in lines[n])
        assert data[address % 16 :][:length] == bytes(memory[address + b] for b in range(length))
    poisoned = pulses.pop("COMPLETION_POISONED")
    assert poisoned == (len(bad) if error == POISONED else 0)
    assert not any(pulses.values())


@pytest.mark.parametrize("error", ERRORS)
def test_a_write_that_fails_gives_no_mark_until_the_program_is_halted(error, seed):
    """Its bytes may be missing, so nothing may say that they landed. Software sees a halt."""
    random = Random(seed)
    bad = 5
    bench = CorundumBench(
        random,
        SHAPES[1],
        refuse=lambda kind, address: error if address == bench.base + 64 * bad else 0,
    )

    def main():
        yield bench.host.running.eq(1)
        for n in range(8):
            yield from bench.write(bench.base + 64 * n, bytes([n + 1] * 8), 1)
        yield from finish(lambda: bench.lost == 1, 3 * PATIENCE)
        # Only writes before the bad one may have landed for the engines.
        assert len(bench.marks) <= bad and (yield bench.host.enable) == 0
        yield bench.host.running.eq(0)
        yield from finish(lambda: len(bench.marks) == 8, 300)
        # When all has ended and the old program is gone, a new one begins anew.
        yield from bench.pause(100)
        yield bench.host.running.eq(1)
        yield from bench.write(bench.base, b"anew", 1)
        yield from finish(lambda: len(bench.marks) == 9, 500)
        assert (yield bench.host.enable) == 1

    bench.run(main())
    assert bench.lost == 1 and bench.counts["REQUESTS_DROPPED"] == 1
    assert bytes(bench.bytes[bench.base + n] for n in range(4)) == b"anew"


def test_a_status_that_comes_after_its_tag_was_taken_anew_is_no_answer(seed):
    """A reader gave the read up; the DMA engine answers it when the next read with this tag is
    under way.
    """
    bench = CorundumBench(Random(seed), SHAPES[1])
    bench.bytes.update({bench.base + n: 1 + n // 64 for n in range(256)})

    def main():
        bench.dma.reads.delay = (10**6, 10**6)
        yield from bench.read(bench.base, 16, 7)
        yield from finish(lambda: bench.dma.later, 200)
        bench.dma.reads.delay = (5, 5)
        bench.dma.delay = (400, 400)
        late = bench.dma.later[0]
        yield from bench.read(bench.base + 64, 16, 7)
        yield from finish(lambda: len(bench.dma.later) == 2, 200)
        # The old one is answered first.
        bench.dma.later[0] = (0, late[1])
        answer = yield from bench.answer(7, 16)
        assert answer == (0, bytes([2] * 16))
        yield from bench.pause(300)
        assert not bench.answers
        # Its place is free again: more reads than there are descriptors.
        bench.dma.delay = (5, 5)
        for n in range(40):
            yield from bench.read(bench.base + 128, 8, n)
            assert (yield from bench.answer(n, 8)) == (0, bytes([3] * 8))

    bench.run(main())


def test_byte_enables_of_a_store_are_kept(seed):
    bench = CorundumBench(Random(seed), SHAPES[1])

    def main():
        yield from bench.store(C.FIRMWARE_BASE + 4, 0x44332211)
        yield from bench.store(C.FIRMWARE_BASE + 4, 0xDDCCBBAA, strobes=0b0110)
        assert (yield from bench.load(C.FIRMWARE_BASE + 4)) == 0x44CCBB11
        # BAR 2 of Corundum has 16 MiB, and BAR 0 of a card 1 MiB: it is not repeated.
        assert (yield from bench.load(C.BAR0_SIZE + C.FIRMWARE_BASE + 4)) == 0xFFFFFFFF

    bench.run(main())
