"""Packets that leave by lines for a bonded port: they are the packets that leave by words."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.interface.description import CHANNEL
from dibber.packet.packet_transmitter import PacketTransmitter

from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.drive import finish, sink, source
from tests.gateware.models.sealed import LineTransmitter
from tests.gateware.packet import test_express_transmitter as express
from tests.gateware.packet import test_packet_transmitter as transmit


@pytest.fixture(autouse=True)
def by_lines(monkeypatch):
    monkeypatch.setattr(transmit, "PacketTransmitter", LineTransmitter)
    monkeypatch.setattr(express, "PacketTransmitter", LineTransmitter)
    # A line without words may end a packet as bad. The bench sees one word then.
    monkeypatch.setattr(transmit, "SHORTEST_BAD", 1)


def test_packets_leave_as_the_model_says(seed):
    transmit.test_packets_leave_as_the_model_says(256, seed)


def test_a_rewind_drops_what_has_not_begun_and_lets_the_rest_finish(seed):
    transmit.test_a_rewind_drops_what_has_not_begun_and_lets_the_rest_finish(256, seed)


def test_acknowledgements_leave_on_the_control_channel(seed):
    transmit.test_acknowledgements_leave_on_the_control_channel(seed)


def test_express_packets_leave_as_the_model_says(seed):
    express.test_packets_leave_as_the_model_says(256, seed)


def test_a_slot_that_changes_under_a_packet_makes_no_bad_packet(seed):
    express.test_a_slot_that_changes_under_a_packet_makes_no_bad_packet(256, seed)


def test_an_express_rewind_drops_what_has_not_begun(seed):
    express.test_a_rewind_drops_what_has_not_begun_and_lets_the_rest_finish(256, seed)


class RawTransmitter(PacketTransmitter):
    """With lines at its sources, which have the `channel` of words for a bench."""

    def __init__(self, data_width):
        super().__init__(data_width, bulk_width=256)
        for number, lines in enumerate(self.sources):
            lines.channel = Signal(2, reset=number)


def distances(ends):
    return [after - before for before, after in zip(ends, ends[1:])]


def test_a_packet_of_bulk_takes_fewer_cycles_than_its_rows(monkeypatch, seed):
    """132 rows of 4096 bytes leave in 211 cycles: docs/design/bonded-link.md."""
    monkeypatch.setattr(transmit, "PacketTransmitter", RawTransmitter)
    random = Random(seed)
    deposits = [transmit.random_deposit(random, 4 * psn, 4096) for psn in range(4)]
    for psn, (packet, _) in enumerate(deposits):
        packet.psn, packet.notice = psn, None
    bench = transmit.Bench(256, random, deposits)
    bench.run(finish(lambda: bench.counts["PACKETS_SENT"] == len(deposits), 2000))
    lines = zip(bench.cycles, bench.taken[CHANNEL.BULK])
    apart = distances([cycle for cycle, (_, last, *_) in lines if last])
    assert max(apart) <= 152, apart


def test_small_packets_of_express_take_16_cycles_each(monkeypatch, seed):
    """With a notice; 13 without one."""
    monkeypatch.setattr(express, "PacketTransmitter", RawTransmitter)
    bench = express.Bench(256, Random(seed))
    for psn in range(8):
        bench.add(psn, 8)
    bench.run(finish(lambda: len(bench.taken) == 8, 800))
    apart = distances([cycles[-1] for *_, cycles in bench.taken])
    assert max(apart) <= 16, apart


def test_acknowledgements_take_12_cycles_each(seed):
    random, cycles, acks = Random(seed), [], [dict(node=n, ack=n) for n in range(8)]
    dut = shared(RawTransmitter, 256)
    run_simulation(
        dut,
        [
            source(dut.acks, acks, random),
            sink(dut.sources[CHANNEL.CONTROL], ("last",), [], random, 1.0, cycles),
            finish(lambda: len(cycles) == len(acks), 400),
        ],
    )
    assert max(distances(cycles)) == 12, distances(cycles)
