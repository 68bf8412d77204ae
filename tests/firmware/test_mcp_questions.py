"""A flow whose target is asked what it holds, and answers late or not at all."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import STATUS
from mcp_native import BULK, inline, put
from mcp_wire import WiredCard

MICROSECOND = 125
FLOW = BULK + 1


@pytest.fixture
def wired():
    return WiredCard()


@pytest.mark.fault
def test_packets_that_were_dropped_for_want_of_an_answer_count_as_lost(wired):
    """The question or its answer was lost on the link: no report comes, and nothing has left."""
    wired.unsure = {FLOW}
    wired.ring(1, put(cookie=0))
    wired.settle()
    wired.unsure = set()
    wired.settle(200 * MICROSECOND)
    assert wired.statuses == {0: 0} and wired.epoch[FLOW] == 2


@pytest.mark.fault
@pytest.mark.parametrize("kind,flow", [(put, FLOW), (inline, 1)], ids=["bulk", "express"])
def test_each_of_two_answers_that_come_late_starts_a_replay(wired, kind, flow):
    """The first question's time is over, so the flow is rewound and its target asked again. The
    answer to the second question comes when the packets were dropped once more.
    """
    wired.unsure = {flow}
    wired.ring(1, kind(cookie=0))
    wired.settle(200 * MICROSECOND)
    assert wired.epoch[flow] == 2 and wired.statuses == {}
    wired.answer(flow)
    wired.settle(50 * MICROSECOND)
    assert wired.statuses == {0: STATUS.OK} and wired.epoch[flow] == 3
