"""The send engine alone: answers to gets, epochs, checksums, cycles. Walks and errors are in
test_deposit_path.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from litex.gen import *

from dibber.deposit.fetch import flat_source_lines
from dibber.deposit.regions import RegionTable
from dibber.deposit.send_engine import SendEngine
from dibber.interface.description import C, COMMAND, FLAG, PACKET_FLAG, RIGHT, STATUS

from tests.gateware.models.checksum import internet_checksum
from tests.gateware.models.command import command
from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.drive import finish, growing, sink, source
from tests.gateware.models.hostread import HostRead
from tests.gateware.models.slots import serve_slots

BASE, LENGTH = 2**35, 2**20
REGIONS = (  # key, base, rights; all of endpoint 2
    (1, BASE, RIGHT.LOCAL_READ),
    (2, BASE, RIGHT.REMOTE_READ),
)
PACKET = (
    "node",
    "incarnation",
    "epoch",
    "psn",
    "flags",
    "length",
    "message",
    "endpoint",
    "indirect",
    "target",
    "levels",
)
TIMEOUT = 900
TARGET = (5, 0, 0, (), ())


def memory(address):
    return (address * 0x9E3779B1 >> 11) & 0xFF


def put(length, key=1, offset=0, flags=0):
    return command((key, offset, 0, (), ()), TARGET, length, flags=flags)


def strided(elements, offset=0):
    """8-byte elements, each in a read of its own."""
    return command((1, offset, 8, (24,), (elements,)), TARGET, 8 * elements)


class Engine(LiteXModule):
    def __init__(self, data_width, tags):
        self.regions = RegionTable()
        self.send = SendEngine(data_width, tags=tags, timeout=TIMEOUT)
        self.comb += self.send.lookup.connect(self.regions.ports[0])


class Bench:
    """An engine with slots and host memory; flows to node 1 and 3 have incarnation 5 and epoch 0.

    ended : (tag, status, psn, checksum); packets : see PACKET, those that did not become void;
            requests : list of
    HostRead.issued
    """

    def __init__(self, jobs, data_width=64, seed=1, busy=1.0, latency=(20, 20), tags=16, drain=1.0):
        self.dut = shared(Engine, data_width, tags)
        self.random = Random(seed)
        self.busy, self.drain = busy, drain
        self.slots, self.jobs = {}, []
        for n, (data, fields) in enumerate(jobs):
            length = int.from_bytes(data[COMMAND["length"].offset :][:4], "little")
            fields = (
                dict(
                    endpoint=2,
                    slot=n,
                    psn=100 * n,
                    incarnation=5,
                    epoch=0,
                    node=1,
                    length=length,
                    skip=0,
                    tag=0x300 + n,
                    response=0,
                    indirect=0,
                    target=0,
                    target_levels=0,
                    message=0,
                )
                | fields
            )
            self.slots[fields["endpoint"], fields["slot"]] = data
            self.jobs.append(fields)
        send = self.dut.send
        self.host = HostRead(send.reads, send.completions, memory, self.random, latency)
        self.packets, self.ended, self.lines, self.when = [], [], [], []
        self.queue = []

    def event(self, **fields):
        """One cycle of `reset` or `rewind`, with what goes with it."""
        epochs = self.dut.send.epochs
        for name, value in fields.items():
            yield getattr(epochs, name).eq(value)
        yield
        yield epochs.reset.eq(0)
        yield epochs.rewind.eq(0)

    def run(self, act=None, cycles=6000, first=None, glance=None):
        """`act`: a generator that runs beside the jobs, and queues those from the number `first`
        on; `glance`: a Glance.
        """
        dut, random = self.dut, self.random

        def main():
            yield dut.send.max_request.eq(256)
            yield dut.send.extended_tags.eq(1)
            for key, base, rights in REGIONS:
                for name, value in dict(
                    index=key,
                    key=key,
                    base=base,
                    length=LENGTH,
                    rights=rights,
                    owner=2,
                    valid=1,
                    write=1,
                ).items():
                    yield getattr(dut.regions, name).eq(value)
                yield
            yield dut.regions.write.eq(0)
            for node in (1, 3):
                yield from self.event(node=node, incarnation=5, reset=1)
            for _ in range(TIMEOUT + 40):
                yield  # No read leaves before that.
            self.queue.extend(self.jobs[:first])
            if act is not None:
                yield from act
            yield from finish(lambda: len(self.ended) == len(self.jobs), cycles)

        send = dut.send
        told = []
        run_simulation(
            dut,
            [
                main(),
                self.host.run(),
                glance.serve()
                if glance
                else serve_slots(send.slot, len(send.payload.dat), self.slots, random, self.busy),
                source(send.jobs, growing(self.queue), random, self.busy),
                sink(
                    send.payload, ("dat", "bytes", "last", "error"), self.lines, random, self.drain
                ),
                sink(send.packets, PACKET, told, random, self.busy),
                sink(
                    send.done, ("tag", "status", "psn", "checksum"), self.ended, random, self.busy
                ),
            ],
        )
        ends = iter([error for _, _, last, error in self.lines if last])
        self.packets += [
            packet for packet in told if not packet[PACKET.index("length")] or not next(ends, 1)
        ]
        return self

    def statuses(self):
        assert [tag for tag, *_ in self.ended] == [job["tag"] for job in self.jobs]
        return [status for _, status, _, _ in self.ended]

    def span(self, n):
        """Reads of the job whose walk starts n*0x10000 behind the region's start."""
        return [address for address, _, _ in self.host.issued if (address - BASE) // 0x10000 == n]


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_an_answer_to_a_get_reads_by_remote_read_for_any_owner_of_the_region(data_width, seed):
    response = dict(response=1, endpoint=C.INBOX, message=0xABCD1203)
    bench = Bench(
        [
            (put(5000, key=2, flags=FLAG.INTERRUPT), response),
            (put(5000, key=1), response),
            (put(600, key=2, offset=LENGTH - 300), response),
            (put(8, key=9), response),
            (put(8, key=2), {}),
            (put(0, key=2), response),
        ],
        data_width,
        seed,
        busy=0.7,
    ).run(cycles=20000)
    assert bench.statuses() == [
        STATUS.OK,
        STATUS.NOT_PERMITTED,
        STATUS.BOUNDS,
        STATUS.BAD_KEY,
        STATUS.NOT_PERMITTED,
        STATUS.OK,
    ]
    whole = [packet for packet in bench.packets if packet[3] < 200]
    end = PACKET_FLAG.RESPONSE | PACKET_FLAG.LAST | PACKET_FLAG.NOTICE
    assert whole == [
        (1, 5, 0, 0, PACKET_FLAG.RESPONSE | PACKET_FLAG.FIRST, 4096, 0xABCD1203, C.INBOX, 0, 0, 0),
        (1, 5, 0, 1, end, 904, 0xABCD1203, C.INBOX, 0, 0, 0),
    ]
    assert bench.packets[-1] == (1, 5, 0, 500, end, 0, 0xABCD1203, C.INBOX, 0, 0, 0)


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_an_answer_to_a_receive_reads_as_a_put_and_goes_where_another_slot_says(data_width, seed):
    answer = dict(response=1, indirect=1, target=19, target_levels=2, message=0xABCD1205)
    bench = Bench(
        [(put(5000), answer), (put(8, key=2), answer), (put(8), answer | dict(endpoint=3))],
        data_width,
        seed,
        busy=0.7,
    ).run(cycles=20000)
    assert bench.statuses() == [STATUS.OK, STATUS.NOT_PERMITTED, STATUS.NOT_OWNER]
    end = PACKET_FLAG.RESPONSE | PACKET_FLAG.LAST | PACKET_FLAG.NOTICE
    assert bench.packets == [
        (1, 5, 0, 0, PACKET_FLAG.RESPONSE | PACKET_FLAG.FIRST, 4096, 0xABCD1205, 2, 1, 19, 2),
        (1, 5, 0, 1, end, 904, 0xABCD1205, 2, 1, 19, 2),
    ]


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_the_end_of_a_job_has_the_checksum_of_its_bytes_from_skip_on(data_width, seed):
    jobs = [(put(n, offset=n), {}) for n in (1, 100, 333)] + [
        (put(0), {}),
        (put(9001), dict(skip=4096)),
        (put(5000), dict(skip=4096)),
        (strided(7, 1), {}),
        (put(8, key=9), {}),
    ]
    data = [bytes(memory(BASE + n + i) for i in range(n)) for n in (1, 100, 333)] + [
        b"",
        bytes(memory(BASE + i) for i in range(4096, 9001)),
        bytes(memory(BASE + i) for i in range(4096, 5000)),
        bytes(memory(BASE + 1 + 24 * e + i) for e in range(7) for i in range(8)),
    ]
    bench = Bench(jobs, data_width, seed, busy=0.8).run()
    assert [checksum for *_, checksum in bench.ended[:-1]] == [internet_checksum(d) for d in data]


def test_jobs_of_another_epoch_end_without_a_read_and_the_next_is_done():
    jobs = [
        (put(64, offset=0x10000 * n), dict(epoch=epoch, node=node))
        for n, (epoch, node) in enumerate([(3, 1), (0, 1), (1, 1), (3, 1), (0, 3)])
    ]
    bench = Bench(jobs)
    bench.run(bench.event(node=1, epoch=3, rewind=1))
    assert bench.statuses() == [STATUS.OK, STATUS.REWOUND, STATUS.REWOUND, STATUS.OK, STATUS.OK]
    assert not bench.span(1) and not bench.span(2)
    assert [packet[:3] for packet in bench.packets] == [(1, 5, 3), (1, 5, 3), (3, 5, 0)]


def test_a_new_incarnation_is_another_epoch_too():
    jobs = [(put(64, offset=0x10000 * n), dict(incarnation=i)) for n, i in enumerate([6, 5, 6])]
    bench = Bench(jobs)
    bench.run(bench.event(node=1, incarnation=6, reset=1))
    assert bench.statuses() == [STATUS.OK, STATUS.REWOUND, STATUS.OK]


@pytest.mark.parametrize("data_width", [64, 128, 256])
@pytest.mark.parametrize("after", [0, 3, 40, 400])
def test_a_job_under_way_gives_way_and_the_next_starts_at_once(data_width, after, seed):
    """A walk of 2000 elements is rewound; the transfers behind it, of its flow and of another, are
    whole.
    """
    bench = Bench(
        [
            (strided(2000), {}),
            (put(300, offset=0x10000), dict(node=3)),
            (put(200, offset=0x20000), dict(epoch=1)),
        ],
        data_width,
        seed,
        latency=(30, 90),
        drain=0.9,
    )
    taken = []
    again = bench.jobs[2]

    def act():
        yield from finish(lambda: len(bench.host.issued) > 0, 200)
        for _ in range(after):
            yield
        yield from bench.event(node=1, epoch=1, rewind=1)
        bench.queue.append(again)
        taken.append(len(bench.span(0)))
        yield from finish(lambda: len(bench.ended) == 3, 500)

    bench.run(act(), first=2)
    assert bench.statuses() == [STATUS.REWOUND, STATUS.OK, STATUS.OK]
    assert len(bench.span(0)) - taken[0] <= 8
    assert [packet[3] for packet in bench.packets if packet[3] >= 100] == [100, 200]
    for n, size in ((1, 300), (2, 200)):
        data = bytes(memory(BASE + 0x10000 * n + i) for i in range(size))
        assert bench.ended[n][3] == internet_checksum(data)


def test_a_rewind_at_any_moment_hurts_nobody_else(seed):
    """Jobs of two flows, one of them rewound again and again: the other's are all whole."""
    random = Random(seed)
    jobs = [
        (
            strided(random.choice([1, 5, 30]), 0x10000 * n % LENGTH),
            dict(node=random.choice([1, 3]), psn=7),
        )
        for n in range(14)
    ]
    bench = Bench(jobs, seed=seed, busy=0.8, latency=(5, 40))

    def act():
        for epoch in range(1, 16):
            for _ in range(random.randrange(90)):
                yield
            yield from bench.event(node=1, epoch=epoch, rewind=1)

    bench.run(act())
    for (data, fields), (_, status, psn, checksum) in zip(jobs, bench.ended):
        elements = int.from_bytes(data[COMMAND["length"].offset :][:4], "little") // 8
        offset = jobs.index((data, fields)) * 0x10000 % LENGTH
        if fields["node"] == 3:
            assert status == STATUS.OK
        else:
            assert status in (STATUS.OK, STATUS.REWOUND)
        if status == STATUS.OK:
            whole = bytes(
                memory(BASE + offset + 24 * e + i) for e in range(elements) for i in range(8)
            )
            assert (psn, checksum) == (8, internet_checksum(whole))
    assert STATUS.REWOUND in bench.statuses()


@pytest.mark.parametrize("data_width, bound", [(64, 19), (128, 18), (256, 18)])
def test_cycles_from_job_to_first_read(data_width, bound):
    bench, seen = Bench([(put(8), {})], data_width), {}

    def act():
        for cycle in range(200):
            yield
            if (yield bench.dut.send.jobs.valid):
                seen.setdefault("job", cycle)
            if (yield bench.dut.send.reads.valid):
                seen.setdefault("read", cycle)

    bench.run(act())
    assert seen["read"] - seen["job"] == bound


class Glance:
    """The slot port of an engine. `FastCommands` reads the slot too, in a random order except for
    its first line. `reads`: lines that the engine itself requested.
    """

    def __init__(self, bench, width, endpoint, slot, busy=1.0):
        self.bench, self.send, self.width = bench, bench.dut.send, width
        self.endpoint, self.slot, self.busy = endpoint, slot, busy
        self.wanted = flat_source_lines(width)
        self.todo = []
        self.reads = []

    def line(self, data, n):
        return int.from_bytes(data[n * self.width // 8 : (n + 1) * self.width // 8], "little")

    def look(self):
        """Until all that is wanted was there."""
        rest = [line for line in self.wanted if line]
        self.bench.random.shuffle(rest)
        self.todo = [0] + rest
        while self.todo:
            yield
        yield

    @passive
    def serve(self):
        port, glance, random, pipe = self.send.slot, self.send.glance, self.bench.random, [0, 0]
        yield glance.endpoint.eq(self.endpoint)
        yield glance.slot.eq(self.slot)
        while True:
            # Nothing of the engine's own is on its way where a line for another one comes.
            line = (
                self.todo.pop(0)
                if self.todo and pipe == [0, 0] and random.random() < self.busy
                else None
            )
            yield port.ready.eq(int(not self.todo and line is None))
            yield glance.begin.eq(int(line == 0))
            yield glance.lines.eq(0 if line is None else 1 << self.wanted.index(line))
            yield port.dat_r.eq(
                pipe.pop(0)
                if line is None
                else pipe.pop(0) or self.line(self.bench.slots[self.endpoint, self.slot], line)
            )
            yield
            value = 0
            if (yield port.valid) and (yield port.ready):
                number, n = divmod((yield port.adr), C.SLOT_BYTES * 8 // self.width)
                self.reads.append((number, n))
                value = self.line(self.bench.slots[divmod(number, C.SLOTS)], n)
            pipe.append(value)


@pytest.mark.parametrize("data_width", [64, 128, 256])
@pytest.mark.parametrize(
    "then, reads",
    [("nothing", 0), ("drop", 1), ("write", 1), ("other", 2), ("levels", 1), ("late", 0)],
)
def test_a_slot_that_was_glanced_at_is_not_read_again(data_width, then, reads, seed):
    """But where the put was dropped, a region was written meanwhile (here the very one, so that its
    data are elsewhere), another job came
    first, or the source has levels: each of `reads` jobs reads its own."""
    slot = put(40, offset=24) if then != "levels" else strided(5)
    jobs = [(slot, dict(slot=4))] + (
        [(put(16, offset=3), dict(slot=5, psn=1))] if then == "other" else []
    )
    bench = Bench(jobs, data_width, seed)
    bench.jobs.sort(key=lambda job: -job["slot"])
    look = Glance(bench, data_width, 2, 4, busy=0.7)
    base = BASE + (4096 if then == "write" else 0)
    dut = bench.dut

    def act():
        del bench.queue[:]
        yield from look.look()
        for _ in range(bench.random.randrange(4)):
            yield
        if then == "drop":
            yield dut.send.glance.drop.eq(1)
            yield
            yield dut.send.glance.drop.eq(0)
        if then == "write":
            for signal in (dut.regions.write, dut.send.departures.mark):
                yield signal.eq(1)
            for name, value in dict(
                index=1, key=1, base=base, rights=RIGHT.LOCAL_READ, valid=1
            ).items():
                yield getattr(dut.regions, name).eq(value)
            yield
            for signal in (dut.regions.write, dut.send.departures.mark):
                yield signal.eq(0)
        for _ in range(50 if then == "late" else 0):
            yield
        bench.queue.extend(bench.jobs)

    bench.run(act(), glance=look)
    assert bench.statuses() == [STATUS.OK] * len(jobs)
    data = b"".join(
        dat.to_bytes(data_width // 8, "little")[:count] for dat, count, _, _ in bench.lines
    )
    spans = [(base + 24, 40)] if then != "levels" else [(base + 24 * n, 8) for n in range(5)]
    spans = [(base + 3, 16)] * (then == "other") + spans
    assert data == bytes(memory(start + i) for start, size in spans for i in range(size))
    assert len({number for number, _ in look.reads}) == reads
