"""Two packet layers of two links each, and a cable between each pair of ports: both lanes, replay,
and flows that change their link.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from migen import *

from dibber.interface.description import C, CHANNEL, LANE, PACKET_FLAG
from dibber.link.port import LinkPort
from dibber.packet.layer import PacketLayer

from tests.gateware.models.cable import cable
from tests.gateware.models.drive import drive
from tests.gateware.models.flows import acked_of, opened, sure
from tests.gateware.models.packet import Packet
from tests.gateware.models.slots import serve_slots, target_slot
from tests.gateware.packet.test_layer import LANES, Pair, flow_of, put

LINK_1 = 8  # in a route's word


class Card(Module):
    """As of test_layer, with two links."""

    def __init__(self, node, data_width):
        self.submodules.packet = packet = PacketLayer(data_width, links=2)
        links = [LinkPort(channels=3, slack_words=256) for _ in range(2)]
        self.submodules += links
        self.links = links
        self.node, self.data_width = node, data_width
        self.acked = acked_of(packet.transmitter.flows)
        sure(packet.transmitter.flows)
        opened(packet.receiver)
        for link, sources, sinks in zip(links, packet.sources, packet.sinks):
            self.comb += [
                *[source.connect(sink) for source, sink in zip(sources, link.sinks)],
                *[source.connect(sink) for source, sink in zip(link.sources, sinks)],
                link.signal.eq(1),
            ]
        self.comb += [
            packet.node_id.eq(node),
            packet.stored.line.eq(packet.payload_out.valid & packet.payload_out.ready),
            packet.stored.last.eq(packet.payload_out.last),
        ]
        self.counters = packet.counters
        self.engines = {
            LANE.BULK: (packet.deposits, packet.payload_out, packet.deposit_done),
            LANE.EXPRESS: (packet.express_deposits, packet.express_payload, packet.express_done),
        }


class LinkedPair(Pair):
    """Node 0 sends to node 1. The route there changes its link after `calm` cycles or more; with
    `rewinds` the flows are then rewound, as the control program does.
    """

    def __init__(self, data_width, random, calm, rewinds=True, faults=(None, None), timeout=1500):
        self.random, self.data_width = random, data_width
        self.submodules.source = Card(0, data_width)
        self.submodules.target = Card(1, data_width)
        self.slots, self.log, self.to_free, self.commands = {}, [], [], []
        self.arrived = {lane: [] for lane in LANES}
        self.rewinds = {lane: 0 for lane in LANES}
        self.cycle, self.times, self.keep, self.patience = 0, {}, 0, 0.9
        self.refuse = lambda lane, psn: False
        self.timeout, self.calm, self.changes_rewind = timeout, calm, rewinds
        self.acked = {lane: 0xFFFF for lane in LANES}
        self.naked = {lane: False for lane in LANES}
        self.counts = {
            card.node: dict.fromkeys(card.counters, 0) for card in (self.source, self.target)
        }
        self.link, self.changes, self.words = 0, 0, [0, 0]
        source, target = self.source, self.target
        self.processes = [
            *[
                cable(source.links[n].serial_tx, target.links[n].serial_rx, 4, fault=faults[n])
                for n in range(2)
            ],
            *[
                cable(target.links[n].serial_tx, source.links[n].serial_rx, 4 + 9 * n)
                for n in range(2)
            ],
            *[
                serve_slots(slot, data_width, self.slots, random, 0.8)
                for slot in (*source.packet.slots, source.packet.express_slot)
            ],
            *[self._engine(lane) for lane in LANES],
            self._inbox(),
            self._control(),
            self._watch(),
            self._change(),
        ]

    @passive
    def _watch(self):
        packet = self.source.packet
        while True:
            self.cycle += 1
            for card in (self.source, self.target):
                for name, pulse in card.counters.items():
                    self.counts[card.node][name] += yield pulse
            for n in range(2):
                source = packet.sources[n][CHANNEL.BULK]
                self.words[n] += (yield source.valid) & (yield source.ready)
            for lane in LANES:
                self.acked[lane] = yield self.source.acked[flow_of(lane)]
                self.naked[lane] |= bool(
                    (yield packet.naked.strobe) and (yield packet.naked.flow) == flow_of(lane)
                )
            yield

    @passive
    def _change(self):
        """Routes of both cards change; that of the acknowledgements changes, too."""
        while True:
            for _ in range(self.calm + self.random.randrange(self.calm)):
                yield
            self.link ^= 1
            self.changes += 1
            self.commands.append((self.source.packet.route, dict(node=1, route=self.link * LINK_1)))
            yield from drive(
                self.target.packet.route,
                strobe=1,
                node=0,
                route=self.random.randrange(2) * LINK_1,
            )
            yield
            yield self.target.packet.route.strobe.eq(0)
            if self.changes_rewind:
                self.naked = {lane: True for lane in LANES}

    def _hand_over(self, lane, psn, what, incarnation, epoch):
        if lane == LANE.EXPRESS:
            yield from super()._hand_over(lane, psn, what, incarnation, epoch)
            return
        packet, size = self.source.packet, self.data_width // 8
        payload, slot, splitter = what["payload"], psn % C.SLOTS, packet.transmitter.splitter
        link = self.link
        while not (yield splitter.room) >> link & 1:
            yield
        yield splitter.reserve.eq(1 << link)
        yield
        yield splitter.reserve.eq(0)
        self.slots[0, slot] = target_slot(
            Packet(target=1, source=0, key=psn + 1, levels=what["levels"], offset=psn << 20)
        )
        fields = dict(
            node=1, incarnation=incarnation, epoch=epoch, psn=psn, slot=slot, length=len(payload)
        )
        flags = PACKET_FLAG.FIRST if psn == 0 else 0
        yield from self._offer(
            packet.packets,
            dict(flags=flags, levels=0, endpoint=0, skip=0, link=link, **fields),
        )
        for at in range(0, len(payload), size):
            line = payload[at : at + size]
            yield from self._offer(
                packet.payload_in,
                dict(
                    dat=int.from_bytes(line, "little"),
                    bytes=len(line),
                    last=int(at + size >= len(payload)),
                ),
            )


def some_packets(random, count):
    return {
        LANE.BULK: [
            dict(payload=random.randbytes(random.choice([0, 1, 40, 300, 1500, 4096])), levels=())
            for _ in range(count)
        ],
        LANE.EXPRESS: [put(random.randbytes(random.choice([0, 8, 33]))) for _ in range(count)],
    }


def run(pair, packets):
    pair.run(*[pair.send(lane, packets[lane], limit=60000) for lane in LANES])
    for lane in LANES:
        pair.check(lane, packets[lane])
    assert pair.changes > 2 and min(pair.words) > 0, "the route has not changed: nothing is shown"


def test_flows_change_their_link_and_each_packet_is_executed_once(seed):
    random = Random(seed)
    packets = some_packets(random, 16)
    run(LinkedPair(128, random, calm=250), packets)


def test_a_route_that_changes_without_a_rewind_loses_no_order(seed):
    """Packets of the old link and of the new one come to the target in any order."""
    random = Random(seed)
    packets = some_packets(random, 16)
    run(LinkedPair(64, random, calm=300, rewinds=False), packets)


def test_bit_errors_on_one_link_are_healed(seed):
    random = Random(seed)
    packets = some_packets(random, 14)
    fault = lambda data, k: (
        (data ^ 1 << random.randrange(32), k, 0, 0) if random.random() < 0.003 else (data, k, 0, 0)
    )
    pair = LinkedPair(64, random, calm=600, faults=(None, fault))
    run(pair, packets)
    assert any(pair.rewinds.values())
