"""Gets of other nodes that the fast path answers: those that the program need not see, and those
that it takes over.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from dibber.interface.description import FLAG, MESSAGE, OPCODE, STATUS, C

from tests.firmware.mcp_native import BULK, admin, get, put, walk
from tests.firmware.mcp_wire import WiredCard
from tests.firmware.test_mcp_fast import MICROSECOND, TIMEOUT, once, take
from tests.firmware.test_mcp_replay import run_at_random
from tests.gateware.models.cut import packets_of, whole

ALLOWED = 11  # inline puts, puts, gets
ANSWERS = BULK + 1  # their flow


@pytest.fixture
def wired():
    card = WiredCard()
    card.allow(ALLOWED)
    return card


def word(kind, slot):
    """The message word of a request, by the slot that it is to lie in."""
    return kind | 0x1234_0500 + (slot << 16)


def ask(card, slot, command=None, **options):
    """A get of node 1 arrives in a slot of the inbox, its cookie the slot."""
    card.message(1, word(MESSAGE.GET, slot), slot, command or get(cookie=slot, **options))


def told(card):
    """Slots whose gets were reported as failed, with the reason, in order."""
    found = []
    for packet in card.express:
        if packet.message and packet.word & 0xFF == MESSAGE.GET_FAILED:
            base = (C.OUTBOX * C.SLOTS + packet.slot) * C.SLOT_BYTES
            found.append(((packet.word - 0x1234_0500) >> 16, card.slots[base + 8]))
    return found


def test_gets_of_others_are_answered_without_the_program(wired):
    for n in range(0, 90, 15):
        for slot in range(15):
            ask(wired, slot, length=whole(2))
        wired.settle()
        assert sorted(wired.freed) == list(range(15))
        wired.freed.clear()
    assert wired.word("fast_answers") == 90 and wired.shared("claims") == 0
    assert wired.handler("ARRIVAL")["calls"] == wired.handler("SEND_DONE")["calls"] == 0
    assert wired.peers[ANSWERS].executed == [
        (slot, i) for slot in range(15) for i in range(2)
    ] * 6 and not told(wired)


def test_an_answers_job_is_a_response_with_the_message_word(wired):
    ask(wired, 7, length=5000)
    wired.step(1)
    [job] = wired.jobs
    assert (
        job.fast,
        job.endpoint,
        job.slot,
        job.response,
        job.indirect,
        job.message,
        job.length,
    ) == (True, C.INBOX, 7, 1, 0, word(MESSAGE.GET, 7), 5000)
    assert job.tag == C.INBOX * C.SLOTS + 7


@pytest.mark.parametrize(
    "command",
    [
        get(length=0),
        get(levels=7),
        get(target=walk(8, offset=1 << 48)),
        get(length=9, source=walk(8)),
        put(),
    ],
    ids=["nothing", "levels", "offset", "length", "opcode"],
)
def test_what_is_not_for_it_is_the_programs_to_answer(wired, command):
    ask(wired, 3, command)
    wired.settle()
    assert (
        wired.word("fast_answers") == 0
        and wired.handler("ARRIVAL")["calls"] == 1
        and wired.freed == [3]
    )


def test_a_host_that_does_not_want_it_has_gets_answered_by_the_program(wired):
    wired.allow(3)
    for n in range(200):
        ask(wired, n % C.SLOTS)
        wired.settle()
    assert (
        wired.word("fast_answers") == 0 and len(wired.freed) == 200 and wired.shared("claims") <= 8
    )


def test_a_get_that_waits_while_its_flow_is_armed_is_offered_to_the_fast_path_again(wired):
    """Else the program would claim what it has just armed, each time that gets come one close
    behind the other.
    """
    wired.allow(0)
    ask(wired, 3)
    wired.allow(ALLOWED)
    wired.settle()
    assert wired.freed == [3] and wired.word("fast_answers") == 1 and wired.shared("claims") == 0


def test_a_claimed_answer_is_sent_again_as_it_was_and_its_slot_is_free_once(wired):
    wired.lose = once((2, 1))
    for slot in range(4):
        ask(wired, slot, length=whole(2))
    wired.settle(400 * MICROSECOND)
    assert wired.word("fast_answers") == 4 and wired.shared("claims") == 1
    assert wired.freed == [0, 1, 2, 3] and not told(wired)
    assert wired.peers[ANSWERS].executed == [(slot, i) for slot in range(4) for i in range(2)]
    ask(wired, 5)
    wired.settle()
    assert wired.word("fast_answers") == 5  # it was armed again behind the last of them


def test_what_is_adopted_is_an_answer_again(wired):
    """With its word: a replayed packet without it would find no get at home."""
    wired.cut = {1}
    take(wired, put(cookie=40))
    ask(wired, 9, length=whole(3))
    wired.step(1)
    wired.work()
    wired.link(0)
    wired.step()
    wired.observe()
    wired.cut = set()
    wired.link(1)
    wired.step()
    wired.observe()
    first, second = wired.jobs
    assert (first.fast, first.response, first.message) == (False, 0, 0)
    assert (
        second.fast,
        second.endpoint,
        second.slot,
        second.response,
        second.message,
        second.length,
    ) == (False, C.INBOX, 9, 1, word(MESSAGE.GET, 9), whole(3))
    wired.settle()
    assert wired.freed == [9] and wired.statuses == {40: 0}


@pytest.mark.parametrize("sent", [0, 1])
def test_an_answer_whose_job_fails_gives_the_flow_away_and_is_told(wired, sent):
    wired.fails = {1: (STATUS.BAD_KEY, sent)}
    for slot in range(3):
        ask(wired, slot, length=whole(2))
    wired.step(1)
    wired.engine()
    wired.engine()
    # the job's end may come before the flow is given
    assert wired.library.bulk_job_handler() == 1
    wired.step(4)
    while wired.jobs or wired.running or wired.buffer or wired.wire:
        if wired.jobs or wired.running:
            wired.engine()
        elif wired.buffer:
            wired.transmit()
        else:
            wired.deliver()
        wired.step(2)
        wired.observe()
    assert told(wired) == [(1, STATUS.BAD_KEY)]
    wired.settle()
    assert sorted(wired.freed) == [0, 1, 2] and wired.incarnation[ANSWERS] == 2
    assert [p for p in wired.peers[ANSWERS].executed if p[0] != 1] == [
        (n, i) for n in (0, 2) for i in range(2)
    ]


def test_an_answer_that_was_refused_at_home_is_told(wired):
    ask(wired, 4)
    wired.step(1)
    [job] = wired.jobs
    wired.job_done(job.tag, job.psn + 1)
    wired.refuse(ANSWERS, 0, STATUS.REMOTE_BOUNDS)
    wired.ack(ANSWERS, 0)
    wired.step()
    wired.collect()
    assert told(wired) == [(4, STATUS.REMOTE_BOUNDS)] and wired.freed == [4]


def test_answers_that_nobody_acknowledges_leave_no_slot_behind(wired):
    wired.cut = {1}
    for slot in range(5):
        ask(wired, slot)
    wired.settle(2 * TIMEOUT + 1000 * MICROSECOND)
    assert sorted(wired.freed) == list(range(5))
    wired.cut = set()
    ask(wired, 2)
    wired.settle()
    assert sorted(wired.freed) == [0, 1, 2, 2, 3, 4] and wired.word("fast_answers") == 6


def test_a_slot_is_not_free_before_the_engine_has_let_go_of_its_job(wired):
    """Its next get would have a job with the same tag."""
    ask(wired, 6)
    wired.step()
    [job] = wired.jobs
    wired.jobs.clear()
    for _ in range(2):
        wired.library.fake_advance(TIMEOUT)
        for _ in range(1000):
            wired.library.fake_advance(60 * MICROSECOND)
            wired.step(2)
            wired.observe()
            wired.work()
    assert wired.freed == []
    wired.job_done(job.tag, 0, STATUS.REWOUND)
    wired.step()
    wired.collect()
    assert wired.freed == [6]


def test_an_endpoint_is_closed_beside_answers(wired):
    ask(wired, 0)
    wired.step(1)
    wired.ring(0, admin(OPCODE.ENDPOINT_CLOSE, endpoint=1, cookie=77))
    wired.step()
    wired.observe()
    assert wired.statuses == {77: 0} and wired.freed == []
    wired.settle()
    assert wired.freed == [0]


@pytest.mark.parametrize("loss", [0, 0.05])
def test_whatever_fails_or_is_lost_each_get_is_answered_or_told_once(loss, seed):
    """Between puts on the same flows, some of which fail."""
    rng = random.Random(f"{seed} {loss}")
    card = WiredCard()
    card.allow(ALLOWED)
    card.lose = lambda packet: rng.random() < loss
    asked, under, left, count = {}, set(), list(range(3000, 3120)), 0
    for cookie in left:
        if rng.random() < 0.1:
            card.fails[cookie] = (STATUS.BOUNDS, 0)
        elif rng.random() < 0.1:
            card.refuses[cookie] = STATUS.REMOTE_BOUNDS
    commands = [
        put(
            length=rng.choice((8, 5000, 60000)), cookie=n, flags=FLAG.CHECKSUM if n % 19 == 0 else 0
        )
        for n in range(120)
    ]

    def act():
        nonlocal count
        while count < len(card.freed):
            under.remove(card.freed[count])  # none is freed that is not in use
            count += 1
        if left and len(under) < 6:
            slot, cookie = rng.choice(sorted(set(range(C.SLOTS)) - under)), left.pop()
            under.add(slot)
            asked[cookie] = rng.choice((8, 5000, 60000))
            card.message(1, word(MESSAGE.GET, slot), slot, get(length=asked[cookie], cookie=cookie))

    run_at_random(rng, card, commands, act)
    for _ in range(400):
        act()
        card.settle(1000 * MICROSECOND if loss else 0)
    assert not left and not under and len(card.freed) == len(asked)
    assert 20 < card.word("fast_answers") < len(asked) + 1
    done = [p for p in card.peers[ANSWERS].executed]
    for cookie, length in asked.items():
        if cookie not in card.fails and cookie not in card.refuses and not card.shared("timeouts"):
            assert [i for c, i in done if c == cookie] == list(range(packets_of(length)))
