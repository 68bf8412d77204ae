"""Packets that leave by lines for a bonded port: they are the packets that leave by words."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest

from tests.gateware.models.sealed import LineTransmitter
from tests.gateware.packet import test_express_transmitter as express
from tests.gateware.packet import test_packet_transmitter as transmit


@pytest.fixture(autouse=True)
def by_lines(monkeypatch):
    monkeypatch.setattr(transmit, "PacketTransmitter", LineTransmitter)
    monkeypatch.setattr(express, "PacketTransmitter", LineTransmitter)


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
