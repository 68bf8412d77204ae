"""Scouts and acknowledgements on channel CONTROL, from one packet layer to another."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.interface.description import C, CHANNEL
from dibber.packet.layer import PacketLayer
from dibber.packet.packet_receiver import PacketReceiver
from dibber.packet.packet_transmitter import PacketTransmitter

from tests.gateware.models.compiled import run_simulation

DATA_WIDTH = 128


class Pair(Module):
    """CONTROL of layer 3 leads to layer 5, and the other way round; nothing else is connected."""

    def __init__(self):
        self.nodes = {3: PacketLayer(DATA_WIDTH), 5: PacketLayer(DATA_WIDTH)}
        for node, layer in self.nodes.items():
            self.submodules += layer
            self.comb += layer.node_id.eq(node)
        for here, there in (3, 5), (5, 3):
            self.comb += (
                self.nodes[here]
                .sources[CHANNEL.CONTROL]
                .connect(self.nodes[there].sinks[CHANNEL.CONTROL])
            )


class OneWay(Module):
    """A transmitter whose CONTROL leads to a receiver, without what makes acknowledgements."""

    def __init__(self):
        self.submodules.transmitter = transmitter = PacketTransmitter(DATA_WIDTH)
        self.submodules.receiver = receiver = PacketReceiver(DATA_WIDTH)
        self.comb += [
            transmitter.node_id.eq(3),
            receiver.node_id.eq(5),
            transmitter.sources[CHANNEL.CONTROL].connect(receiver.sinks[CHANNEL.CONTROL]),
        ]
        self.scouts, self.scouts_came = transmitter.scouts, receiver.scouts


def send(layer, node, reply, number, back):
    sink = layer.scouts
    for name, value in dict(node=node, reply=reply, number=number, back=back, valid=1).items():
        yield getattr(sink, name).eq(value)
    yield
    while not (yield sink.ready):
        yield
    yield sink.valid.eq(0)


def take(layer, came):
    """One scout that came, if there is one."""
    source = layer.scouts_came
    if (yield source.valid):
        came.append(
            ((yield source.node), (yield source.reply), (yield source.number), (yield source.back))
        )
        yield source.ready.eq(1)
        yield
        yield source.ready.eq(0)
    yield


def test_scouts_reach_anybody_and_answers_their_node(seed):
    random = Random(seed)
    pair, came, home = Pair(), [], []
    asked = [(random.getrandbits(32), random.getrandbits(32)) for _ in range(12)]

    def asks():
        for number, back in asked:
            yield from send(pair.nodes[3], C.ANYBODY, 0, number, back)

    def answers():
        for n in range(len(asked)):
            while len(came) <= n:
                yield from take(pair.nodes[5], came)
            yield from send(pair.nodes[5], came[n][0], 1, came[n][2], 0)

    def hears():
        for _ in range(5000):
            if len(home) == len(asked):
                return
            yield from take(pair.nodes[3], home)
        raise AssertionError("answers are missing")

    run_simulation(pair, [asks(), answers(), hears()])
    assert came == [(3, 0, number, back) for number, back in asked]
    assert home == [(5, 1, number, 0) for number, _ in asked]


def test_what_is_for_another_node_or_finds_no_room_is_counted(seed):
    pair, came = Pair(), []
    counts = dict.fromkeys(("SCOUT_NO_ROOM", "PACKET_WRONG_NODE"), 0)

    def asks():
        for number in range(C.SCOUTS + 3):
            yield from send(pair.nodes[3], C.ANYBODY, 0, number, 0)
        # An answer is for a node, and this one's is not there; ANYBODY takes no answers.
        yield from send(pair.nodes[3], 4, 1, 99, 0)
        yield from send(pair.nodes[3], C.ANYBODY, 1, 99, 0)
        for _ in range(100):
            yield
        while len(came) < C.SCOUTS:
            yield from take(pair.nodes[5], came)
        for _ in range(20):
            yield from take(pair.nodes[5], came)

    @passive
    def counting():
        while True:
            for name in counts:
                counts[name] += yield pair.nodes[5].counters[name]
            yield

    run_simulation(pair, [asks(), counting()])
    assert [number for _, _, number, _ in came] == list(range(C.SCOUTS))
    assert counts == {"SCOUT_NO_ROOM": 3, "PACKET_WRONG_NODE": 2}


@pytest.mark.parametrize("busy", [0.3, 1.0])
def test_acknowledgements_and_scouts_share_the_channel_packet_by_packet(busy, seed):
    """Neither holds up the other for more than a packet, and every one arrives whole."""
    random = Random(seed)
    way, came, acks = OneWay(), [], []
    wanted = 25

    def acknowledge():
        sink = way.transmitter.acks
        for n in range(wanted):
            while random.random() > busy:
                yield
            for name, value in dict(node=5, ack=n, valid=1).items():
                yield getattr(sink, name).eq(value)
            yield
            while not (yield sink.ready):
                yield
            yield sink.valid.eq(0)

    def scouts():
        for n in range(wanted):
            while random.random() > busy:
                yield
            yield from send(way, C.ANYBODY, 0, n, 0)

    def watch():
        for _ in range(3000):
            if (yield way.receiver.acks.valid):
                acks.append((yield way.receiver.acks.ack))
            if len(came) == wanted == len(acks):
                return
            yield
        raise AssertionError(f"{len(came)} scouts and {len(acks)} acknowledgements of {wanted}")

    @passive
    def drain():
        while True:
            yield from take(way, came)

    run_simulation(way, [acknowledge(), scouts(), watch(), drain()])
    assert acks == list(range(wanted)) and [number for _, _, number, _ in came] == list(
        range(wanted)
    )
