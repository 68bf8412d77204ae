"""SEND and RECEIVE on both sides: matching, waiting, and the end of each."""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from dibber.interface.description import FLAG, MESSAGE, OPCODE, STATUS, C

from tests.firmware.mcp_native import BULK, admin, inline, put, receive, send, walk
from tests.firmware.test_mcp_messages import context, endings, outbox, reply, word
from tests.gateware.models.cut import packets_of, whole

MICROSECOND = 125
TIMEOUT = 40_000 * MICROSECOND
READIES = 8  # READYs of a node that may lie at another one


def ready(card, slot, node=1, tag=2 * C.SLOTS, generation=1, **command):
    """A READY of endpoint `tag//SLOTS` of a node, in this slot of the inbox; its message word."""
    message = word(MESSAGE.READY, tag, generation)
    card.message(node, message, slot, receive(**{**dict(node=0, endpoint=1), **command}))
    return message


def finish(card, job, packets=1, node=1):
    card.job_done(job.tag, job.psn + packets)
    card.ack(BULK + node, job.psn + packets - 1)
    card.step()


# Receiving ----------------------------------------------------------------------------------------


def test_a_receive_tells_the_other_end_and_ends_with_the_message(card):
    card.expected.clear()
    card.ring(
        1, receive(5000, cookie=7, endpoint=3, flags=FLAG.SOLICIT, target=walk(5000, key=0x305))
    )
    card.step()
    [message] = card.express
    assert (message.endpoint, message.slot, message.message, message.node) == (1, 0, 1, 1)
    assert message.word == word(MESSAGE.READY)
    assert card.expected == [(context(C.SLOTS), 1, 1, 0x305)]
    card.ack(1, 0)
    card.wait(3 * TIMEOUT, present=(1,))
    assert card.entries() == []
    card.respond(1, message.word, 4000)
    card.step()
    [entry] = card.entries()
    assert (entry.status, entry.cookie, entry.length, entry.node, entry.interrupt) == (
        0,
        7,
        4000,
        1,
        1,
    )
    assert card.expected[1][:3] == (context(C.SLOTS), 1, 0)


@pytest.mark.parametrize(
    "name,change",
    [
        ("BAD_FLAGS", dict(flags=FLAG.NOTICE)),
        ("BAD_LEVELS", dict(levels=1)),
        ("BAD_LEVELS", dict(levels=0x70)),
        ("BAD_NODE", dict(node=0)),
        ("BAD_ARGUMENT", dict(endpoint=C.ENDPOINTS)),
        ("BAD_COUNT", dict(target=walk(0))),
        ("BAD_LENGTH", dict(target=walk(8, [2]))),
        ("BOUNDS", dict(target=walk(8, offset=C.MAX_OFFSET - 6))),
    ],
)
def test_a_malformed_receive_tells_nobody(card, name, change):
    card.ring(1, receive(cookie=3, **change))
    card.step()
    assert endings(card) == [(3, name)] and not card.express


def test_eight_receives_wait_at_a_node_and_the_next_here_without_stopping_others(card):
    card.ring(
        1,
        *[receive(cookie=n) for n in range(READIES + 2)],
        receive(cookie=20, node=2),
        inline(cookie=21),
        send(cookie=22),
    )
    card.step()
    assert card["HEAD", 1] == READIES + 5
    assert [m.word >> 16 & 0x3FF for m in card.express if m.message and m.node == 1] == [
        32 + n for n in range(READIES)
    ]
    assert [m.node for m in card.express if m.message][-1] == 2
    card.ack(1, READIES)
    card.respond(1, word(MESSAGE.READY, 34), 8)
    card.step()
    assert sorted(endings(card)) == [(2, "OK"), (21, "OK")]
    assert card.express[-1].word == word(MESSAGE.READY, 32 + READIES)


def test_what_the_peer_says_is_longer_than_was_let_in_is_no_length(card):
    card.ring(1, receive(cookie=7))
    card.step()
    card.ack(1, 0)
    card.respond(1, word(MESSAGE.READY), 9)
    card.step()
    assert endings(card) == [(7, "REMOTE_BAD_HEADER")]


@pytest.mark.parametrize(
    "there,here,length",
    [
        ("TRUNCATED", "TRUNCATED", 500),
        ("BAD_KEY", "REMOTE_BAD_KEY", 8),
        ("NOT_OWNER", "REMOTE_NOT_PERMITTED", 8),
        ("REMOTE_NOT_PERMITTED", "NOT_PERMITTED", 8),
        ("TIMEOUT", "TIMEOUT", 8),
    ],
)
def test_a_message_that_failed_there_ends_the_receive(card, there, here, length):
    card.ring(1, receive(cookie=7))
    card.step()
    card.ack(1, 0)
    card.message(1, word(MESSAGE.GET_FAILED), 9, reply(getattr(STATUS, there), 500))
    card.step()
    [entry] = card.entries()
    assert (entry.cookie, STATUS.name_of(entry.status), entry.length) == (7, here, length)
    assert card.freed == [9] and card.expected[-1][2] == 0


def test_closing_ends_receives_and_says_so(card):
    card.ring(1, *[receive(cookie=n) for n in range(READIES + 1)])
    card.step()
    card.ack(1, READIES - 1)
    card.step()
    card.ring(0, admin(OPCODE.ENDPOINT_CLOSE, endpoint=1, cookie=99))
    card.step(20)
    assert sorted(endings(card)) == [*((n, "FLUSHED") for n in range(READIES + 1)), (99, "OK")]
    cancels = card.express[READIES:]
    assert [m.word for m in cancels[:READIES]] == [
        word(MESSAGE.READY_CANCEL, 32 + n) for n in range(READIES)
    ]


def test_closing_waits_until_a_ready_is_acknowledged(card):
    card.ring(1, receive(cookie=7))
    card.step()
    card.ring(0, admin(OPCODE.ENDPOINT_CLOSE, endpoint=1, cookie=99))
    card.step()
    assert endings(card) == []
    card.ack(1, 0)
    card.step()
    assert endings(card) == [(7, "FLUSHED"), (99, "OK")]


# Sending ------------------------------------------------------------------------------------------


def check_job(card, job, slot, message, length, levels=0):
    assert (job.response, job.indirect, job.target, job.levels) == (1, 1, slot, levels)
    assert (job.message, job.length, job.node) == (message, length, 1)


def test_a_ready_waits_for_its_send(card):
    message = ready(card, 5, length=9000, target=walk(9, [1000]))
    card.step()
    assert not card.jobs and not card.freed
    card.ring(1, send(8000, cookie=7, endpoint=2, source=walk(80, [100])))
    card.step()
    [job] = card.jobs
    check_job(card, job, 5, message, 8000, levels=1)
    assert (job.endpoint, job.slot, job.tag) == (1, 0, C.SLOTS)
    assert card.freed == [] and card.entries() == []
    finish(card, job, packets_of(8000))
    [entry] = card.entries()
    assert (entry.cookie, entry.status, entry.length, entry.node, entry.key) == (7, 0, 8000, 1, 0)
    assert card.freed == [5] and not card.express


def test_a_send_waits_for_its_ready_and_stops_nobody(card):
    card.ring(1, send(cookie=7, endpoint=2), put(cookie=8), inline(cookie=9))
    card.wait(2 * TIMEOUT // 4)
    assert card["HEAD", 1] == 3 and [j.tag for j in card.jobs][:1] == [33]
    card.ack(1, 0)
    finish(card, card.jobs[0])
    assert sorted(endings(card)) == [(8, "OK"), (9, "OK")]
    message = ready(card, 6)
    card.step()
    check_job(card, card.jobs[-1], 6, message, 8)
    finish(card, card.jobs[-1])
    assert endings(card) == [(7, "OK")] and card.freed == [6]


def test_sends_and_readies_meet_by_node_and_both_endpoints_in_order(card, seed):
    rng = random.Random(seed)
    assert card.open(2) == 0
    card["JOB_SPACE"] = 1000
    waiting, expected, inbox, heads = {}, [], list(range(C.SLOTS)), {1: 0, 2: 0}
    for n in range(60):
        node, here, there = rng.choice([1, 2]), rng.choice([1, 2]), rng.choice([2, 3])
        line = waiting.setdefault((node, here, there), [])
        if rng.random() < 0.5:
            if heads[here] == C.SLOTS:
                continue
            mine, tag = "send", here * C.SLOTS + heads[here]
            heads[here] += 1
            card.ring(here, send(cookie=n, node=node, endpoint=there))
        else:
            if not inbox:
                continue
            mine, tag = "ready", inbox.pop(0)
            ready(card, tag, node, there * C.SLOTS + n % 32, endpoint=here)
        if line and line[0][0] != mine:
            other = line.pop(0)[1]
            expected.append((tag, other) if mine == "send" else (other, tag))
        else:
            line.append((mine, tag))
        card.step()
    assert [(job.tag, job.target) for job in card.jobs] == expected and len(expected) > 15


@pytest.mark.parametrize("first", ["send", "ready"])
def test_a_message_that_is_too_long_ends_both_and_writes_nothing(card, first):
    if first == "ready":
        ready(card, 5, length=8)
    card.ring(1, send(9, cookie=7, endpoint=2))
    card.step()
    if first == "send":
        ready(card, 5, length=8)
        card.step()
    assert endings(card) == [(7, "TRUNCATED")] and not card.jobs
    [message] = card.express
    assert message.word == word(MESSAGE.GET_FAILED, 2 * C.SLOTS) and outbox(card, message) == (
        9,
        STATUS.TRUNCATED,
    )
    assert card.freed == [5]


@pytest.mark.parametrize(
    "status,change",
    [
        ("BAD_LEVELS", dict(levels=0x70)),
        ("BAD_LENGTH", dict(target=walk(9))),
        ("BOUNDS", dict(target=walk(8, offset=1 << 48))),
        ("BAD_OPCODE", None),
    ],
)
def test_a_ready_that_its_owner_changed_after_the_check_is_checked_again(card, status, change):
    if change is None:
        card.message(1, word(MESSAGE.READY), 5, put())
    else:
        ready(card, 5, tag=C.SLOTS, **change)
    card.step()
    assert outbox(card, card.express[0]) == (0, getattr(STATUS, status)) and card.freed == [5]


@pytest.mark.parametrize(
    "name,change",
    [
        ("BAD_FLAGS", dict(flags=FLAG.CHECKSUM)),
        ("BAD_LEVELS", dict(levels=7)),
        ("BAD_LEVELS", dict(levels=0x10)),
        ("BAD_NODE", dict(node=C.NODES)),
        ("BAD_ARGUMENT", dict(endpoint=C.ENDPOINTS)),
        ("BAD_LENGTH", dict(source=walk(9))),
    ],
)
def test_a_malformed_send_meets_nobody(card, name, change):
    ready(card, 5)
    card.ring(1, send(cookie=3, **{**dict(endpoint=2), **change}))
    card.step()
    assert endings(card) == [(3, name)] and not card.jobs and not card.freed


@pytest.mark.parametrize("how,there", [("job", "BAD_KEY"), ("refused", "REMOTE_NOT_PERMITTED")])
def test_a_send_that_fails_ends_both(card, how, there):
    message = ready(card, 5)
    card.ring(1, send(cookie=7, endpoint=2))
    card.step()
    [job] = card.jobs
    if how == "job":
        card.job_done(job.tag, job.psn, STATUS.BAD_KEY)
    else:
        card.job_done(job.tag, job.psn + 1)
        card.refuse(BULK + 1, job.psn, STATUS.REMOTE_NOT_PERMITTED)
        card.ack(BULK + 1, job.psn)
    card.step()
    assert endings(card) == [(7, there)] and card.freed == [5]
    assert card.express[0].word == message & ~0xFF | MESSAGE.GET_FAILED
    assert outbox(card, card.express[0]) == (0, getattr(STATUS, there))


def test_a_send_is_replayed_like_a_put(card):
    message = ready(card, 5, length=whole(3))
    card.ring(1, send(whole(3), cookie=7, endpoint=2))
    card.step()
    card.job_done(card.jobs[0].tag, 3)
    card.nak(BULK + 1, 0)
    card.step()
    again = card.jobs[1]
    check_job(card, again, 5, message, whole(3))
    assert (again.psn, again.skip) == (1, whole(1))


def test_a_pair_that_met_waits_for_space_in_the_engine(card):
    card["JOB_SPACE"] = 0
    ready(card, 5)
    card.ring(1, send(endpoint=2))
    card.step()
    assert not card.jobs
    card["JOB_SPACE"] = 1
    card.step()
    assert card.jobs[0].target == 5


def test_a_fence_waits_for_a_send_that_waits(card):
    card.ring(1, send(endpoint=2), inline(flags=FLAG.FENCE))
    card.step()
    assert card["HEAD", 1] == 1
    ready(card, 0)
    card.step()
    finish(card, card.jobs[0])
    assert card["HEAD", 1] == 2


def test_closing_ends_sends_that_wait_and_not_those_that_met(card):
    ready(card, 5)
    card.ring(1, send(cookie=7, endpoint=2), send(cookie=8, endpoint=2))
    card.step()
    card.ring(0, admin(OPCODE.ENDPOINT_CLOSE, endpoint=1, cookie=99))
    card.step()
    assert endings(card) == [(8, "FLUSHED")]
    finish(card, card.jobs[0])
    assert endings(card) == [(7, "OK"), (99, "OK")]


def test_a_ready_that_is_cancelled_is_met_no_more(card):
    message = ready(card, 5)
    later = ready(card, 6, tag=2 * C.SLOTS + 1)
    card.message(1, message & ~0xFF | MESSAGE.READY_CANCEL, 7)
    card.step()
    assert sorted(card.freed) == [5, 7] and card.shared("strays") == 0
    card.ring(1, send(endpoint=2))
    card.step()
    check_job(card, card.jobs[0], 6, later, 8)


def test_a_cancel_that_comes_too_late_changes_nothing(card):
    message = ready(card, 5)
    card.ring(1, send(cookie=7, endpoint=2))
    card.message(1, message & ~0xFF | MESSAGE.READY_CANCEL, 7)
    card.step()
    finish(card, card.jobs[0])
    assert endings(card) == [(7, "OK")] and sorted(card.freed) == [5, 7]


# Nobody there -------------------------------------------------------------------------------------


def test_what_waits_for_a_node_ends_when_a_flow_to_it_is_given_up(card):
    card.ring(
        1,
        receive(cookie=1),
        send(cookie=2, endpoint=2),
        receive(cookie=3, node=2),
        send(cookie=4, node=2, endpoint=2),
    )
    ready(card, 5, endpoint=3)
    card.step()
    card.ack(1, 0)
    card.ack(2, 0)
    card.step()
    card.ring(1, inline(cookie=5))
    card.wait(TIMEOUT + 500 * MICROSECOND)
    assert sorted(endings(card)) == [
        (1, "TIMEOUT"),
        (2, "TIMEOUT"),
        (5, "TIMEOUT"),
    ] and card.freed == [5]


def test_what_waits_ends_when_the_link_is_down_for_40_ms_and_not_before(card):
    card.ring(1, receive(cookie=1), send(cookie=2, endpoint=2))
    ready(card, 5, endpoint=3)
    card.step()
    card.ack(1, 0)
    card.step()
    for down in (TIMEOUT - 300 * MICROSECOND, TIMEOUT + 300 * MICROSECOND):
        assert endings(card) == []
        card.link(0)
        card.wait(down)
        card.link(1)
        card.step()
    assert sorted(endings(card)) == [(1, "TIMEOUT"), (2, "TIMEOUT")] and card.freed == [5]
