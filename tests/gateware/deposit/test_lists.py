"""The reader of index lists: every entry once and in order, whatever host memory does; and the
look-up of a list.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from litex.gen import *

from dibber.deposit.lists import ListLookup, ListReader
from dibber.deposit.reach import FAR, NEAR
from dibber.deposit.regions import RegionTable
from dibber.interface.description import RIGHT

from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.drive import finish, sink, source
from tests.gateware.models.hostread import HostRead
from tests.gateware.models.page_tables import Tables, paged

TIMEOUT = 600


def memory(address):
    return (address * 0x9E3779B1 >> 13) & 0xFF


def entry(address):
    return int.from_bytes(bytes(memory(address + i) for i in range(8)), "little")


class Bench:
    """A reader with host memory; `fault` as in HostRead. Orders are dicts of
    `list_order_layout`.
    """

    def __init__(
        self,
        orders,
        data_width=64,
        seed=1,
        busy=1.0,
        tables=None,
        where=lambda a: a,
        reach=FAR,
        **host,
    ):
        self.dut = dut = shared(
            ListReader, data_width, timeout=TIMEOUT, quarantine=1500, **reach.listed.parameters
        )
        self.random = random = Random(seed)
        self.orders, self.got, self.when, self.busy, self.where, self.tables = (
            orders,
            [],
            [],
            busy,
            where,
            tables,
        )
        self.host = HostRead(dut.reads, dut.completions, memory, random, **host)
        self.counts = dict.fromkeys(dut.pulses, 0)

    @passive
    def watch(self):
        yield self.dut.extended_tags.eq(1)
        while True:
            for name, pulse in self.dut.pulses.items():
                self.counts[name] += yield pulse
            yield

    @passive
    def pages(self, tables, found, random):
        """A page finder; `found` is what was asked for."""
        port = self.dut.pages
        while True:
            yield
            if (yield port.valid) and random.random() < 0.2:
                address = yield port.address
                page, fault = tables.where(address & ~0xFFF)
                found.append(address)
                yield port.page.eq(random.getrandbits(52) if fault else page >> 12)
                yield port.fault.eq(fault)
                yield port.done.eq(1)
                yield
                yield port.done.eq(0)

    def run(self, *processes, cycles=12000):
        dut = self.dut
        # Tags are not handed out before their time-out has passed.
        feeding = source(
            dut.sink, [*[None] * (TIMEOUT + 100), *self.orders], self.random, self.busy
        )
        processes = processes or (
            finish(self.finished, cycles),
            sink(
                dut.source, ("base", "error", "last"), self.got, self.random, self.busy, self.when
            ),
        )
        run_simulation(dut, [*processes, self.host.run(), self.watch(), feeding])
        return self

    def entries(self, order, count):
        """The first entries of an order."""
        return [
            (
                (entry(self.where(order["address"] + 8 * n)) + order["origin"]) % 2**64,
                0,
                int(n == order["more"]),
            )
            for n in range(count)
        ]

    def expected(self):
        return [
            values for order in self.orders for values in self.entries(order, order["more"] + 1)
        ]

    def finished(self):
        return len(self.got) == sum(order["more"] + 1 for order in self.orders)


def order(random, most=60):
    return dict(
        address=2**33 + 8 * random.randrange(2048),
        more=random.choice([0, 1, 7, 8, random.randrange(most)]),
        origin=random.getrandbits(64),
    )


@pytest.mark.parametrize("data_width", [64, 128, 256])
@pytest.mark.parametrize("busy", [1.0, 0.6])
@pytest.mark.parametrize("reach", [FAR, NEAR], ids=["far", "near"])
def test_every_entry_comes_once_and_in_order(data_width, busy, reach, seed):
    random = Random(f"{seed} {data_width}")
    bench = Bench([order(random) for _ in range(30)], data_width, seed, busy, reach=reach).run()
    assert bench.got == bench.expected()
    # Nothing else was read, and no line twice.
    wanted = sorted(o["address"] + 8 * n for o in bench.orders for n in range(o["more"] + 1))
    assert (
        sorted(
            a
            for address, length, _ in bench.host.issued
            for a in range(address, address + length, 8)
        )
        == wanted
    )
    assert all(
        address // 64 == (address + length - 1) // 64 for address, length, _ in bench.host.issued
    )
    assert not any(bench.counts.values())


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_an_entry_a_cycle_with_sixteen_reads_under_way(data_width):
    bench = Bench(
        [dict(address=2**33, more=599, origin=5), dict(address=2**34 + 24, more=99, origin=9)],
        data_width,
        latency=(80, 80),
        split=False,
        among=1,
    ).run()
    assert bench.got == bench.expected()
    assert bench.host.most == 16
    assert bench.when[-1] - bench.when[100] == 699 - 100


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_an_entry_that_waits_stays_what_it_is_while_its_place_is_filled_anew(data_width, seed):
    """Entries are taken so slowly that whatever leaves the ring is followed there by a line before
    it is taken itself.
    """
    bench = Bench(
        [dict(address=2**33 + 136, more=399, origin=5)],
        data_width,
        seed,
        busy=0.1,
        latency=(1, 4),
        pause=0.3,
    ).run()
    assert bench.got == bench.expected()


@pytest.mark.parametrize("kind", ["error", "never"])
def test_entries_that_cannot_be_read_are_errors_and_the_others_are_not(kind):
    bad = 2**33 + 128
    bench = Bench(
        [dict(address=2**33, more=29, origin=1), dict(address=2**34, more=9, origin=2)],
        fault=lambda address: kind if address == bad else None,
    )
    bench.run()
    broken = [
        entry_ if not 16 <= n < 24 else (None, 1, 0) for n, entry_ in enumerate(bench.expected())
    ]
    assert [(None if error else base, error, last) for base, error, last in bench.got] == broken
    assert bench.counts == {
        "COMPLETION_UNEXPECTED": 0,
        "COMPLETION_ERROR": int(kind == "error"),
        "COMPLETION_TIMEOUT": int(kind == "never"),
    }


def test_an_answer_that_comes_too_late_harms_nothing():
    late = 2**33
    bench = Bench(
        [dict(address=2**33, more=7, origin=1)]
        + [dict(address=2**34 + 64 * n, more=7, origin=2) for n in range(70)],
        fault=lambda address: 900 if address == late else None,
        busy=0.5,
    )
    bench.run()
    assert [error for _, error, _ in bench.got[:8]] == [1] * 8
    assert bench.got[8:] == bench.expected()[8:]
    assert bench.counts["COMPLETION_TIMEOUT"] == 1 and not bench.counts["COMPLETION_UNEXPECTED"]


def test_an_answer_to_nobody_is_counted_and_absorbed():
    bench = Bench([dict(address=2**33, more=100, origin=1)])
    bench.host.flight[13] = [(0, bench.host.beats(13, 2**34, 64, 64))]
    bench.run()
    assert bench.got == bench.expected()
    assert bench.counts["COMPLETION_UNEXPECTED"] == 1


@pytest.mark.parametrize("taken", [1, 5, 8, 70])
@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_what_is_dropped_ends_soon_and_the_next_list_is_whole(taken, data_width, seed):
    """Some entries of a list of a million are taken; the rest is not wanted."""
    bench = Bench(
        [
            dict(address=2**33 + 40, more=10**6, origin=1),
            dict(address=2**34 + 8, more=50, origin=2),
        ],
        data_width,
        seed,
        latency=(30, 90),
    )
    dut, got, rest = bench.dut, [], []

    def consumer():
        for _ in range(4000):
            if sum(last for *_, last in rest) == 2:
                return
            dropping = len(got) == taken and not any(last for *_, last in rest)
            yield dut.drop.eq(int(dropping))
            yield dut.source.ready.eq(1)
            yield
            if (yield dut.source.valid):
                values = (
                    (yield dut.source.base),
                    (yield dut.source.error),
                    (yield dut.source.last),
                )
                (got if len(got) < taken else rest).append(values)

    bench.run(consumer())
    end = [last for *_, last in rest].index(1)
    first, second = bench.orders
    assert got == bench.entries(first, taken)
    assert rest[end + 1 :] == bench.entries(second, 51)
    assert end < 32 * 8 + 8, "what was under way, and its end"


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_a_list_in_scattered_pages_is_read_where_its_pages_are(data_width, seed):
    random = Random(seed)
    tables = Tables(random, 1, pages=40)
    region = next(iter(tables.shift))
    size = 40 << tables.shift[region]
    orders = [
        dict(
            address=paged(region, random.randrange(size // 8 - 60) * 8),
            more=random.randrange(60),
            origin=7,
        )
        for _ in range(12)
    ]
    bench = Bench(orders, data_width, seed, where=lambda a: tables.where(a)[0])
    found = []
    bench.run(
        finish(bench.finished, 12000),
        bench.pages(tables, found, random),
        sink(bench.dut.source, ("base", "error", "last"), bench.got, random),
    )
    assert bench.got == bench.expected()
    # Each page of 4 KiB once.
    assert found == [
        order["address"] + 8 * n
        for order in orders
        for n in range(order["more"] + 1)
        if n == 0 or (order["address"] + 8 * n) % 4096 == 0
    ]


def test_a_page_that_is_not_there_makes_its_entries_errors():
    random = Random(3)
    tables = Tables(random, 1, pages=4)
    region = next(iter(tables.shift))
    page = 1 << tables.shift[region]
    tables.pages[region][1] |= 1
    bench = Bench([dict(address=paged(region, page - 32), more=11, origin=0)])
    bench.run(
        finish(lambda: len(bench.got) == 12, 4000),
        bench.pages(tables, [], random),
        sink(bench.dut.source, ("base", "error", "last"), bench.got, random),
    )
    assert [error for _, error, _ in bench.got] == [0] * 4 + [1] * 8
    assert [last for *_, last in bench.got] == [0] * 11 + [1]


# Look-up ------------------------------------------------------------------------------------------

BASE, SIZE = 2**35, 4096


class Table(LiteXModule):
    def __init__(self):
        self.regions = RegionTable()
        self.list = ListLookup()
        self.comb += self.list.lookup.connect(self.regions.ports[0])


@pytest.mark.parametrize(
    "key, base, size, rights, owner, offset, good, entries",
    [
        (3, BASE, SIZE, RIGHT.LOCAL_READ, 2, 0, 1, 512),
        (3, BASE, SIZE, 15, 2, 4088, 1, 1),
        (3, BASE, SIZE, RIGHT.LOCAL_READ, 2, 4096, 1, 0),
        (3, BASE + 4, SIZE, RIGHT.LOCAL_READ, 2, 4, 1, 511),
        (3, BASE, 2**40, RIGHT.LOCAL_READ, 2, 8, 1, 2**32 - 1),
        (3, BASE, 2**35 + 8, RIGHT.LOCAL_READ, 2, 16, 1, 2**32 - 1),
        (4, BASE, SIZE, RIGHT.LOCAL_READ, 2, 0, 0, None),
        (3, BASE, SIZE, 15 - RIGHT.LOCAL_READ, 2, 0, 0, None),
        (3, BASE, SIZE, RIGHT.LOCAL_READ, 1, 0, 0, None),
        (3, BASE, SIZE, RIGHT.LOCAL_READ, 2, 4104, 0, None),
        (3, BASE, SIZE, RIGHT.LOCAL_READ, 2, 2**64 - 8, 0, None),
        (3, BASE, SIZE, RIGHT.LOCAL_READ, 2, 12, 0, None),
        (3, BASE + 4, SIZE, RIGHT.LOCAL_READ, 2, 8, 0, None),
    ],
)
def test_a_list_must_be_its_owner_s_readable_aligned_and_in_its_region(
    key, base, size, rights, owner, offset, good, entries
):
    dut = shared(Table)

    def play():
        for name, value in dict(
            index=3, key=3, base=base, length=size, rights=rights, owner=owner, valid=1, write=1
        ).items():
            yield getattr(dut.regions, name).eq(value)
        yield
        yield dut.regions.write.eq(0)
        for name, value in dict(key=key, offset=offset, owner=2, start=1).items():
            yield getattr(dut.list, name).eq(value)
        yield
        yield dut.list.start.eq(0)
        for cycle in range(1, 6):
            yield
            assert (yield dut.list.done) == (cycle == 5)
        assert (yield dut.list.good) == good
        if good:
            assert ((yield dut.list.address), (yield dut.list.entries)) == (base + offset, entries)

    run_simulation(dut, play())
