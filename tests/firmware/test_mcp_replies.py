"""Atomics of other nodes, which the gateware executes: those that the program need not see, and
those that it replies to itself.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from dibber.interface.description import FLAG, MESSAGE, STATUS, C

from tests.firmware.mcp_native import atomic, inline
from tests.firmware.mcp_wire import WiredCard
from tests.firmware.test_mcp_fast import ALL, MICROSECOND, answer, asked, claim, once, take
from tests.firmware.test_mcp_replay import run_at_random

ATOMIC = 16  # bit of the host's FAST_PATH
FLOW = 1  # EXPRESS, to the requester


@pytest.fixture
def wired():
    card = WiredCard()
    card.allow(ALL)
    return card


def word(kind, number):
    return kind | 0x0500 + (number << 16)


def execute(card, slot, number=None):
    """An atomic of node 1 arrives and is executed; the word of its reply."""
    number = slot if number is None else number
    card.message(1, word(MESSAGE.ATOMIC, number), slot, atomic())
    assert card.atomic_done(STATUS.OK, number) == slot
    return word(MESSAGE.ATOMIC_REPLY, number)


def replies(card):
    """Message words that reached the asker and were taken, in order."""
    return [
        cookie[1]
        for cookie, _ in card.peers[FLOW].executed
        if type(cookie) is tuple and cookie[1] & 0xFF == MESSAGE.ATOMIC_REPLY
    ]


def test_replies_on_an_armed_flow_need_no_program(wired):
    words = []
    for n in range(0, 90, 10):
        words += [execute(wired, slot, n + slot) for slot in range(10)]
        wired.settle()
        assert wired.freed == list(range(10))
        wired.freed.clear()
    assert replies(wired) == words and wired.word("fast_replies") == 90
    assert (
        wired.shared("claims") == wired.handler("ARRIVAL")["calls"] == wired.shared("messages") == 0
    )


def test_what_finds_no_room_in_the_ring_is_the_programs_and_nothing_is_lost(wired):
    room = 5
    take(wired, *[inline(cookie=n) for n in range(C.FAST_PUTS - room)])
    words = [execute(wired, slot) for slot in range(room + 4)]
    wired.settle()
    assert (
        replies(wired) == words
        and wired.word("fast_replies") == room
        and wired.shared("claims") == 1
    )
    assert sorted(wired.freed) == list(range(room + 4)) and wired.statuses == {
        n: 0 for n in range(C.FAST_PUTS - room)
    }


def test_a_host_that_does_not_want_it_has_the_program_reply(wired):
    wired.allow(ALL & ~ATOMIC)
    words = []
    for n in range(60):
        words.append(execute(wired, n % C.SLOTS, n))
        wired.settle()
    assert replies(wired) == words and wired.word("fast_replies") == 0 and len(wired.freed) == 60
    assert wired.shared("claims") <= 6


def test_a_flow_is_armed_again_behind_a_reply_of_the_program(wired):
    """A program that only replies has no other operation that could end there."""
    wired.ring(2, inline(cookie=99, flags=FLAG.FENCE))
    wired.step(4)
    words = [execute(wired, 3)]
    wired.settle()
    assert wired.word("fast_replies") == 0
    words += [execute(wired, 4 + n) for n in range(2) if not wired.settle()]
    wired.settle()
    assert replies(wired) == words and wired.word("fast_replies") >= 1 and wired.freed == [3, 4, 5]


def test_a_reply_that_waits_while_its_flow_is_armed_is_offered_to_the_fast_path_again(wired):
    """Else the program would claim what it has just armed, each time that atomics come one close
    behind the other.
    """
    wired.allow(0)
    waits = execute(wired, 3)
    wired.allow(ALL)
    wired.settle()
    assert replies(wired) == [waits] and wired.freed == [3]
    assert (
        wired.word("fast_replies") == 1 and wired.shared("claims") == wired.shared("messages") == 0
    )


def test_a_lost_reply_is_sent_again_as_it_was_and_its_slot_is_free_once(wired):
    words = [execute(wired, slot) for slot in range(4)]
    wired.lose = once((("message", words[1]), 0))
    wired.settle(400 * MICROSECOND)
    assert (
        replies(wired) == words and wired.shared("claims") == 1 and wired.word("fast_replies") == 4
    )
    assert wired.freed == [0, 1, 2, 3]
    again = [message for message in wired.sent if message.word == words[1]]
    assert len(again) == 2 and again[0]._replace(epoch=0) == again[1]._replace(epoch=0)


def test_asks_and_replies_of_one_flow_are_claimed_each_as_what_it_is(wired):
    one, two = asked(wired, atomic(cookie=0), atomic(cookie=1))
    words = [execute(wired, slot) for slot in range(3)]
    claim(wired)
    words.append(execute(wired, 3))
    wired.settle()
    for message in (two, one):
        answer(wired, message, slot=20)
        wired.settle()
    assert wired.statuses == {0: 0, 1: 0, 99: 0} and sorted(wired.freed) == [0, 1, 2, 3, 20, 20]
    assert replies(wired) == words


@pytest.mark.parametrize("loss", [0, 0.05])
def test_whatever_is_lost_each_reply_is_taken_once(loss, seed):
    """Between inline puts on the same flow, and what the program alone does there."""
    rng = random.Random(f"{seed} {loss}")
    card = WiredCard()
    card.allow(ALL)
    card.lose = lambda packet: rng.random() < loss
    under, words, waiting, count = set(), [], [], 0
    commands = [inline(cookie=n, flags=FLAG.FENCE if n % 19 == 0 else 0) for n in range(120)]

    def act():
        nonlocal count
        while count < len(card.freed):
            under.remove(card.freed[count])  # none is freed that is not in use
            count += 1
        if len(words) + len(waiting) < 200 and len(under) < 6:
            number = len(words) + len(waiting)
            slot = rng.choice(sorted(set(range(C.SLOTS)) - under))
            under.add(slot)
            card.message(1, word(MESSAGE.ATOMIC, number), slot, atomic())
            waiting.append((slot, number))
        if waiting and rng.random() < 0.5:
            slot, number = waiting.pop(0)
            assert card.atomic_done(STATUS.OK, number) == slot
            words.append(word(MESSAGE.ATOMIC_REPLY, number))

    run_at_random(rng, card, commands, act)
    for _ in range(900):
        act()
        card.settle(1000 * MICROSECOND if loss else 0)
    assert len(words) == 200 and not under and len(card.freed) == 200
    assert sorted(replies(card)) == sorted(words) and not card.shared("timeouts")
    assert 20 < card.word("fast_replies") <= 200
