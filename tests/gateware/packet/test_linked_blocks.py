"""Blocks between two links and what they share: the merger of EXPRESS words, and the turns at a
gate.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.interface.description import C
from dibber.link.port import PacketDropper
from dibber.packet.flow_table import FlowGate
from dibber.packet.gate_turns import TURN, GateTurns
from dibber.packet.merge import PacketMerger

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive, finish
from tests.gateware.models.flows import numbers_of

PATIENCE = 40


class Merger:
    """A merger between two links and a receiver; `given` has what the receiver takes."""

    def __init__(self, random, busy):
        self.dut, self.random, self.busy = PacketMerger(PATIENCE), random, busy
        self.given = []  # packets: (words, bad)
        self.sent = [0, 0]

    def link(self, n, packets, stops=None):
        """Words of packets with random gaps. `stops`: (packet, word) before which it stands still
        until the receiver has given it up, or `None` in place of the number of cycles for ever.
        """
        sink = self.dut.sinks[n]
        for number, words in enumerate(packets):
            for place, word in enumerate(words):
                while self.random.random() > self.busy:
                    yield
                if stops and stops[:2] == (number, place):
                    if stops[2] is None:
                        return
                    for _ in range(stops[2]):
                        yield
                last = place == len(words) - 1
                yield from drive(sink, valid=1, data=word, last=int(last), first=int(place == 0))
                yield
                while not (yield sink.ready):
                    yield
                yield sink.valid.eq(0)
            self.sent[n] += 1

    @passive
    def receiver(self):
        source, words = self.dut.source, []
        while True:
            yield source.ready.eq(int(self.random.random() < self.busy))
            yield
            if (yield source.valid) and (yield source.ready):
                words.append((yield source.data))
                if (yield source.last):
                    self.given.append((words, (yield source.bad)))
                    words = []


def packets_of(random, link, count):
    return [
        [link << 24 | n << 8 | place for place in range(random.randrange(1, 12))]
        for n in range(count)
    ]


def test_packets_of_both_links_pass_whole_and_in_order(seed):
    random = Random(seed)
    packets = [packets_of(random, n, 60) for n in range(2)]
    bench = Merger(random, 0.7)
    run_simulation(
        bench.dut,
        [
            bench.receiver(),
            *[bench.link(n, packets[n]) for n in range(2)],
            finish(lambda: len(bench.given) == 120, 9000),
        ],
    )
    assert not any(bad for _, bad in bench.given)
    for n in range(2):
        assert [words for words, _ in bench.given if words[0] >> 24 == n] == packets[n]
    links = [words[0] >> 24 for words, _ in bench.given]
    # A link with packets waits for one packet of the other link at most.
    assert all(len(set(links[at : at + 4])) == 2 for at in range(40))


def test_a_link_that_stops_inside_a_packet_stops_the_other_one_for_patience_alone(seed):
    random = Random(seed)
    packets = [packets_of(random, n, 40) for n in range(2)]
    packets[0][5] = list(range(5 << 8, (5 << 8) + 9))
    bench = Merger(random, 1.0)
    run_simulation(
        bench.dut,
        [
            bench.receiver(),
            bench.link(0, packets[0], (5, 4, 3 * PATIENCE)),
            bench.link(1, packets[1]),
            finish(lambda: len(bench.given) == 80, 9000),
        ],
    )
    bad = [words for words, is_bad in bench.given if is_bad]
    assert bad == [packets[0][5][:4] + [bad[0][-1]]]
    good = [words for words, is_bad in bench.given if not is_bad]
    assert [w for w in good if w[0] >> 24 == 0] == packets[0][:5] + packets[0][6:]
    assert [w for w in good if w[0] >> 24 == 1] == packets[1]


# Gate ---------------------------------------------------------------------------------------------


class Gated(Module):
    """A gate for two transmitters; flows to nodes 1 and 2 are started and sure."""

    def __init__(self, is_sure=True):
        self.submodules.gate = gate = FlowGate()
        self.submodules.turns = turns = GateTurns()
        if is_sure:
            numbers_of(gate).init = [1 << 8] * C.NODES
        self.comb += [
            turns.flow.connect(gate.sink),
            gate.source.connect(turns.passed),
            turns.question.eq(gate.asking),
        ]


class Gate:
    """Packets of link n go to node n + 1, with PSNs from 0 on. The transmitter of link n takes what
    passes while `takes[n]`; the target acknowledges while `acks[n]`.
    """

    def __init__(self, random, is_sure=True):
        self.dut, self.random = Gated(is_sure), random
        self.takes, self.acks = [1.0, 1.0], [True, True]
        self.passed, self.asked, self.cycle = ([], []), [0, 0], 0

    def start(self):
        for n in range(2):
            yield from drive(self.dut.gate.reset, strobe=1, flow=n + 1, incarnation=1)
            yield
        yield self.dut.gate.reset.strobe.eq(0)

    @passive
    def link(self, n):
        sink, source = self.dut.turns.sinks[n], self.dut.turns.sources[n]
        for _ in range(4):
            yield
        for psn in range(1000):
            yield from drive(sink, valid=1, node=n + 1, psn=psn, incarnation=1, epoch=0)
            taken = False
            while not taken:
                yield source.ready.eq(int(self.random.random() < self.takes[n]))
                yield
                if (yield source.valid) and (yield source.ready):
                    if (yield source.question):
                        self.asked[n] += 1
                    else:
                        assert (yield source.psn) == psn and (yield source.node) == n + 1
                        self.passed[n].append((psn, (yield source.stale)))
                taken = yield sink.ready
            yield source.ready.eq(0)
            if self.random.random() < 0.3:
                yield sink.valid.eq(0)
                for _ in range(self.random.randrange(6)):
                    yield

    @passive
    def target(self):
        told = [0, 0]
        move = self.dut.gate.move
        while True:
            self.cycle += 1
            yield move.strobe.eq(0)
            n = self.cycle % 2
            if self.acks[n] and len(self.passed[n]) > told[n] and self.cycle % 8 < 2:
                told[n] = len(self.passed[n])
                yield from drive(move, strobe=1, node=n + 1, psn=told[n] - 1)
            yield

    def run(self, process):
        run_simulation(
            self.dut, [self.start(), self.target(), *[self.link(n) for n in range(2)], process]
        )
        for packets in self.passed:
            assert packets == [(psn, 0) for psn in range(len(packets))]


@pytest.mark.parametrize("shut", [0, 1])
@pytest.mark.parametrize("why", ["window", "transmitter"])
def test_a_packet_that_waits_at_the_gate_stops_no_packet_of_the_other_link(shut, why, seed):
    bench, counts = Gate(Random(seed)), {}

    def process():
        if why == "window":
            bench.acks[shut] = False
        else:
            bench.takes[shut] = 0.0
        for _ in range(1200):
            yield
        before = len(bench.passed[1 - shut])
        for _ in range(1000):
            yield
        counts["rate"] = (len(bench.passed[1 - shut]) - before) / 1000
        counts["shut"] = len(bench.passed[shut])
        bench.acks[shut], bench.takes[shut] = True, 1.0
        yield from finish(lambda: len(bench.passed[shut]) > counts["shut"] + 20, 1000)

    bench.run(process())
    assert counts["shut"] == (C.WINDOW if why == "window" else 0)
    # Each packet of the other link gives the turn away, and gets it back after TURN cycles.
    assert counts["rate"] > 1 / (TURN + 12)


def test_both_links_have_turns(seed):
    bench = Gate(Random(seed))
    bench.takes = [0.6, 0.6]
    bench.run(finish(lambda: min(map(len, bench.passed)) > 60, 3000))
    counts = sorted(map(len, bench.passed))
    assert counts[1] < 1.5 * counts[0]


def test_a_packet_that_waits_for_an_answer_keeps_its_turn(seed):
    """The answer to its question is for this packet; a second question would make it void."""
    bench, seen = Gate(Random(seed), is_sure=False), {}

    def process():
        yield from finish(lambda: sum(bench.asked) == 1, 200)
        n = bench.asked.index(1)
        for _ in range(300):
            yield
        seen["asked"] = list(bench.asked)
        leap = bench.dut.gate.leap
        yield from drive(leap, strobe=1, node=n + 1, number=5)
        yield
        yield leap.strobe.eq(0)
        yield from finish(lambda: len(bench.passed[n]) == 1, 200)
        yield from finish(lambda: sum(bench.asked) == 2, 200)

    bench.run(process())
    assert sum(seen["asked"]) == 1


# Dropper ------------------------------------------------------------------------------------------


def test_a_packet_passes_whole_or_not_at_all_as_the_link_is_when_it_begins(seed):
    random = Random(seed)
    dut, packets = PacketDropper(), packets_of(random, 0, 120)
    came, begun, done = [], [], []

    def sender():
        for number, words in enumerate(packets):
            for place, word in enumerate(words):
                while random.random() > 0.8:
                    yield
                last = place == len(words) - 1
                yield from drive(dut.sink, valid=1, data=word, last=int(last), first=int(not place))
                yield
                while not (yield dut.sink.ready):
                    yield
                if place == 0 and (yield dut.up):
                    begun.append(number)
                yield dut.sink.valid.eq(0)
        done.append(True)

    @passive
    def receiver():
        while True:
            # A link that is down takes nothing, but the rest of a packet that has begun.
            yield dut.source.ready.eq(int(random.random() < 0.7))
            if random.random() < 0.05:
                yield dut.up.eq(random.randrange(2))
            yield
            if (yield dut.source.valid) and (yield dut.source.ready):
                came.append((yield dut.source.data))

    run_simulation(dut, [sender(), receiver(), finish(lambda: done, 9000)])
    assert came == [word for number in begun for word in packets[number]]
    assert 10 < len(begun) < 110
