# SPDX-License-Identifier: BSD-2-Clause

import random
from collections import Counter

import pytest
from migen import *

from dibber.interface.description import C, ENTRY, MESSAGE, STATUS, STRUCTS
from dibber.endpoint.events import EventWriter
from dibber.endpoint.queues import QueueWriter

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive, finish, growing, sink, source

QUEUE_ENTRY = next(s for s in STRUCTS if s.name == "queue_entry")
FIELDS = ("queue", "cookie", "length", "node", "kind", "status", "key", "interrupt")
ARRIVAL = (
    "node",
    "endpoint",
    "interrupt",
    "value",
    "length",
    "key",
    "is_message",
    "response",
    "slot",
)

# Model --------------------------------------------------------------------------------------------


class Queue:
    """A host queue as its writer sees it; `open` and `entry` in the order in which they happen."""

    def __init__(self):
        self.entries = 0

    def open(self, base, size, vector, consumer):
        self.base, self.entries, self.vector = base, 1 << size, vector
        self.consumer = self.start = consumer
        self.written = self.overruns = 0

    def close(self):
        self.entries = 0

    def entry(self, item):
        """(address, vector, interrupt, fields) of the entry in memory, or None when it goes
        nowhere.
        """
        if not self.entries:
            return None
        unread = (self.start + self.written - self.consumer) % 2**32
        if item["queue"] >= C.ENDPOINTS and unread >= self.entries:
            self.overruns += 1
            return None
        turn, place = divmod(self.written, self.entries)
        self.written += 1
        fields = {
            name: item[name] for name in ("cookie", "length", "node", "kind", "status", "key")
        }
        fields.update(overruns=self.overruns, phase=1 - turn % 2)
        address = (self.base + C.QUEUE_ENTRY_BYTES * place) % 2**64
        return address, self.vector, item["interrupt"], fields


def unpack(dat):
    """Fields of struct queue_entry by name."""
    return {m.name: dat >> 8 * m.offset & (1 << 8 * m.size) - 1 for m in QUEUE_ENTRY.members}


# Bench --------------------------------------------------------------------------------------------


class Bench:
    """A writer with its three sources; what was taken, written and lost, in order."""

    def __init__(self, seed, ready=0.7, busy=0.8, endpoints=C.ENDPOINTS, address_bits=64):
        self.dut = dut = QueueWriter(endpoints=endpoints, address_bits=address_bits)
        dut.reads = [Signal(32, name=f"read{n}") for n in range(endpoints)]
        dut.comb += dut.eq_consumer.count.eq(Array(dut.reads)[dut.eq_consumer.endpoint])
        self.rng = rng = random.Random(seed)
        self.sent = [[] for _ in dut.sinks]
        self.taken = []  # (sink, item, cycle)
        self.posts = []
        self.cycles = []  # of the posts
        self.lost = 0
        self.now = 0
        self.processes = [
            self.watch(),
            sink(
                dut.source,
                ("address", "vector", "interrupt", "dat"),
                self.posts,
                rng,
                ready,
                self.cycles,
            ),
        ] + [source(port, growing(items), rng, busy) for port, items in zip(dut.sinks, self.sent)]

    def run(self, bench):
        run_simulation(self.dut, [bench] + self.processes)

    @passive
    def watch(self):
        dut = self.dut
        while True:
            yield dut.cycles.eq(2**40 + self.now)
            yield
            self.now += 1
            self.lost += yield dut.counters["EVENTS_LOST"]
            for n, port in enumerate(dut.sinks):
                if (yield port.valid) and (yield port.ready):
                    item = {}
                    for name in FIELDS:
                        item[name] = yield getattr(port, name)
                    self.taken.append((n, item, self.now))

    def item(self, queue):
        rng = self.rng
        return dict(
            queue=queue,
            cookie=rng.getrandbits(32),
            length=rng.getrandbits(32),
            node=rng.getrandbits(16),
            kind=rng.getrandbits(8),
            status=rng.getrandbits(8),
            key=rng.getrandbits(32),
            interrupt=rng.getrandbits(1),
        )

    def open(self, queue, base=0, size=0, vector=0, closed=0):
        yield from drive(
            self.dut.open, strobe=1, queue=queue, base=base, size=size, vector=vector, closed=closed
        )
        yield
        yield self.dut.open.strobe.eq(0)

    def settle(self):
        """Until all that was sent has been taken, and then is written or lost."""
        count = sum(len(items) for items in self.sent)
        yield from finish(lambda: len(self.taken) == count, 20 * count + 100)
        done, quiet = None, 0
        while quiet < 30:
            quiet = quiet + 1 if done == (len(self.posts), self.lost) else 0
            done = (len(self.posts), self.lost)
            yield

    def check_post(self, post, expected):
        address, vector, interrupt, dat = post
        fields = unpack(dat)
        cycles = fields.pop("cycles")
        assert (address, vector, interrupt, fields) == expected
        return cycles - 2**40


# Queue Writer -------------------------------------------------------------------------------------


@pytest.mark.parametrize("endpoints, address_bits", [(C.ENDPOINTS, 64), (4, 64), (4, 32)])
def test_every_queue_is_as_its_model_says_under_stalls(seed, endpoints, address_bits):
    """Rounds of entries from three sources; between them the host reads, and queues are opened and
    closed.

    Lengths of 1 to 16 entries wrap often; bases lie so that the address carries into its upper
    half. Opening another queue at any time does not disturb. Those of endpoints that there are not
    stay closed, and where addresses are narrow those that do not fit.
    """
    bench = Bench(seed, endpoints=endpoints, address_bits=address_bits)
    rng = bench.rng
    dut = bench.dut
    queues = [Queue() for _ in range(C.QUEUES)]
    events = range(C.ENDPOINTS, C.QUEUES)
    seen = Counter()

    def change(queue):
        """Open or close it, in the model too."""
        model, base = queues[queue], 2**32 * rng.randint(1, 2**31) - 32 * rng.randint(0, 8)
        if address_bits < 64 and rng.random() < 0.8:
            base %= 2**31
        if queue % C.ENDPOINTS >= endpoints:
            yield from bench.open(queue, base)
        elif address_bits < 64 and base >= 2**31:
            model.close()
            yield from bench.open(queue, base, rng.randint(0, 4))
        elif rng.random() < 0.2:
            model.close()
            yield from bench.open(queue, closed=1)
        else:
            size, vector = rng.randint(0, 4), rng.randrange(C.VECTORS)
            consumer = yield dut.reads[queue % C.ENDPOINTS]
            model.open(base, size, vector, consumer)
            yield from bench.open(queue, base, size, vector)

    def consume(queue):
        """The host reads some of what there is, or counts what cannot be."""
        model = queues[queue]
        if not model.entries:
            return
        total = model.start + model.written
        model.consumer = (
            rng.choice(
                [
                    total,
                    total,
                    rng.randint(total - model.entries, total),
                    total + rng.randint(1, 9),
                    total - model.entries - rng.randint(1, 9),
                    total + 2 ** rng.randint(5, 31),
                ]
            )
            % 2**32
        )
        yield dut.reads[queue % C.ENDPOINTS].eq(model.consumer)

    def body():
        for n in range(endpoints):
            yield dut.reads[n].eq(rng.choice([0, 2**32 - 3, rng.getrandbits(32)]))
        yield
        posts, lost, taken = 0, 0, 0
        for _ in range(45):
            for queue in rng.sample(range(C.QUEUES), 4):
                yield from change(queue)
            for queue in rng.sample(events, 4):
                yield from consume(queue)
            used = rng.sample(range(C.QUEUES), 10)
            other = [queue for queue in range(C.QUEUES) if queue not in used]
            for items in bench.sent:
                items.extend(bench.item(rng.choice(used)) for _ in range(rng.randint(0, 12)))
            for queue in other[:2]:
                for _ in range(rng.randint(0, 40)):
                    yield
                yield from change(queue)
            yield from bench.settle()

            expected = []
            for _, item, _ in bench.taken[taken:]:
                entry = queues[item["queue"]].entry(item)
                what = "event" if item["queue"] >= C.ENDPOINTS else "completion"
                seen[what, entry is not None] += 1
                if entry is not None:
                    expected.append(entry)
                elif what == "event":
                    lost += 1
            got = bench.posts[posts:]
            assert len(got) == len(expected)
            for post, entry in zip(got, expected):
                bench.check_post(post, entry)
            assert bench.lost == lost
            posts, taken = len(bench.posts), len(bench.taken)

    bench.run(body())
    for n, items in enumerate(bench.sent):
        assert [item for m, item, _ in bench.taken if m == n] == items, (
            "each source's entries keep their order"
        )
    assert (
        min(seen[what, fate] for what in ("event", "completion") for fate in (True, False)) > 40
    ), seen
    assert any(post[3] >> 224 == 0 for post in bench.posts), "no queue wrapped"


def test_longest_and_shortest_queue_turn_their_phase_at_their_ends():
    bench = Bench(1, ready=1.0, busy=1.0)
    dut = bench.dut

    def body():
        yield from bench.open(0, base=0x1000, size=0, vector=1)
        yield from bench.open(1, base=0x10_0000, size=16, vector=2)
        bench.sent[0].extend(bench.item(0) for _ in range(3))
        yield from bench.settle()
        yield dut.written[1].eq((65535 << 32) | 65535)  # as 65,535 entries would have left it
        bench.sent[0].extend(bench.item(1) for _ in range(2))
        yield from bench.settle()

    bench.run(body())
    where = [(address, vector, unpack(dat)["phase"]) for address, vector, _, dat in bench.posts]
    assert where == [
        (0x1000, 1, 1),
        (0x1000, 1, 0),
        (0x1000, 1, 1),
        (0x10_0000 + 65535 * 32, 2, 1),
        (0x10_0000, 2, 0),
    ]


@pytest.mark.parametrize("queue", [2, C.ENDPOINTS + 2])
def test_an_entry_under_way_belongs_to_the_old_queue_or_to_the_new_one(queue):
    """The queue is opened again in each of the cycles behind an entry; and closed."""
    bench = Bench(2, ready=1.0, busy=1.0)
    kinds = Counter()

    def body():
        for closed in range(2):
            for delay in range(8):
                posts, lost = len(bench.posts), bench.lost
                yield from bench.open(queue, base=0x1000, size=2)
                bench.sent[1].append(bench.item(queue))
                for _ in range(delay):
                    yield
                yield from bench.open(queue, base=0x2000, size=2, closed=closed)
                yield from bench.settle()
                bench.sent[2].append(bench.item(queue))
                yield from bench.settle()
                got = tuple(
                    (address, unpack(dat)["phase"], unpack(dat)["overruns"])
                    for address, _, _, dat in bench.posts[posts:]
                )
                first = (((0x1000, 1, 0),), (), ((0x2000, 1, 0),))
                after = bench.lost - lost
                if closed:
                    assert got in (first[0], ()), got
                    assert after == (2 - len(got) if queue >= C.ENDPOINTS else 0)
                else:
                    assert got in (first[0] + first[2], first[2] + ((0x2020, 1, 0),)), got
                    assert after == 0
                kinds[closed, got[:1] == first[0]] += 1

    bench.run(body())
    assert len(kinds) == 4, f"not every cycle was met: {kinds}"


def test_sources_that_are_always_there_take_turns_and_an_entry_takes_three_cycles():
    bench = Bench(3, ready=1.0, busy=1.0)

    def body():
        yield from bench.open(0, size=4)
        for items in bench.sent:
            items.extend(bench.item(0) for _ in range(20))
        yield from bench.settle()

    bench.run(body())
    assert [n for n, _, _ in bench.taken[3:]] == [n for n, _, _ in bench.taken[:-3]]
    assert {n for n, _, _ in bench.taken[:3]} == {0, 1, 2}
    for (_, item, taken), posted, post in zip(bench.taken, bench.cycles, bench.posts, strict=True):
        assert posted - taken == 2
        assert taken <= unpack(post[3])["cycles"] - 2**40 <= posted
    assert {b - a for a, b in zip(bench.cycles[3:], bench.cycles[4:])} == {3}


# Event Writer -------------------------------------------------------------------------------------


def arrivals(rng, count):
    kinds = [
        dict(is_message=0, response=0),
        dict(is_message=0, response=0),
        dict(is_message=1, response=0),
        dict(is_message=0, response=1),
    ]
    return [
        dict(
            node=rng.choice([rng.getrandbits(16), rng.randrange(C.NODES)]),
            endpoint=rng.randrange(C.ENDPOINTS)
            if rng.random() < 0.9
            else rng.randint(C.ENDPOINTS, 255),
            interrupt=rng.getrandbits(1),
            value=rng.getrandbits(24) << 8
            | rng.choice([MESSAGE.GET, MESSAGE.ATOMIC, rng.getrandbits(8)]),
            length=rng.getrandbits(32),
            key=rng.getrandbits(32),
            slot=rng.getrandbits(8),
            **rng.choice(kinds),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("endpoints", [C.ENDPOINTS, 4])
def test_notices_become_events_and_the_rest_goes_to_the_program(seed, endpoints):
    """While `enable` changes at any time each arrival has one fate, and those of each kind keep
    their order.
    """
    rng, dut = random.Random(seed), EventWriter(endpoints)
    items = arrivals(rng, 300)
    entries, programs, enabled, pulses = [], [], [], Counter()

    @passive
    def switch():
        while True:
            for _ in range(rng.randint(1, 40)):
                yield
            yield dut.enable.eq(rng.getrandbits(1))

    @passive
    def watch():
        while True:
            yield
            for name, pulse in dut.counters.items():
                pulses[name] += yield pulse
            if (yield dut.sink.valid) and (yield dut.sink.ready):
                enabled.append((yield dut.enable))

    def body():
        yield from finish(lambda: len(enabled) == len(items), 5000)
        for _ in range(30):
            yield

    run_simulation(
        dut,
        [
            body(),
            switch(),
            watch(),
            source(dut.sink, items, rng, 0.8),
            sink(dut.entry, FIELDS, entries, rng, 0.5),
            sink(dut.source, (*ARRIVAL, "get", "atomic"), programs, rng, 0.5),
        ],
    )
    events = [
        item
        for item, on in zip(items, enabled)
        if on and not item["is_message"] and not item["response"]
    ]
    here = [item for item in events if item["endpoint"] < endpoints]
    assert entries == [
        (
            C.ENDPOINTS + item["endpoint"],
            item["value"],
            item["length"],
            item["node"],
            ENTRY.NOTICE,
            STATUS.OK,
            item["key"],
            item["interrupt"],
        )
        for item in here
    ]
    asks = lambda item, kind: int(
        item["is_message"] and item["node"] < C.NODES and item["value"] & 0xFF == kind
    )
    assert programs == [
        (*[item[name] for name in ARRIVAL], asks(item, MESSAGE.GET), asks(item, MESSAGE.ATOMIC))
        for item in items
        if item not in events
    ]
    assert {program[-2:] for program in programs} == {(0, 0), (0, 1), (1, 0)}
    assert pulses == Counter(FAST_EVENTS=len(here), EVENTS_LOST=len(events) - len(here))
    assert min(len(here), len(programs), len(events) - len(here)) > 0


def test_a_message_does_not_overtake_the_notice_before_it():
    """It reaches the program only when the event is the queue writer's, however long that takes."""
    rng, dut = random.Random(4), EventWriter()
    items = [dict(endpoint=1, value=7), dict(is_message=1, value=8)]
    programs = []

    def body():
        yield dut.enable.eq(1)
        for _ in range(40):
            yield
        assert (yield dut.entry.valid) and not programs
        yield dut.entry.ready.eq(1)
        yield from finish(lambda: programs == [(8,)], 10)

    run_simulation(
        dut, [body(), source(dut.sink, items, rng), sink(dut.source, ("value",), programs, rng)]
    )


def test_a_notice_every_cycle():
    rng, dut, got = random.Random(5), EventWriter(), []

    def body():
        yield dut.enable.eq(1)
        yield dut.sink.valid.eq(1)
        yield from finish(lambda: len(got) == 20, 24)

    run_simulation(dut, [body(), sink(dut.entry, ("queue",), got, rng)])
