"""Questions of the flow table behind packets that the port keeps."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.interface.description import LANE
from dibber.packet import flow_table
from dibber.packet.flow_table import KEPT_PATIENCE, FlowTable

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive

from tests.gateware.packet.test_flow_table import number, outcome, question, start, withdraw


def test_the_time_of_an_answer_begins_when_the_question_has_left_the_port():
    dut, flow = FlowTable(keeps=True), number(LANE.BULK, 3)

    def process():
        yield from start(dut, flow)
        yield from question(dut, flow)
        for kept, more, shown in (1, 100, None), (0, -10, None), (0, 10, (1, 0, 1)):
            yield dut.kept[LANE.BULK].eq(kept)
            yield
            assert (yield from outcome(dut, flow, KEPT_PATIENCE + more)) == shown

    run_simulation(dut, process())


def test_a_packet_that_stays_in_the_port_does_not_hold_the_lane_for_ever(monkeypatch):
    """One that waits for a node that accepts nothing. The question behind it is given up, and each
    new question has the whole time again.
    """
    limit, patience = 512, 128
    monkeypatch.setattr(flow_table, "KEPT_LIMIT", limit)
    monkeypatch.setattr(flow_table, "KEPT_PATIENCE", patience)
    dut, flow = FlowTable(keeps=True), number(LANE.BULK, 3)

    def process():
        yield dut.kept[LANE.BULK].eq(1)
        yield from start(dut, flow)
        for _ in range(3):
            yield from question(dut, flow)
            yield
            assert (yield from outcome(dut, flow, limit + patience - 10)) is None
            assert (yield from outcome(dut, flow, 20)) == (1, 0, 1)
            yield from withdraw(dut, flow)
            yield from drive(dut.rewind, strobe=1, flow=flow, epoch=0)
            yield
            yield dut.rewind.strobe.eq(0)

    run_simulation(dut, process())
