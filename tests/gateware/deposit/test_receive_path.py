"""From the link's words to host memory: receiver, engines and arbiter together, both lanes at
once.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from litex.gen import *

from dibber.deposit.expected import ExpectedTable
from dibber.deposit.express_lander import ExpressLander
from dibber.deposit.regions import RegionTable
from dibber.deposit.scatter import ScatterEngine
from dibber.deposit.writes import WriteArbiter
from dibber.interface.description import C, CHANNEL, LANE, PACKET, PACKET_FLAG, RIGHT
from dibber.packet.packet_receiver import PacketReceiver

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, sink, source
from tests.gateware.models.flows import opened
from tests.gateware.models.hostwrite import HostWrite
from tests.gateware.models.packet import Packet, encode

BASE, LENGTH, KEY = 2**36 + 0x123, 100000, 0xABCD07
HALF = LENGTH // 2
CONTEXT = 3 * C.SLOTS + 4
ARRIVAL = ("value", "is_message", "response", "slot")


class Way(LiteXModule):
    """The engines take the first two turns of the arbiter, EXPRESS the first."""

    def __init__(self, data_width):
        self.regions = regions = RegionTable(ports=2)
        self.expected = expected = ExpectedTable()
        self.receiver = receiver = PacketReceiver(data_width)
        opened(receiver)
        self.scatter = scatter = ScatterEngine(data_width)
        self.lander = lander = ExpressLander(data_width)
        self.writes = writes = WriteArbiter(data_width, sinks=2)
        self.engines = {LANE.EXPRESS: lander, LANE.BULK: scatter}
        self.comb += [
            receiver.express_deposits.connect(lander.deposits),
            receiver.express_payload.connect(lander.payload),
            receiver.inbox_freed.eq(lander.inbox_freed),
            receiver.deposits.connect(scatter.deposits),
            receiver.payload.connect(scatter.payload),
            lander.lookup.connect(regions.ports[0]),
            scatter.lookup.connect(regions.ports[1]),
            scatter.expected.connect(expected.port),
            lander.writes.connect(writes.sinks[0]),
            scatter.writes.connect(writes.sinks[1]),
            lander.marked.eq(writes.landed[0]),
            scatter.marked.eq(writes.landed[1]),
            lander.slot.ready.eq(1),
        ]


def random_packets(random, lane, count):
    """Packets with notices of number `psn` and messages; each lane in a half of the region."""
    for psn in range(count):
        common = dict(target=0, source=1, psn=psn, key=KEY)
        flags = PACKET_FLAG.LAST | (PACKET_FLAG.FIRST if psn == 0 else 0)
        if lane == LANE.EXPRESS:
            flags |= PACKET_FLAG.EXPRESS
            if random.random() < 0.3:
                yield Packet(
                    **{**common, "key": psn},
                    kind=PACKET.MESSAGE,
                    flags=flags,
                    payload=random.randbytes(128),
                )
                continue
            data = random.randbytes(random.choice([1, 8, 8, 64]))
            yield Packet(
                **common,
                flags=flags,
                offset=random.randrange(HALF - 64),
                payload=data,
                notice=(psn, len(data), 0),
            )
            continue
        response = random.random() < 0.3
        data = random.randbytes(random.choice([8, 90, 400]))
        yield Packet(
            **common,
            flags=flags | (PACKET_FLAG.RESPONSE if response else 0),
            ack=CONTEXT if response else 0,
            offset=HALF + random.randrange(HALF - 400),
            payload=data,
            notice=(psn, len(data), 0),
        )


@pytest.mark.parametrize(
    "data_width, busy, host_busy",
    [(64, 1.0, 1.0), (64, 1.0, 0.2), (128, 0.6, 0.6), (256, 0.8, 0.8)],
)
def test_both_lanes_land_whole_and_in_order_and_no_notice_comes_before_its_bytes(
    data_width, busy, host_busy, seed
):
    random = Random(seed + data_width)
    packets = {lane: list(random_packets(random, lane, 24)) for lane in (LANE.EXPRESS, LANE.BULK)}
    dut = Way(data_width)
    host = HostWrite(dut.writes.source, dut.writes.marked, random, 128, host_busy)
    done = {lane: [] for lane in packets}
    arrivals = {lane: [] for lane in packets}

    def words(lane):
        for packet in packets[lane]:
            coded = encode(packet)
            yield from (
                dict(data=w, first=int(n == 0), last=int(n == len(coded) - 1))
                for n, w in enumerate(coded)
            )

    def lands(packet, memory):
        if packet.kind != PACKET.MESSAGE:
            memory.update({BASE + packet.offset + n: byte for n, byte in enumerate(packet.payload)})
        return memory

    @passive
    def watch():
        """At each arrival what is in memory is what a later packet left there, or this one."""
        seen = {lane: 0 for lane in packets}
        while True:
            for lane, list_of in packets.items():
                for value, is_message, _, _ in arrivals[lane][seen[lane] :]:
                    packet = list_of[value]
                    assert bool(is_message) == (packet.kind == PACKET.MESSAGE)
                    later = [lands(p, {}) for p in list_of[value:]]
                    for address in lands(packet, {}):
                        assert host.memory.get(address) in [
                            m[address] for m in later if address in m
                        ]
                    seen[lane] += 1
            yield

    ready = []

    def main():
        yield dut.scatter.max_payload.eq(128)
        for name, value in dict(
            index=7,
            key=KEY,
            base=BASE,
            length=LENGTH,
            rights=RIGHT.REMOTE_WRITE | RIGHT.LOCAL_WRITE,
            owner=CONTEXT // C.SLOTS,
            valid=1,
            write=1,
        ).items():
            yield getattr(dut.regions, name).eq(value)
        for name, value in dict(context=CONTEXT, node=1, key=KEY, valid=1, write=1).items():
            yield getattr(dut.expected, name).eq(value)
        yield
        yield dut.regions.write.eq(0)
        yield dut.expected.write.eq(0)
        yield
        ready.append(1)
        yield from finish(
            lambda: all(len(done[lane]) == len(packets[lane]) for lane in packets), 20000
        )
        # What is done last has not landed yet.
        for _ in range(400):
            yield

    def when_ready(items):
        while not ready:
            yield None
        yield from items

    channels = {LANE.EXPRESS: CHANNEL.EXPRESS, LANE.BULK: CHANNEL.BULK}
    run_simulation(
        dut,
        [
            main(),
            host.run(),
            watch(),
            *[
                source(dut.receiver.sinks[channels[lane]], when_ready(words(lane)), random, busy)
                for lane in packets
            ],
            *[
                sink(engine.done, ("psn", "refused", "lane"), done[lane], random, busy)
                for lane, engine in dut.engines.items()
            ],
            *[
                sink(engine.arrivals, ARRIVAL, arrivals[lane], random, busy)
                for lane, engine in dut.engines.items()
            ],
        ],
    )
    memory = {}
    for lane, list_of in packets.items():
        assert done[lane] == [(psn, 0, lane) for psn in range(len(list_of))]
        assert [a[0] for a in arrivals[lane]] == list(range(len(list_of)))
        assert [a[2] for a in arrivals[lane]] == [
            int(bool(p.flags & PACKET_FLAG.RESPONSE)) for p in list_of
        ]
        for packet in list_of:
            lands(packet, memory)
    assert host.memory == memory
