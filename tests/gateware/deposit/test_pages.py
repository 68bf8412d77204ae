"""Translation of paged addresses: against the tables, for random traffic, with tables that cannot
be read.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.deposit.pages import PagedPieces, Translator
from dibber.layouts import piece_layout, write_layout

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, growing, sink, source
from tests.gateware.models.hostread import HostRead
from tests.gateware.models.page_tables import Tables, paged

LINE = 64


class Bench:
    def __init__(
        self,
        layout,
        data_width,
        random,
        tables,
        busy=1.0,
        out_busy=1.0,
        items=(),
        fault=None,
        latency=(10, 60),
        **how,
    ):
        self.dut = dut = Translator(layout, data_width, timeout=600, quarantine=1500, **how)
        self.host = HostRead(
            dut.reads,
            dut.completions,
            tables.memory,
            random,
            latency=latency,
            split=False,
            fault=fault,
        )
        self.items, self.seen, self.tables, self.cycles = list(items), [], tables, []
        self.counts = dict.fromkeys(dut.pulses, 0)
        dut.comb += dut.extended_tags.eq(1)
        self.processes = [
            self.enter(),
            self.host.run(),
            sink(
                _Watched(dut),
                ["address", "length", "last", "fault"],
                self.seen,
                random,
                out_busy,
                self.cycles,
            ),
        ]
        self.random, self.busy = random, busy

    def enter(self):
        for region in self.tables.shift:
            yield from self.set(region)

    def set(self, region):
        directory = self.dut.directory
        yield directory.index.eq(region)
        yield directory.table.eq(self.tables.table[region])
        yield directory.shift.eq(self.tables.shift[region])
        yield directory.strobe.eq(1)
        yield
        yield directory.strobe.eq(0)

    def run(self, cycles=20000):
        # Tags are not handed out before their time-out has passed.
        feeding = source(self.dut.sink, [*[None] * 800, *self.items], self.random, self.busy)
        run_simulation(
            self.dut,
            [*self.processes, feeding, finish(lambda: len(self.seen) == len(self.items), cycles)],
        )

    def check(self):
        wanted = []
        for item in self.items:
            address, fault = self.tables.where(item["address"])
            wanted.append((address, item["length"], item["last"], fault))
        got = [
            (None if fault else address, length, last, fault)
            for address, length, last, fault in self.seen
        ]
        assert got == wanted


class _Watched:
    """The translator's output with `fault` among its fields."""

    def __init__(self, dut):
        self.fault = dut.fault
        for name in ["valid", "ready", "last", "address", "length"]:
            setattr(self, name, getattr(dut.source, name))


def walk(tables, random, count):
    """Items as walkers make them: runs of addresses a stride apart, whole writes of several beats
    in between.
    """
    items = []
    while len(items) < count:
        base, stride = tables.random_address(random), random.choice((8, 64, 4096, 8192, 1 << 16))
        for n in range(random.randint(1, 12)):
            address = base + n * stride
            if (
                address >> 63
                and (address & (1 << 57) - 1) >> tables.shift[address >> 57 & 63] >= tables.extent
            ):
                break
            for beat in range(beats := random.choice((1, 1, 3))):
                items.append(
                    dict(address=address, length=random.randint(1, 64), last=int(beat == beats - 1))
                )
    return items


@pytest.mark.parametrize("data_width", [64, 128, 256])
@pytest.mark.parametrize("lines, depth, tags", [(64, 32, 16), (8, 32, 2), (8, 8, 1), (16, 32, 4)])
def test_every_address_is_the_table_s(data_width, lines, depth, tags, seed):
    random = Random(f"{seed} {data_width} {lines}")
    tables = Tables(random, 4, missing=0.1)
    bench = Bench(
        write_layout(data_width),
        data_width,
        random,
        tables,
        busy=0.8,
        out_busy=0.7,
        items=walk(tables, random, 400),
        lines=lines,
        depth=depth,
        tags=tags,
    )
    bench.run(60000)
    bench.check()
    assert bench.host.most == min(tags, bench.host.most) and {
        fault for *_, fault in bench.seen
    } == {0, 1}
    assert all(address % LINE == 0 and length == LINE for address, length, _ in bench.host.issued)


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_an_address_that_waits_stays_what_it_is_while_its_line_is_filled_anew(data_width, seed):
    """Taken so slowly, from a cache so small, that the next line is in its place before an address
    is taken.
    """
    random = Random(f"{seed} {data_width}")
    tables = Tables(random, 1)
    region = next(iter(tables.shift))
    items = [
        dict(address=paged(region, random.randrange(200) << tables.shift[region]), length=8, last=1)
        for _ in range(200)
    ]
    bench = Bench(
        piece_layout(),
        data_width,
        random,
        tables,
        out_busy=0.1,
        items=items,
        latency=(1, 4),
        lines=2,
        depth=2,
    )
    bench.run()
    bench.check()


def test_lines_that_are_needed_are_fetched_once_and_ahead():
    """A stride of two pages: each line of the table serves four, and many are under way
    together.
    """
    random = Random(1)
    tables = Tables(random, 1, pages=1000)
    region = next(iter(tables.shift))
    items = [
        dict(address=paged(region, n * 2 << tables.shift[region]), length=8, last=1)
        for n in range(400)
    ]
    bench = Bench(piece_layout(), 128, random, tables, items=items, latency=(50, 50))
    bench.run()
    bench.check()
    assert len(bench.host.issued) == 100
    assert bench.host.most >= 7
    assert (bench.cycles[-1] - bench.cycles[40]) / 360 < 2.1, (
        "a piece every other cycle, with 50 cycles to a line"
    )


def test_what_is_here_passes_in_every_cycle():
    random = Random(1)
    tables = Tables(random, 1)
    region = next(iter(tables.shift))
    items = [dict(address=paged(region, 8 * n), length=8, last=1) for n in range(200)]
    bench = Bench(piece_layout(), 64, random, tables, items=items)
    bench.run()
    bench.check()
    assert bench.cycles[-1] - bench.cycles[100] == 99


@pytest.mark.parametrize("kind", ["error", "never"])
def test_a_table_that_cannot_be_read_is_a_fault_and_asked_for_again_later(kind):
    random = Random(2)
    tables = Tables(random, 1)
    region = next(iter(tables.shift))
    state = {"fault": kind}
    bench = Bench(piece_layout(), 64, random, tables, fault=lambda address: state["fault"])
    address = paged(region, 3 << tables.shift[region])
    item = dict(address=address, length=8, last=1)

    def play():
        for _ in range(800):
            yield
        bench.items.extend([item, item])
        yield from finish(lambda: len(bench.seen) == 2, 2500)
        state["fault"] = None
        for _ in range(2500):
            yield
        bench.items.append(item)
        yield from finish(lambda: len(bench.seen) == 3, 500)

    run_simulation(
        bench.dut, [*bench.processes, source(bench.dut.sink, growing(bench.items), random), play()]
    )
    assert [fault for *_, fault in bench.seen] == [1, 1, 0]
    assert bench.seen[2][0] == tables.where(address)[0]
    assert len(bench.host.issued) == 2


def test_a_new_entry_of_the_directory_empties_the_cache():
    random = Random(3)
    tables = Tables(random, 2)
    region = next(iter(tables.shift))
    bench = Bench(piece_layout(), 128, random, tables)
    address = paged(region, 5)
    item = dict(address=address, length=8, last=1)
    places = []

    def play():
        for _ in range(800):
            yield
        for n in range(2):
            places.append(tables.where(address))
            bench.items.append(item)
            yield from finish(lambda: len(bench.seen) == n + 1, 500)
            tables.pages[region][0] ^= 1 << 45
            yield from bench.set(region)

    run_simulation(
        bench.dut, [*bench.processes, source(bench.dut.sink, growing(bench.items), random), play()]
    )
    assert [(a, 0) for a, *_ in bench.seen] == places and places[0] != places[1]


def test_what_is_under_way_in_a_region_that_is_taken_out_finds_its_own_pages():
    """The entry that takes it out has no shift, and whatever table was entered last."""
    random = Random(4)
    tables = Tables(random, 2)
    region, other = tables.shift
    bench = Bench(piece_layout(), 64, random, tables)
    items = [
        dict(address=paged(region, n << tables.shift[region]), length=8, last=1) for n in range(60)
    ]

    def play():
        for _ in range(800):
            yield
        bench.items.extend(items)
        yield from finish(lambda: len(bench.seen) == 3, 500)
        directory = bench.dut.directory
        yield directory.index.eq(region)
        yield directory.table.eq(tables.table[other])
        yield directory.shift.eq(0)
        yield directory.strobe.eq(1)
        yield
        yield directory.strobe.eq(0)
        yield from finish(lambda: len(bench.seen) == len(items), 2000)

    run_simulation(
        bench.dut, [*bench.processes, source(bench.dut.sink, growing(bench.items), random), play()]
    )
    bench.check()


def test_an_end_is_inside_from_when_it_was_taken_until_it_leaves(seed):
    """In every cycle, as walks and aborts rely on it; what passes in its cycle was never inside."""
    random = Random(seed)
    tables = Tables(random, 4)
    bench = Bench(piece_layout(), 64, random, tables)
    dut = bench.dut = PagedPieces(64, timeout=600, quarantine=1500)
    host = HostRead(
        dut.reads, dut.completions, tables.memory, random, latency=(10, 60), split=False
    )
    items = [dict(item, last=random.randrange(2)) for item in walk(tables, random, 600)]
    pauses = [
        each for n, item in enumerate(items) for each in ([None] * (200 * (n % 20 == 0)) + [item])
    ]
    seen, inside, found = [], [0], set()
    dut.comb += dut.extended_tags.eq(1)

    @passive
    def watch():
        while True:
            yield
            assert (yield dut.ending) == (inside[0] > 0)
            taken = (yield dut.sink.valid) & (yield dut.sink.ready) & (yield dut.sink.last)
            left = (yield dut.source.valid) & (yield dut.source.ready) & (yield dut.source.last)
            found.add((inside[0] > 0, taken, left))
            inside[0] += taken - left

    run_simulation(
        dut,
        [
            bench.enter(),
            host.run(),
            watch(),
            sink(dut.source, ["last"], seen, random, 0.6),
            source(dut.sink, [*[None] * 800, *pauses], random, 0.7),
            finish(lambda: len(seen) == len(items), 40000),
        ],
    )
    assert len(found) == 7
