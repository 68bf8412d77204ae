"""Addresses of 32 bits: all is as with 64, modulo 2**32, and what does not fit is refused and not
cut off.
"""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
from functools import partial
from random import Random

import pytest

from migen import *

from litex.gen import *

from dibber.deposit.atomic import AtomicUnit
from dibber.deposit.expected import ExpectedTable
from dibber.deposit.express_lander import ExpressLander
from dibber.deposit.finder import PageFinder
from dibber.deposit.regions import NarrowRegion, RegionTable
from dibber.deposit.scatter import ScatterEngine
from dibber.deposit.send_engine import SendEngine
from dibber.deposit.walker import Walker
from dibber.interface.description import C, OPCODE, RIGHT, STATUS
from dibber.layouts import piece_layout

from tests.gateware.deposit import test_atomic
from tests.gateware.deposit import test_express_lander
from tests.gateware.deposit import test_finder
from tests.gateware.deposit import test_listed_walks
from tests.gateware.deposit import test_pages
from tests.gateware.deposit import test_scatter
from tests.gateware.deposit import test_send_engine
from tests.gateware.deposit import test_walker
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.page_tables import Tables, paged
from tests.gateware.models.walk import Walk

BITS = 32
TOP = 2**BITS - 1
BASE = 0x40000123

# Walks --------------------------------------------------------------------------------------------


def narrow(random, walk):
    """The same walk at the end of memory that the former one had in its midst; steps of any
    size.
    """
    start = random.choice(
        [walk.address % 2**31, TOP - random.randrange(20000), random.randrange(2**BITS)]
    )
    low, high = (
        max(0, start - (walk.address - walk.low)),
        min(TOP, start + walk.high - walk.address),
    )
    whole = walk.low == 0 and walk.high == 2**64 - 1
    strides = tuple(
        random.choice([stride, random.randrange(-(2**31), 2**31)]) for stride in walk.strides
    )
    return dataclasses.replace(
        walk,
        address=start,
        low=0 if whole else low,
        high=TOP if whole else high,
        strides=strides,
        bits=BITS,
    )


@pytest.mark.parametrize("max_piece, busy", [(128, 1.0), (256, 0.6)])
def test_random_walks(max_piece, busy, seed, monkeypatch):
    random = Random(f"{seed} {max_piece}")
    walks = [narrow(random, test_walker.random_walk(random)) for _ in range(60)]
    monkeypatch.setattr(test_walker, "Walker", lambda: Walker(BITS))
    got, _ = test_walker.run(walks, max_piece, busy=busy)
    assert test_walker.without_error_addresses(got) == test_walker.expected(walks, max_piece)


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_an_entry_of_more_bits_leaves_the_region(data_width, seed, monkeypatch):
    """The first one that a walk needs, or a later one; of those before the pieces are there, of
    those passed over nothing is known.
    """
    random = Random(f"{seed} {data_width}")
    walks = []
    for n in range(40):
        entries = [random.randrange(-(2**31), 2**31) for _ in range(20)]
        skip = 8 * random.randrange(10)
        if n % 4:
            at = random.choice([skip // 8, random.randrange(20)])
            entries[at] = random.choice(
                [entries[at] % 2**31 + 2**31, entries[at] + 2**32, -(2**31) - 1, 2**40, -(2**63)]
            )
        walks.append(
            Walk(
                random.randrange(2**31),
                0,
                TOP,
                8,
                (),
                (),
                160 - skip,
                skip,
                tuple(entries),
                (n + 1) << 20,
                BITS,
            )
        )
    monkeypatch.setattr(
        test_listed_walks, "Listed", partial(test_listed_walks.Listed, address_bits=BITS)
    )
    bench = test_listed_walks.Bench(walks, data_width, seed, 0.8).run()
    bench.check()
    assert {fault for *_, error, fault in bench.got if error} == {0}


# Regions ------------------------------------------------------------------------------------------


def region_of(random):
    """base, length, table, and what the model says: None or where it begins."""
    small = lambda bits: random.getrandbits(random.randint(1, bits))
    table = random.choice([small(31), small(64)]) & ~63
    if random.random() < 0.5:
        base, length = (
            random.choice([small(31), 2**31 - small(20), small(63)]),
            random.choice([small(20), small(48)]),
        )
        return base, length, table, base if base + length < 2**31 else None
    index, first = random.randrange(C.REGIONS), random.choice([small(13), small(30)])
    length = random.choice([small(25), 2**25 - first - small(3), small(48)]) % 2**48
    fits = first + length < 2**25 and table < 2**31
    return paged(index, first), length, table, paged(index, first, BITS) if fits else None


def test_a_region_that_does_not_fit_is_not_valid(seed):
    random = Random(seed)
    dut = NarrowRegion(BITS)
    seen = set()

    def bench():
        for _ in range(400):
            base, length, table, where = region_of(random)
            for name, value in dict(base=base, length=length, table=table).items():
                yield getattr(dut, name).eq(value)
            yield
            assert (yield dut.fits) == (where is not None), (hex(base), hex(length), hex(table))
            if where is not None:
                assert ((yield dut.low), (yield dut.size)) == (where, length)
            seen.add((base >> 63, where is None))

    run_simulation(dut, [bench()])
    assert len(seen) == 4


# Engines ------------------------------------------------------------------------------------------


class Sender(LiteXModule):
    def __init__(self, data_width, tags):
        self.regions = RegionTable(address_bits=BITS)
        self.send = SendEngine(
            data_width, tags=tags, timeout=test_send_engine.TIMEOUT, address_bits=BITS
        )
        self.comb += self.send.lookup.connect(self.regions.ports[0])


FAR_STRIDES = (2**31, -(2**31) - 1, 2**32, 24 + 2**32, 2**63 - 1)


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_a_source_of_more_bits_is_out_of_bounds(data_width, seed, monkeypatch):
    """Of what there is: strides of levels that there are not, and what was in a slot before, do not
    count.
    """
    monkeypatch.setattr(test_send_engine, "Engine", Sender)
    monkeypatch.setattr(test_send_engine, "BASE", BASE)
    monkeypatch.setattr(
        test_send_engine, "REGIONS", ((1, BASE, RIGHT.LOCAL_READ), (2, BASE, RIGHT.REMOTE_READ))
    )
    put = lambda *source, length: (
        test_send_engine.command(source, test_send_engine.TARGET, length),
        {},
    )
    walk = lambda *strides, count=2: put(
        1, 0, 8, strides, (count,) * len(strides), length=8 * count ** len(strides)
    )
    jobs = [
        (walk(24, -8, 4000), STATUS.BOUNDS),  # left: below the region's start
        (walk(24, 8, 4000), STATUS.OK),
        *[
            (walk(*strides), STATUS.BOUNDS)
            for far in FAR_STRIDES
            for strides in ((far,), (24, far), (24, 8, far))
        ],
        (walk(2**32 + 24, count=1), STATUS.BOUNDS),
        (put(1, 0, 0, (), (), length=64), STATUS.OK),
        *[(put(1, far, 0, (), (), length=64), STATUS.BOUNDS) for far in (2**32, 2**63, 2**64 - 64)],
        (put(1, 0, 8, (2**32,), (1,), length=0), STATUS.OK),
        (walk(24), STATUS.OK),
        (put(1, 0, 8, (24,), (2,), (2**32, 1), length=8), STATUS.BAD_LIST),
    ]
    bench = test_send_engine.Bench([job for job, _ in jobs], data_width, seed).run(cycles=20000)
    assert bench.statuses() == [status for _, status in jobs]
    assert all(
        BASE <= address < BASE + test_send_engine.LENGTH for address, *_ in bench.host.issued
    )


class Receiver(LiteXModule):
    def __init__(self, data_width):
        self.regions = RegionTable(ports=1, address_bits=BITS)
        self.expected = ExpectedTable()
        self.engine = ScatterEngine(data_width, address_bits=BITS)
        self.comb += [
            self.engine.lookup.connect(self.regions.ports[0]),
            self.engine.expected.connect(self.expected.port),
        ]


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_packets_land_and_what_was_cut_off_is_out_of_bounds(data_width, seed, monkeypatch):
    random = Random(f"{seed} {data_width}")
    monkeypatch.setattr(test_scatter, "Receiver", Receiver)
    monkeypatch.setattr(test_scatter, "BASE", BASE)
    monkeypatch.setattr(test_scatter, "region", partial(test_scatter.region, base=BASE))
    packets = [test_scatter.random_packet(random, n) for n in range(30)]
    for packet in packets[5::6]:
        packet.fields["far"] = 1
    for packet in packets:
        packet.fields.setdefault("far", 0)
    far = [packet for packet in packets if packet.fields["far"]]
    host, done, _ = test_scatter.run(packets, len(packets), data_width, seed, 0.8, cycles=40000)
    assert done == [
        (1, p.psn, int(p in far), STATUS.REMOTE_BOUNDS if p in far else STATUS.OK) for p in packets
    ]
    test_scatter.check_memory(host, [p for p in packets if p not in far])


class Lander(LiteXModule):
    def __init__(self, data_width):
        self.regions = RegionTable(ports=1, address_bits=BITS)
        self.lander = ExpressLander(data_width, BITS)
        self.comb += self.lander.lookup.connect(self.regions.ports[0])


def test_small_deposits_land_and_what_was_cut_off_is_out_of_bounds(seed, monkeypatch):
    monkeypatch.setattr(test_express_lander, "Engine", Lander)
    monkeypatch.setattr(test_express_lander, "BASE", BASE)
    packets = [test_express_lander.Packet(n, bytes([n] * 8), offset=16 * n) for n in range(12)]
    for packet in packets:
        packet.fields["far"] = int(packet.psn % 3 == 2)
    bench = test_express_lander.Bench(packets, 64, seed).run(len(packets))
    assert [(psn, reason) for _, psn, _, _, reason, _ in bench.done] == [
        (p.psn, STATUS.REMOTE_BOUNDS if p.fields["far"] else STATUS.OK) for p in packets
    ]
    assert bench.host.memory == {
        p.address + i: p.psn for p in packets if not p.fields["far"] for i in range(8)
    }


class Unit(LiteXModule):
    def __init__(self, data_width):
        self.regions = RegionTable(address_bits=BITS)
        self.atomic = AtomicUnit(data_width, timeout=100, quarantine=1000, address_bits=BITS)
        self.comb += self.atomic.lookup.connect(self.regions.ports[0])


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_an_atomic_of_more_bits_is_out_of_bounds(data_width, seed, monkeypatch):
    base = 0x40001000
    monkeypatch.setattr(test_atomic, "Unit", Unit)
    monkeypatch.setattr(test_atomic, "REGIONS", ((1, base, test_atomic.BOTH),))
    offsets = [0, 8, test_atomic.LENGTH - 8, test_atomic.LENGTH, 2**32, 2**32 + 8, 2**63, 2**64 - 8]
    got, writes, _ = test_atomic.run(
        [test_atomic.atomic(OPCODE.SWAP, offset, operand=offset + 1) for offset in offsets],
        data_width,
        seed,
        test_atomic.memory,
    )
    inside = [offset <= test_atomic.LENGTH - 8 for offset in offsets]
    assert [status for status, _ in got] == [
        STATUS.OK if fits else STATUS.REMOTE_BOUNDS for fits in inside
    ]
    assert sorted({address for address, *_ in writes.tlps}) == [
        base + offset for offset, fits in zip(offsets, inside) if fits
    ]


# Pages --------------------------------------------------------------------------------------------


def tables_of(random, regions):
    """Pages below and above 2**32, and tables below half of that."""
    tables = Tables(random, regions, missing=0.1, shifts=(12, 12, 13, 16, 21, 30), bits=BITS)
    for n, region in enumerate(tables.shift):
        tables.table[region] = random.getrandbits(8) << 20 | n << 16
        tables.pages[region] = [
            page if random.random() < 0.1 else page % 2**BITS for page in tables.pages[region]
        ]
    return tables


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_pages_of_a_walk(data_width, seed):
    random = Random(f"{seed} {data_width}")
    tables = tables_of(random, 4)
    items = [dict(address=tables.random_address(random), length=8, last=1) for _ in range(200)]
    bench = test_pages.Bench(
        piece_layout(BITS),
        data_width,
        random,
        tables,
        0.8,
        0.7,
        items,
        lines=8,
        depth=32,
        tags=2,
        address_bits=BITS,
    )
    bench.run(40000)
    bench.check()
    assert {fault for *_, fault in bench.seen} == {0, 1}


def test_single_pages(seed, monkeypatch):
    random = Random(seed)
    tables = tables_of(random, 4)
    monkeypatch.setattr(
        test_finder, "PageFinder", lambda *args, **how: PageFinder(*args, **how, address_bits=BITS)
    )
    bench = test_finder.Bench(tables, 64, seed)

    def play():
        for _ in range(150):
            while not (address := tables.random_address(random)) >> BITS - 1:
                pass
            yield from bench.check(0, address)

    bench.run(play())
