"""Test equipment at both cables of a pair of rings: LINK_CABLE chooses the one that a test uses."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.fabric.ring.fold import RingCable
from dibber.interface.description import COUNTERS, HOST, PRBS
from dibber.layouts import serial_rx_layout, serial_tx_layout
from dibber.link.equipment import LinkEquipment, attach_pair
from dibber.mcp.host_registers import HostRegisters

from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.lines import LineDriver

NEXT, PREVIOUS = 0, 1
CONTROL = {field.name: field.lsb for field in HOST["LINK_CONTROL"].fields}
CABLES = {field.name: field.lsb for field in HOST["LINK_CABLES"].fields}
TEST = PRBS.PRBS7 << CONTROL["transmit"] | PRBS.PRBS7 << CONTROL["check"]


class PHY(LiteXModule):
    """A transceiver whose receiver hears its own transmitter; `cut`: it hears noise."""

    def __init__(self):
        self.sink, self.source = (
            stream.Endpoint(serial_tx_layout()),
            stream.Endpoint(serial_rx_layout()),
        )
        self.signal, self.loopback = Signal(reset=1), Signal()
        self.cut = Signal()
        self.comb += [
            self.sink.ready.eq(1),
            self.source.valid.eq(self.sink.valid),
            self.source.data.eq(self.sink.data ^ Replicate(self.cut, 32)),
            self.source.k.eq(self.sink.k),
        ]


class Port(LiteXModule):
    """What attach_pair() needs of a RingPairPort: its cables, and signals that stay 0."""

    def __init__(self):
        self.cables = [RingCable(), RingCable()]
        self.submodules += self.cables
        self.nodes = [Record([("up", 1)]), Record([("up", 1)])]
        self.folded = Signal()
        self.test, self.retrain, self.ping, self.nonce = Signal(), Signal(), Signal(), Signal(16)
        self.state, self.reason, self.signal, self.stopped = (
            Signal(4),
            Signal(4),
            Signal(),
            Signal(4),
        )
        self.peer, self.peer_known, self.round_trip = Signal(16), Signal(), Signal(32)
        self.slack_high = [Signal(8) for _ in range(4)]


class Bench(LiteXModule):
    def __init__(self):
        pulses = {name: Signal(name=name.lower()) for name, _ in COUNTERS}
        self.registers = HostRegisters(64, 125e6, pulses, ring=True, pair=True)
        self.port = Port()
        self.ends = [LinkEquipment(), LinkEquipment()]
        self.phys = [PHY(), PHY()]
        self.submodules += self.ends + self.phys
        self.comb += attach_pair(self.port, self.ends, self.phys, self.registers)
        self.driver = LineDriver(self.registers.port)

    def read(self, name):
        return (yield from self.driver.read(HOST[name].offset))

    def write(self, name, value):
        yield from self.driver.write(HOST[name].offset, value)

    def count(self, cable):
        """(words, errors) of a test at one cable, with one bit error made there."""
        yield from self.write("LINK_CABLE", cable)
        yield from self.write("LINK_CONTROL", TEST)
        for _ in range(60):
            yield
        yield from self.write("LINK_COMMAND", 1)
        for _ in range(10):
            yield
        found = (
            (yield from self.read("LINK_PRBS_WORDS")),
            (yield from self.read("LINK_PRBS_ERRORS")),
        )
        yield from self.write("LINK_CONTROL", 0)
        return found


@pytest.mark.parametrize("cable", [NEXT, PREVIOUS])
def test_a_sequence_is_sent_and_checked_at_the_chosen_cable_alone(cable):
    bench = shared(Bench)
    sent = {NEXT: [], PREVIOUS: []}

    def watch():
        while True:
            for end, phy in enumerate(bench.phys):
                sent[end].append(((yield phy.sink.valid), (yield phy.sink.data)))
            yield

    def scenario():
        words, errors = yield from bench.count(cable)
        assert words > 20 and errors == 1
        # The other end's cable is cut: nothing changes at the chosen one.
        yield bench.phys[1 - cable].cut.eq(1)
        words, errors = yield from bench.count(cable)
        assert words > 20 and errors == 1
        yield bench.phys[cable].cut.eq(1)
        _, errors = yield from bench.count(cable)
        assert errors == 0  # a sequence that was not found counts nothing

    watcher = passive(watch)()
    run_simulation(bench, [scenario(), watcher])
    assert any(valid for valid, _ in sent[cable])
    assert not any(valid for valid, _ in sent[1 - cable])


def test_loopback_of_the_phy_and_state_are_those_of_each_cable():
    bench = shared(Bench)

    def scenario():
        for cable in (PREVIOUS, NEXT):
            yield from bench.write("LINK_CABLE", cable)
            yield from bench.write("LINK_CONTROL", 1 << CONTROL["phy"])
            yield
            for end, phy in enumerate(bench.phys):
                assert (yield phy.loopback) == (cable == end)
            assert (yield from bench.read("LINK_CABLES")) >> CABLES["previous"] & 1 == cable
        yield bench.phys[PREVIOUS].signal.eq(0)
        yield bench.port.nodes[1].up.eq(1)
        yield
        shown = yield from bench.read("LINK_CABLES")
        on = {name for name, lsb in CABLES.items() if shown >> lsb & 1}
        assert on == {"next_signal", "ring1"}

    run_simulation(bench, scenario())
