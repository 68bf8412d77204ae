# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Two packet layers with their link ports, back to back over a cable."""

from random import Random

import pytest

from migen import *

from dibber.interface.description import C, CHANNEL, PACKET_FLAG, STATUS
from dibber.link.port import LinkPort
from dibber.link.symbols import FLOW_REPEATS
from dibber.packet.layer import PacketLayer

from gateware.models.compiled import run_simulation
from gateware.models.cable import cable
from gateware.models.drive import finish
from gateware.models.packet import Packet, deframe, encode
from gateware.models.slots import serve_slots, target_slot


class Card(Module):
    """Packet layer and link port of one node; engines and command slots are generators."""
    def __init__(self, node, data_width):
        self.submodules.packet = packet = PacketLayer(data_width)
        self.submodules.link   = link   = LinkPort(slack_words=256)
        self.node, self.data_width = node, data_width
        self.comb += [
            *[source.connect(sink) for source, sink in zip(packet.sources, link.sinks)],
            *[source.connect(sink) for source, sink in zip(link.sources, packet.sinks)],
            packet.node_id.eq(node),
            link.signal.eq(1),
        ]
        self.counters = {**packet.counters, **link.counters}


class Pair(Module):
    """Node 0 sends to node 1. `fault` befalls the words from 0 to 1."""
    def __init__(self, data_width, random, delay=4, fault=None, patience=1.0):
        self.random     = random
        self.data_width = data_width
        self.submodules.source = Card(0, data_width)
        self.submodules.target = Card(1, data_width)
        self.slots    = {}
        self.deposits = []   # (psn, incarnation, payload, whole) as they are done
        self.cycle    = 0
        self.times    = {}
        self.log      = []
        self.refuse   = lambda psn: False
        self.patience = patience
        self.counts   = {card.node: dict.fromkeys(card.counters, 0) for card in (self.source, self.target)}
        self.processes = [
            cable(self.source.link.serial_tx, self.target.link.serial_rx, delay, fault=fault, log=self.log),
            cable(self.target.link.serial_tx, self.source.link.serial_rx, delay),
            serve_slots(self.source.packet.slot, data_width, self.slots, random, 0.8),
            self._scatter(), self._watch(),
        ]

    @passive
    def _watch(self):
        first = lambda name: self.times.setdefault(name, self.cycle)
        while True:
            self.cycle += 1
            for card in (self.source, self.target):
                for name, pulse in card.counters.items():
                    self.counts[card.node][name] += yield pulse
            if (yield self.source.packet.sources[CHANNEL.REQUEST].valid):
                first("first word offered to the link")
            if (yield self.target.packet.deposits.valid):
                first("deposit announced")
            if (yield self.target.packet.payload_out.valid):
                first("payload out")
            if (yield self.source.packet.acked[1]) != 0xffff:
                first("acknowledged")
            yield

    @passive
    def _scatter(self):
        """The target's engine: takes each deposit and its payload, then reports it."""
        packet, size = self.target.packet, self.data_width//8
        pause = lambda: self.random.random() > self.patience

        def take(endpoint, *names):
            while pause():
                yield
            yield endpoint.ready.eq(1)
            yield
            while not (yield endpoint.valid):
                yield
            values = []
            for name in names:
                values.append((yield getattr(endpoint, name)))
            yield endpoint.ready.eq(0)
            return values

        while True:
            node, incarnation, psn, length = yield from take(
                packet.deposits, "source", "incarnation", "psn", "length")
            payload, last, error = b"", length == 0, 0
            while not last:
                dat, count, last, error = yield from take(packet.payload_out, "dat", "bytes", "last", "error")
                payload += b"" if error else dat.to_bytes(size, "little")[:count]
            self.deposits.append((incarnation, psn, payload, not error))
            if error:
                continue
            done = packet.deposit_done
            refused = self.refuse(psn)
            for name, value in dict(node=node, incarnation=incarnation, psn=psn, refused=int(refused),
                                    reason=STATUS.REMOTE_BOUNDS if refused else 0, valid=1).items():
                yield getattr(done, name).eq(value)
            yield
            while not (yield done.ready):
                yield
            yield done.valid.eq(0)

    def reset(self, incarnation):
        reset = self.source.packet.flow_reset
        yield reset.node.eq(1)
        yield reset.incarnation.eq(incarnation)
        yield reset.strobe.eq(1)
        yield
        yield reset.strobe.eq(0)
        yield

    def send(self, payloads, incarnation, levels=()):
        """Hand packets to the source, as its send engine does: payload first. Each has its own slot."""
        packet, size = self.source.packet, self.data_width//8
        for psn, payload in enumerate(payloads):
            header = Packet(target=1, source=0, psn=psn, incarnation=incarnation, key=psn + 1, levels=levels,
                            flags=PACKET_FLAG.FIRST if psn == 0 else 0, offset=psn << 20, payload=payload)
            self.slots[0, psn % C.SLOTS] = target_slot(header)
            lines, sink = [payload[at:at + size] for at in range(0, len(payload), size)], packet.payload_in
            for n, line in enumerate(lines):
                yield sink.dat.eq(int.from_bytes(line, "little"))
                yield sink.bytes.eq(len(line))
                yield sink.last.eq(int(n == len(lines) - 1))
                yield sink.valid.eq(1)
                yield
                while not (yield sink.ready):
                    yield
            yield sink.valid.eq(0)
            sink = packet.packets
            for name, value in dict(node=1, incarnation=incarnation, psn=psn, flags=header.flags, levels=len(levels),
                                    endpoint=0, slot=psn % C.SLOTS, skip=0, length=len(payload)).items():
                yield getattr(sink, name).eq(value)
            yield sink.valid.eq(1)
            yield
            while not (yield sink.ready):
                yield
            yield sink.valid.eq(0)

    def run(self, *more):
        run_simulation(self, [*self.processes, *more])


def in_order(pair, incarnation, payloads):
    """How many packets of an incarnation arrived, each once, in order and as it was sent."""
    whole = [(psn, payload) for i, psn, payload, good in pair.deposits if i == incarnation and good]
    assert whole == list(enumerate(payloads))[:len(whole)]
    return len(whole)


@pytest.mark.parametrize("data_width", [64, 128])
def test_packets_arrive_once_and_in_order_and_are_acknowledged(data_width, seed):
    random   = Random(seed)
    payloads = [random.randbytes(n) for n in (8, 0, 300, 1, 64)]
    pair     = Pair(data_width, random, patience=0.9)
    pair.refuse = lambda psn: psn == 3

    def wait():
        yield from pair.reset(1)
        yield from pair.send(payloads, 1)
        for _ in range(600):
            if (yield pair.source.packet.acked[1]) == len(payloads) - 1:
                break
            yield
        for _ in range(40):  # until every counted word was told
            yield
        refusal = pair.source.packet.refusals
        assert ((yield refusal.valid), (yield refusal.node), (yield refusal.psn), (yield refusal.reason)) == \
            (1, 1, 3, STATUS.REMOTE_BOUNDS)

    pair.run(wait())
    assert in_order(pair, 1, payloads) == len(payloads)
    assert pair.counts[0]["PACKETS_SENT"] == pair.counts[1]["PACKETS_RECEIVED"] == len(payloads)
    assert pair.counts[0]["BYTES_SENT"] == pair.counts[1]["BYTES_RECEIVED"] == 2 + 75 + 1 + 16
    assert pair.counts[1]["ACKS_SENT"] == pair.counts[0]["PACKETS_RECEIVED"] > 0
    assert pair.counts[1]["PACKET_REFUSED"] == 1
    assert not any(pair.counts[1][name] for name in pair.counts[1] if "ERROR" in name or name == "PACKET_TRUNCATED")


@pytest.mark.parametrize("data_width, error_rate", [(64, 0.002), (128, 0.002), (128, 0.02)])
def test_bit_errors_lose_packets_but_never_order_and_a_new_incarnation_goes_on(data_width, error_rate, seed):
    random = Random(seed)

    def fault(data, k):
        """One symbol in error: seen by the decoder, or as another symbol that is as good."""
        if random.random() >= error_rate:
            return data, k, 0, 0
        flipped = data ^ 1 << random.randrange(32)
        return random.choice([(flipped, k, 0, 0), (data, k ^ 1 << random.randrange(4), 0, 0),
                              (flipped, k, 1 << random.randrange(4), 0), (data, k, 0, 1 << random.randrange(4))])

    pair     = Pair(data_width, random, fault=fault)
    payloads = [random.randbytes(n) for n in (8, 270, 8, 8, 90, 8)]
    arrived  = []

    def attempts():
        for incarnation in range(1, 13):
            yield from pair.reset(incarnation)
            yield from pair.send(payloads, incarnation)
            for _ in range(180):
                yield
            acked = (((yield pair.source.packet.acked[1]) + 1) & 0xffff)
            arrived.append(in_order(pair, incarnation, payloads))
            assert acked <= arrived[-1]

    pair.run(attempts())
    assert sorted(pair.deposits, key=lambda deposit: deposit[0]) == pair.deposits, "an old incarnation came late"
    assert min(arrived) < len(payloads), "no error struck: the test shows nothing"
    assert (max(arrived) == len(payloads)) == (error_rate < 0.01)


@pytest.mark.parametrize("levels, words", [(0, 4196//4), (1, 4216//4)])
def test_long_packets_fill_the_link(levels, words, seed, figure):
    random   = Random(seed)
    payloads = [random.randbytes(C.PACKET_PAYLOAD)]*2
    pair     = Pair(128, random)

    def wait():
        yield from pair.reset(1)
        yield from pair.send(payloads, 1, ((16, 512),)*levels)
        yield from finish(lambda: len(deframe(pair.log)) == 2, 3000)

    pair.run(wait())
    starts = [i for i, (data, k) in enumerate(pair.log) if k and data & 0xff == 0xfb]
    share  = C.PACKET_PAYLOAD/4/(starts[1] - starts[0])
    # Beside the packet's own words, a flow word in 256, and what tells of the change at the start.
    assert starts[1] - starts[0] <= words + words//255 + 2 + FLOW_REPEATS
    assert figure(f"link-payload-share-levels-{levels}", 100*share, "% of link words", at_least=96.5)


def test_latency_of_a_small_packet(seed, figure, capsys):
    pair = Pair(128, Random(seed), delay=0)

    def wait():
        yield from pair.reset(1)
        for _ in range(60):
            yield
        yield from pair.send([bytes(8)], 1)
        yield from finish(lambda: "acknowledged" in pair.times, 300)

    pair.run(wait())
    start = pair.times["first word offered to the link"]
    with capsys.disabled():
        for name, cycle in pair.times.items():
            print(f"\n    {name}: {cycle - start} cycles", end="")
        print()
    # 11 words and the end that tells that the last was the last, plus what the logic takes.
    assert figure("packet-latency-8-bytes", pair.times["payload out"] - start, "cycles, 0 m, no transceiver", at_most=20)
