"""Flows between the fast path and the program: puts that the program need not see, and when it
takes flows back.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import FLAG, MESSAGE, OPCODE, REPLY, STATUS, C

from tests.firmware.mcp_native import BULK, admin, atomic, get, inline, pack_struct, put
from tests.firmware.mcp_wire import Peer, WiredCard
from tests.gateware.models.cut import packets_of, whole

MICROSECOND = 125
TIMEOUT = 40_000 * MICROSECOND

# A kind of put, and the number of its flow to node 1.
LANES = pytest.mark.parametrize(
    "kind,flow", [(put, BULK + 1), (inline, 1)], ids=["bulk", "express"]
)


@pytest.fixture
def wired():
    card = WiredCard()
    card.allow()
    return card


def once(*packets):
    """A `lose` that loses each of these (cookie, index) the first time."""
    left = set(packets)

    def lose(packet):
        found = (packet.cookie, packet.index) in left
        left.discard((packet.cookie, packet.index))
        return found

    return lose


def commands(card):
    """Number of sending commands that the program has taken."""
    return card.shared("commands")


def take(card, *puts, endpoint=1):
    """Ring puts that the fast path takes, without any of them being sent yet."""
    before = card.word("fast_commands")
    card.ring(endpoint, *puts)
    card.step(2)
    assert card.word("fast_commands") == before + len(puts)


# Without the program ------------------------------------------------------------------------------


@LANES
def test_puts_on_an_armed_flow_end_without_the_program(wired, kind, flow):
    before = commands(wired)
    for n in range(0, 90, 30):
        wired.ring(1, *[kind(cookie=n + k, flags=FLAG.NOTICE) for k in range(30)])
        wired.settle()
    assert wired.statuses == {n: 0 for n in range(90)}
    assert [cookie for cookie, _ in wired.peers[flow].executed] == list(range(90))
    assert commands(wired) == before and wired.shared("claims") == 0
    assert wired.word("fast_completions") == 90


def test_what_is_not_for_it_and_whose_endpoint_is_closed_is_the_programs(wired):
    before = commands(wired)
    wired.ring(
        1,
        put(cookie=0, flags=FLAG.CHECKSUM),
        put(length=0, cookie=1),
        inline(cookie=2, flags=FLAG.FENCE),
        put(length=C.FAST_LENGTH + 1, cookie=3),
        put(cookie=4, levels=7),
    )
    wired.ring(3, put(cookie=5), inline(cookie=6))
    wired.settle()
    assert wired.statuses == {0: 0, 1: 0, 2: 0, 3: 0, 4: STATUS.BAD_LEVELS}
    assert wired.word("fast_commands") == 0 and commands(wired) == before + 4


@LANES
def test_a_flow_is_armed_again_when_a_put_of_the_program_has_ended_on_it(wired, kind, flow):
    wired.ring(1, kind(cookie=0, flags=FLAG.FENCE))
    wired.settle()
    wired.ring(1, kind(cookie=1))
    wired.settle()
    assert wired.word("fast_commands") == 0  # arming was useless: now it takes two
    wired.ring(1, kind(cookie=2))
    wired.settle()
    assert wired.statuses == {0: 0, 1: 0, 2: 0} and wired.word("fast_commands") == 1
    wired.ring(1, kind(cookie=3, flags=FLAG.FENCE))
    wired.settle()
    wired.ring(1, kind(cookie=4))
    wired.settle()
    assert wired.word("fast_commands") == 2  # arming was useful this time


@LANES
def test_a_flow_is_not_armed_while_anything_is_under_way_on_it(wired, kind, flow):
    """The fake stops when the place at which a flow is armed is not behind all that is
    acknowledged.
    """
    for n in range(0, 40, 2):
        wired.ring(1, kind(cookie=n, flags=FLAG.FENCE))
        wired.ring(2, kind(cookie=n + 1, flags=FLAG.FENCE))
        wired.step()
        for job in wired.jobs:
            wired.job_done(job.tag, job.psn + 1)
            wired["JOB_SPACE"] += 1
        wired.jobs.clear()
        for psn in (n, n + 1):
            wired.ack(flow, psn)
            wired.step()
            assert [e.cookie for e in wired.entries()] == [psn]


@LANES
def test_a_host_that_does_not_want_the_fast_path_pays_for_it_ever_more_rarely(wired, kind, flow):
    wired.allow(0)
    for n in range(200):
        wired.ring(1, kind(cookie=n))
        wired.settle()
    assert wired.statuses == {n: 0 for n in range(200)} and wired.shared("claims") <= 8


# Claims -------------------------------------------------------------------------------------------


@LANES
def test_a_refusal_claims_the_flow_and_fails_the_put_that_it_names(wired, kind, flow):
    wired.refuses = {2: STATUS.REMOTE_BOUNDS}
    take(wired, *[kind(cookie=n) for n in range(5)])
    wired.settle()
    assert (
        wired.statuses == {0: 0, 1: 0, 2: STATUS.REMOTE_BOUNDS, 3: 0, 4: 0}
        and wired.shared("claims") == 1
    )


@LANES
def test_a_refusal_is_not_overtaken_by_the_acknowledgement_that_covers_it(wired, kind, flow):
    take(wired, kind(cookie=0), kind(cookie=1))
    if flow >= BULK:
        for job in wired.jobs:
            wired.job_done(job.tag, job.psn + 1)
    wired.refuse(flow, 1, STATUS.REMOTE_BAD_KEY)
    wired.ack(flow, 1)
    wired.step()
    wired.observe()
    assert wired.statuses == {0: 0, 1: STATUS.REMOTE_BAD_KEY}


@LANES
def test_refusals_of_two_flows_that_come_together_each_find_their_put(wired, kind, flow):
    take(wired, kind(cookie=0), kind(cookie=1, node=2))
    if flow >= BULK:
        for job in wired.jobs:
            wired.job_done(job.tag, job.psn + 1)
    for number in (flow, flow + 1):
        wired.refuse(number, 0, STATUS.REMOTE_BAD_KEY)
        wired.ack(number, 0)
    wired.step()
    wired.observe()
    assert wired.statuses == {0: STATUS.REMOTE_BAD_KEY, 1: STATUS.REMOTE_BAD_KEY}


@LANES
@pytest.mark.parametrize("lost", [0, 3, 7])
def test_a_lost_packet_is_sent_again_with_the_psn_that_it_had(wired, kind, flow, lost):
    wired.lose = once((lost, 0))
    take(wired, *[kind(cookie=n) for n in range(8)])
    wired.settle(400 * MICROSECOND)
    assert wired.statuses == {n: 0 for n in range(8)} and wired.incarnation[flow] == 1
    assert [cookie for cookie, _ in wired.peers[flow].executed] == list(range(8)) and wired.shared(
        "claims"
    ) == 1


@LANES
def test_a_stall_is_found_when_the_program_would_have_found_it(wired, kind, flow):
    wired.lose = once((0, 0))
    wired.settle(150 * MICROSECOND)
    take(wired, kind(cookie=0))
    wired.settle(80 * MICROSECOND)
    assert wired.statuses == {} and wired.epoch[flow] == 1
    wired.settle(80 * MICROSECOND)
    assert wired.statuses == {0: 0} and wired.epoch[flow] == 2


def test_a_flow_that_moves_is_not_claimed(wired):
    take(wired, *[put(cookie=n) for n in range(20)])
    jobs = wired.jobs[:]
    for job in jobs:
        wired.wait(80 * MICROSECOND)
        wired.job_done(job.tag, job.psn + 1)
        wired.ack(BULK + 1, job.psn)
    wired.step()
    assert wired.shared("claims") == 0 and len(wired.entries()) == 20


@LANES
def test_nobody_there_is_a_timeout_after_40_ms_and_the_next_put_works(wired, kind, flow):
    wired.cut = {1}
    take(wired, *[kind(cookie=n) for n in range(5)])
    wired.settle(TIMEOUT - 200 * MICROSECOND)
    assert wired.statuses == {}
    wired.settle(600 * MICROSECOND)
    assert wired.statuses == {n: STATUS.TIMEOUT for n in range(5)}
    wired.cut = set()
    take(wired, kind(cookie=5))
    wired.settle()
    assert wired.statuses[5] == STATUS.OK


@LANES
@pytest.mark.parametrize("held", [1, 57, 129, 200])
def test_a_peer_that_tells_late_what_it_holds_is_reached_at_once(wired, kind, flow, held):
    wired.peers[flow] = Peer(held)
    wired.unsure = {flow}
    take(wired, *[kind(cookie=n) for n in range(5)])
    wired.work()
    wired.answer(flow)
    wired.settle()
    assert wired.statuses == dict.fromkeys(range(5), STATUS.OK) and wired.peers[flow].executed == [
        (n, 0) for n in range(5)
    ]
    assert wired.word("fast_commands") == 5 and wired.incarnation[flow] == 1
    assert wired.numbers[flow] == held + 1


@LANES
def test_a_link_that_comes_up_again_sends_again_at_once(wired, kind, flow):
    wired.cut = {1}
    take(wired, *[kind(cookie=n) for n in range(3)])
    wired.work()
    wired.link(0)
    wired.step()
    wired.cut = set()
    wired.link(1)
    wired.settle()
    assert wired.statuses == {n: 0 for n in range(3)} and wired.epoch[flow] == 2


@pytest.mark.parametrize("sent", [0, 1])
def test_a_job_that_fails_gives_the_flow_away_and_fails_as_the_programs_does(wired, sent):
    wired.fails = {1: (STATUS.BAD_KEY, sent)}
    take(wired, *[put(length=whole(2), cookie=n) for n in range(4)])
    wired.settle()
    assert (
        wired.statuses == {0: 0, 1: STATUS.BAD_KEY, 2: 0, 3: 0} and wired.incarnation[BULK + 1] == 2
    )
    done = wired.peers[BULK + 1].executed
    assert [p for p in done if p[0] != 1] == [(n, i) for n in (0, 2, 3) for i in range(2)]


def test_the_end_of_a_job_may_be_heard_of_before_its_flow_was_given(wired):
    """The job handler runs between the two events."""
    take(wired, put(cookie=0))
    [job] = wired.jobs
    wired.job_done(job.tag, 0, STATUS.BAD_KEY)
    assert wired.library.bulk_job_handler() == 1
    wired.step()
    wired.observe()
    assert wired.statuses == {0: STATUS.BAD_KEY} and wired["GIVEN"] == 0


def test_a_flow_may_be_given_before_the_end_of_the_job_is_heard_of(wired):
    take(wired, put(cookie=0), put(cookie=1))
    one, two = wired.jobs
    wired.jobs.clear()
    wired.library.fake_give(BULK + 1)
    wired.step()
    assert wired.shared("claims") == 1 and wired["GIVEN"] == 0 and wired["FAST_BUSY"] == 0
    wired.job_done(one.tag, 0, STATUS.BAD_KEY)
    wired.job_done(two.tag, 2)
    wired.settle()
    assert wired.statuses == {0: STATUS.BAD_KEY, 1: 0} and wired.peers[BULK + 1].executed == [
        (1, 0)
    ]


def test_puts_that_are_rung_between_a_failure_and_the_claim_come_behind_it(wired):
    take(wired, put(cookie=0))
    wired.job_done(wired.jobs[0].tag, 0, STATUS.BAD_KEY)
    wired.jobs.clear()
    wired.ring(1, put(cookie=1))
    wired.settle()
    assert wired.statuses == {0: STATUS.BAD_KEY, 1: 0} and wired.peers[BULK + 1].executed == [
        (1, 0)
    ]


@LANES
def test_what_the_program_sends_itself_comes_behind_what_was_under_way(wired, kind, flow):
    take(wired, *[kind(cookie=n) for n in range(3)])
    wired.ring(2, kind(cookie=3, flags=FLAG.FENCE))
    wired.settle()
    assert [cookie for cookie, _ in wired.peers[flow].executed] == list(range(4))
    assert wired.statuses == {n: 0 for n in range(4)} and wired.shared("claims") == 1


def test_a_message_claims_the_flow_that_it_goes_on(wired):
    take(wired, *[inline(cookie=n) for n in range(3)])
    wired.ring(1, get(cookie=3))
    wired.step()
    message = wired.express[-1]
    assert message.message and message.psn == 3 and wired.shared("claims") == 1
    wired.settle()
    assert wired.statuses == {0: 0, 1: 0, 2: 0}
    wired.respond(1, message.word)
    wired.settle()
    assert wired.statuses[3] == STATUS.OK


def test_a_request_that_ends_arms_its_flow_when_there_is_no_other(wired):
    take(wired, inline(cookie=2))
    wired.settle()
    wired.ring(1, get(cookie=0), get(cookie=3))
    wired.step()
    first, second = [message.word for message in wired.express]
    wired.settle()
    wired.respond(1, first)
    wired.settle()
    wired.ring(1, inline(cookie=4))
    wired.settle()
    assert wired.word("fast_commands") == 1
    wired.respond(1, second)
    wired.settle()
    wired.ring(1, inline(cookie=1))
    wired.settle()
    assert wired.statuses == dict.fromkeys(range(5), 0) and wired.word("fast_commands") == 2


def test_an_answer_claims_the_flow_that_it_goes_on(wired):
    take(wired, *[put(cookie=n) for n in range(3)])
    wired.message(1, MESSAGE.GET | 77 << 16, 5, get(length=0))
    wired.step()
    answer = wired.jobs[-1]
    assert (answer.response, answer.psn) == (1, 3) and wired.shared("claims") == 1
    wired.settle()
    assert wired.statuses == {0: 0, 1: 0, 2: 0} and wired.freed == [5]


@LANES
def test_what_was_under_way_keeps_its_length_its_cookie_and_its_interrupt(wired, kind, flow):
    length = 24 if kind is inline else 9000
    command = (
        inline(bytes(24), cookie=77, flags=FLAG.SOLICIT)
        if kind is inline
        else put(9000, cookie=77, flags=FLAG.SOLICIT)
    )
    take(wired, command, kind(cookie=78))
    wired.nak(flow, 0xFFFF)
    wired.step()
    first = wired.jobs[0] if flow >= BULK else None
    for job in wired.jobs[:2]:
        wired.job_done(job.tag, job.psn + packets_of(job.length))
    wired.ack(flow, packets_of(9000) if flow >= BULK else 1)
    wired.step()
    one, two = wired.entries()
    assert (one.cookie, one.length, one.node, one.interrupt, one.status) == (77, length, 1, 1, 0)
    assert (two.cookie, two.interrupt) == (78, 0) and wired.shared("claims") == 1
    assert first is None or first.length == length


def test_some_of_what_is_under_way_has_ended_its_job_when_it_is_claimed(wired):
    take(wired, *[put(cookie=n) for n in range(4)])
    jobs, wired.jobs = wired.jobs[:], []
    for job in jobs[:2]:
        wired.job_done(job.tag, job.psn + 1)
    wired.ack(BULK + 1, 0)
    wired.step()
    wired.ring(2, put(cookie=4, flags=FLAG.FENCE))
    wired.step()
    for job in [*jobs[2:], *wired.jobs]:
        wired.job_done(job.tag, job.psn + 1)
    wired.ack(BULK + 1, 4)
    wired.step()
    assert [e.cookie for e in wired.entries()] == list(range(5)) and wired.shared("claims") == 1


@LANES
def test_a_claim_goes_over_the_end_of_the_psns(wired, kind, flow):
    """The fast path brings the flow close to 65,536, where the numbers begin again; the program
    takes over behind that.
    """
    number, packets = 0, 100 if kind is put else 1

    def some(count):
        data = whole(packets) if kind is put else bytes(8)
        return [kind(data, cookie=number + n) for n in range(count)]

    while (number + 20) * packets < 65536:
        take(wired, *some(20))
        for job in wired.jobs:
            wired.job_done(job.tag, job.psn + packets)
        wired.jobs.clear()
        wired.express.clear()
        number += 20
        wired.ack(flow, number * packets - 1)
        wired.step(1)
        wired.entries()
    wired.peers[flow].held, wired.peers[flow].expected = 1, number * packets
    wired.lose = once((number + 7, 0))
    take(wired, *some(24))
    wired.settle(400 * MICROSECOND)
    assert wired.statuses == {number + n: 0 for n in range(24)}
    assert wired.peers[flow].executed == [
        (number + n, i) for n in range(24) for i in range(packets)
    ]
    assert wired.shared("claims") == 1


# Endpoints ----------------------------------------------------------------------------------------


@LANES
def test_a_fence_waits_for_puts_of_the_fast_path(wired, kind, flow):
    take(wired, kind(cookie=0), kind(cookie=1))
    take(wired, inline(cookie=2, node=3), endpoint=2)
    wired.ring(1, inline(cookie=3, node=2, flags=FLAG.FENCE))
    wired.step()
    assert wired["HEAD", 1] == 2
    for job in wired.jobs:
        wired.job_done(job.tag, job.psn + 1)
    wired.ack(flow, 0)
    wired.step()
    assert wired["HEAD", 1] == 2
    wired.ack(flow, 1)
    wired.step()
    assert wired["HEAD", 1] == 3 and wired.shared("claims") == 1


@LANES
def test_a_fence_waits_for_puts_that_were_claimed_meanwhile(wired, kind, flow):
    take(wired, kind(cookie=0), kind(cookie=1))
    wired.ring(1, inline(cookie=2, node=2, flags=FLAG.FENCE))
    wired.step()
    wired.ring(2, kind(cookie=3, flags=FLAG.FENCE))
    wired.step()
    assert wired["HEAD", 1] == 2 and wired["FAST_BUSY"] == 0
    wired.settle()
    assert wired.statuses == {n: 0 for n in range(4)} and list(wired.statuses)[-1] == 2


@LANES
def test_closing_waits_for_puts_of_the_fast_path(wired, kind, flow):
    take(wired, kind(cookie=0), kind(cookie=1))
    wired.ring(0, admin(OPCODE.ENDPOINT_CLOSE, endpoint=1, cookie=99))
    wired.step(20)
    wired.ring(1, kind(cookie=2))
    wired.observe()
    assert wired.statuses == {} and wired["FAST_ENDPOINTS"] == 1 << 2
    wired.settle()
    assert wired.statuses == {0: 0, 1: 0, 99: 0} and list(wired.statuses)[-1] == 99
    assert wired.shared("claims") == 0 and wired["HEAD", 1] == wired["PRODUCER", 1]


@LANES
def test_closing_waits_for_puts_that_were_claimed_meanwhile(wired, kind, flow):
    take(wired, kind(cookie=0), kind(cookie=1))
    wired.ring(0, admin(OPCODE.ENDPOINT_CLOSE, endpoint=1, cookie=99))
    wired.step()
    wired.lose = once((0, 0))
    wired.settle(400 * MICROSECOND)
    assert (
        wired.statuses == {0: 0, 1: 0, 99: 0}
        and list(wired.statuses)[-1] == 99
        and wired.shared("claims") == 1
    )


def test_closing_waits_until_all_completions_have_left(wired, monkeypatch):
    """What is still on its way to a queue that is closed would be lost."""
    monkeypatch.setattr(wired, "post_space", lambda: None)
    wired.ring(1, put(length=0, cookie=0))
    wired.settle()
    wired.ring(0, admin(OPCODE.ENDPOINT_CLOSE, endpoint=1, cookie=99))
    wired.settle()
    assert wired.statuses == {0: 0}
    monkeypatch.undo()
    wired.post_space()
    wired.settle()
    assert wired.statuses == {0: 0, 99: 0}


def test_commands_behind_a_slot_in_use_are_flushed_when_it_is_free(wired):
    take(wired, *[put(cookie=n) for n in range(C.SLOTS - 1)])
    jobs, wired["JOB_SPACE"] = wired.jobs, 0
    wired.ring(1, *[put(cookie=n, flags=FLAG.CHECKSUM) for n in (40, 41)])
    wired.ring(0, admin(OPCODE.ENDPOINT_CLOSE, endpoint=1, cookie=99))
    wired.step(20)
    assert [(e.cookie, e.status) for e in wired.entries()] == [(40, STATUS.FLUSHED)]
    for job in jobs:
        wired.job_done(job.tag, job.psn + 1)
    wired.ack(BULK + 1, 0)
    wired.step()
    assert [(e.cookie, e.status) for e in wired.entries()] == [(0, 0), (41, STATUS.FLUSHED)]
    wired.ack(BULK + 1, C.SLOTS - 2)
    wired.step()
    assert [(e.cookie, e.status) for e in wired.entries()] == [
        *((n, 0) for n in range(1, C.SLOTS - 1)),
        (99, 0),
    ]


def test_commands_that_find_no_room_for_their_completions_are_not_flushed_but_dropped():
    card = WiredCard()
    assert (
        card.administrate(OPCODE.ENDPOINT_CLOSE, endpoint=1) == 0
        and card.open(1, cq_entries=2) == 0
    )
    card["JOB_SPACE"] = 1
    card.ring(1, *[put(cookie=n) for n in range(5)])
    card.step()
    card.ring(0, admin(OPCODE.ENDPOINT_CLOSE, endpoint=1, cookie=99))
    card.step(20)
    card.collect()
    assert [(e.cookie, e.status) for e in card.posted] == [(1, STATUS.FLUSHED)]
    card.settle()
    assert (
        card.statuses == {0: 0, 1: STATUS.FLUSHED, 99: 0} and card["HEAD", 1] == card["PRODUCER", 1]
    )


def test_the_slot_of_a_job_that_was_given_up_is_free_when_the_engine_is_done_with_it(wired):
    take(wired, put(cookie=0))
    [job] = wired.jobs
    wired.jobs.clear()
    wired.wait(2 * TIMEOUT + 2000 * MICROSECOND)
    assert [e.status for e in wired.entries()] == [STATUS.TIMEOUT]
    wired.ring(1, *[inline(cookie=n, node=2) for n in range(C.SLOTS)])
    wired.settle()
    assert wired["HEAD", 1] == C.SLOTS
    wired.job_done(job.tag, 1)
    wired.settle()
    assert wired["HEAD", 1] == C.SLOTS + 1 and wired.statuses == {n: 0 for n in range(C.SLOTS)}


# Gets and atomics ---------------------------------------------------------------------------------

ALL = 31
ASKS = pytest.mark.parametrize("kind", [get, atomic])


@pytest.fixture
def asking():
    card = WiredCard()
    card.allow(ALL)
    return card


def answer(card, message, status=0, value=0x1122334455667788, slot=4):
    """The peer's answer to a request."""
    if message.word & 0xFF == MESSAGE.GET:
        if status:
            card.message(
                1,
                message.word & ~0xFF | MESSAGE.GET_FAILED,
                slot,
                pack_struct(REPLY, dict(status=status)),
            )
        else:
            card.respond(1, message.word, length=8)
    else:
        card.message(
            1,
            message.word & ~0xFF | MESSAGE.ATOMIC_REPLY,
            slot,
            pack_struct(REPLY, dict(status=status, value=value)),
        )


def asked(card, *commands):
    """Ring commands that the fast path takes; the messages that it made."""
    before = len(card.express)
    take(card, *commands)
    return [message for message in card.express[before:] if message.message]


def claim(card):
    """Let the program have the EXPRESS flow to node 1, by something that only it does."""
    card.ring(2, inline(cookie=99, flags=FLAG.FENCE))
    card.step(4)
    assert card.shared("claims") == 1


@ASKS
def test_an_ask_that_goes_well_ends_without_the_program(asking, kind):
    before = commands(asking)
    for n in range(0, 40, 2):
        messages = asked(asking, kind(cookie=n), kind(cookie=n + 1, flags=FLAG.SOLICIT))
        assert {message.word >> 26 for message in messages} == {1}
        asking.settle()
        for message in reversed(messages):
            answer(asking, message)
        asking.settle()
    assert asking.statuses == {n: 0 for n in range(40)} and asking.word("fast_completions") == 40
    assert asking.keys[7] == (0x11223344 if kind is atomic else 0)
    assert (
        commands(asking) == before and asking.shared("claims") == 0 and asking.shared("strays") == 0
    )


@ASKS
@pytest.mark.parametrize("acked", [False, True])
@pytest.mark.parametrize("status", [STATUS.OK, STATUS.REMOTE_BOUNDS])
def test_an_ask_that_is_claimed_ends_as_one_of_the_program(asking, kind, acked, status):
    """In either state; two of them, so that a third one waits. Requests that were not acknowledged
    are not sent again.
    """
    one, two = asked(asking, kind(cookie=0), kind(cookie=1))
    if acked:
        asking.settle()
    claim(asking)
    asking.ring(1, kind(cookie=2))
    asking.step(4)
    assert asking["HEAD", 1] == 2
    asking.settle()
    for message in (two, one):
        answer(asking, message, status)
        asking.settle()
    third = asking.sent[-1]
    assert third.word not in (one.word, two.word)
    answer(asking, third)
    asking.settle()
    said = status and (STATUS.BOUNDS if kind is get else status)
    assert [asking.statuses[n] for n in (0, 1, 2, 99)] == [said, said, 0, 0]
    assert asking.keys[2] == (0x11223344 if kind is atomic else 0)


@ASKS
def test_an_answer_that_ends_nothing_claims_what_it_may_be_about(asking, kind):
    """It failed; it came before the acknowledgement; another generation's is nobody's."""
    (message,) = asked(asking, kind(cookie=0))
    asking.settle()
    answer(asking, message, STATUS.TRUNCATED if kind is get else STATUS.REMOTE_ALIGNMENT)
    asking.settle()
    assert asking.statuses.pop(0) and asking.shared("claims") == 1
    (message,) = asked(asking, kind(cookie=1))
    answer(asking, message)
    asking.step(4)
    asking.observe()
    assert asking.shared("claims") == 2 and 1 not in asking.statuses
    asking.settle()
    assert asking.statuses.pop(1) == 0
    (message,) = asked(asking, kind(cookie=2))
    asking.settle()
    answer(asking, message._replace(word=message.word ^ 1 << 26))
    asking.settle()
    assert asking.shared("strays") == 1 and not asking.statuses
    answer(asking, message)
    asking.settle()
    assert asking.statuses == {2: 0}


@ASKS
def test_a_lost_request_is_sent_again_as_it_was(asking, kind):
    (message,) = asked(asking, kind(cookie=0))
    lost = [message.word]
    asking.lose = lambda packet: packet.cookie == ("message", message.word) and lost and lost.pop()
    asking.settle(400 * MICROSECOND)
    again = [m for m in asking.sent if m.word == message.word]
    assert len(again) == 2 and again[0].psn == again[1].psn and asking.shared("claims") == 1
    answer(asking, message)
    asking.settle()
    assert asking.statuses == {0: 0}


@ASKS
def test_an_ask_that_is_never_answered_ends_in_time_and_its_answer_is_nobodys(asking, kind):
    """Though other puts to that node go on well all the time."""
    (message,) = asked(asking, kind(cookie=0))
    asking.settle()
    for n in range(1, 11):
        asking.ring(2, inline(cookie=n))
        asking.settle(TIMEOUT // 10 - 100 * MICROSECOND)
    assert 0 not in asking.statuses and asking.shared("claims") == 1
    asking.settle(2000 * MICROSECOND)
    assert asking.statuses == {0: STATUS.TIMEOUT, **{n: 0 for n in range(1, 11)}}
    if kind is get:
        assert asking.expected[-1][2] == 0
    answer(asking, message)
    asking.settle()
    assert asking.shared("strays") == 1 and asking["GENERATION"] == 2
    for _ in range(C.SLOTS - 1):
        asking.ring(1, inline(cookie=20 + _))
        asking.settle()
    (later,) = asked(asking, kind(cookie=90))
    assert later.slot == message.slot and later.word >> 26 == 2


def test_an_endpoint_that_closes_waits_for_its_asks(asking):
    (message,) = asked(asking, get(cookie=0))
    asking.settle()
    asking.ring(0, admin(OPCODE.ENDPOINT_CLOSE, endpoint=1, cookie=50))
    asking.step(8)
    asking.observe()
    assert asking.statuses == {}
    answer(asking, message)
    asking.settle()
    assert asking.statuses == {0: 0, 50: 0}


def test_the_link_going_down_and_up_repeats_what_was_not_acknowledged_and_no_more(asking):
    (done,) = asked(asking, get(cookie=0))
    asking.settle()
    (open_,) = asked(asking, atomic(cookie=1))
    asking.buffer.clear()
    asking.cut.add(1)
    asking.settle()
    asking.link(False)
    asking.step(4)
    asking.cut.clear()
    asking.link(True)
    asking.settle(200 * MICROSECOND)
    words = [message.word for message in asking.sent]
    assert words.count(done.word) == 1 and words.count(open_.word) >= 2
    for message in (done, open_):
        answer(asking, message)
    asking.settle()
    assert asking.statuses == {0: 0, 1: 0}


def test_a_flow_that_was_given_up_is_not_armed_while_an_answer_is_awaited(asking):
    """The fast path would ask for two more than a node may be asked for."""
    (message,) = asked(asking, get(length=C.FAST_LENGTH, cookie=0))
    asking.settle()
    claim(asking)
    asking.cut.add(1)
    asking.settle()
    asking.ring(2, inline(cookie=1))
    asking.settle(TIMEOUT + 300 * MICROSECOND)
    assert asking.statuses == {1: STATUS.TIMEOUT, 99: STATUS.TIMEOUT}
    asking.cut.clear()
    asking.ring(2, get(cookie=2), get(cookie=3))
    asking.settle(1600 * MICROSECOND)  # a pause, at most
    assert asking["HEAD", 2] == 3
    asking.settle()
    for answered in (message, asking.sent[-1]):
        answer(asking, answered)
        asking.settle()
    answer(asking, asking.sent[-1])
    asking.settle()
    assert [asking.statuses[n] for n in (0, 2, 3)] == [0, 0, 0]


# What is gathered slowly --------------------------------------------------------------------------


@pytest.mark.fault
def test_an_ask_whose_answer_comes_slowly_is_not_claimed(asking):
    """Payload of lane BULK of its node is being stored here, for 50 ms. Then none for 150 us."""
    [message] = asked(asking, get(cookie=0))
    asking.settle()
    for _ in range(50_000 // 40):
        asking.mark("PEER_WORKS", 1)
        asking.settle(40 * MICROSECOND)
    assert asking.shared("claims") == 0 and asking.statuses == {}
    asking.settle(150 * MICROSECOND)
    assert asking.shared("claims") == 1
    answer(asking, message)
    asking.settle()
    assert asking.statuses == {0: 0}


@pytest.mark.fault
def test_what_is_stored_here_does_not_help_a_packet_that_is_lost(asking):
    asking.lose = once((0, 0))
    take(asking, inline(cookie=0))
    asking.work()
    for _ in range(200 // 20):
        asking.mark("PEER_WORKS", 1)
        asking.settle(20 * MICROSECOND)
    assert asking.epoch[1] == 2 and asking.statuses == {0: 0}


@pytest.mark.fault
def test_puts_that_wait_in_the_engine_behind_others_are_not_claimed_while_it_works(wired):
    take(wired, put(node=2, cookie=0), *[put(cookie=n) for n in range(1, 5)])
    for _ in range(60_000 // 40):
        wired["SEND_MOVED"] = 1
        wired.wait(40 * MICROSECOND, step=20 * MICROSECOND)
    wired.settle()
    assert wired.statuses == dict.fromkeys(range(5), 0) and wired.shared("claims") == 0
