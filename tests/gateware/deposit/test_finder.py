"""The finder of single pages: each requester gets the address in the tables, with any other
requesters and any host memory.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.deposit.finder import PageFinder

from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.hostread import HostRead
from tests.gateware.models.page_tables import Tables, paged

TIMEOUT, QUARANTINE = 600, 1500
PORTS = 3


class Bench:
    """A finder with host memory and `PORTS` requesters; `host` as in HostRead."""

    def __init__(self, tables, data_width=64, seed=1, **host):
        self.dut = dut = shared(
            PageFinder, data_width, ports=PORTS, timeout=TIMEOUT, quarantine=QUARANTINE
        )
        self.tables, self.random = tables, Random(seed)
        self.host = HostRead(dut.reads, dut.completions, tables.memory, self.random, **host)
        self.counts = dict.fromkeys(dut.pulses, 0)
        self.cycles = []  # of each answer

    def enter(self, region):
        directory = self.dut.directory
        for name, value in dict(
            index=region, table=self.tables.table[region], shift=self.tables.shift[region], strobe=1
        ).items():
            yield getattr(directory, name).eq(value)
        yield
        yield directory.strobe.eq(0)
        yield

    def ask(self, n, address, leave=0):
        """(page, fault) of an address at a port; None when it was taken back after `leave`
        cycles.
        """
        port = self.dut.ports[n]
        yield port.address.eq(address)
        yield port.valid.eq(1)
        yield
        cycles = 0
        while True:
            if (yield port.done):
                answer = (yield port.page), (yield port.fault)
                self.cycles.append(cycles)
                break
            cycles += 1
            if leave and cycles == leave:
                answer = None
                break
            yield
        yield port.valid.eq(0)
        yield
        return answer

    def check(self, n, address, leave=0):
        answer = yield from self.ask(n, address, leave)
        if answer:
            where, fault = self.tables.where(address)
            assert answer[1] == fault
            assert fault or answer[0] == where >> 12

    @passive
    def watch(self):
        while True:
            for name, pulse in self.dut.pulses.items():
                self.counts[name] += yield pulse
            yield

    def run(self, *processes):
        def first(process):
            for region in self.tables.shift:
                yield from self.enter(region)
            # Tags are not handed out before their time-out has passed.
            for _ in range(TIMEOUT + 100):
                yield
            yield from process

        def later(process):
            for _ in range(2 * len(self.tables.shift) + TIMEOUT + 100):
                yield
            yield from process

        run_simulation(
            self.dut,
            [first(processes[0]), *map(later, processes[1:]), self.host.run(), self.watch()],
        )
        return self


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_each_gets_the_page_that_the_table_says(data_width, seed):
    random = Random(f"{seed} {data_width}")
    tables = Tables(random, 6, missing=0.1)
    bench = Bench(tables, data_width, seed, pause=0.2)

    def play(n):
        near = None
        for _ in range(120):
            while not (address := tables.random_address(random, near)) >> 63:
                pass
            near = (address & (1 << 57) - 1) + random.choice([0, 4096, 2**16])
            yield from bench.check(
                n,
                (address & ~0xFFF) + random.randrange(4096),
                random.choice([0, 0, 0, random.randrange(1, 12)]),
            )
            for _ in range(random.choice([0, 0, random.randrange(20)])):
                yield

    bench.run(*[play(n) for n in range(PORTS)])
    assert bench.host.most == 1
    assert all(length == 64 and address % 64 == 0 for address, length, _ in bench.host.issued)
    assert not any(bench.counts.values())


@pytest.mark.parametrize("shift, cycles", [(12, 5), (13, 6), (16, 6), (21, 8), (30, 11)])
def test_what_is_here_takes_a_few_cycles(shift, cycles):
    tables = Tables(Random(1), 1, shifts=(shift,))
    region = next(iter(tables.shift))
    bench = Bench(tables)

    def play():
        for page in [8, 9, 15, 8]:
            yield from bench.check(0, paged(region, page << shift | 8))

    bench.run(play())
    assert len(bench.host.issued) == 1
    assert bench.cycles[1:] == [cycles] * 3


@pytest.mark.parametrize("kind", ["error", "never"])
def test_a_table_that_cannot_be_read_is_a_fault_and_read_again_by_the_next(kind):
    tables = Tables(Random(2), 1, shifts=(12,))
    region = next(iter(tables.shift))
    bad = [True]
    bench = Bench(tables, fault=lambda address: kind if bad[0] else None)

    def play():
        assert (yield from bench.ask(0, paged(region, 0)))[1]
        bad[0] = False
        # A tag in quarantine belongs to no requester.
        yield from bench.check(1, paged(region, 4096))
        yield from bench.check(0, paged(region, 0))

    bench.run(play())
    assert len(bench.host.issued) == 2
    assert bench.counts == {
        "COMPLETION_UNEXPECTED": 0,
        "COMPLETION_ERROR": int(kind == "error"),
        "COMPLETION_TIMEOUT": int(kind == "never"),
    }


def test_an_answer_that_comes_too_late_harms_nothing():
    tables = Tables(Random(3), 1, shifts=(12,))
    region = next(iter(tables.shift))
    late = tables.table[region]
    bench = Bench(tables, fault=lambda address: 1000 if address == late else None)

    def play():
        assert (yield from bench.ask(0, paged(region, 0)))[1]
        for page in range(8, 168):
            yield from bench.check(0, paged(region, page << 12))

    bench.run(play())
    assert bench.counts["COMPLETION_TIMEOUT"] == 1 and not bench.counts["COMPLETION_UNEXPECTED"]


def test_a_region_that_is_entered_anew_has_new_pages(seed):
    random = Random(seed)
    tables = Tables(random, 2, shifts=(12,))
    region = next(iter(tables.shift))
    bench = Bench(tables, seed=seed)

    def play():
        for _ in range(20):
            for page in range(4):
                yield from bench.check(0, paged(region, page << 12))
            tables.pages[region][:4] = [random.getrandbits(30) << 12 for _ in range(4)]
            yield from bench.enter(region)

    def other():
        for _ in range(60):
            yield from bench.check(1, paged(list(tables.shift)[1], random.randrange(64) << 12))

    bench.run(play(), other())


def test_an_answer_to_nobody_is_counted():
    tables = Tables(Random(4), 1, shifts=(12,))
    region = next(iter(tables.shift))
    bench = Bench(tables)
    bench.host.flight[3] = [(0, bench.host.beats(3, tables.table[region], 64, 64))]

    def play():
        for page in range(0, 40, 8):
            yield from bench.check(0, paged(region, page << 12))

    bench.run(play())
    assert bench.counts["COMPLETION_UNEXPECTED"] == 1
