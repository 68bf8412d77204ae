"""Two links behind one engine: the splitter, the joiner, and the order of a source's packets."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.interface.description import C
from dibber.packet.join import FlowTurns, PacketJoiner
from dibber.packet.split import PacketSplitter

from tests.gateware.models import two_links
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive, finish, sink, source
from tests.gateware.test_carries import faults

WIDTH = 64
PLACES = 2

# Splitter -----------------------------------------------------------------------------------------


def random_packets(random, count, first=0):
    """[(link, number, lines)]; some packets have no payload."""
    return [
        (random.randrange(2), first + n, random.choice((0, 1, 1, 2, 5, 12))) for n in range(count)
    ]


def lines_of(packets):
    """The lines of all packets in order: (packet's number, line's number, last)."""
    return [(n, i, i == count - 1) for _, n, count in packets for i in range(count)]


class SplitBench:
    """A splitter between an engine that reserves, and two transmitters that `stopped` stops."""

    def __init__(self, packets, random, busy, stopped=lambda cycle: (False, False)):
        self.dut = PacketSplitter(WIDTH, PLACES)
        self.packets, self.random, self.busy = packets, random, busy
        self.stopped = stopped
        self.given = ([], [])  # packets that came to each link
        self.lines = ([], [])
        self.inside = [0, 0]  # packets in each transmitter's buffer
        self.stalls = 0  # cycles in which a packet or a line with a place waited

    def engine(self):
        """Reserve a place, then send the packet and its lines. A packet of a link without room is
        passed over.
        """
        dut, waiting = self.dut, [[p for p in self.packets if p[0] == n] for n in range(2)]
        while any(waiting):
            room = yield dut.room
            able = [n for n in range(2) if waiting[n] and room >> n & 1]
            if not able:
                yield
                continue
            link = self.random.choice(able)
            yield dut.reserve.eq(1 << link)
            yield
            yield dut.reserve.eq(0)
            yield
            if self.random.random() < 0.1:  # no packet comes of it
                yield dut.cancel.eq(1 << link)
                yield
                yield dut.cancel.eq(0)
                yield
                continue
            _, number, count = waiting[link].pop(0)
            yield from drive(dut.packets, valid=1, link=link, psn=number, length=8 * count)
            yield
            while not (yield dut.packets.ready):
                self.stalls += 1
                yield
            yield dut.packets.valid.eq(0)
            for line in range(count):
                while self.random.random() > self.busy:
                    yield
                yield from drive(
                    dut.payload, valid=1, dat=number << 16 | line, last=line == count - 1
                )
                yield
                while not (yield dut.payload.ready):
                    self.stalls += 1
                    yield
                yield dut.payload.valid.eq(0)

    @passive
    def transmitter(self, link):
        """Take what comes while there is a place. A packet leaves some cycles after its last line,
        unless the link is stopped.
        """
        dut, cycle = self.dut, 0
        packet, lines = dut.sources[link], dut.payloads[link]
        counts = {number: count for _, number, count in self.packets}
        yield packet.ready.eq(1)
        yield lines.ready.eq(1)
        whole, due = 0, 0
        while True:
            yield
            cycle += 1
            if (yield packet.valid):
                number = yield packet.psn
                assert (yield packet.length) == 8 * counts[number]
                self.given[link].append(number)
                self.inside[link] += 1
                whole += counts[number] == 0
            if (yield lines.valid):
                data = yield lines.dat
                last = yield lines.last
                self.lines[link].append((data >> 16, data & 0xFFFF, bool(last)))
                whole += last
            assert self.inside[link] <= PLACES
            yield dut.left[link].eq(0)
            due += 1
            if whole and due > 12 and not self.stopped(cycle)[link]:
                whole, due = whole - 1, 0
                self.inside[link] -= 1
                yield dut.left[link].eq(1)

    def run(self, cycles=60000):
        def wait():
            yield from finish(
                lambda: sum(map(len, self.given)) == len(self.packets) and not any(self.inside),
                cycles,
            )

        run_simulation(self.dut, [self.engine(), self.transmitter(0), self.transmitter(1), wait()])


def by_link(packets):
    ordered = [[p for p in packets if p[0] == n] for n in range(2)]
    return two_links.split(ordered[0] + ordered[1], lines_of(ordered[0] + ordered[1]))


@pytest.mark.parametrize("busy", [1.0, 0.5])
def test_each_packet_and_its_lines_go_to_its_link_once_and_in_order(busy, seed):
    random = Random(f"{seed} {busy}")
    packets = random_packets(random, 150)
    bench = SplitBench(packets, random, busy)
    bench.run()
    assert (bench.given, bench.lines) == by_link(packets)
    assert bench.stalls == 0


@pytest.mark.parametrize("link", [0, 1])
def test_a_stopped_link_stops_no_packet_of_the_other_one(link, seed):
    """The link is stopped until the other one has had all of its packets."""
    random = Random(f"{seed} {link}")
    packets = random_packets(random, 80)
    others = sum(p[0] != link for p in packets)
    bench = SplitBench(packets, random, 1.0)
    stopped = [n == link for n in range(2)]
    through = []

    def stop(cycle):
        if len(bench.given[1 - link]) == others:
            if not through:
                through.append(len(bench.given[link]))
            return False, False
        return stopped

    bench.stopped = stop
    bench.run()
    assert (bench.given, bench.lines) == by_link(packets)
    assert bench.stalls == 0
    assert through[0] <= PLACES  # the stopped link had no more meanwhile


# Joiner -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("busy", [1.0, 0.4])
def test_the_joiner_gives_whole_packets_of_both_links_with_their_own_lines(busy, seed):
    random = Random(f"{seed} {busy}")
    dut = PacketJoiner(WIDTH)
    packets = ([p[1:] for p in random_packets(random, 60)], [])
    packets = (packets[0], [p[1:] for p in random_packets(random, 60, first=1000)])
    deposits, lines, left = [], [], [0, 0]

    def receiver(link):
        """A deposit, then its lines some cycles apart as they come from the link. They wait in a
        buffer, and `whole` comes with the last one.
        """
        wait = Random(f"{seed} {link}")
        given, buffer = [], []

        def arrive():
            for number, count in packets[link]:
                while sum(n >= 0 for n in given) - left[link] >= 6:
                    yield
                given.append(number)
                for line in range(count):
                    for _ in range(wait.randrange(3)):
                        yield
                    buffer.append((number, line, line == count - 1))
                yield dut.whole[link].eq(1)
                yield
                yield dut.whole[link].eq(0)
                yield

        @passive
        def offer(endpoint, items, fields):
            taken = 0
            while True:
                while taken == len(items):
                    yield
                yield from drive(endpoint, valid=1, **fields(items[taken]))
                yield
                while not (yield endpoint.ready):
                    yield
                taken += 1
                yield endpoint.valid.eq(0)

        counts = dict(packets[link])
        return [
            arrive(),
            offer(dut.deposits[link], given, lambda n: {"psn": n, "length": 8 * counts[n]}),
            offer(
                dut.payloads[link],
                buffer,
                lambda item: {"dat": item[0] << 16 | item[1], "last": item[2]},
            ),
        ]

    @passive
    def count():
        while True:
            yield
            ended = yield dut.left
            for link in range(2):
                left[link] += ended >> link & 1

    def wait():
        yield from finish(lambda: sum(left) == 120, 40000)

    run_simulation(
        dut,
        [
            *receiver(0),
            *receiver(1),
            sink(dut.deposit, ["psn", "length"], deposits, Random(f"{seed} d"), busy),
            sink(dut.payload, ["dat", "last"], lines, Random(f"{seed} l"), busy),
            count(),
            wait(),
        ],
    )
    for link, mine in enumerate(packets):
        assert [(n, size // 8) for n, size in deposits if n // 1000 == link] == mine
    counts = dict(packets[0] + packets[1])
    assert lines == [
        (n << 16 | i, int(i == counts[n] - 1)) for n, _ in deposits for i in range(counts[n])
    ]
    assert left == [60, 60]


def test_a_link_that_stops_inside_a_packet_stops_no_packet_of_the_other_one():
    """Link 0 has a packet's deposit and its first lines. Link 1 has whole packets."""
    dut, deposits, lines = PacketJoiner(WIDTH), [], []

    def run():
        yield from drive(dut.deposits[0], valid=1, psn=500, length=16)
        yield from drive(dut.payloads[0], valid=1, dat=500, last=0)
        for number in range(5):
            yield dut.whole.eq(0b10)
            yield
            yield dut.whole.eq(0)
            yield from finish(lambda: len(lines) == number + 1, 30)
        assert [psn for (psn,) in deposits] == list(range(5))
        # The rest of the packet comes.
        yield dut.whole.eq(0b01)
        yield
        yield dut.whole.eq(0)
        yield from finish(lambda: len(lines) == 6, 30)
        assert deposits[5:] == [(500,)] and lines[5:] == [(500,)]

    ones = [{"psn": n, "length": 8} for n in range(5)]
    run_simulation(
        dut,
        [
            run(),
            source(dut.deposits[1], ones, Random(1)),
            source(dut.payloads[1], [{"dat": n, "last": 1} for n in range(5)], Random(2)),
            sink(dut.deposit, ["psn"], deposits, Random(3)),
            sink(dut.payload, ["dat"], lines, Random(4)),
        ],
    )


# Order --------------------------------------------------------------------------------------------


def test_a_source_that_changes_its_link_has_its_packets_at_one_receiver_at_a_time(seed):
    """Packets of some sources come by either link, which changes often. Headers may be dropped."""
    random, dut, wants = Random(seed), FlowTurns(), Signal(2)
    dut.comb += dut.enters.eq(wants & dut.may)
    sources = (0, 1, 2, C.NODES - 1)
    inside = ([], [])  # sources of the packets in each receiver
    entered, waited, dropped = [0, 0], [0, 0], [0, 0]
    route = {node: random.randrange(2) for node in sources}

    @passive
    def joiner():
        while True:
            able = [n for n in range(2) if inside[n]]
            if able and random.random() < 0.15:
                link = random.choice(able)
                yield dut.left.eq(1 << link)
                yield
                inside[link].pop(0)
                yield dut.left.eq(0)
            yield

    def receiver(link):
        for _ in range(400):
            node = random.choice(sources)
            if random.random() < 0.1:
                route[node] = 1 - route[node]
            if route[node] != link and random.random() < 0.5:
                continue
            while len(inside[link]) > 4:
                yield
            yield dut.nodes[link].eq(node)
            yield dut.asks[link].eq(1)
            executes = random.random() < 0.8
            yield wants[link].eq(executes)
            yield
            cycles = 0
            while not (yield dut.may[link]):
                cycles += 1
                assert cycles < 2000
                yield
            waited[link] += cycles > 1
            if executes:
                assert node not in inside[1 - link], (node, inside)
                inside[link].append(node)
            (entered if executes else dropped)[link] += 1
            yield dut.asks[link].eq(0)
            yield wants[link].eq(0)
            yield

    run_simulation(dut, [receiver(0), receiver(1), joiner()])
    assert min(entered) > 50 and min(dropped) > 5 and min(waited) > 5, (entered, dropped, waited)


@pytest.mark.parametrize("block", [PacketSplitter(64), PacketJoiner(128), FlowTurns()])
def test_no_sum_loses_its_carry(block):
    assert set(faults(block.get_fragment())) == set()


# Rate ---------------------------------------------------------------------------------------------


def test_two_flows_have_1_9_times_the_rate_only_if_their_jobs_are_cut():
    one = two_links.sent(1, False, 128, links=1)
    assert two_links.sent(256, True, 128) >= 1.9 * one
    assert two_links.sent(16, False, 128) < 1.2 * one
    assert two_links.received(128) * two_links.LINK >= 1.9
