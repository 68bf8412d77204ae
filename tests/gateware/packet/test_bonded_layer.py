"""Two packet layers with bonded ports and four lanes between them: both lanes of packets, with
errors on the wire and replay.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.interface.description import LANE
from dibber.link.bonded_port import BondedPort
from dibber.link.rows import LANES
from dibber.packet.layer import PacketLayer

from tests.gateware.packet import test_layer as layer

BOTH = (LANE.EXPRESS, LANE.BULK)


class BondedCard(layer.Card):
    """As Card, with a bonded port in place of the LinkPort."""

    def __init__(self, node, data_width, is_sure):
        Module.__init__(self)
        self.submodules.packet = packet = PacketLayer(data_width, bulk_width=256)
        self.submodules.link = link = BondedPort(channels=3, period=64)
        link.serial_tx, link.serial_rx = link.tx, link
        self.connect(packet, link, node, data_width, is_sure)


@passive
def lanes(tx, port, delay=4, fault=None, log=None):
    """Rows leave in 5 of 8 cycles; each lane has its own delay. `fault`: (cycle, data) -> data."""
    cycle, wires = 0, [[(0, 0, 0)] * (delay + late) for late in (0, 3, 1, 2)]
    yield port.locked.eq(2**LANES - 1)
    while True:
        ready = int(cycle * 5 % 8 < 5)
        yield tx.ready.eq(ready)
        yield
        cycle += 1
        sent = [(0, 0, 0)] * LANES
        if ready and (yield tx.valid):
            header, data = (yield tx.header), (yield tx.data)
            data = fault(cycle, data) if fault else data
            sent = [(1, header >> 2 * n & 3, data >> 64 * n & 2**64 - 1) for n in range(LANES)]
        for lane, wire, block in zip(port.lanes, wires, sent):
            wire.append(block)
            valid, header, data = wire.pop(0)
            yield lane.valid.eq(valid)
            if valid:
                yield lane.header.eq(header)
                yield lane.data.eq(data)


@pytest.fixture(autouse=True)
def bonded(monkeypatch):
    monkeypatch.setattr(layer, "Card", BondedCard)
    monkeypatch.setattr(layer, "cable", lanes)


def test_packets_of_both_lanes_arrive_once_and_in_order_and_are_acknowledged(seed):
    layer.test_packets_of_both_lanes_arrive_once_and_in_order_and_are_acknowledged(256, seed)


def test_after_errors_on_the_wire_packets_come_again_and_none_comes_twice(seed):
    random = Random(seed)
    packets = layer.some_packets(random, 4)

    def hit(cycle, data):
        """A wrong bit in one of 12 rows."""
        return data ^ 1 << random.randrange(256) if random.random() < 1 / 12 else data

    pair = layer.Pair(256, random, fault=hit, back=hit, timeout=600)
    pair.run(*[pair.send(lane, packets[lane]) for lane in BOTH])
    for lane in BOTH:
        pair.check(lane, packets[lane])
    assert sum(pair.rewinds.values()) > 0
    errors = ("HEADER_CRC_ERROR", "PAYLOAD_CRC_ERROR", "PACKET_TRUNCATED", "CODE_ERRORS")
    assert sum(pair.counts[1][name] for name in errors) > 0
