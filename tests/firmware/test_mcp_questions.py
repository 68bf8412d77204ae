"""A flow whose target is asked what it holds, and answers late or not at all."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import STATUS

from tests.firmware.mcp_native import BULK, inline, put
from tests.firmware.mcp_wire import Peer, WiredCard

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
@pytest.mark.parametrize("fast", [0, 3])
@pytest.mark.parametrize("again", ["timer", "link"])
@pytest.mark.parametrize("kind,flow", [(put, FLOW), (inline, 1)], ids=["bulk", "express"])
def test_a_peer_that_answers_its_second_question_late_too_is_sent_all_at_once(
    wired, kind, flow, again, fast
):
    """The flow is rewound before the first answer, so it asks a second time. That answer comes
    late too: it says that packets were dropped, and nothing of the flow has left.
    """
    wired.allow(fast)
    wired.peers[flow] = Peer(57)
    wired.unsure = {flow}
    wired.ring(1, *[kind(cookie=n) for n in range(3)])
    wired.settle()
    if again == "timer":
        wired.settle(200 * MICROSECOND)
    else:
        wired.link(1)
        wired.settle()
    assert wired.epoch[flow] == 2 and wired.statuses == {}
    wired.answer(flow)
    wired.settle()
    assert wired.statuses == dict.fromkeys(range(3), STATUS.OK)
    assert wired.incarnation[flow] == 1 and wired.peers[flow].executed == [(n, 0) for n in range(3)]
