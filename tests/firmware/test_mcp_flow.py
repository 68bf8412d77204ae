"""Flows: reports when packets are refused, jobs fail, or acknowledgements are missing."""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes

import pytest
from dibber.interface.description import MCP, STATUS, C

from tests.firmware.mcp_native import BULK, Card, put
from tests.firmware.mcp_wire import Peer, WiredCard
from tests.gateware.models.cut import packets_of, whole

TIMEOUT = 5_000_000  # cycles: 40 ms at 125 MHz
TICK = 6_250  # 50 us


@pytest.fixture
def wired():
    return WiredCard()


def executed(card, node=1):
    return card.peers[BULK + node].executed


def test_transfers_complete_in_order_as_acknowledgements_cover_them(wired):
    wired.ring(1, *[put(length=5000, cookie=n) for n in range(20)])
    wired.settle()
    assert wired.statuses == {n: STATUS.OK for n in range(20)}
    assert executed(wired) == [(n, i) for n in range(20) for i in range(packets_of(5000))]
    assert wired.shared("commands") == 22 and wired.shared("refused") == 0


def test_a_refusal_fails_the_transfer_that_holds_its_psn(wired):
    wired.refuses = {1: STATUS.REMOTE_BOUNDS, 3: STATUS.REMOTE_BAD_KEY}
    wired.ring(1, *[put(length=9000, cookie=n) for n in range(5)])
    wired.settle()
    assert wired.statuses == {0: 0, 1: STATUS.REMOTE_BOUNDS, 2: 0, 3: STATUS.REMOTE_BAD_KEY, 4: 0}


@pytest.mark.parametrize("reason", [STATUS.OK, STATUS.BAD_OPCODE, STATUS.TIMEOUT, 255])
def test_a_refusal_with_a_reason_that_no_peer_may_give_is_still_a_refusal(wired, reason):
    wired.refuses = {0: reason}
    wired.ring(1, put(cookie=0))
    wired.settle()
    assert wired.statuses == {0: STATUS.REMOTE_BAD_HEADER}


def test_a_refusal_that_comes_with_the_last_acknowledgement_is_not_overtaken_by_it(card):
    card.ring(1, put(cookie=1))
    card.step()
    card.job_done(card.jobs[0].tag, 1)
    card.step()
    card.ack(BULK + 1, 0)
    card.refuse(BULK + 1, 0, STATUS.REMOTE_BAD_KEY)
    card.step()
    assert [e.status for e in card.entries()] == [STATUS.REMOTE_BAD_KEY]


def test_more_refusals_than_one_turn_takes_still_come_before_their_acknowledgement(card):
    card.ring(1, put(length=whole(16), cookie=1), put(cookie=2))
    card.step()
    for job, end in zip(card.jobs, (16, 17)):
        card.job_done(job.tag, end)
    card.step()
    for psn in range(17):
        card.refuse(BULK + 1, psn, STATUS.REMOTE_BAD_KEY)
    card.ack(BULK + 1, 16)
    card.step()
    assert [(e.cookie, e.status) for e in card.entries()] == [
        (n, STATUS.REMOTE_BAD_KEY) for n in (1, 2)
    ]


def test_refusals_that_wait_when_a_flow_starts_anew_do_not_touch_it(card):
    """They came after the last look at them, and before the timer gave the flow up."""
    card.ring(1, put(cookie=1))
    card.step()
    card.job_done(card.jobs[0].tag, 1)
    card.step()
    for _ in range(32):
        card.refuse(BULK + 1, 0, STATUS.REMOTE_BAD_KEY)
    while len(card.jobs) == 1 and not any(flow == BULK + 1 and n > 1 for flow, n in card.resets):
        card.library.replay_timer_handler()
        card.collect()
        if card.rewinds and card.rewinds[-1] == (BULK + 1, 2) and len(card.jobs) == 1:
            card.step(0)
    card.ring(1, put(cookie=2))
    card.step()
    job = card.jobs[-1]
    assert job.psn == 0 and job.incarnation != card.jobs[0].incarnation
    card.job_done(job.tag, 1)
    card.ack(BULK + 1, 0)
    card.step()
    assert [(e.cookie, e.status) for e in card.entries()][-1] == (2, STATUS.OK)


def test_a_refusal_of_a_node_or_psn_that_is_not_there_does_nothing(wired):
    for flow, psn in [(200, 0), (1, 0), (BULK + 1, 7), (BULK + 15, 0xFFFF)]:
        wired.refuse(flow, psn, STATUS.REMOTE_BAD_KEY)
    wired.ring(1, put(cookie=0))
    wired.settle()
    assert wired.statuses == {0: STATUS.OK}


def test_an_acknowledgement_of_what_was_not_sent_completes_nothing(card):
    card.ring(1, put(cookie=0))
    card.step()
    card.job_done(card.jobs[0].tag, 1)
    card.ack(BULK + 1, 5)
    card.step()
    assert card.entries() == []


def test_an_acknowledgement_before_the_end_of_the_job_completes_nothing(card):
    card.ring(1, put(cookie=0))
    card.step()
    card.ack(BULK + 1, 0)
    card.step()
    assert card.entries() == []
    card.job_done(card.jobs[0].tag, 1)
    card.step()
    assert [e.status for e in card.entries()] == [STATUS.OK]


def test_psns_wrap_inside_a_transfer_of_4_gib(card):
    """2^20 packets: acknowledgements go round the 16-bit PSN sixteen times."""
    card.ring(1, put(length=0xFFFFFFFF, cookie=1))
    card.step()
    [job] = card.jobs
    packets = packets_of(0xFFFFFFFF)
    for acked in range(63, packets - 64, 4096 - 64):
        card.ack(BULK + 1, acked)
        card.step(1)
    card.ack(BULK + 1, packets - 65)
    card.step()
    card.job_done(job.tag, packets)
    card.step()
    assert card.entries() == []
    card.ack(BULK + 1, packets - 1)
    card.step()
    assert [e.status for e in card.entries()] == [STATUS.OK]


def test_nothing_is_queued_behind_a_put_while_its_psns_could_be_mistaken(card):
    """A PSN 65,536 behind a gap would be the one that the peer expects."""
    card.ring(1, put(length=whole(40000), cookie=1), put(cookie=2))
    card.ring(1, put(node=2, cookie=3))
    for acked in (0, 7000, 7231):
        card.ack(BULK + 1, acked)
        card.step()
        assert len(card.jobs) == 1
    card.ack(BULK + 1, 7232)
    card.step()
    assert [job.psn for job in card.jobs] == [0, 40000, 0]


def test_a_put_longer_than_that_goes_alone(card):
    card.ring(1, put(cookie=1), put(length=whole(40000), cookie=2))
    card.step()
    assert len(card.jobs) == 1
    card.job_done(card.jobs[0].tag, 1)
    card.ack(BULK + 1, 0)
    card.step()
    assert [job.psn for job in card.jobs] == [0, 1]


# Jobs that fail -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [0, 2])
def test_a_job_that_fails_alone_leaves_no_gap(wired, sent):
    wired.fails = {0: (STATUS.BOUNDS, sent)}
    wired.ring(1, put(length=20000, cookie=0))
    wired.settle()
    wired.ring(1, put(cookie=1))
    wired.settle()
    assert wired.statuses == {0: STATUS.BOUNDS, 1: STATUS.OK}
    assert wired.incarnation[BULK + 1] == 1


def test_a_job_that_fails_is_reported_when_what_it_sent_is_acknowledged(card):
    """Until then the transmitter reads the destination walk from its slot."""
    card.ring(1, put(length=20000, cookie=0))
    card.step()
    card.job_done(card.jobs[0].tag, 2, STATUS.READ_ERROR)
    card.step()
    assert card.entries() == []
    card.ack(BULK + 1, 1)
    card.step()
    assert [e.status for e in card.entries()] == [STATUS.READ_ERROR]


@pytest.mark.parametrize("sent", [0, 2])
def test_what_was_queued_behind_a_job_that_fails_is_sent_again_once(wired, sent):
    wired.fails = {1: (STATUS.BAD_KEY, sent)}
    wired.ring(1, *[put(length=20000, cookie=n) for n in range(5)])
    wired.settle()
    whole_put = range(packets_of(20000))
    assert wired.statuses == {0: 0, 1: STATUS.BAD_KEY, 2: 0, 3: 0, 4: 0}
    assert executed(wired) == [(0, i) for i in whole_put] + [(1, i) for i in range(sent)] + [
        (n, i) for n in (2, 3, 4) for i in whole_put
    ]
    assert wired.incarnation[BULK + 1] == 2


def test_jobs_that_fail_behind_one_another_each_get_their_own_status(wired):
    wired.fails = {n: (STATUS.BOUNDS + n % 2, n % 3) for n in (1, 2, 4, 5, 6)}
    wired.ring(1, *[put(length=20000, cookie=n) for n in range(8)])
    wired.settle()
    assert wired.statuses == {n: wired.fails.get(n, (0, 0))[0] for n in range(8)}
    done = [c for c, _ in executed(wired)]
    assert [done.count(n) for n in (0, 3, 7)] == [packets_of(20000)] * 3


def test_a_command_that_its_owner_changes_after_it_was_checked_stays_what_it_was(wired):
    """Node and length go to the engine with the job; the slot says something else by then."""
    wired.ring(1, put(length=8, node=1, cookie=0))
    wired.step()
    wired.write_slot(1, 0, put(length=whole(3), node=2, cookie=0))
    assert [(job.node, job.length) for job in wired.jobs] == [(1, 8)]
    wired.settle()
    wired.ring(2, put(cookie=1))
    wired.settle()
    assert wired.statuses == {0: STATUS.OK, 1: STATUS.OK}


def test_a_job_that_ends_at_another_psn_than_reserved_is_bad_length(wired):
    """It cannot happen with our engine; a fault there must not shift the sequence of what
    follows.
    """
    wired.ring(1, put(length=8, cookie=0))
    wired.step()
    wired.collect()
    wired.jobs[0] = wired.jobs[0]._replace(length=whole(3))
    wired.settle(100 * TICK)
    wired.ring(2, put(cookie=1))
    wired.settle()
    assert wired.statuses == {0: STATUS.BAD_LENGTH, 1: STATUS.OK}


def test_other_nodes_go_on_while_a_flow_restarts(card):
    card.ring(1, put(node=1, cookie=0), put(node=1, cookie=1))
    card.step()
    card.job_done(card.jobs[0].tag, 0, STATUS.BAD_KEY)
    card.step()
    card.ring(1, put(node=2, cookie=2))
    card.step()
    assert [job.slot for job in card.jobs] == [0, 1, 2]


# Timeouts -----------------------------------------------------------------------------------------


def test_times_are_by_the_clock_of_the_board():
    card = Card(boot=False)
    timer = next(field.lsb for field in MCP["EVENTS"].fields if field.name == "timer")
    card["CLOCK_HZ"] = 64_000_000
    card.boot()
    assert card["WATCHDOG"] == 125_000, "a turn of the loop takes as many cycles on any board"
    read = lambda name: card.library.fake_read(
        ctypes.c_uint32(C.MCP_REGISTER_BASE + MCP[name].offset)
    )
    while not read("EVENTS") >> timer & 1:
        card.library.fake_advance(10)
    # 50 us from somewhere in its start, which takes less than half as long.
    assert 3_200 < read("CYCLES_LOW") < 4_800


def test_no_acknowledgement_for_40_ms_is_a_timeout_and_the_next_put_works(wired):
    wired.cut = {1}
    wired.ring(1, *[put(length=5000, cookie=n) for n in range(3)])
    wired.settle(TIMEOUT - 4 * TICK)
    assert wired.statuses == {}
    wired.settle(20 * TICK)
    assert wired.statuses == {n: STATUS.TIMEOUT for n in range(3)}
    assert wired.shared("timeouts") == 3
    wired.cut = set()
    wired.ring(1, put(cookie=3))
    wired.settle()
    assert wired.statuses[3] == STATUS.OK and executed(wired) == [(3, 0)]


def test_nothing_of_a_former_incarnation_is_executed_after_a_timeout(wired):
    wired.cut = {1}
    wired.ring(1, put(cookie=0))
    old = wired.incarnation[BULK + 1]
    wired.settle(TIMEOUT + 16 * TICK)
    assert wired.incarnation[BULK + 1] != old
    wired.ring(1, put(cookie=1))
    wired.step()
    assert wired.jobs[0].incarnation == wired.incarnation[BULK + 1] and wired.jobs[0].psn == 0


def test_each_acknowledgement_starts_the_clock_again(wired):
    wired.ring(1, put(length=whole(4), cookie=0))
    wired.step()
    wired.link(0)
    wired.job_done(wired.jobs.pop().tag, 4)
    for psn in range(3):
        wired.wait(TIMEOUT - 4 * TICK)
        wired.ack(BULK + 1, psn)
        wired.step()
    assert wired.entries() == []
    wired.ack(BULK + 1, 3)
    wired.step()
    assert [e.status for e in wired.entries()] == [STATUS.OK]


def test_a_job_that_waits_in_the_engine_behind_another_nodes_does_not_time_out(wired):
    wired.ring(1, put(node=1, length=1 << 20, cookie=0), put(node=2, cookie=1))
    wired.step()
    wired.link(0)
    for psn in range(3):
        wired.wait(TIMEOUT - 8 * TICK)
        wired["SEND_MOVED"] = 1
        wired.ack(BULK + 1, psn)
        wired.step()
    assert wired.entries() == []


def test_a_node_that_is_gone_does_not_end_what_goes_to_others(wired):
    wired.cut = {1}
    wired.ring(1, put(node=1, cookie=1), put(node=2, cookie=2))
    wired.settle(TIMEOUT + 16 * TICK)
    assert wired.statuses == {1: STATUS.TIMEOUT, 2: STATUS.OK}


def test_a_timeout_waits_for_the_engine_to_be_done_with_slot_and_source(wired):
    wired.ring(1, put(cookie=0))
    wired.step()
    job = wired.jobs.pop()
    wired.wait(TIMEOUT + 16 * TICK)
    assert wired.resets and wired.entries() == []
    wired.job_done(job.tag, 1)
    wired.step()
    assert [e.status for e in wired.entries()] == [STATUS.TIMEOUT]


def test_a_job_that_never_ends_is_given_up_and_its_slot_stays_reserved(wired):
    wired.ring(1, put(cookie=0))
    wired.step()
    job = wired.jobs.pop()
    wired.wait(2 * TIMEOUT + 32 * TICK)
    assert [e.status for e in wired.entries()] == [STATUS.TIMEOUT]
    wired["PRODUCER", 1] += C.SLOTS
    wired.wait(TIMEOUT)
    assert wired["HEAD", 1] == C.SLOTS
    wired.job_done(job.tag, 1)
    wired.step()
    assert wired["HEAD", 1] == C.SLOTS + 1


@pytest.mark.parametrize("held", [0, 1, 57, 128, 130, 200, 255])
def test_a_peer_that_tells_late_what_it_holds_is_reached_at_once(held):
    card = WiredCard()
    card.peers[BULK + 1] = Peer(held)
    card.unsure = {BULK + 1}
    card.ring(1, *[put(cookie=n) for n in range(3)])
    card.work()
    card.answer(BULK + 1)
    card.settle()
    assert card.statuses == dict.fromkeys(range(3), STATUS.OK) and card.incarnation[BULK + 1] == 1
    assert card.peers[BULK + 1].executed == [(n, 0) for n in range(3)]


@pytest.mark.parametrize("spoilt", [0, 1, 63])
def test_a_restarted_program_is_new_to_its_peers_whatever_the_last_one_did(wired, spoilt):
    """The program needs nothing in memory. The count on the link went on, also by resets of the
    last program that no peer saw.
    """
    wired.ring(1, put(cookie=0))
    wired.settle()
    peer = wired.peers[BULK + 1]
    numbers = {flow: (number + spoilt) % 256 for flow, number in wired.numbers.items()}
    again = WiredCard(numbers=numbers)
    again.peers[BULK + 1] = peer
    again.ring(1, put(cookie=1))
    again.settle()
    assert again.incarnation[BULK + 1] == 1 and again.statuses == {1: STATUS.OK}
    assert peer.executed == [(0, 0), (1, 0)]
