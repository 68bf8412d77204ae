"""A tag is taken for a new read, and the host still sends completions of the tag's former read.

Each reader of host memory has one tag here, gather has two. The first read gets no answer in time.
When its tag's quarantine is over, the reader takes the tag again, but the host does not take that
read yet.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from litex.gen import *

from dibber.deposit.atomic import AtomicUnit
from dibber.deposit.finder import PageFinder
from dibber.deposit.gather import Gather
from dibber.deposit.lists import ListReader
from dibber.deposit.pages import Translator
from dibber.deposit.regions import RegionTable
from dibber.interface.description import C, MESSAGE, OPCODE, REPLY, RIGHT, STATUS
from dibber.layouts import piece_layout

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.completions import ID, Checked
from tests.gateware.models.drive import drive, finish, growing, sink, source
from tests.gateware.models.hostwrite import HostWrite
from tests.gateware.models.page_tables import Tables, paged
from tests.gateware.models.slots import serve_slots, write_slots
from tests.gateware.deposit.test_atomic import atomic

pytestmark = pytest.mark.fault

TIMEOUT, QUARANTINE = 150, 300  # cycles; a reader clears its memories before the first timeout
BUFFER = 8192  # bytes that a Gather reassembles reads in
TIMES = dict(timeout=TIMEOUT, quarantine=QUARANTINE)
AGES = 40  # cycles by which `Tags` may be late


def memory(address):
    return (address * 0x9E3779B1 >> 13) & 0xFF


def number(address, size=8):
    return int.from_bytes(bytes(memory(address + i) for i in range(size)), "little")


class Scene:
    """A reader with few tags; it reads when it is asked to.

    dut       : Checked
    tags      : int
    memory    : function address -> byte
    setup     : statements of a generator that prepare the reader
    processes : what serves the reader besides the host
    ask       : function (n) that starts the nth operation; each has one read, at its own address
    results   : what each operation gave, None for an error
    wanted    : function (n) -> what the nth operation gives
    """

    def __init__(self, reader, data_width, delay=1, tags=1):
        self.dut = Checked(data_width, reader, tags, delay)
        self.tags = tags
        self.random, self.memory = Random(data_width), memory
        self.results, self.queue = [], []
        self.processes = []

    def ask(self, n):
        self.queue.append(self.order(n))

    def setup(self):
        yield

    def collect(self, endpoint, fields, items, result):
        """`result` of what comes at `endpoint` is the operation's result."""

        @passive
        def check():
            while True:
                yield
                while items and (end := result(items)):
                    self.results.append(end[0])
                    items.clear()

        self.processes += [sink(endpoint, fields, items, self.random), check()]


class Gathering(Scene):
    def __init__(self, data_width):
        # As many lines as are cleared before the first timeout, at every width.
        self.unit = Gather(data_width, tags=2, lines=BUFFER * 8 // data_width, **TIMES)
        super().__init__(self.unit, data_width, tags=2)
        self.collect(self.unit.source, ("dat", "bytes", "last", "status"), [], self.result)
        self.processes.append(source(self.unit.sink, growing(self.queue), self.random))

    def order(self, n):
        return dict(address=0x10000 * n + 0x200, length=64, last=1)

    def result(self, lines):
        if lines[-1][2]:
            data = b"".join(dat.to_bytes(32, "little")[:count] for dat, count, _, _ in lines)
            return [data if lines[-1][3] == STATUS.OK else None]

    def wanted(self, n):
        return bytes(memory(0x10000 * n + 0x200 + i) for i in range(64))

    def setup(self):
        yield self.unit.max_request.eq(256)


class Listing(Scene):
    def __init__(self, data_width):
        unit = ListReader(data_width, tags=1, base=1, **TIMES)
        super().__init__(unit, data_width)
        self.collect(unit.source, ("base", "error", "last"), [], self.result)
        self.processes.append(source(unit.sink, growing(self.queue), self.random))

    def order(self, n):
        return dict(address=0x10000 * n, more=7, origin=5)

    def result(self, entries):
        if entries[-1][2]:
            return [None if any(error for _, error, _ in entries) else [e[0] for e in entries]]

    def wanted(self, n):
        return [(number(0x10000 * n + 8 * i) + 5) % 2**64 for i in range(8)]


class _Watched:
    """The translator's output with `fault` among its fields."""

    def __init__(self, unit):
        self.fault = unit.fault
        for name in ["valid", "ready", "address"]:
            setattr(self, name, getattr(unit.source, name))


class Paging(Scene):
    """What page tables' readers have in common: a region of 4 KiB pages; each operation asks for a
    page in another line of the table.
    """

    def __init__(self, reader, data_width):
        super().__init__(reader, data_width)
        self.unit = reader
        self.tables = Tables(self.random, 1, pages=64, shifts=(12,))
        self.memory = self.tables.memory
        self.region = next(iter(self.tables.shift))

    def address(self, n):
        return paged(self.region, 0x8000 * n + 0x123)

    def setup(self):
        yield from drive(
            self.unit.directory,
            index=self.region,
            table=self.tables.table[self.region],
            shift=12,
            strobe=1,
        )
        yield
        yield self.unit.directory.strobe.eq(0)


class Walking(Paging):
    def __init__(self, data_width):
        unit = Translator(piece_layout(), data_width, lines=8, tags=1, base=1, **TIMES)
        super().__init__(unit, data_width)
        self.collect(_Watched(unit), ("address", "fault"), [], self.result)
        self.processes.append(source(unit.sink, growing(self.queue), self.random))

    def order(self, n):
        return dict(address=self.address(n), length=8, last=1)

    def result(self, got):
        return [None if got[0][1] else got[0][0]]

    def wanted(self, n):
        return self.tables.where(self.address(n))[0]


class Finding(Paging):
    def __init__(self, data_width):
        unit = PageFinder(data_width, ports=1, lines=4, tags=1, base=1, **TIMES)
        super().__init__(unit, data_width)
        self.processes.append(self.user(unit.ports[0]))

    def order(self, n):
        return self.address(n)

    @passive
    def user(self, port):
        for address in growing(self.queue):
            if address is not None:
                yield from drive(port, valid=1, address=address)
                yield
                while not (yield port.done):
                    yield
                fault, page = (yield port.fault), (yield port.page)
                self.results.append(None if fault else page)
                yield port.valid.eq(0)
            yield

    def wanted(self, n):
        return self.tables.where(self.address(n))[0] >> 12


class Operating(Scene):
    """Each operation adds to another word."""

    BASE = 2**40 + 0x1000

    class Unit(LiteXModule):
        def __init__(self, data_width):
            self.regions = RegionTable()
            self.atomic = AtomicUnit(data_width, **TIMES)
            self.comb += self.atomic.lookup.connect(self.regions.ports[0])
            self.reads, self.completions = self.atomic.reads, self.atomic.completions
            self.pulses = self.atomic.pulses

        @property
        def tags(self):
            return self.atomic.tags

    def __init__(self, data_width):
        self.unit = self.Unit(data_width)
        super().__init__(self.unit, data_width, delay=0)
        unit, random = self.unit.atomic, self.random
        self.inbox = {
            (C.INBOX, n): atomic(OPCODE.FETCH_ADD, offset=8 * n, operand=1) for n in range(2)
        }
        self.writes = HostWrite(unit.writes, unit.marked, random, 256)
        self.collect(unit.done, ("slot",), [], self.result)
        self.processes += [
            self.writes.run(),
            source(unit.sink, growing(self.queue), random),
            serve_slots(unit.slot, data_width, self.inbox, random),
            write_slots(unit.reply, data_width, self.inbox, random),
        ]

    def order(self, n):
        return dict(node=0, slot=n, word=MESSAGE.ATOMIC)

    def result(self, ends):
        reply = self.inbox[C.INBOX, ends[0][0]]
        status, value = (
            int.from_bytes(reply[m.offset : m.offset + m.size], "little")
            for m in (REPLY["status"], REPLY["value"])
        )
        return [
            (value, {a: b for a, b in self.writes.memory.items()}) if status == STATUS.OK else None
        ]

    def wanted(self, n):
        address = self.BASE + 8 * n
        after = (number(address) + 1) % 2**64
        return number(address), dict(
            zip(range(address, address + 8), after.to_bytes(8, "little"), strict=True)
        )

    def setup(self):
        both = RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
        entry = dict(index=1, key=1, base=self.BASE, length=64, rights=both, valid=1, write=1)
        yield from drive(self.unit.regions, **entry)
        yield
        yield self.unit.regions.write.eq(0)


READERS = {
    "gather": Gathering,
    "lists": Listing,
    "pages": Walking,
    "finder": Finding,
    "atomics": Operating,
}


def lines(data_width, read, byte, **fields):
    """A completion with all of a read's bytes, as lines. `fields` replace what is right."""
    address, length, tag = read
    width = data_width // 8
    first = address - address % width
    if fields.get("status", 0):
        yield dict(
            dict.fromkeys(("dat", "lower", "bytes", "modified", "flaw"), 0),
            tag=tag,
            count=length,
            requester=ID,
            last=1,
            **fields,
        )
        return
    for start in range(first, address + length, width):
        yield dict(
            dict(
                tag=tag,
                status=0,
                flaw=0,
                modified=0,
                requester=ID,
                lower=address % 128,
                count=length,
                bytes=length,
                dat=sum(
                    byte(a) << 8 * (a - start)
                    for a in range(start, start + width)
                    if address <= a < address + length
                ),
                last=int(start + width >= address + length),
            ),
            **fields,
        )


LATE = ("good", "refused", "bad", "closing", "across the request")


@pytest.mark.parametrize("data_width", [64, 128, 256])
@pytest.mark.parametrize("late", LATE)
@pytest.mark.parametrize("reader", READERS)
def test_a_late_completion_of_a_tags_former_read_does_not_reach_its_new_read(
    reader, late, data_width
):
    """Kinds of late completions: with all data; with an error status; with a wrong byte count;
    the good one that ends a read which had failed; and one whose first line comes before the new
    request is sent and whose others come after it.
    """
    scene = READERS[reader](data_width)
    checker = scene.dut.checker
    requests, beats = checker.requests, checker.sink
    unexpected = scene.dut.reader.pulses["COMPLETION_UNEXPECTED"]
    counted = []

    def request(take):
        """Wait for the reader's request; returns its (address, length, tag)."""
        for _ in range(2 * TIMEOUT):
            if (yield requests.valid):
                break
            yield
        else:
            raise AssertionError("the reader sends no request")
        read = ((yield requests.address), (yield requests.length), (yield requests.tag))
        if take:
            yield requests.ready.eq(1)
            yield
            yield requests.ready.eq(0)
            yield
        return read

    def send(completion):
        for beat in completion:
            yield from drive(beats, valid=1, **beat)
            yield
        yield beats.valid.eq(0)
        yield

    @passive
    def count():
        while True:
            yield
            if (yield unexpected):
                counted.append(1)

    def main():
        yield from scene.setup()
        for _ in range(TIMEOUT + AGES):
            yield

        # The first read gets no answer, or a bad one.
        scene.ask(0)
        former = yield from request(take=True)
        if late == "closing":
            yield from send(lines(data_width, former, scene.memory, count=former[1] + 1))
        for _ in range(QUARANTINE + 2 * AGES):
            yield
        assert scene.results == [None]

        # Free tags are taken in their order: the other tags come first.
        for n in range(1, scene.tags):
            scene.ask(n)
            read = yield from request(take=True)
            yield from send(lines(data_width, read, scene.memory))
            yield from finish(lambda: len(scene.results) > n, 200)
            assert scene.results[n] == scene.wanted(n)

        # The tag is taken for another read. Then the first read's completion comes.
        ended = scene.tags
        scene.ask(ended)
        present = yield from request(take=False)
        assert present[2] == former[2] and present[0] != former[0] and not counted
        fields = {"refused": dict(status=1), "bad": dict(count=former[1] + 1)}.get(late, {})
        beats_left = list(lines(data_width, former, scene.memory, **fields))
        if late == "across the request":
            yield from drive(beats, valid=1, **beats_left.pop(0))
            yield
            if beats_left:
                yield from drive(beats, valid=1, **beats_left.pop(0))
                yield
            yield beats.valid.eq(0)
            for _ in range(3):
                yield
        else:
            yield from send(beats_left)
        for _ in range(20):
            yield
        assert len(scene.results) == ended, "the new operation ended with the former read's data"
        assert (yield from request(take=True)) == present
        if late == "across the request":
            yield from send(beats_left)
        for _ in range(10):
            yield
        assert len(scene.results) == ended
        assert len(counted) == 1, "the late completion is not counted"

        # The new read's own completion.
        yield from send(lines(data_width, present, scene.memory))
        yield from finish(lambda: len(scene.results) > ended, 200)
        assert scene.results[ended] == scene.wanted(ended)

    run_simulation(scene.dut, [main(), count(), *scene.processes])
