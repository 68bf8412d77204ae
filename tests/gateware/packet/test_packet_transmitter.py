"""The packet transmitter against the golden model."""

# SPDX-License-Identifier: BSD-2-Clause

from dataclasses import replace
from random import Random

import pytest

from migen import *

from dibber.interface.description import C, CHANNEL, COMMAND, LANE, PACKET, PACKET_FLAG
from dibber.packet.packet_transmitter import PacketTransmitter

from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.drive import drive, finish, growing, sink, source
from tests.gateware.models.flows import any_ways, sure_transmitter, write_ways
from tests.gateware.models.link import prefix_words
from tests.gateware.models.packet import LEVELS, Packet, decode, encode, random_walk
from tests.gateware.models.slots import serve_slots, target_slot

NODE, PEER = 3, 5
FLOW = LANE.BULK * C.NODES + PEER

# The program's number of the first incarnation; on the link each carries how often its flow was
# reset.
FIRST = 7


SHORTEST_BAD = 2  # words of a packet that ends as bad


def on_link(incarnation):
    return incarnation - FIRST + 1


FIRST_ON_LINK = on_link(FIRST)


def random_deposit(random, psn, length):
    """A packet as it shall leave, and the skip that its job names."""
    levels = psn % LEVELS
    skip = random.getrandbits(32)
    offset = random.getrandbits(48)
    if psn % 8 == 0:
        offset = offset >> 32 << 32 | skip >> 1  # the low words carry when they are added
    response = psn % 3 == 1
    return Packet(
        target=PEER,
        source=NODE,
        psn=psn,
        incarnation=FIRST,
        key=random.getrandbits(32),
        offset=offset,
        skip=skip if levels else 0,
        **random_walk(random, levels),
        notice=random.choice(
            [None, (random.getrandbits(32), random.getrandbits(32), random.randrange(8))]
        ),
        flags=PACKET_FLAG.RESPONSE if response else 0,
        ack=random.getrandbits(16) if response else 0,
        payload=random.randbytes(length),
    ), skip


def payload_lines(payload, data_width, random, error=0):
    """Lines of `layouts.payload_layout`; what lies behind the last byte is garbage."""
    size = data_width // 8
    for at in range(0, len(payload), size):
        line = payload[at : at + size]
        yield dict(
            dat=int.from_bytes(line + random.randbytes(size - len(line)), "little"),
            bytes=len(line),
            last=int(at + size >= len(payload)),
            error=error if at + size >= len(payload) else 0,
        )


def packet_words(taken):
    """Words taken as (data, last, bad, …) as packets: (words, bad)."""
    packets, words = [], []
    for data, last, bad, *_ in taken:
        words.append(data)
        if last:
            packets.append((words, bad))
            words = []
    return packets + ([(words, None)] if words else [])


@passive
def link(endpoint, taken, random, busy, cycles):
    """The link's side: a packet may turn bad while a word waits, but nothing else may change."""
    now, held = 0, None
    while True:
        yield endpoint.ready.eq(int(random.random() < busy))
        yield
        now += 1
        word = (
            (yield endpoint.data),
            (yield endpoint.last),
            (yield endpoint.bad),
            (yield endpoint.first),
        )
        if (yield endpoint.valid):
            assert held in (None, word) or word[2], f"{held} became {word} while it waited"
            held = word
            if (yield endpoint.ready):
                taken.append(word)
                cycles.append(now)
                held = None
        else:
            assert held is None, f"{held} was withdrawn"


class Bench:
    """A transmitter with a model of everything around it. `deposits`: list of (Packet, skip); more
    by `add`.
    """

    def __init__(
        self,
        data_width,
        random,
        deposits,
        busy=1.0,
        slot_busy=1.0,
        voids=False,
        incarnation=FIRST,
        link_busy=None,
    ):
        self.dut = dut = shared(sure_transmitter, PacketTransmitter, data_width)
        self.random = random
        self.taken = {CHANNEL.CONTROL: [], CHANNEL.BULK: []}
        self.cycles = []
        self.counts = dict.fromkeys(dut.counters, 0)
        self.changed = []
        self.sends, self.lines, self.slots = [], [], {}
        self.data_width = data_width
        self.voids = []
        for n, (packet, skip) in enumerate(deposits):
            if voids and (n == 0 or random.random() < 0.5):
                void, place = random_deposit(random, packet.psn, random.randrange(1, 600))
                self.add(void, place, end=random.randrange(1, len(void.payload) + 1))
                self.voids.append(void)
            self.add(packet, skip)
        link_busy = busy if link_busy is None else link_busy
        self.processes = [
            self._start(incarnation),
            source(dut.packets, growing(self.sends), random, busy),
            source(dut.payload, growing(self.lines), random, busy),
            serve_slots(dut.slot, data_width, self.slots, random, slot_busy),
            self._count(),
            sink(
                dut.sources[CHANNEL.CONTROL],
                ("data", "last", "bad"),
                self.taken[CHANNEL.CONTROL],
                random,
                busy,
            ),
            link(
                dut.sources[CHANNEL.BULK], self.taken[CHANNEL.BULK], random, link_busy, self.cycles
            ),
        ]

    def add(self, packet, skip, epoch=0, end=None):
        """A packet to be sent from a slot of its own, of the program's incarnation that it has. It
        becomes as it shall leave.

        With `end` it becomes void with the line in which so many bytes of it end.
        """
        random, n = self.random, len(self.sends)
        place = n % C.SLOT_SETS, n // C.SLOT_SETS
        # Without levels the slot holds the transfer's offset; the packet's place in it is added on
        # the way.
        base = (
            packet
            if packet.levels_field
            else replace(packet, offset=(packet.offset - skip) % (1 << 48))
        )
        message = packet.ack << 16 | random.getrandbits(16)
        if packet.flags & PACKET_FLAG.RESPONSE and packet.notice:
            # The notice tells the message word and its endpoint; what the slot says there is
            # something else.
            _, length, endpoint = packet.notice
            message = packet.ack << 16 | endpoint << 8 | random.getrandbits(8)
            packet.notice = message, length, endpoint
            base = replace(base, notice=(random.getrandbits(32), length, random.getrandbits(8)))
        self.slots[place] = target_slot(base)
        target, indirect = 31 - n % 16, int(n < 16 and packet.flags & PACKET_FLAG.RESPONSE != 0)
        if indirect:
            # Where it goes stands in a slot of the INBOX; of its own nothing counts but the length.
            own, length = bytearray(random.randbytes(C.SLOT_BYTES)), COMMAND["length"]
            where = slice(length.offset, length.offset + length.size)
            own[where] = self.slots[place][where]
            self.slots[C.INBOX, target] = (
                self.slots[place][: where.start] + bytes(4) + self.slots[place][where.stop :]
            )
            self.slots[place] = bytes(own)
        self.lines += payload_lines(
            packet.payload[:end], self.data_width, random, error=int(end is not None)
        )
        self.sends.append(
            dict(
                node=packet.target,
                incarnation=packet.incarnation,
                epoch=epoch,
                psn=packet.psn,
                flags=packet.flags,
                levels=packet.levels_field,
                endpoint=place[0],
                slot=place[1],
                indirect=indirect,
                target=target,
                skip=skip,
                length=len(packet.payload),
                message=message,
            )
        )
        packet.incarnation = on_link(packet.incarnation)

    def _start(self, incarnation):
        yield self.dut.node_id.eq(NODE)
        yield from self.reset(incarnation)

    def reset(self, incarnation, flow=FLOW):
        reset = self.dut.flows.reset
        yield from drive(reset, strobe=1, flow=flow, incarnation=incarnation)
        yield
        yield reset.strobe.eq(0)

    def rewind(self, epoch, flow=FLOW):
        rewind = self.dut.flows.rewind
        yield from drive(rewind, strobe=1, flow=flow, epoch=epoch)
        yield
        yield rewind.strobe.eq(0)

    def acknowledge(
        self, ack, incarnation=FIRST_ON_LINK, node=PEER, flags=0, psn=0, reason=0, refusals=0
    ):
        acks = self.dut.flows.acks
        yield from drive(
            acks,
            node=node,
            incarnation=incarnation,
            ack=ack,
            flags=flags,
            psn=psn,
            reason=reason,
            refusals=refusals,
            valid=1,
        )
        yield
        yield acks.valid.eq(0)
        for _ in range(3):
            yield

    @passive
    def _count(self):
        while True:
            for name, pulse in self.dut.counters.items():
                self.counts[name] += yield pulse
            if (yield self.dut.flows.changed.strobe):
                self.changed.append((yield self.dut.flows.changed.flow))
            yield

    def run(self, *more):
        run_simulation(self.dut, [*self.processes, *more])


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_packets_leave_as_the_model_says(data_width, seed):
    random = Random(seed)
    lengths = (0, 1, 8, 256, 255, 257, 0, 700, 16, 3, 520)
    deposits = [random_deposit(random, psn, length) for psn, length in enumerate(lengths)]
    bench = Bench(data_width, random, deposits, busy=0.7, slot_busy=0.6, voids=True)
    words = sum(len(encode(packet)) for packet in [packet for packet, _ in deposits] + bench.voids)

    def wait():
        yield from finish(lambda: bench.counts["PACKETS_SENT"] == len(deposits), 6 * words + 400)
        for _ in range(10):
            yield

    bench.run(wait())
    left = packet_words(bench.taken[CHANNEL.BULK])
    bad = [part for part, bad in left if bad]
    assert [(part, bad) for part, bad in left if not bad] == [
        (encode(packet), 0) for packet, _ in deposits
    ]
    assert [first for *_, first in bench.taken[CHANNEL.BULK]] == [
        int(i == 0) for part, _ in left for i in range(len(part))
    ]
    # What becomes void ends as bad if it has begun; its last word means nothing.
    voids = iter(bench.voids)
    for part in bad:
        assert len(part) >= SHORTEST_BAD
        assert any(part[:-1] == encode(void)[: len(part) - 1] for void in voids)
    assert (
        bench.counts["PACKETS_WITHDRAWN"] == len(bench.voids) - len(bad)
        and bench.counts["ACKS_SENT"] == 0
    )
    assert (
        0
        <= bench.counts["BYTES_SENT"] - sum((n + 3) // 4 for n in lengths)
        <= sum(len(part) for part in bad)
    )


def test_each_packet_takes_the_way_to_its_node(seed):
    random = Random(seed)
    bench = Bench(64, random, [], busy=0.7)
    ways = any_ways(random)
    psns, expected = dict.fromkeys(ways, 0), []

    def send():
        yield
        yield from write_ways(bench.dut, ways)
        for node in ways:
            if node != PEER:
                yield from bench.reset(FIRST, LANE.BULK * C.NODES + node)
        for _ in range(40):
            node = random.randrange(8)
            packet, skip = random_deposit(random, psns[node], random.choice((0, 4, 40)))
            packet.target = node
            psns[node] += 1
            bench.add(packet, skip)
            expected.append((prefix_words(ways[node]) + encode(packet), 0))
        yield from finish(lambda: bench.counts["PACKETS_SENT"] == len(expected), 8000)
        for _ in range(10):
            yield

    bench.run(send())
    assert packet_words(bench.taken[CHANNEL.BULK]) == expected


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_no_bubble_stands_inside_a_packet_nor_more_than_the_link_needs_between_small_ones(
    data_width, seed
):
    random = Random(seed)
    deposits = []
    for psn in range(12):
        packet, skip = random_deposit(random, psn, 8)
        packet.levels, packet.listed, packet.skip, packet.block = (), None, 0, 0
        deposits.append((packet, skip))
    bench = Bench(data_width, random, deposits)
    words = sum(len(encode(packet)) for packet, _ in deposits)
    bench.run(finish(lambda: len(bench.taken[CHANNEL.BULK]) == words, 4 * words + 200))
    gaps, firsts = [], [first for *_, first in bench.taken[CHANNEL.BULK]]
    for before, after, first in zip(bench.cycles, bench.cycles[1:], firsts[1:]):
        if first:
            gaps.append(after - before)
        else:
            assert after == before + 1, "a bubble inside a packet"
    # Between packets the link sends end and start: 3 cycles from last word to first. The first
    # packets collected while the simulation started, so that the later ones show the pace.
    assert max(gaps[1:]) <= 3, gaps


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_no_bubble_stands_inside_a_packet_when_the_slots_are_busy(data_width, seed):
    random = Random(seed)
    deposits = [random_deposit(random, psn, 8) for psn in range(8)]
    bench = Bench(data_width, random, deposits, slot_busy=0.2)
    words = sum(len(encode(packet)) for packet, _ in deposits)
    bench.run(finish(lambda: len(bench.taken[CHANNEL.BULK]) == words, 12 * words))
    firsts = [first for *_, first in bench.taken[CHANNEL.BULK]]
    assert all(
        first or after == before + 1
        for before, after, first in zip(bench.cycles, bench.cycles[1:], firsts[1:])
    )


def test_a_slot_that_changes_under_a_packet_makes_no_bad_packet(seed):
    random = Random(seed)
    deposits = [random_deposit(random, psn, random.choice((0, 8, 300))) for psn in range(16)]
    bench = Bench(64, random, deposits, busy=0.9)

    @passive
    def scribble():
        while True:
            bench.slots.update({place: random.randbytes(C.SLOT_BYTES) for place in bench.slots})
            yield

    bench.run(scribble(), finish(lambda: bench.counts["PACKETS_SENT"] == len(deposits), 4000))
    for (words, bad), (expected, _) in zip(packet_words(bench.taken[CHANNEL.BULK]), deposits):
        packet = decode(words)
        assert not bad and (packet.psn, packet.payload, packet.flags) == (
            expected.psn,
            expected.payload,
            expected.flags,
        )
        assert packet.levels_field == expected.levels_field and bool(packet.notice) == bool(
            expected.notice
        )


def test_packets_of_another_incarnation_are_dropped_without_the_link(seed):
    random = Random(seed)
    deposits = [random_deposit(random, psn, 40) for psn in range(4)]
    for packet, _ in deposits[:3]:
        packet.incarnation = 6
    bench = Bench(64, random, deposits)
    words = len(encode(deposits[3][0]))
    bench.run(finish(lambda: len(bench.taken[CHANNEL.BULK]) == words, 400))
    assert packet_words(bench.taken[CHANNEL.BULK]) == [(encode(deposits[3][0]), 0)]
    assert bench.counts["PACKETS_WITHDRAWN"] == 3


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_a_rewind_drops_what_has_not_begun_and_lets_the_rest_finish(data_width, seed):
    """The same packets again and again, each epoch begun at a random time in the one before."""
    random = Random(seed)
    bench = Bench(data_width, random, [], busy=0.9, slot_busy=0.7, link_busy=0.9)
    gate = bench.dut.bulk.passed
    expected, passed, now = {}, [], 0

    @passive
    def watch():
        nonlocal now
        while True:
            yield
            now += 1
            if (yield gate.valid) and (yield gate.ready):
                passed.append(((yield gate.epoch), (yield gate.psn), (yield gate.stale), now))

    def replay():
        yield
        for epoch in range(13):
            if epoch:
                yield from bench.rewind(epoch)
            rewound = now
            for psn, length in enumerate((8, 300, 0, 40)):
                packet, skip = random_deposit(random, psn, length)
                expected[epoch, psn] = packet
                bench.add(packet, skip, epoch)
            for _ in range(random.randrange(5, 260) if epoch < 12 else 0):
                yield
                assert all(e == epoch or stale for e, _, stale, when in passed if when > rewound)
        words = lambda: sum(
            len(encode(expected[epoch, psn])) for epoch, psn, stale, _ in passed if not stale
        )
        yield from finish(
            lambda: len(passed) == len(expected) and len(bench.taken[CHANNEL.BULK]) == words(), 3000
        )
        for _ in range(20):
            yield

    bench.run(watch(), replay())
    sent = [(epoch, psn) for epoch, psn, stale, _ in passed if not stale]
    assert packet_words(bench.taken[CHANNEL.BULK]) == [
        (encode(expected[which]), 0) for which in sent
    ]
    assert (
        sent == sorted(sent) and sent[-4:] == [(12, psn) for psn in range(4)] and 4 < len(sent) < 52
    )
    assert bench.counts["PACKETS_WITHDRAWN"] == 52 - len(sent) and bench.counts[
        "PACKETS_SENT"
    ] == len(sent)


def test_a_flow_reset_ends_a_started_packet_as_bad(seed):
    random = Random(seed)
    old, new = random_deposit(random, 0, 600), random_deposit(random, 0, 40)
    new[0].incarnation = 8
    bench = Bench(128, random, [old, new], link_busy=0.5)

    def wait():
        yield from finish(lambda: len(bench.taken[CHANNEL.BULK]) > 60, 400)
        yield from bench.reset(8)
        yield from finish(
            lambda: (
                len(packet_words(bench.taken[CHANNEL.BULK])) == 2
                and len(packet_words(bench.taken[CHANNEL.BULK])[1][0]) == len(encode(new[0]))
            ),
            400,
        )

    bench.run(wait())
    (cut, bad), (whole, good) = packet_words(bench.taken[CHANNEL.BULK])
    assert (
        bad == 1
        and 60 < len(cut) < len(encode(old[0]))
        and cut[:-1] == encode(old[0])[: len(cut) - 1]
    )
    assert (whole, good) == (encode(new[0]), 0)


def test_the_window_opens_with_acknowledgements_and_forged_ones_do_nothing(seed):
    random = Random(seed)
    count = C.WINDOW + 4
    deposits = [random_deposit(random, psn, 0) for psn in range(count)]
    for packet, _ in deposits:
        packet.levels, packet.listed, packet.skip, packet.block, packet.notice, packet.flags = (
            (),
            None,
            0,
            0,
            None,
            0,
        )
    bench = Bench(128, random, deposits)
    sent = lambda: len(bench.taken[CHANNEL.BULK]) // 7

    def wait():
        yield from finish(lambda: sent() == C.WINDOW, 20 * C.WINDOW)
        for ack, incarnation, node in (
            (3, 0, 5),
            (C.WINDOW, 1, 5),
            (0x8000, 1, 5),
            (3, 1, 4),
            (3, 1, 21),
        ):
            yield from bench.acknowledge(ack, incarnation, node)
        for _ in range(60):
            yield
        assert sent() == C.WINDOW and not bench.changed
        yield from bench.acknowledge(1)
        yield from bench.acknowledge(0)
        yield from finish(lambda: sent() == C.WINDOW + 2, 100)
        assert (yield bench.dut.acked[FLOW]) == 1
        yield from bench.acknowledge(C.WINDOW + 1)
        yield from finish(lambda: sent() == count, 100)
        assert bench.changed == [FLOW] * 2
        yield from bench.reset(9)
        yield
        yield
        assert (yield bench.dut.acked[FLOW]) == 0xFFFF

    bench.run(wait())


def test_refusals_come_in_order_and_a_lost_one_never_becomes_a_success(seed):
    random = Random(seed)
    deposits = [random_deposit(random, psn, 0) for psn in range(20)]
    for packet, _ in deposits:
        packet.levels, packet.listed, packet.skip, packet.block, packet.notice, packet.flags = (
            (),
            None,
            0,
            0,
            None,
            0,
        )
    bench = Bench(64, random, deposits)
    refusals = bench.dut.flows.refusals

    def wait():
        yield from finish(lambda: len(bench.taken[CHANNEL.BULK]) == 7 * 20, 600)
        for psn in range(17):
            yield from bench.acknowledge(
                psn, psn=psn, flags=PACKET_FLAG.REFUSED, reason=psn + 1, refusals=psn + 1
            )
        yield from bench.acknowledge(19, refusals=17)
        assert (yield bench.dut.acked[FLOW]) == 15
        for psn in range(16):
            assert (yield refusals.valid)
            assert ((yield refusals.flow), (yield refusals.psn), (yield refusals.reason)) == (
                FLOW,
                psn,
                psn + 1,
            )
            yield refusals.ready.eq(1)
            yield
            yield refusals.ready.eq(0)
            yield
        assert not (yield refusals.valid)

    bench.run(wait())


def test_acknowledgements_leave_on_the_control_channel(seed):
    random = Random(seed)
    acks = [
        dict(
            node=random.randrange(16),
            incarnation=random.randrange(256),
            ack=random.getrandbits(16),
            psn=random.getrandbits(16),
            flags=random.choice((0, 8, 16)),
            reason=random.randrange(20),
            refusals=random.randrange(256),
        )
        for _ in range(6)
    ]
    bench = Bench(64, random, [], busy=0.6)
    run_simulation(
        bench.dut,
        [
            *bench.processes,
            source(bench.dut.acks, acks, random, 0.5),
            finish(lambda: bench.counts["PACKETS_SENT"] == len(acks), 300),
        ],
    )
    assert packet_words(bench.taken[CHANNEL.CONTROL]) == [
        (
            encode(
                Packet(
                    target=a["node"],
                    source=NODE,
                    kind=PACKET.ACK,
                    flags=a["flags"],
                    psn=a["psn"],
                    ack=a["ack"],
                    incarnation=a["incarnation"],
                    key=a["reason"],
                    offset=a["refusals"],
                )
            ),
            0,
        )
        for a in acks
    ]
    assert bench.counts["ACKS_SENT"] == len(acks)


def test_the_last_word_of_an_acknowledgement_that_is_held_does_not_leave(seed):
    """All others do; and it is at the link in the cycle in which it is held no more."""
    random = Random(seed)
    acks = [
        dict(
            node=n, incarnation=3, ack=random.getrandbits(16), psn=0, flags=0, reason=0, refusals=0
        )
        for n in range(5)
    ]
    holds = [40, 0, 12, 8, 30]
    bench = Bench(64, random, [], link_busy=1.0)
    dut, source_, leaves = bench.dut, bench.dut.sources[CHANNEL.CONTROL], []

    def process():
        for values, hold in zip(acks, holds):
            yield from drive(dut.acks, valid=1, **values)
            yield dut.ack_hold.eq(int(hold > 0))
            count, cycle, taken = 0, 0, False
            while not taken:
                yield dut.ack_hold.eq(int(cycle < hold))
                yield
                cycle += 1
                if (yield source_.valid) and (yield source_.ready):
                    count += 1
                    if (yield source_.last):
                        leaves.append((count, cycle))
                taken = yield dut.acks.ready
                assert taken == (len(leaves) == acks.index(values) + 1)
            yield dut.acks.valid.eq(0)

    run_simulation(dut, [*bench.processes, process()])
    words = len(encode(Packet(target=0, source=NODE, kind=PACKET.ACK)))
    free = leaves[1][1]
    assert leaves == [(words, max(free, hold + 1)) for hold in holds]
    assert len(packet_words(bench.taken[CHANNEL.CONTROL])) == len(acks)
