"""Campaigns of good and bad completions, one for each reader of host memory, at one data width.

Each gives (completions sent, reads failed, what ended well) and raises AssertionError when a byte
is wrong with status OK, or when something fails whose reads all had good completions.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from migen import *

from litex.gen import *

from dibber.deposit.atomic import AtomicUnit
from dibber.deposit.finder import PageFinder
from dibber.deposit.gather import Gather
from dibber.deposit.lists import ListReader
from dibber.deposit.pages import Translator
from dibber.deposit.regions import RegionTable
from dibber.interface.description import ATOMIC, C, COMMAND, MESSAGE, OPCODE, REPLY, RIGHT, STATUS
from dibber.layouts import piece_layout

from tests.gateware.models.command import put_member
from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.completions import Checked, UnrulyHost
from tests.gateware.models.drive import finish, growing, sink, source
from tests.gateware.models.hostwrite import HostWrite
from tests.gateware.models.page_tables import Tables
from tests.gateware.models.slots import serve_slots, write_slots

TIMEOUT, QUARANTINE = 300, 700  # cycles


def memory(address):
    return (address * 0x9E3779B1 >> 13) & 0xFF


class Campaign:
    """What all have in common: the host, its checks, and when enough has come."""

    def __init__(self, dut, random, completions, memory=memory, **host):
        self.dut, self.random, self.completions = dut, random, completions
        self.host = UnrulyHost(dut, memory, random, **host)
        self.pulses = {}
        self.unknown = 0  # completions that the reader did not know

    @property
    def going(self):
        return self.host.taken < self.completions

    def untouched(self, low, high):
        """Whether all reads so far between two addresses had good completions; forgets them."""
        touched = set()
        for read in [read for read in self.host.reads if low <= read.address < high]:
            touched |= read.touched
        self.host.reads = [read for read in self.host.reads if not low <= read.address < high]
        return not touched

    @passive
    def count(self):
        pulses = {name: signal for name, signal in self.dut.checker.pulses.items()}
        unknown = self.dut.reader.pulses["COMPLETION_UNEXPECTED"]
        while True:
            yield
            self.unknown += yield unknown
            for name, signal in pulses.items():
                if (yield signal):
                    self.pulses[name] = self.pulses.get(name, 0) + 1

    def run(self, *processes):
        run_simulation(self.dut, [*processes, self.host.run(), self.host.watch(), self.count()])
        assert not self.host.expected, "the checker swallowed what it should show"
        counts = {n: c for n, c in self.host.judge.counts.items() if c}
        assert {n: c for n, c in self.pulses.items() if c} == counts
        assert self.unknown >= self.host.former, "a completion of a former read was not counted"
        return self


# Gather -------------------------------------------------------------------------------------------


def gather(data_width, completions, seed, **host):
    random = Random(f"gather {data_width} {seed}")
    dut = shared(
        lambda width: Checked(
            width, Gather(width, tags=64, timeout=4 * TIMEOUT, quarantine=3 * QUARANTINE), 64
        ),
        data_width,
    )
    unit = dut.reader
    test = Campaign(dut, random, completions, **host)
    sent, lines, ended = [], [], dict(good=0, failed=0)

    def pieces():
        """Transfers in address ranges of their own, as long as completions are wanted."""
        while test.going:
            if len(sent) > 5:  # the host answers all within the time
                yield None
                continue
            base = 2**24 * random.randrange(1, 2**16)
            if any(base == other for other, _ in sent):
                continue
            transfer, address = [], base + random.randrange(4096)
            for _ in range(random.randint(1, 4)):
                length = min(random.choice([1, 4, 8, 40, 64, 200, 512]), 4096 - address % 4096)
                transfer.append((address, length))
                address += length + random.choice([0, 8, 64, 300])
            sent.append((base, transfer))
            for n, (address, length) in enumerate(transfer):
                yield dict(address=address, length=length, last=int(n == len(transfer) - 1))
        while True:
            yield None

    @passive
    def check():
        data = bytearray()
        while True:
            yield
            while lines:
                dat, count, last, status = lines.pop(0)
                if status == STATUS.OK:
                    data += dat.to_bytes(32, "little")[:count]
                if last:
                    base, transfer = sent.pop(0)
                    good = test.untouched(base, base + 2**24)
                    if status == STATUS.OK:
                        assert data == bytes(
                            memory(a + i) for a, n in transfer for i in range(n)
                        ), "wrong bytes with status OK"
                        ended["good"] += 1
                    else:
                        assert not good and status in (STATUS.READ_ERROR, STATUS.READ_TIMEOUT)
                        ended["failed"] += 1
                    data = bytearray()

    def main():
        yield unit.extended_tags.eq(1)
        yield unit.max_request.eq(256)
        yield from finish(lambda: not test.going and not sent, 1000 * completions)
        for _ in range(100):
            yield

    test.run(
        main(),
        check(),
        source(unit.sink, pieces(), random),
        sink(unit.source, ("dat", "bytes", "last", "status"), lines, random),
    )
    return test, ended


# Index Lists --------------------------------------------------------------------------------------


def lists(data_width, completions, seed, **host):
    random = Random(f"lists {data_width} {seed}")
    dut = shared(
        lambda width: Checked(width, ListReader(width, timeout=TIMEOUT, quarantine=QUARANTINE), 16),
        data_width,
    )
    unit = dut.reader
    test = Campaign(dut, random, completions, **host)
    sent, got, ended = [], [], dict(good=0, failed=0)

    def entry(address):
        return int.from_bytes(bytes(memory(address + i) for i in range(8)), "little")

    def orders():
        while test.going:
            if len(sent) > 3:
                yield None
                continue
            order = dict(
                address=2**33 + 8 * random.randrange(2**20),
                more=random.choice([0, 3, 7, 8, 30]),
                origin=random.getrandbits(64),
            )
            sent.append((order, iter(range(order["more"] + 1))))
            yield order
        while True:
            yield None

    @passive
    def check():
        while True:
            yield
            while got:
                base, error, last = got.pop(0)
                order, numbers = sent[0]
                n = next(numbers)
                at = order["address"] + 8 * n
                line = at & ~63
                assert last == (n == order["more"])
                if error:
                    assert any(r.touched for r in test.host.reads if r.address & ~63 == line)
                    ended["failed"] += 1
                else:
                    assert base == (entry(at) + order["origin"]) % 2**64, "a wrong entry"
                    ended["good"] += 1
                if last:
                    sent.pop(0)
                    test.host.reads = test.host.reads[-64:]

    def main():
        yield unit.extended_tags.eq(1)
        yield from finish(lambda: not test.going and not sent, 1000 * completions)
        for _ in range(100):
            yield

    test.run(
        main(),
        check(),
        source(unit.sink, orders(), random),
        sink(unit.source, ("base", "error", "last"), got, random),
    )
    return test, ended


# Page Tables --------------------------------------------------------------------------------------


class _Watched:
    """The translator's output with `fault` among its fields."""

    def __init__(self, unit):
        self.fault = unit.fault
        for name in ["valid", "ready", "address"]:
            setattr(self, name, getattr(unit.source, name))


def enter(directory, tables):
    for region in tables.shift:
        for name, value in dict(
            index=region, table=tables.table[region], shift=tables.shift[region], strobe=1
        ).items():
            yield getattr(directory, name).eq(value)
        yield
    yield directory.strobe.eq(0)
    yield


def is_paged(address):
    return address >> 63


def pages(data_width, completions, seed, **host):
    random = Random(f"pages {data_width} {seed}")
    tables = Tables(random, 4)
    dut = shared(
        lambda width: Checked(
            width,
            Translator(piece_layout(), width, lines=8, timeout=TIMEOUT, quarantine=QUARANTINE),
            16,
        ),
        data_width,
    )
    unit = dut.reader
    test = Campaign(dut, random, completions, tables.memory, **host)
    sent, got, ended = [], [], dict(good=0, failed=0)

    def addresses():
        for _ in range(20):
            yield None
        while test.going:
            if len(sent) > 30:
                yield None
                continue
            address = tables.random_address(random)
            sent.append(address)
            yield dict(address=address, length=8, last=1)
        while True:
            yield None

    @passive
    def check():
        while True:
            yield
            while got:
                address, fault = got.pop(0)
                wanted, absent = tables.where(sent.pop(0))
                if not fault:
                    assert (address, absent) == (wanted, 0), "a wrong page"
                ended["failed" if fault else "good"] += 1
            # A line that failed serves all that wait for it, so what may fail is what the count of
            # failed reads says.
            assert not ended["failed"] or any(r.touched for r in test.host.reads)

    def main():
        yield unit.extended_tags.eq(1)
        yield from enter(unit.directory, tables)
        yield from finish(lambda: not test.going and not sent, 1000 * completions)
        for _ in range(100):
            yield

    test.run(
        main(),
        check(),
        source(unit.sink, addresses(), random),
        sink(_Watched(unit), ("address", "fault"), got, random),
    )
    return test, ended


def finder(data_width, completions, seed, **host):
    random = Random(f"finder {data_width} {seed}")
    tables = Tables(random, 4)
    dut = shared(
        lambda width: Checked(
            width,
            PageFinder(width, ports=2, lines=2, tags=8, timeout=TIMEOUT, quarantine=QUARANTINE),
            8,
        ),
        data_width,
    )
    unit = dut.reader
    test = Campaign(dut, random, completions, tables.memory, **host)
    ended = dict(good=0, failed=0)

    def ask(n):
        port = unit.ports[n]
        while test.going:
            while not is_paged(address := tables.random_address(random)):
                pass
            yield port.address.eq(address)
            yield port.valid.eq(1)
            yield
            while not (yield port.done):
                yield
            wanted, absent = tables.where(address)
            if (yield port.fault):
                recent = test.host.reads[-9:]
                assert any(read.touched for read in recent), (
                    "a fault, though all completions were good"
                )
                ended["failed"] += 1
            else:
                assert ((yield port.page), absent) == (wanted >> 12, 0), "a wrong page"
                ended["good"] += 1
            test.host.reads = test.host.reads[-9:]
            yield port.valid.eq(0)
            yield

    def main():
        yield unit.extended_tags.eq(1)
        yield from enter(unit.directory, tables)
        for _ in range(TIMEOUT + 100):
            yield
        yield from ask(0)
        for _ in range(QUARANTINE):
            yield

    def other():
        for _ in range(TIMEOUT + 120):
            yield
        yield from ask(1)

    test.run(main(), other())
    return test, ended


# Atomics ------------------------------------------------------------------------------------------

BASE, LENGTH = 2**40 + 0x1000, 0x40


class Unit(LiteXModule):
    def __init__(self, data_width):
        self.regions = RegionTable()
        self.atomic = AtomicUnit(data_width, tags=8, base=8, timeout=TIMEOUT, quarantine=QUARANTINE)
        self.comb += self.atomic.lookup.connect(self.regions.ports[0])
        self.reads, self.completions = self.atomic.reads, self.atomic.completions
        self.pulses = self.atomic.pulses

    @property
    def tags(self):
        return self.atomic.tags


def atomics(data_width, completions, seed, **host):
    """Fetch-and-add on a few words: each value before is what the successful ones before made
    it.
    """
    random = Random(f"atomics {data_width} {seed}")
    dut = shared(lambda width: Checked(width, Unit(width), 8, delay=0), data_width)
    unit = dut.reader.atomic
    writes = HostWrite(unit.writes, unit.marked, random, 256, 1.0)
    test = Campaign(
        dut,
        random,
        completions,
        lambda address: writes.memory.get(address, memory(address)),
        split=0.0,
        **host,
    )
    model, inbox, ended = {}, {}, dict(good=0, failed=0)
    ends, queue = [], []

    def value(address, size):
        return sum(
            model.get(a, memory(a)) << 8 * n for n, a in enumerate(range(address, address + size))
        )

    def main():
        regions = dut.reader.regions
        for name, v in dict(
            index=1,
            key=1,
            base=BASE,
            length=LENGTH,
            rights=RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE,
            valid=1,
            write=1,
        ).items():
            yield getattr(regions, name).eq(v)
        yield
        yield regions.write.eq(0)
        n = 0
        while test.going:
            size = random.choice([4, 8])
            address = BASE + random.randrange(0, LENGTH, size)
            operand = random.getrandbits(64)
            slot = bytearray(C.SLOT_BYTES)
            put_member(slot, COMMAND, 0, "opcode", OPCODE.FETCH_ADD)
            put_member(slot, COMMAND, 0, "length", size)
            for name, v in dict(
                key=1, offset=address - BASE, operand=operand, compare=0, mask=0
            ).items():
                put_member(slot, ATOMIC, 0, name, v)
            inbox[C.INBOX, n % C.SLOTS] = bytes(slot)
            queue.append(dict(node=0, slot=n % C.SLOTS, word=MESSAGE.ATOMIC))
            yield from finish(lambda: ends, 5000)
            ends.pop()
            reply = inbox[C.INBOX, n % C.SLOTS]
            status, before = (
                int.from_bytes(reply[m.offset : m.offset + m.size], "little")
                for m in (REPLY["status"], REPLY["value"])
            )
            if status == STATUS.OK:
                old = value(address, size)
                assert before == old, "a wrong value with status OK"
                model.update(
                    zip(
                        range(address, address + size),
                        ((old + operand) % 2 ** (8 * size)).to_bytes(size, "little"),
                    )
                )
                ended["good"] += 1
            else:
                assert status == STATUS.REMOTE_READ_ERROR
                assert any(read.touched for read in test.host.reads[-9:]), (
                    "it failed, though all completions were good"
                )
                ended["failed"] += 1
            assert writes.memory == model, "a byte was written that no operation changed"
            test.host.reads = test.host.reads[-9:]
            n += 1
        for _ in range(QUARANTINE):
            yield

    test.run(
        main(),
        writes.run(),
        source(unit.sink, growing(queue), random),
        serve_slots(unit.slot, data_width, inbox, random, 1.0),
        write_slots(unit.reply, data_width, inbox, random, 1.0),
        sink(unit.done, ("slot",), ends, random),
    )
    return test, ended


READERS = dict(gather=gather, lists=lists, pages=pages, finder=finder, atomics=atomics)
