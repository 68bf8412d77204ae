# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The packet transmitter against the golden model."""

from random import Random

import pytest

from migen import *

from dibber.interface.description import C, CHANNEL, PACKET, PACKET_FLAG
from dibber.packet.transmit import PacketTransmitter

from gateware.models.compiled import run_simulation
from gateware.models.drive import finish, sink, source
from gateware.models.packet import Packet, encode
from gateware.models.slots import serve_slots, target_slot

NODE = 3


def random_deposit(random, psn, length):
    """A packet as it shall leave, and the skip that its job names."""
    levels = psn % 4
    skip   = random.getrandbits(32)
    offset = random.getrandbits(48)
    if psn % 8 == 0:
        offset = offset >> 32 << 32 | skip >> 1  # the low words carry when they are added
    return Packet(
        target=5, source=NODE, psn=psn, incarnation=7, key=random.getrandbits(32), offset=offset,
        skip=skip if levels else 0, block=random.getrandbits(32) if levels else 0,
        levels=tuple((random.getrandbits(64) - (1 << 63), random.getrandbits(32)) for _ in range(levels)),
        notice=random.choice([None, (random.getrandbits(32), random.getrandbits(32), random.randrange(8))]),
        payload=random.randbytes(length)), skip


def payload_lines(payload, data_width, random, error=0):
    """Lines of `layouts.payload_layout`; what lies behind the last byte is garbage."""
    size = data_width//8
    for at in range(0, len(payload), size):
        line = payload[at:at + size]
        yield dict(dat=int.from_bytes(line + random.randbytes(size - len(line)), "little"), bytes=len(line),
                   last=int(at + size >= len(payload)), error=error if at + size >= len(payload) else 0)


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
        word = ((yield endpoint.data), (yield endpoint.last), (yield endpoint.bad), (yield endpoint.first))
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
    """A transmitter with a model of everything around it. `deposits`: list of (Packet, skip)."""
    def __init__(self, data_width, random, deposits, busy=1.0, slot_busy=1.0, voids=False, incarnation=7,
                 link_busy=None):
        self.dut    = dut = PacketTransmitter(data_width)
        self.random = random
        self.taken  = [[], []]
        self.cycles = []
        self.counts = dict.fromkeys(dut.counters, 0)
        self.changed = []
        sends, lines, slots = [], [], {}
        for n, (packet, skip) in enumerate(deposits):
            if voids and (n == 0 or random.random() < 0.5):
                lines += payload_lines(random.randbytes(random.randrange(1, 300)), data_width, random, error=1)
            slots[n//C.SLOTS, n % C.SLOTS] = target_slot(packet)
            offset = packet.offset
            if not packet.levels:
                # The slot holds the transfer's offset; the packet's place in it is added on the way.
                base = Packet(**{**vars(packet), "offset": (offset - skip) % (1 << 48)})
                slots[n//C.SLOTS, n % C.SLOTS] = target_slot(base)
            sends.append(dict(
                node=packet.target, incarnation=packet.incarnation, psn=packet.psn, flags=packet.flags,
                levels=len(packet.levels), endpoint=n//C.SLOTS, slot=n % C.SLOTS, skip=skip,
                length=len(packet.payload)))
            lines += payload_lines(packet.payload, data_width, random)
        link_busy = busy if link_busy is None else link_busy
        self.processes = [
            self._start(incarnation),
            source(dut.packets, sends, random, busy), source(dut.payload, lines, random, busy),
            serve_slots(dut.slot, data_width, slots, random, slot_busy),
            self._count(),
            sink(dut.sources[CHANNEL.CONTROL], ("data", "last", "bad"), self.taken[CHANNEL.CONTROL], random, busy),
            link(dut.sources[CHANNEL.REQUEST], self.taken[CHANNEL.REQUEST], random, link_busy, self.cycles),
        ]

    def _start(self, incarnation):
        yield self.dut.node_id.eq(NODE)
        yield from self.reset(5, incarnation)

    def reset(self, node, incarnation):
        yield self.dut.flows.reset.strobe.eq(1)
        yield self.dut.flows.reset.node.eq(node)
        yield self.dut.flows.reset.incarnation.eq(incarnation)
        yield
        yield self.dut.flows.reset.strobe.eq(0)

    def acknowledge(self, ack, incarnation=7, node=5, flags=0, psn=0, reason=0):
        acks = self.dut.flows.acks
        for name, value in dict(node=node, incarnation=incarnation, ack=ack, flags=flags, psn=psn,
                                reason=reason, valid=1).items():
            yield getattr(acks, name).eq(value)
        yield
        yield acks.valid.eq(0)
        for _ in range(3):
            yield

    @passive
    def _count(self):
        while True:
            for name, pulse in self.dut.counters.items():
                self.counts[name] += yield pulse
            if (yield self.dut.flows.changed):
                self.changed.append((yield self.dut.flows.changed))
            yield

    def run(self, *more):
        run_simulation(self.dut, [*self.processes, *more])


@pytest.mark.parametrize("data_width", [64, 128])
def test_packets_leave_as_the_model_says(data_width, seed):
    random   = Random(seed)
    lengths  = (0, 1, 8, 256, 255, 257, 0, 700, 16, 3, 520)
    deposits = [random_deposit(random, psn, length) for psn, length in enumerate(lengths)]
    bench    = Bench(data_width, random, deposits, busy=0.7, slot_busy=0.6, voids=True)
    words    = sum(len(encode(packet)) for packet, _ in deposits)

    def wait():
        yield from finish(lambda: len(bench.taken[1]) == words, 6*words + 400)
        for _ in range(10):
            yield

    bench.run(wait())
    assert packet_words(bench.taken[1]) == [(encode(packet), 0) for packet, _ in deposits]
    assert [first for *_, first in bench.taken[1]] == [
        int(i == 0) for packet, _ in deposits for i in range(len(encode(packet)))]
    assert bench.counts == {"PACKETS_SENT": len(deposits), "ACKS_SENT": 0,
                            "BYTES_SENT": sum((n + 3)//4 for n in lengths)}


@pytest.mark.parametrize("data_width", [64, 128])
def test_no_bubble_stands_inside_a_packet_nor_more_than_the_link_needs_between_small_ones(data_width, seed):
    random   = Random(seed)
    deposits = []
    for psn in range(12):
        packet, skip = random_deposit(random, psn, 8)
        packet.levels, packet.skip, packet.block = (), 0, 0
        deposits.append((packet, skip))
    bench = Bench(data_width, random, deposits)
    words = sum(len(encode(packet)) for packet, _ in deposits)
    bench.run(finish(lambda: len(bench.taken[1]) == words, 4*words + 200))
    gaps, firsts = [], [first for *_, first in bench.taken[1]]
    for before, after, first in zip(bench.cycles, bench.cycles[1:], firsts[1:]):
        if first:
            gaps.append(after - before)
        else:
            assert after == before + 1, "a bubble inside a packet"
    # Between packets the link sends end and start: 3 cycles from last word to first. The first packets
    # collected while the simulation started, so that the later ones show the pace.
    assert max(gaps[1:]) <= 3, gaps


@pytest.mark.parametrize("data_width", [64, 128])
def test_no_bubble_stands_inside_a_packet_when_the_slots_are_busy(data_width, seed):
    random   = Random(seed)
    deposits = [random_deposit(random, psn, 8) for psn in range(8)]
    bench    = Bench(data_width, random, deposits, slot_busy=0.2)
    words    = sum(len(encode(packet)) for packet, _ in deposits)
    bench.run(finish(lambda: len(bench.taken[1]) == words, 12*words))
    firsts = [first for *_, first in bench.taken[1]]
    assert all(first or after == before + 1 for before, after, first in zip(bench.cycles, bench.cycles[1:], firsts[1:]))


def test_packets_of_another_incarnation_are_dropped_without_the_link(seed):
    random   = Random(seed)
    deposits = [random_deposit(random, psn, 40) for psn in range(4)]
    for packet, _ in deposits[:3]:
        packet.incarnation = 6
    bench = Bench(64, random, deposits)
    words = len(encode(deposits[3][0]))
    bench.run(finish(lambda: len(bench.taken[1]) == words, 400))
    assert packet_words(bench.taken[1]) == [(encode(deposits[3][0]), 0)]


def test_a_flow_reset_ends_a_started_packet_as_bad(seed):
    random   = Random(seed)
    old, new = random_deposit(random, 0, 600), random_deposit(random, 0, 40)
    new[0].incarnation = 8
    bench = Bench(128, random, [old, new], link_busy=0.5)

    def wait():
        yield from finish(lambda: len(bench.taken[1]) > 60, 400)
        yield from bench.reset(5, 8)
        yield from finish(lambda: len(packet_words(bench.taken[1])) == 2
                          and len(packet_words(bench.taken[1])[1][0]) == len(encode(new[0])), 400)

    bench.run(wait())
    (cut, bad), (whole, good) = packet_words(bench.taken[1])
    assert bad == 1 and 60 < len(cut) < len(encode(old[0])) and cut[:-1] == encode(old[0])[:len(cut) - 1]
    assert (whole, good) == (encode(new[0]), 0)


def test_the_window_opens_with_acknowledgements_and_forged_ones_do_nothing(seed):
    random   = Random(seed)
    count    = C.WINDOW + 4
    deposits = [random_deposit(random, psn, 0) for psn in range(count)]
    for packet, _ in deposits:
        packet.levels, packet.skip, packet.block, packet.notice, packet.flags = (), 0, 0, None, 0
    bench    = Bench(128, random, deposits)
    sent     = lambda: len(bench.taken[1])//7

    def wait():
        yield from finish(lambda: sent() == C.WINDOW, 20*C.WINDOW)
        for ack, incarnation, node in ((3, 6, 5), (C.WINDOW, 7, 5), (0x8000, 7, 5), (3, 7, 4), (3, 7, 21)):
            yield from bench.acknowledge(ack, incarnation, node)
        for _ in range(60):
            yield
        assert sent() == C.WINDOW and not bench.changed
        yield from bench.acknowledge(1)
        yield from bench.acknowledge(0)
        yield from finish(lambda: sent() == C.WINDOW + 2, 100)
        assert (yield bench.dut.flows.acked[5]) == 1
        yield from bench.acknowledge(C.WINDOW + 1)
        yield from finish(lambda: sent() == count, 100)
        assert bench.changed == [1 << 5]*2
        yield from bench.reset(5, 9)
        yield
        assert (yield bench.dut.flows.acked[5]) == 0xffff

    bench.run(wait())


def test_refusals_come_in_order_and_a_lost_one_never_becomes_a_success(seed):
    random   = Random(seed)
    deposits = [random_deposit(random, psn, 0) for psn in range(20)]
    for packet, _ in deposits:
        packet.levels, packet.skip, packet.block, packet.notice, packet.flags = (), 0, 0, None, 0
    bench    = Bench(64, random, deposits)
    refusals = bench.dut.flows.refusals

    def wait():
        yield from finish(lambda: len(bench.taken[1]) == 7*20, 600)
        for psn in range(17):
            yield from bench.acknowledge(psn, psn=psn, flags=PACKET_FLAG.REFUSED, reason=psn + 1)
        yield from bench.acknowledge(19)
        assert (yield bench.dut.flows.acked[5]) == 15
        for psn in range(16):
            assert (yield refusals.valid)
            assert ((yield refusals.node), (yield refusals.psn), (yield refusals.reason)) == (5, psn, psn + 1)
            yield refusals.ready.eq(1)
            yield
            yield refusals.ready.eq(0)
            yield
        assert not (yield refusals.valid)

    bench.run(wait())


def test_acknowledgements_leave_on_the_control_channel(seed):
    random = Random(seed)
    acks   = [dict(node=random.randrange(16), incarnation=random.randrange(256), ack=random.getrandbits(16),
                   psn=random.getrandbits(16), flags=random.choice((0, 8, 16)), reason=random.randrange(20))
              for _ in range(6)]
    bench  = Bench(64, random, [], busy=0.6)
    run_simulation(bench.dut, [*bench.processes, source(bench.dut.acks, acks, random, 0.5),
                               finish(lambda: bench.counts["PACKETS_SENT"] == len(acks), 300)])
    assert packet_words(bench.taken[CHANNEL.CONTROL]) == [
        (encode(Packet(target=a["node"], source=NODE, kind=PACKET.ACK, flags=a["flags"], psn=a["psn"], ack=a["ack"],
                       incarnation=a["incarnation"], key=a["reason"])), 0) for a in acks]
    assert bench.counts["ACKS_SENT"] == len(acks)
