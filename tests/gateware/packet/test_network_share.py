"""The network's share of a small put's latency: from its first symbol into the serial PHY until its
acknowledgement is out of it.

Both transceivers and a cable of 0 m are passed twice; the packet lands through the engine that it
has on the card. GigaRing took 462 ns for it.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.deposit.express_lander import ExpressLander
from dibber.deposit.regions import RegionTable
from dibber.deposit.writes import WriteArbiter
from dibber.interface.description import LANE, RIGHT

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.hostwrite import HostWrite
from tests.gateware.models.slots import serve_slots
from tests.gateware.packet import test_layer

CLOCK_NS = 8  # gen2x4
TRANSCEIVERS = 60 + 80  # ns, transmit and receive: hw/sim/profiles/gen2x4.toml
DELAY = -(-TRANSCEIVERS // CLOCK_NS) - 1  # the model's cable has a cycle of its own
# with the model's own two: three through the PCIe transmitter, and one for its answer
LANDING = 2
START, END = 0xFB, 0xFD  # K27.7, K29.7
KEY = 0  # of the first packet that test_layer.Pair sends
MAX_PAYLOAD = 256


class Pair(test_layer.Pair):
    """As of the layer's test, with the engine of the EXPRESS lane in the target."""

    def __init__(self, random):
        test_layer.Pair.__init__(self, 128, random, delay=DELAY)
        packet = self.target.packet
        self.submodules.regions = regions = RegionTable(ports=1)
        self.submodules.lander = lander = ExpressLander(128)
        self.submodules.writes = writes = WriteArbiter(128, sinks=2)
        self.comb += [
            packet.express_deposits.connect(lander.deposits),
            packet.express_payload.connect(lander.payload),
            lander.done.connect(packet.express_done),
            lander.lookup.connect(regions.ports[0]),
            lander.writes.connect(writes.sinks[0]),
            lander.marked.eq(writes.landed[0]),
            lander.slot.ready.eq(1),
            lander.arrivals.ready.eq(1),
        ]
        self.host = HostWrite(
            writes.source, writes.marked, random, MAX_PAYLOAD, delay=(LANDING, LANDING)
        )
        self.marks = {}
        source, target = self.source.link, self.target.link
        self.processes = [
            test_layer.cable(source.serial_tx, target.serial_rx, DELAY),
            test_layer.cable(target.serial_tx, source.serial_rx, DELAY),
            serve_slots(self.source.packet.express_slot, 128, self.slots, random, 1.0),
            self._control(),
            self._watch(),
            self._stages(),
            self.host.run(),
        ]

    def open_region(self):
        for name, value in dict(
            index=KEY,
            key=KEY,
            base=2**32,
            length=1 << 20,
            rights=RIGHT.REMOTE_WRITE,
            owner=1,
            valid=1,
            write=1,
        ).items():
            yield getattr(self.regions, name).eq(value)
        yield
        yield self.regions.write.eq(0)
        yield

    @passive
    def _stages(self):
        """Cycle at which each stage is first passed."""
        cycle = 0

        def passes(endpoint, control):
            return (
                (yield endpoint.valid)
                and (yield endpoint.k) & 1
                and (yield endpoint.data) & 0xFF == control
            )

        source, target = self.source.link, self.target.link
        while True:
            for name, endpoint, control in (
                ("packet-into-PHY", source.serial_tx, START),
                ("packet-out-of-PHY", target.serial_rx, START),
                ("packet-end-out-of-PHY", target.serial_rx, END),
                ("ack-into-PHY", target.serial_tx, START),
                ("ack-out-of-PHY", source.serial_rx, START),
                ("ack-end-out-of-PHY", source.serial_rx, END),
            ):
                if name not in self.marks and (yield from passes(endpoint, control)):
                    self.marks[name] = cycle
            for name, signal in (
                ("payload-at-engine", self.target.packet.express_payload.valid),
                ("write-at-PCIe", self.writes.source.valid),
                ("write-taken", self.writes.marked),
            ):
                if name not in self.marks and (yield signal):
                    self.marks[name] = cycle
            cycle += 1
            yield


@pytest.mark.parametrize("length, limit", [(8, 600), (64, 800)])
def test_the_networks_share_of_a_small_put(length, limit, seed, figure):
    random = Random(seed)
    pair = Pair(random)
    payload = random.randbytes(length)

    def main():
        yield from pair.open_region()
        for _ in range(100):
            yield
        yield from pair.send(LANE.EXPRESS, [test_layer.put(payload)])

    run_simulation(pair, [*pair.processes, main()])
    assert bytes(pair.host.memory[address] for address in sorted(pair.host.memory)) == payload
    stages = sorted(pair.marks.items(), key=lambda mark: mark[1])
    for (_, before), (name, cycle) in zip(stages, stages[1:]):
        figure(
            f"network-share-{length}-bytes-{name}", cycle - before, "cycles after the stage before"
        )
    # From the beginning of the packet's first word to the end of the acknowledgement's last one.
    share = (stages[-1][1] + 1) * CLOCK_NS - stages[0][1] * CLOCK_NS
    assert stages[-1][0] == "ack-end-out-of-PHY"
    assert figure(
        f"network-share-{length}-bytes",
        share,
        "ns, first symbol into the PHY to the ack's last out of it, 0 m",
        at_most=limit,
        profile="gen2x4",
    )
