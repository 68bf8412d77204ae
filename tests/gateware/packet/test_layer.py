"""Two packet layers with their link ports, back to back over a cable: both lanes, replay
included.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.interface.description import C, CHANNEL, INLINE, LANE, PACKET_FLAG, STATUS
from dibber.link.port import LinkPort
from dibber.packet.layer import PacketLayer

from tests.gateware.models.cable import cable
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive, finish
from tests.gateware.models.flows import acked_of, opened, sure
from tests.gateware.models.link import receive
from tests.gateware.models.packet import Packet
from tests.gateware.models.slots import serve_slots, target_slot

LANES = (LANE.EXPRESS, LANE.BULK)
flow_of = lambda lane: lane * C.NODES + 1


class Card(Module):
    """Packet layer and link port of one node; engines and slots are generators."""

    def __init__(self, node, data_width, is_sure):
        self.submodules.packet = packet = PacketLayer(data_width)
        self.submodules.link = link = LinkPort(channels=3, slack_words=256)
        self.connect(packet, link, node, data_width, is_sure)

    def connect(self, packet, link, node, data_width, is_sure):
        self.node, self.data_width = node, data_width
        self.acked = acked_of(packet.transmitter.flows)
        if is_sure:
            sure(packet.transmitter.flows)
            opened(packet.receiver)
        self.comb += [
            *[source.connect(sink) for source, sink in zip(packet.sources, link.sinks)],
            *[source.connect(sink) for source, sink in zip(link.sources, packet.sinks)],
            packet.node_id.eq(node),
            link.signal.eq(1),
            packet.stored.line.eq(packet.payload_out.valid & packet.payload_out.ready),
            packet.stored.last.eq(packet.payload_out.last),
        ]
        self.counters = {**packet.counters, **link.counters}
        self.engines = {
            LANE.BULK: (packet.deposits, packet.payload_out, packet.deposit_done),
            LANE.EXPRESS: (packet.express_deposits, packet.express_payload, packet.express_done),
        }


def bulk(payload, levels=()):
    return dict(payload=payload, levels=levels)


def put(payload):
    return dict(payload=payload, message=0)


def message(payload):
    return dict(payload=payload, message=1)


class Pair(Module):
    """Node 0 sends to node 1. `fault` befalls the words from 0 to 1, `back` those from 1 to 0."""

    def __init__(
        self,
        data_width,
        random,
        delay=4,
        fault=None,
        back=None,
        patience=1.0,
        keep=0,
        timeout=5000,
        is_sure=True,
    ):
        """`is_sure`: the source need not ask before it sends. `keep`: cycles for which a message
        occupies its slot of the inbox. `timeout`: those without progress
        until a flow is rewound."""
        self.random = random
        self.data_width = data_width
        self.submodules.source = Card(0, data_width, is_sure)
        self.submodules.target = Card(1, data_width, is_sure)
        self.slots = {}
        # (incarnation, psn, is_message, payload, whole) as they are done
        self.arrived = {lane: [] for lane in LANES}
        self.rewinds = {lane: 0 for lane in LANES}
        self.cycle = 0
        self.times = {}
        self.log = []
        self.refuse = lambda lane, psn: False
        self.patience = patience
        self.keep, self.to_free = keep, []
        self.timeout = timeout
        self.commands = []  # (record, values) for the source's flows
        self.acked = {lane: 0xFFFF for lane in LANES}
        self.naked = {lane: False for lane in LANES}
        self.counts = {
            card.node: dict.fromkeys(card.counters, 0) for card in (self.source, self.target)
        }
        self.processes = [
            cable(
                self.source.link.serial_tx,
                self.target.link.serial_rx,
                delay,
                fault=fault,
                log=self.log,
            ),
            cable(self.target.link.serial_tx, self.source.link.serial_rx, delay, fault=back),
            serve_slots(self.source.packet.slots[0], data_width, self.slots, random, 0.8),
            serve_slots(self.source.packet.express_slot, data_width, self.slots, random, 0.8),
            *[self._engine(lane) for lane in LANES],
            self._inbox(),
            self._control(),
            self._watch(),
        ]

    @passive
    def _watch(self):
        first = lambda name: self.times.setdefault(name, self.cycle)
        packet = self.source.packet
        while True:
            self.cycle += 1
            for card in (self.source, self.target):
                for name, pulse in card.counters.items():
                    self.counts[card.node][name] += yield pulse
            for lane, channel in ((LANE.EXPRESS, CHANNEL.EXPRESS), (LANE.BULK, CHANNEL.BULK)):
                if (yield packet.sources[channel].valid):
                    first(("word", lane))
                if (yield self.target.engines[lane][1].valid):
                    first(("payload", lane))
                self.acked[lane] = yield self.source.acked[flow_of(lane)]
                self.naked[lane] |= bool(
                    (yield packet.naked.strobe) and (yield packet.naked.flow) == flow_of(lane)
                )
                if self.acked[lane] != 0xFFFF:
                    first(("acknowledged", lane))
            yield

    @passive
    def _control(self):
        """Commands to the flow table, one at a time."""
        while True:
            if self.commands:
                record, values = self.commands.pop(0)
                yield from drive(record, strobe=1, **values)
                yield
                yield record.strobe.eq(0)
            yield

    @passive
    def _inbox(self):
        freed = self.target.packet.inbox_freed
        while True:
            yield freed.eq(0)
            if self.to_free and self.to_free[0] <= self.cycle:
                self.to_free.pop(0)
                yield freed.eq(1)
            yield

    @passive
    def _engine(self, lane):
        """The target's engine of a lane: takes each deposit and its payload, then reports it."""
        deposits, lines, done = self.target.engines[lane]
        size = self.data_width // 8

        def take(endpoint, *names):
            while self.random.random() > self.patience:
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
            node, incarnation, psn, length, is_message = yield from take(
                deposits, "source", "incarnation", "psn", "length", "is_message"
            )
            payload, last, error = b"", length == 0, 0
            while not last:
                dat, count, last, error = yield from take(lines, "dat", "bytes", "last", "error")
                payload += b"" if error else dat.to_bytes(size, "little")[:count]
            self.arrived[lane].append((incarnation, psn, is_message, payload, not error))
            if error:
                continue
            if is_message:
                self.to_free.append(self.cycle + self.keep)
            refused = self.refuse(lane, psn)
            yield from drive(
                done,
                node=node,
                incarnation=incarnation,
                psn=psn,
                refused=int(refused),
                reason=STATUS.REMOTE_BOUNDS if refused else 0,
                lane=lane,
                valid=1,
            )
            yield
            while not (yield done.ready):
                yield
            yield done.valid.eq(0)

    # The source's control program and send engine ------------------------------------------------

    def _offer(self, stream, values):
        yield from drive(stream, valid=1, **values)
        yield
        while not (yield stream.ready):
            yield
        yield stream.valid.eq(0)

    def _hand_over(self, lane, psn, what, incarnation, epoch):
        packet, size = self.source.packet, self.data_width // 8
        payload, slot = what["payload"], psn % C.SLOTS
        place = dict(
            node=1, incarnation=incarnation, epoch=epoch, psn=psn, slot=slot, length=len(payload)
        )
        if lane == LANE.EXPRESS:
            content = bytearray(C.SLOT_BYTES)
            if what["message"]:
                content[:] = payload
            else:
                content[INLINE["key"].offset] = psn & 0xFF
                content[INLINE["data"].offset : INLINE["data"].offset + len(payload)] = payload
            self.slots[1, slot] = bytes(content)
            yield from self._offer(
                packet.express, dict(endpoint=1, message=what["message"], word=psn, **place)
            )
            return
        levels = what["levels"]
        flags = PACKET_FLAG.FIRST if psn == 0 else 0
        self.slots[0, slot] = target_slot(
            Packet(target=1, source=0, key=psn + 1, levels=levels, offset=psn << 20)
        )
        lines = [payload[at : at + size] for at in range(0, len(payload), size)]
        for n, line in enumerate(lines):
            yield from self._offer(
                packet.payload_in,
                dict(
                    dat=int.from_bytes(line, "little"),
                    bytes=len(line),
                    last=int(n == len(lines) - 1),
                ),
            )
        yield from self._offer(
            packet.packets, dict(flags=flags, levels=len(levels), endpoint=0, skip=0, **place)
        )

    def send(self, lane, packets, incarnation=1, limit=20000):
        """Send until all is acknowledged, with replay as in docs/design/replay.md."""
        table, flow = self.source.packet, flow_of(lane)
        self.commands.append((table.flow_reset, dict(flow=flow, incarnation=incarnation)))
        for _ in range(6):
            yield
        psn = epoch = 0
        acked, since, start = 0xFFFF, self.cycle, self.cycle
        while (self.acked[lane] + 1) & 0xFFFF < len(packets):
            assert self.cycle - start < limit, f"lane {lane} stands at {self.acked[lane]}"
            if self.acked[lane] != acked:
                acked, since = self.acked[lane], self.cycle
            if self.naked[lane] or self.cycle - since > self.timeout:
                epoch = (epoch + 1) % 16
                self.rewinds[lane] += 1
                self.commands.append((table.flow_rewind, dict(flow=flow, epoch=epoch)))
                for _ in range(6):
                    yield
                self.naked[lane], since = False, self.cycle
                psn = (self.acked[lane] + 1) & 0xFFFF
            elif psn < len(packets) and psn - ((acked + 1) & 0xFFFF) < C.SLOTS:
                yield from self._hand_over(lane, psn, packets[psn], incarnation, epoch)
                psn += 1
            yield

    def check(self, lane, packets, incarnation=1):
        """Each packet was executed once, in order and as it was sent."""
        whole = [
            (psn, is_message, payload)
            for i, psn, is_message, payload, good in self.arrived[lane]
            if i == incarnation and good
        ]
        assert whole == [
            (psn, what.get("message", 0), what["payload"]) for psn, what in enumerate(packets)
        ]

    def run(self, *processes):
        def settle():
            for _ in range(60):
                yield

        def all_of(process):
            yield from process
            yield from settle()

        run_simulation(self, [*self.processes, *map(all_of, processes)])


def some_packets(random, count):
    return {
        LANE.BULK: [
            bulk(random.randbytes(random.choice([0, 1, 8, 40, 300, 600]))) for _ in range(count)
        ],
        LANE.EXPRESS: [
            random.choice([put, put, lambda _: message(random.randbytes(C.MESSAGE_BYTES))])(
                random.randbytes(random.choice([0, 1, 8, 33, 64]))
            )
            for _ in range(2 * count)
        ],
    }


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_packets_of_both_lanes_arrive_once_and_in_order_and_are_acknowledged(data_width, seed):
    random = Random(seed)
    packets = some_packets(random, 8)
    pair = Pair(data_width, random, patience=0.9)
    pair.refuse = lambda lane, psn: psn == 3
    refusals = []

    @passive
    def take_refusals():
        refusal = pair.source.packet.refusals
        yield refusal.ready.eq(1)
        while True:
            yield
            if (yield refusal.valid):
                refusals.append(((yield refusal.flow), (yield refusal.psn), (yield refusal.reason)))

    run_simulation(
        pair,
        [
            *pair.processes,
            take_refusals(),
            *[pair.send(lane, packets[lane]) for lane in LANES],
            finish(
                lambda: (
                    all(pair.acked[lane] == len(packets[lane]) - 1 for lane in LANES)
                    and pair.cycle > 1500
                ),
                20000,
            ),
        ],
    )
    for lane in LANES:
        pair.check(lane, packets[lane])
    assert sorted(refusals) == sorted((flow_of(lane), 3, STATUS.REMOTE_BOUNDS) for lane in LANES)
    sent, received = pair.counts[0], pair.counts[1]
    assert sent["PACKETS_SENT"] == received["PACKETS_RECEIVED"] == sum(map(len, packets.values()))
    assert (
        sent["BYTES_SENT"]
        == received["BYTES_RECEIVED"]
        == sum((len(what["payload"]) + 3) // 4 for lane in LANES for what in packets[lane])
    )
    assert received["ACKS_SENT"] == sent["PACKETS_RECEIVED"] > 0
    assert received["PACKET_REFUSED"] == 2 and pair.rewinds == {lane: 0 for lane in LANES}
    assert not any(
        received[name] for name in received if "ERROR" in name or name == "PACKET_TRUNCATED"
    )


def test_a_source_asks_once_for_each_flow_and_nothing_is_sent_again(seed):
    """After its target's answer, all packets go as without a question."""
    random = Random(seed)
    packets = some_packets(random, 4)
    pair = Pair(64, random, is_sure=False)
    pair.run(*[pair.send(lane, packets[lane]) for lane in LANES])
    for lane in LANES:
        pair.check(lane, packets[lane])
    assert (
        pair.counts[0]["PACKETS_SENT"]
        == pair.counts[1]["PACKETS_RECEIVED"]
        == sum(map(len, packets.values())) + C.LANES
    )
    assert (
        pair.rewinds == {lane: 0 for lane in LANES}
        and pair.counts[1]["PACKET_STALE"] == pair.counts[1]["PACKET_DUPLICATE"] == 0
    )


@pytest.mark.parametrize("is_sure", [True, False])
def test_bit_errors_are_healed_by_replay(is_sure, seed):
    """Questions and answers may be lost, too."""
    random = Random(seed)
    packets = some_packets(random, 8)

    def fault(data, k):
        """One symbol in error: seen by the decoder, or as another symbol that is as good."""
        if random.random() >= 0.006:
            return data, k, 0, 0
        flipped = data ^ 1 << random.randrange(32)
        return random.choice(
            [
                (flipped, k, 0, 0),
                (data, k ^ 1 << random.randrange(4), 0, 0),
                (flipped, k, 1 << random.randrange(4), 0),
                (data, k, 0, 1 << random.randrange(4)),
            ]
        )

    pair = Pair(64, random, fault=fault, back=fault, timeout=600, is_sure=is_sure)
    pair.run(*[pair.send(lane, packets[lane]) for lane in LANES])
    for lane in LANES:
        pair.check(lane, packets[lane])
    assert any(pair.rewinds.values()), "no error struck: the test shows nothing"


def test_a_full_inbox_is_told_and_the_messages_come_again(seed):
    random = Random(seed)
    packets = [message(random.randbytes(C.MESSAGE_BYTES)) for _ in range(C.SLOTS + 4)]
    pair = Pair(64, random, keep=1900, timeout=300)
    pair.run(pair.send(LANE.EXPRESS, packets))
    pair.check(LANE.EXPRESS, packets)
    target = pair.counts[1]
    assert (
        target["MESSAGE_NO_ROOM"] > 0 and target["NAKS_SENT"] == pair.counts[0]["NAKS_RECEIVED"] > 0
    )
    assert len(pair.arrived[LANE.EXPRESS]) == len(packets)


def test_a_small_put_overtakes_a_long_one(seed):
    random = Random(seed)
    pair = Pair(128, random)
    packets = {LANE.BULK: [bulk(random.randbytes(C.PACKET_PAYLOAD))], LANE.EXPRESS: [put(bytes(8))]}

    def express():
        yield from finish(lambda: ("payload", LANE.BULK) in pair.times, 2000)
        yield from pair.send(LANE.EXPRESS, packets[LANE.EXPRESS])

    pair.run(pair.send(LANE.BULK, packets[LANE.BULK]), express())
    for lane in LANES:
        pair.check(lane, packets[lane])
    assert pair.rewinds == {lane: 0 for lane in LANES}
    assert pair.times["acknowledged", LANE.EXPRESS] + 500 < pair.times["acknowledged", LANE.BULK]


def test_long_packets_fill_the_link(seed, figure):
    """Shares of docs/design/packets.md, less what tells of a change of the flow state."""
    random = Random(seed)
    shares = {0: 97.2, 1: 96.8}
    packets = [
        bulk(random.randbytes(C.PACKET_PAYLOAD), ((16, 512),) * levels) for levels in [*shares, 0]
    ]
    pair = Pair(128, random)
    pair.run(pair.send(LANE.BULK, packets))
    pair.check(LANE.BULK, packets)
    starts = [i for i, (data, k) in enumerate(pair.log) if k and data & 0xFF == 0xFB]
    assert len(receive(pair.log).packets[CHANNEL.BULK]) == len(starts) == 3
    for levels, share in shares.items():
        words = starts[levels + 1] - starts[levels]
        assert figure(
            f"link-payload-share-levels-{levels}",
            100 * C.PACKET_PAYLOAD / 4 / words,
            "% of link words",
            at_least=share - 1,
        )


def test_latency_of_a_small_packet(seed, figure):
    pair = Pair(128, Random(seed), delay=0)

    def one_after_the_other():
        for _ in range(60):
            yield
        yield from pair.send(LANE.EXPRESS, [put(bytes(8))])
        yield from pair.send(LANE.BULK, [bulk(bytes(8))])

    pair.run(one_after_the_other())
    for lane in LANES:
        # 11 words and the end that tells that the last was the last, plus what the logic takes.
        cycles = pair.times["payload", lane] - pair.times["word", lane]
        assert figure(
            f"packet-latency-8-bytes-lane-{lane}", cycles, "cycles, 0 m, no transceiver", at_most=20
        )
