"""The root complex on the card: TLPs of a card on one side, a bus on the other, memory between
them.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from cocotbext.pcie.core.tlp import CplStatus, Tlp, TlpType
from cocotbext.pcie.core.utils import PcieId
from dibber.bridge.root import BAR_BASE, MAX_PAYLOAD, MAX_REQUEST, MEMORY_BASE, RootComplex
from dibber.interface.description import BRIDGE, C

from tests.gateware.host.tlps import from_beats, read, to_beats, to_dwords, write
from tests.gateware.models.compiled import run_simulation

SIZE = 4096  # bytes of on-card memory


class Bench:
    """A root complex; `card(tlp)` sends one from the card's side, `tlps` are those that came to it.

    `answer(tlp)` makes the card's completion for a read of BAR 0.
    """

    def __init__(self, data_width, seed, answer=None):
        self.dut = RootComplex(data_width, SIZE)
        self.random = random.Random(seed)
        self.queue = []
        self.tlps = []
        self.answer = answer
        self.refused = 0
        self.cycle = 0
        self.patient = False  # the card may be held
        self.patience = None  # the cycle by which a load has its answer
        self.done = False

    def card(self, *tlps):
        for tlp in tlps:
            self.queue += to_beats(to_dwords(tlp, "little"), self.dut.data_width)

    def card_process(self):
        """The card's side: it sends with gaps; what it gets it takes with stalls."""
        sink, source, beats = self.dut.sink, self.dut.source, []
        while not self.done:
            if (yield sink.valid) and not (yield sink.ready):
                assert self.patient, "the root complex refused a beat"
                yield
                continue
            if (yield source.valid) and (yield source.ready):
                beats.append(
                    (
                        (yield source.dat),
                        (yield source.be),
                        (yield source.first),
                        (yield source.last),
                    )
                )
                if beats[-1][3]:
                    tlp = from_beats(beats, self.dut.data_width, "little")
                    self.tlps.append(tlp)
                    beats = []
                    if self.answer and tlp.fmt_type == TlpType.MEM_READ:
                        self.card(self.answer(tlp))
            self.refused += yield self.dut.refused
            self.cycle += 1
            assert self.patience is None or self.cycle < self.patience, "a load was not answered"
            yield source.ready.eq(self.random.random() < 0.7)
            yield sink.valid.eq(0)
            if self.queue and self.random.random() < 0.8:
                dat, be, first, last = self.queue.pop(0)
                yield sink.valid.eq(1)
                yield sink.dat.eq(dat)
                yield sink.first.eq(first)
                yield sink.last.eq(last)
            yield

    def load(self, address):
        # A load that is never answered should fail, not hang.
        self.patience = self.cycle + 1000
        value = yield from self.dut.bus.read(address // 4)
        self.patience = None
        return value

    def store(self, address, value):
        yield from self.dut.bus.write(address // 4, value)

    def rest(self, cycles=200):
        """Let what is queued go, and then some time pass."""
        while self.queue:
            yield
        for _ in range(cycles):
            yield

    def run(self, scenario):
        def main():
            yield from scenario()
            self.done = True

        run_simulation(self.dut, [main(), self.card_process()])


def completion(request, data=b"", status=CplStatus.SC):
    tlp = Tlp.create_completion_for_tlp(
        request, PcieId.from_int(0x0100), has_data=bool(data), status=status
    )
    if data:
        tlp.set_data(data)
        tlp.byte_count = len(data)
    return tlp


@pytest.mark.parametrize("data_width", [64, 128])
def test_what_the_card_writes_the_bus_finds_and_the_card_reads_back(data_width, seed):
    bench = Bench(data_width, seed)
    rng = random.Random(seed)
    memory = bytearray(SIZE)
    reads = []

    def scenario():
        for n in range(0, SIZE, 4):
            yield from bench.store(MEMORY_BASE + n, 0)
        for _ in range(40):
            data = rng.randbytes(rng.randrange(1, MAX_PAYLOAD + 1))
            place = rng.randrange(SIZE - len(data) + 1)
            # The upper half of an address is not looked at: a 4-DW header is as good.
            bench.card(write(MEMORY_BASE + place + (rng.randrange(2) << 40), data))
            memory[place : place + len(data)] = data
        # A read does not overtake the writes before it.
        for tag in range(8):
            length = rng.randrange(1, MAX_REQUEST + 1)
            place = rng.randrange(SIZE - length + 1)
            reads.append((place, length))
            bench.card(read(MEMORY_BASE + place, length, tag=tag, requester=0x0100))
        yield from bench.rest(600)
        for n in range(0, SIZE, 4):
            assert (yield from bench.load(MEMORY_BASE + n)) == int.from_bytes(
                memory[n : n + 4], "little"
            )

    bench.run(scenario)
    for tag, (place, length) in enumerate(reads):
        answers = [tlp for tlp in bench.tlps if tlp.tag == tag]
        got, at = b"", place
        for tlp in answers:
            assert tlp.fmt_type == TlpType.CPL_DATA and tlp.status == CplStatus.SC
            assert int(tlp.requester_id) == 0x0100
            assert tlp.byte_count == length - len(got)
            assert tlp.lower_address == at % 128
            data = bytes(tlp.get_data())[at % 4 :][: tlp.byte_count]
            got, at = got + data, at + len(data)
        assert got == memory[place : place + length]
    assert bench.refused == 0


@pytest.mark.parametrize("data_width", [64, 128])
def test_bus_accesses_of_bar_0_are_tlps_of_one_dword_in_order(data_width, seed):
    def answer(tlp):
        assert int(tlp.requester_id) == 0
        return completion(tlp, (tlp.address ^ 0x5A5A5A5A).to_bytes(4, "little"))

    bench = Bench(data_width, seed, answer)
    rng = random.Random(seed)
    expected = []

    def scenario():
        for _ in range(60):
            address = BAR_BASE + 4 * rng.randrange(0x100000 // 4)
            if rng.random() < 0.5:
                value = rng.getrandbits(32)
                yield from bench.store(address, value)
                expected.append((TlpType.MEM_WRITE, address, value))
            else:
                assert (yield from bench.load(address)) == address ^ 0x5A5A5A5A
                expected.append((TlpType.MEM_READ, address, None))
        yield from bench.rest(4)

    bench.run(scenario)
    seen = [
        (
            tlp.fmt_type,
            tlp.address,
            int.from_bytes(tlp.get_data(), "little") if tlp.fmt_type == TlpType.MEM_WRITE else None,
        )
        for tlp in bench.tlps
    ]
    assert seen == expected
    assert all((tlp.length, tlp.first_be, tlp.last_be) == (1, 0xF, 0) for tlp in bench.tlps)


def test_what_has_no_place_is_refused_and_harms_nothing(seed):
    bench = Bench(64, seed, lambda tlp: completion(tlp, status=CplStatus.UR))

    def scenario():
        yield from bench.store(MEMORY_BASE, 0x11223344)
        bench.card(write(MEMORY_BASE + SIZE, bytes(8)), read(MEMORY_BASE + SIZE, 8, tag=7))
        yield from bench.rest()
        assert (yield from bench.load(MEMORY_BASE)) == 0x11223344
        # What the card refuses reads as ones.
        assert (yield from bench.load(BAR_BASE)) == 0xFFFFFFFF

    bench.run(scenario)
    refusal, request = bench.tlps
    assert (refusal.fmt_type, refusal.status, refusal.tag) == (TlpType.CPL, CplStatus.UR, 7)
    assert request.fmt_type == TlpType.MEM_READ
    assert bench.refused == 2


@pytest.mark.parametrize("data_width, chunk_cycles", [(64, 39), (128, 22)])
def test_cycles_of_a_read(data_width, chunk_cycles):
    """What the docstring of RootComplex says."""
    dut = RootComplex(data_width, SIZE)
    seen = []

    def starts(length):
        """The cycles after the request's last beat in which an answer begins."""
        for dat, _, _, last in to_beats(to_dwords(read(MEMORY_BASE, length), "little"), data_width):
            yield dut.sink.valid.eq(1)
            yield dut.sink.dat.eq(dat)
            yield dut.sink.last.eq(last)
            yield
        yield dut.sink.valid.eq(0)
        cycles = []
        for cycle in range(1, 151):
            yield
            if (yield dut.source.valid) and (yield dut.source.first):
                cycles.append(cycle)
        return cycles

    def main():
        yield dut.source.ready.eq(1)
        for length in [4, MAX_REQUEST]:
            seen.append((yield from starts(length)))

    run_simulation(dut, main())
    line, chunks = seen
    assert line == [15]
    assert [after - before for before, after in zip(chunks, chunks[1:])] == [chunk_cycles] * 3


@pytest.mark.parametrize("data_width", [64, 128])
def test_the_bank_says_where_the_card_has_written_and_a_held_card_waits(data_width, seed):
    bench = Bench(data_width, seed)
    rng = random.Random(seed)
    register = lambda name, n=0: C.BRIDGE_BASE + BRIDGE[name].offset + 4 * n
    chunk = SIZE // C.BRIDGED_CHUNKS

    def changed():
        words = []
        for n in range(BRIDGE["CHANGED"].count):
            words.append((yield from bench.load(register("CHANGED", n))))
        return {
            32 * n + bit for n, word in enumerate(words) for bit in range(32) if word >> bit & 1
        }

    def scenario():
        assert (yield from bench.load(register("MAGIC"))) == C.BRIDGE_SIGNATURE
        assert (yield from bench.load(register("MEMORY"))) == SIZE
        assert (yield from changed()) == set()
        wanted = set()
        for _ in range(5):
            data = rng.randbytes(rng.randrange(1, 100))
            place = rng.randrange(SIZE - len(data) + 1)
            bench.card(write(MEMORY_BASE + place, data))
            wanted |= set(range(place // chunk, (place + len(data) - 1) // chunk + 1))
        yield from bench.rest()
        assert (yield from changed()) == wanted
        for n in range(BRIDGE["CHANGED"].count):
            yield from bench.store(register("CHANGED", n), 0xFFFFFFFF)
        # What the program itself writes is no change.
        yield from bench.store(MEMORY_BASE, 0x11223344)
        yield from bench.store(register("HOLD"), 1)
        bench.patient = True
        bench.card(write(MEMORY_BASE, b"late"))
        for _ in range(100):
            yield
        assert (yield from changed()) == set() and (
            yield from bench.load(MEMORY_BASE)
        ) == 0x11223344
        yield from bench.store(register("HOLD"), 0)
        yield from bench.rest()
        bench.patient = False
        assert (yield from changed()) == {0} and (
            yield from bench.load(MEMORY_BASE)
        ) == int.from_bytes(b"late", "little")

    bench.run(scenario)
