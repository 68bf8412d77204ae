"""What the timers of the control program are told: what has left the card, and what its target is
storing.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.interface.description import C, CHANNEL, LANE
from dibber.packet import progress
from dibber.packet.progress import Departed, Storing

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive, finish
from tests.gateware.packet.test_layer import Pair, bulk, flow_of
from tests.gateware.packet.test_packet_transmitter import FIRST, PEER, Bench, random_deposit

NODES = 3

pytestmark = pytest.mark.fault

# What has left ------------------------------------------------------------------------------------


def compare(dut, left):
    """Look at all flows: `left` is {node: PSN of its last packet that left}."""
    for node in range(NODES):
        yield dut.node.eq(node)
        yield
        assert (yield dut.valid) == (node in left), node
        if node in left:
            assert (yield dut.psn) == left[node]


def test_a_packet_has_left_with_its_last_word_unless_its_flow_was_rewound_since(seed):
    """Two packets at most are under way. A change comes at any time; a gate lets nothing pass in
    the cycle after it.
    """
    dut, random = Departed(), Random(seed)
    left = {}  # node -> PSN
    seen = dict.fromkeys(("left", "bad", "question", "old"), 0)

    def process():
        way = []  # [cycles since it began, node, psn, counts]
        changed = 10  # cycles since a change of any flow
        for _ in range(4000):
            begins = len(way) < 2 and changed != 0 and random.random() < 0.3
            ends = bool(way) and way[0][0] > 4 and random.random() < 0.2
            change = random.random() < 0.03
            node, psn, counts, bad = (
                random.randrange(NODES),
                random.getrandbits(16),
                random.random() < 0.8,
                random.random() < 0.2,
            )
            yield from drive(dut.begin, strobe=begins, node=node, psn=psn, counts=counts)
            yield dut.ended.eq(ends)
            yield dut.bad.eq(bad)
            which = random.choice((dut.reset, dut.rewind))
            target = random.randrange(NODES)
            yield from drive(which, strobe=change, flow=LANE.BULK * C.NODES + target)
            for packet in way:
                packet[0] += 1
            changed += 1
            if begins:
                way.append([0, node, psn, counts])
            if ends:
                _, ended, number, counted = way.pop(0)
                seen[
                    "bad"
                    if bad
                    else "left"
                    if counted is True
                    else "question"
                    if counted is False
                    else "old"
                ] += 1
                if counted is True and not bad:
                    left[ended] = number
            if change:
                changed = 0
                left.pop(target, None)
                for packet in way:
                    if packet[1] == target and packet[3]:
                        packet[3] = None
            yield
            for record in (dut.begin, dut.reset, dut.rewind):
                yield record.strobe.eq(0)
            yield dut.ended.eq(0)
            if random.random() < 0.05:
                for packet in way:
                    packet[0] += 4 + NODES
                for _ in range(4):
                    yield
                yield from compare(dut, left)
                changed = 10

    run_simulation(dut, process())
    assert all(seen.values()), seen


PLACES = 4


@pytest.mark.parametrize("places", [PLACES, 2 * PLACES])
def test_a_packet_that_the_port_keeps_has_left_when_its_place_is_free_again(places, seed):
    """The port may drop a packet at once, and frees its places in any order, several at once.

    The flow shows the newest packet that is gone, also if an older one goes later.
    """
    dut, random = Departed(places), Random(seed)
    left, psns = {}, dict.fromkeys(range(NODES), 0)
    seen = dict.fromkeys(("kept", "dropped", "bad", "question", "old", "older", "together"), 0)

    def leave(node, psn):
        if node in left and psn < left[node]:
            seen["older"] += 1
        left[node] = max(psn, left.get(node, psn))

    def settle():
        for _ in range(6 + places):
            yield
        yield from compare(dut, left)

    def process():
        kept = {}  # place -> [node, psn, counts]
        free = {place: 0 for place in range(places)}  # -> cycle from which it may be taken
        way = []  # [cycles since it began, node, psn, counts]
        changed = 10
        for cycle in range(6000):
            begins = len(way) < 2 and changed != 0 and random.random() < 0.2
            if begins:
                node = random.randrange(NODES)
                way.append([-1, node, psns[node], random.random() < 0.9])
                psns[node] = min(psns[node] + 1, 0x7FFF)
                yield from drive(dut.begin, strobe=1, node=node, psn=way[-1][2], counts=way[-1][3])
            change = random.random() < 0.01
            target = random.randrange(NODES)
            which = random.choice((dut.reset, dut.rewind))
            yield from drive(which, strobe=change, flow=LANE.BULK * C.NODES + target)
            for packet in way:
                packet[0] += 1
            changed += 1

            gone = [place for place in kept if random.random() < 0.05]
            if kept and random.random() < 0.01:
                gone = list(kept)
            seen["together"] += len(gone) > 1
            yield dut.gone.eq(sum(1 << place for place in gone))
            for place in gone:
                node, psn, counts = kept.pop(place)
                free[place] = cycle + 7 + places
                if counts:
                    leave(node, psn)

            places_free = [place for place, since in free.items() if since <= cycle]
            places_free = [place for place in places_free if place not in kept]
            ends = bool(way) and way[0][0] > 4 and places_free and random.random() < 0.3
            bad = random.random() < 0.1
            yield dut.ended.eq(bool(ends))
            yield dut.bad.eq(bad)
            if ends:
                _, node, psn, counted = way.pop(0)
                counts = counted is True and not bad
                seen["bad" if bad else "old" if counted is None else "question"] += not counts
                if random.random() < 0.9:
                    place = random.choice(places_free)
                    yield dut.keeps.eq(1 << place)
                    kept[place] = [node, psn, counts]
                    seen["kept"] += counts
                else:
                    yield dut.keeps.eq(0)
                    seen["dropped"] += counts
                    if counts:
                        leave(node, psn)
            if change:
                changed = 0
                left.pop(target, None)
                for packet in way:
                    if packet[1] == target and packet[3]:
                        packet[3] = None
                for packet in kept.values():
                    if packet[0] == target:
                        packet[2] = False
            yield
            for record in (dut.begin, dut.reset, dut.rewind):
                yield record.strobe.eq(0)
            yield dut.ended.eq(0)
            yield dut.gone.eq(0)
            if random.random() < 0.05:
                for packet in way:
                    packet[0] += 10
                yield from settle()
                changed = 10
                for place in free:
                    free[place] = 0

    run_simulation(dut, process())
    assert all(seen.values()), seen


def shown(dut, node=PEER, lane=LANE.BULK):
    """PSN of the last packet that left, or None."""
    departed = dut.departed[lane]
    yield departed.node.eq(node)
    yield
    return (yield departed.psn) if (yield departed.valid) else None


def test_a_packet_whose_payload_is_still_read_has_not_left_though_its_header_has(seed):
    """Its last line comes 500 cycles later; and of another packet, which becomes void, nothing is
    counted.
    """
    random = Random(seed)
    bench = Bench(64, random, [random_deposit(random, 0, 600)])
    last = bench.lines.pop()

    def process():
        for _ in range(500):
            yield
            assert (yield from shown(bench.dut)) is None
        assert len(bench.taken[CHANNEL.BULK]) > 64
        bench.lines.append(last)
        for _ in range(30):
            yield
        assert (yield from shown(bench.dut)) == 0
        packet, skip = random_deposit(random, 1, 400)
        bench.add(packet, skip, end=300)
        for _ in range(300):
            yield
        assert (yield from shown(bench.dut)) == 0
        packet, skip = random_deposit(random, 1, 400)
        packet.incarnation = FIRST
        bench.add(packet, skip)
        for _ in range(300):
            yield
        assert (yield from shown(bench.dut)) == 1

    bench.run(process())


def test_a_packet_whose_last_word_the_link_does_not_take_has_not_left(seed):
    """The link stops at each word of a packet in turn, as STOP does."""
    random = Random(seed)
    bench = Bench(64, random, [random_deposit(random, 0, 64)])
    bench.processes.pop()  # the link
    source = bench.dut.sources[CHANNEL.BULK]
    ends = []

    def process():
        while not ends:
            for _ in range(40):
                yield
                assert (yield from shown(bench.dut)) is None
            yield source.ready.eq(1)
            yield
            if (yield source.valid) and (yield source.last):
                ends.append(True)
            yield source.ready.eq(0)
        for _ in range(4):
            yield
        assert (yield from shown(bench.dut)) == 0

    bench.run(process())


def test_after_a_rewind_only_what_leaves_again_has_left(seed):
    random = Random(seed)
    bench = Bench(64, random, [random_deposit(random, 0, 64)])

    def process():
        for _ in range(200):
            yield
        assert (yield from shown(bench.dut)) == 0
        yield from bench.rewind(1)
        for _ in range(5):
            yield
        assert (yield from shown(bench.dut)) is None
        packet, skip = random_deposit(random, 0, 64)
        packet.incarnation = FIRST
        bench.add(packet, skip, epoch=1)
        for _ in range(200):
            yield
        assert (yield from shown(bench.dut)) == 0

    bench.run(process())


# What is being stored -----------------------------------------------------------------------------


@pytest.fixture
def beat(monkeypatch):
    monkeypatch.setattr(progress, "BEAT", 32)
    return 32


@pytest.mark.parametrize("pause,told", [(1, False), (12, True)], ids=["quickly", "slowly"])
def test_a_source_is_told_again_while_its_packet_is_stored_slowly(beat, pause, told, seed):
    """Packets of 16 lines of three nodes, up to four here at once."""
    dut, random = Storing(), Random(seed)
    here, said, moved, lines = [], [], [], 0

    def process():
        nonlocal lines
        left, waits = 0, 0
        for cycle in range(3000):
            enters = len(here) < 4 and random.random() < 0.2
            line = bool(here) and waits >= pause
            node = random.randrange(NODES)
            left = left or 16
            yield from drive(dut.entered, strobe=enters, node=node)
            yield dut.line.eq(line)
            yield dut.last.eq(line and left == 1)
            before = set(here)
            if enters:
                here.append(node)
            waits = 0 if line else waits + 1
            lines += line
            if line:
                left -= 1
                if not left:
                    here.pop(0)
            yield
            alive, moves = (yield dut.alive), (yield dut.moves)
            if alive:
                said.append(cycle)
                assert alive < 1 << NODES
            moved.append((moves, before))

    run_simulation(dut, process())
    # Each line is told once, with nodes that have packets here in one of the cycles before.
    assert abs(sum(1 for moves, _ in moved if moves) - lines) <= 3
    for n, (moves, _) in enumerate(moved):
        assert (
            moves
            & ~sum(
                1 << node
                for node in set().union(*[nodes for _, nodes in moved[max(0, n - 4) : n + 1]])
            )
            == 0
        )
    assert bool(said) == told
    if told:
        assert max(b - a for a, b in zip(said, said[1:])) <= 3 * beat


def test_nobody_is_told_while_nothing_is_stored(beat):
    """One packet has come whose payload does not, and one line of it was taken once."""
    dut = Storing()

    def process():
        yield from drive(dut.entered, strobe=1, node=2)
        yield
        yield dut.entered.strobe.eq(0)
        for _ in range(3 * beat):
            yield
            assert not (yield dut.alive) and not (yield dut.moves)
        yield dut.line.eq(1)
        yield
        yield dut.line.eq(0)
        told = 0
        for _ in range(6 * beat):
            yield
            told += yield dut.alive
        assert told in (0, 1 << 2)

    run_simulation(dut, process())


def test_a_slow_target_tells_its_source_and_a_quick_one_does_not(monkeypatch, seed):
    """Between two cards on a cable: `works` comes at the source between two acknowledgements, and
    only for that flow.
    """
    monkeypatch.setattr(progress, "BEAT", 150)
    for patience, slow in ((0.05, True), (1.0, False)):
        random = Random(seed)
        packets = [bulk(random.randbytes(256)) for _ in range(2)]
        pair = Pair(64, random, patience=patience, timeout=1 << 20)
        told = []

        @passive
        def watch():
            while True:
                yield
                if (yield pair.source.packet.works.strobe):
                    told.append(((yield pair.source.packet.works.flow), pair.acked[LANE.BULK]))

        run_simulation(
            pair,
            [
                *pair.processes,
                watch(),
                pair.send(LANE.BULK, packets, limit=60000),
                finish(lambda: pair.acked[LANE.BULK] == 1, 60000),
            ],
        )
        pair.check(LANE.BULK, packets)
        assert pair.rewinds[LANE.BULK] == 0
        assert {flow for flow, _ in told} == ({flow_of(LANE.BULK)} if slow else set())
        if slow:
            assert {psn for _, psn in told} >= {0xFFFF, 0} and len(told) >= 2
