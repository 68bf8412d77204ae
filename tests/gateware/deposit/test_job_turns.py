"""Jobs of two links are cut into packets, which go to the engine in turn."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.deposit.job_turns import JobTurns
from dibber.interface.description import C, STATUS
from dibber.packet.split import PacketSplitter

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive, finish, sink, source
from tests.gateware.test_carries import faults

PACKET = C.PACKET_PAYLOAD
NODES = (1, 2, C.NODES - 1)  # the second one is behind link 1, the others behind link 0
FIELDS = ("tag", "psn", "skip", "length", "more", "link", "node", "slot")


def random_job(random, tag):
    length = random.choice((0, 1, PACKET - 1, PACKET, PACKET + 1, 3 * PACKET, 5 * PACKET - 7))
    skip = PACKET * random.randrange(length // PACKET + 1) if random.random() < 0.3 else 0
    if random.random() < 0.05:
        skip = length + PACKET  # the engine refuses it
    if random.random() < 0.05:
        length = skip = 2**32 - 1 - (2**32 - 1) % PACKET  # at the end of the numbers
        length += PACKET - 1
    return {
        "tag": tag,
        "node": random.choice(NODES),
        "psn": random.getrandbits(16),
        "slot": random.getrandbits(8),
        "skip": skip,
        "length": length,
    }


def parts_of(job):
    """All parts of a job, if none of them fails, in the order of FIELDS."""
    at, psn, parts = job["skip"], job["psn"], []
    while True:
        final = at >= job["length"] or job["length"] - at <= PACKET
        end = job["length"] if final else at + PACKET
        link = int(job["node"] == NODES[1])
        parts.append((job["tag"], psn, at, end, int(not final), link, job["node"], job["slot"]))
        if final:
            return parts
        at, psn = at + PACKET, (psn + 1) % 2**16


def folded(total):
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


class Bench:
    """Jobs, an engine in order that fails now and then, and the splitter's places. Packets of a
    link in `stopped` leave no place.
    """

    def __init__(self, jobs, random, busy, failing=0.1):
        self.dut, self.splitter = JobTurns(), PacketSplitter(64)
        self.jobs, self.random, self.busy, self.failing = jobs, random, busy, failing
        self.parts, self.done, self.expected = [], [], {}
        self.stopped, self.inside, self.most = set(), [0, 0], [0, 0]
        self.sums = {job["tag"]: 0 for job in jobs}
        top = self.top = Module()
        top.submodules += self.dut, self.splitter
        top.comb += [
            self.dut.room.eq(self.splitter.room),
            self.splitter.reserve.eq(self.dut.reserve),
            self.splitter.cancel.eq(self.dut.cancel),
        ]

    @passive
    def engine(self):
        """Each part takes some cycles; then its packet comes, and its end some cycles later."""
        dut, random, taken = self.dut, self.random, 0
        while True:
            while taken == len(self.parts):
                yield
            tag, psn, skip, length, more, link, node, _ = self.parts[taken]
            taken += 1
            for _ in range(random.randrange(8)):
                yield
            fails = skip > length or random.random() < self.failing
            comes = not fails or (skip <= length and random.random() < 0.5)
            if comes:
                yield dut.came.eq(1 << link)
                self.inside[link] += 1
                self.most[link] = max(self.most[link], self.inside[link])
                yield
                yield dut.came.eq(0)
                for _ in range(random.randrange(3)):
                    yield
            status = STATUS.READ_ERROR if fails else STATUS.OK
            value = random.choice((0, 1, 0xFFFF, random.getrandbits(16)))
            self.sums[tag] = folded(self.sums[tag] + value)
            after = (psn + (not fails)) % 2**16
            if fails or not more:
                self.expected[tag] = (tag, int(status), after, self.sums[tag] ^ 0xFFFF, node)
            end = {"tag": tag, "status": status, "psn": after, "node": node}
            yield from drive(dut.ends, valid=1, checksum=value ^ 0xFFFF, **end)
            yield
            while not (yield dut.ends.ready):
                yield
            yield dut.ends.valid.eq(0)

    @passive
    def transmitters(self):
        while True:
            able = [n for n in range(2) if self.inside[n] and n not in self.stopped]
            leaves = self.random.choice(able) if able and self.random.random() < 0.2 else None
            yield self.splitter.left.eq(0 if leaves is None else 1 << leaves)
            if leaves is not None:
                self.inside[leaves] -= 1
            yield

    def run(self, *checks):
        dut, random = self.dut, self.random

        def wait():
            yield from finish(lambda: len(self.done) == len(self.jobs), 60000)
            yield from finish(lambda: not any(self.inside), 200)
            for _ in range(3):
                yield
            # Each place that was reserved is free again.
            for _ in range(2):
                assert (yield self.splitter.room) == 3
                yield self.splitter.reserve.eq(0)

        def setup():
            yield dut.homes.eq(1 << NODES[1])

        run_simulation(
            self.top,
            [
                setup(),
                source(dut.sink, [None, None, *self.jobs], Random(random.random()), self.busy),
                sink(dut.parts, FIELDS, self.parts, Random(random.random()), self.busy),
                sink(
                    dut.done,
                    ["tag", "status", "psn", "checksum", "node"],
                    self.done,
                    Random(random.random()),
                    self.busy,
                ),
                self.engine(),
                self.transmitters(),
                *(checks or [wait()]),
            ],
        )


@pytest.mark.parametrize("busy", [1.0, 0.5])
def test_each_job_has_its_parts_in_order_up_to_the_first_that_fails_and_ends_once(busy, seed):
    random = Random(f"{seed} {busy}")
    jobs = [random_job(random, tag) for tag in range(120)]
    bench = Bench(jobs, random, busy, failing=0.25)
    bench.run()
    failed = 0
    for job in jobs:
        parts = [part for part in bench.parts if part[0] == job["tag"]]
        assert parts == parts_of(job)[: len(parts)]
        failed += len(parts) < len(parts_of(job))
    assert failed > 3
    assert sorted(bench.done) == sorted(bench.expected.values())
    assert len(bench.done) == len(jobs)
    # Jobs of one link keep their order.
    for link in range(2):
        tags = [done[0] for done in bench.done if (done[4] == NODES[1]) == link]
        assert tags == sorted(tags)
    assert max(bench.most) <= 2


def test_with_jobs_of_both_links_the_parts_alternate():
    """One job of 12 packets for each link: without the cut the second one would wait."""
    jobs = [
        {"tag": n, "node": NODES[n], "psn": 0, "slot": n, "skip": 0, "length": 12 * PACKET}
        for n in range(2)
    ]
    bench = Bench(jobs, Random(1), 1.0, failing=0)
    bench.run()
    links = [part[5] for part in bench.parts]
    assert len(links) == 24
    for n in range(2, 18):
        assert set(links[n : n + 4]) == {0, 1}, links


@pytest.mark.parametrize("link", [0, 1])
def test_jobs_of_a_stopped_link_stop_no_job_of_the_other_one(link):
    """The stopped link's job is first, and has more packets than places."""
    lengths = [40 * PACKET, 2 * PACKET, 3 * PACKET]
    nodes = [NODES[link], NODES[1 - link], NODES[1 - link]]
    jobs = [
        {"tag": n, "node": nodes[n], "psn": 0, "slot": n, "skip": 0, "length": length}
        for n, length in enumerate(lengths)
    ]
    bench = Bench(jobs, Random(2), 1.0, failing=0)
    bench.stopped = {link}

    def check():
        yield from finish(lambda: len(bench.done) == 2, 2000)
        assert [done[0] for done in bench.done] == [1, 2]
        assert sum(part[0] == 0 for part in bench.parts) == 2  # its places
        bench.stopped = set()
        yield from finish(lambda: len(bench.done) == 3, 6000)

    bench.run(check())
    assert sum(part[0] == 0 for part in bench.parts) == 40


def test_no_sum_loses_its_carry():
    assert set(faults(JobTurns().get_fragment())) == set()
