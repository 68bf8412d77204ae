"""An EXPRESS flow with packets under way all the time: the program makes a pause, and hardware gets
the flow again.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import FLAG, MESSAGE, OPCODE, STATUS

from tests.firmware.mcp_native import atomic, get, inline, put
from tests.firmware.mcp_wire import WiredCard
from tests.firmware.test_mcp_fast import ALL, MICROSECOND, answer, claim
from tests.firmware.test_mcp_replies import execute

TICK = 50 * MICROSECOND
PAUSE = 32 * TICK  # from claim to pause; as long a pause lasts at most
LATE = 2 * TICK
FLOW = 1
ASKS = pytest.mark.parametrize("kind", [get, atomic])


@pytest.fixture
def wired():
    card = WiredCard()
    card.allow(ALL)
    return card


def now(card):
    return card.library.fake_now()


def busy_asks(card, kind, count, until):
    """Request without pause; each is answered 20 µs after another one was asked, or when none comes
    for as long. Ends when `until()`.
    """
    rung = answered = 0
    while not until():
        while rung < count and rung - len(card.statuses) < 8:
            card.ring(1, kind(cookie=rung))
            rung += 1
        card.settle(20 * MICROSECOND)
        if answered < len(card.sent):
            answer(card, card.sent[answered])
            answered += 1
    return rung, answered


@ASKS
def test_asks_without_pause_are_hardwares_again_in_time(wired, kind):
    """The second is asked before the first is answered, all the time. None is lost, none ends
    twice.
    """
    claim(wired)
    wired.settle()
    wired.statuses.clear()
    begin = now(wired)
    busy_asks(
        wired, kind, 400, lambda: wired.word("fast_commands") or now(wired) > begin + 4 * PAUSE
    )
    assert wired.word("fast_commands") and now(wired) - begin < PAUSE + LATE + 200 * MICROSECOND
    claims, taken = wired.shared("claims"), wired.shared("commands")
    assert claims == wired.shared("claims") == 1 and taken == wired.shared("commands")
    assert set(wired.statuses.values()) == {0}


def busy_puts(card, until, endpoint=1):
    """Inline puts, each acknowledged behind the next one: the flow is never empty. The PSN that is
    not acknowledged.
    """
    psn = 0
    while not until():
        head = card["HEAD", endpoint]
        card.ring(endpoint, inline(cookie=psn))
        card.step(4)
        if card["HEAD", endpoint] == head:
            return psn
        card.ack(FLOW, psn)
        card.step(4)
        card.observe()
        card.library.fake_advance(20 * MICROSECOND)
        card.step(2)
        psn += 1
    return psn


def shut(card):
    """The program has the flow, and waits in a pause for one acknowledgement; a put waits behind
    it. The PSN.
    """
    card.allow(ALL)
    claim(card)
    card.observe()
    begin = now(card)
    psn = busy_puts(card, lambda: now(card) > begin + 2 * PAUSE)
    assert (
        PAUSE - LATE < now(card) - begin < PAUSE + LATE
        and card["PRODUCER", 1] == card["HEAD", 1] + 1
    )
    return psn


def test_puts_without_pause_are_hardwares_again_behind_one_acknowledgement(wired):
    psn = shut(wired)
    wired.ack(FLOW, psn)
    wired.step(4)
    assert (
        wired.word("fast_commands") == 1
        and wired["HEAD", 1] == wired["PRODUCER", 1]
        and wired.shared("claims") == 1
    )
    wired.ack(FLOW, psn + 1)
    wired.step(4)
    wired.observe()
    assert set(wired.statuses.values()) == {0} and len(wired.statuses) == psn + 2


def test_a_reply_waits_in_that_moment_and_is_hardwares(wired):
    psn = shut(wired)
    execute(wired, 5)
    wired.step(8)
    assert wired.shared("messages") == 0 and not wired.freed
    wired.ack(FLOW, psn)
    wired.step(4)
    assert (
        wired.word("fast_replies") == 1
        and wired.shared("claims") == 1
        and wired.shared("messages") == 0
    )


def test_a_reply_does_not_wait_for_what_this_node_has_asked(wired):
    """Both may be in a pause: neither waits for the other's answer without giving its own."""
    claim(wired)
    wired.settle()
    begin = now(wired)
    wired.ring(1, get(cookie=1))
    while now(wired) < begin + PAUSE + LATE:
        wired.settle(20 * MICROSECOND)
    wired.ring(1, get(cookie=2))
    wired.settle()
    assert wired["HEAD", 1] == 1, "a pause"
    execute(wired, 5)
    wired.settle()
    assert wired.freed == [5] and wired.word("fast_replies") == 0 and wired.shared("messages") == 2


@ASKS
def test_a_pause_ends_when_nobody_answers(wired, kind):
    """Whoever waits is asked for as long after it began as it lasts at most."""
    claim(wired)
    wired.settle()
    begin = now(wired)
    wired.ring(1, kind(cookie=1))
    while now(wired) < begin + PAUSE + LATE:
        wired.settle(20 * MICROSECOND)
    wired.ring(2, kind(cookie=2))
    while wired["HEAD", 2] < 2 and now(wired) < begin + 3 * PAUSE:
        wired.settle(20 * MICROSECOND)
    assert PAUSE - 2 * LATE < now(wired) - begin - PAUSE < PAUSE + LATE
    for message in wired.sent:
        answer(wired, message)
        wired.settle()
    assert wired.statuses == {99: 0, 1: 0, 2: 0}


@pytest.mark.parametrize("event", ["nak", "link", "time", "refusal", "timeout", "close"])
def test_whatever_happens_in_that_moment_nothing_is_lost(wired, event):
    psn = shut(wired)
    old = len(wired.statuses)
    wired.express.clear()
    if event == "nak":
        wired.nak(FLOW, psn - 1)
    elif event == "link":
        wired.link(False)
        wired.step(4)
        wired.link(True)
    elif event == "time":
        wired.left(FLOW, psn)
        wired.wait(10 * TICK)
    elif event == "refusal":
        wired.refuse(FLOW, psn, STATUS.REMOTE_BAD_KEY)
        wired.ack(FLOW, psn)
    elif event == "timeout":
        wired.wait(40_000 * MICROSECOND + 40 * TICK)
    else:
        assert wired.administrate(OPCODE.ENDPOINT_CLOSE, endpoint=2) == 0
    wired.step(4)
    if event in ("nak", "link", "time"):
        wired.collect()
        assert [packet.psn for packet in wired.express][:1] == [psn], "it is sent again"
    if event not in ("refusal", "timeout"):
        wired.ack(FLOW, psn)
    wired.step(8)
    wired.observe()
    ended = [wired.statuses[n] for n in range(old - 1, len(wired.statuses) - 1)]
    first = {"refusal": STATUS.REMOTE_BAD_KEY, "timeout": STATUS.TIMEOUT}.get(event, 0)
    assert ended[:1] == [first] and wired["HEAD", 1] == wired["PRODUCER", 1]


def test_an_idle_flow_is_armed_in_the_pause(wired):
    claim(wired)
    wired.settle()
    wired.wait(PAUSE + LATE)
    wired.ring(1, inline(cookie=1))
    wired.settle()
    assert wired.word("fast_commands") == 1 and wired.statuses == {99: 0, 1: 0}


# BULK ---------------------------------------------------------------------------------------------


def answer_without_pause(card, until):
    """Gets of node 1, two at most: each comes before the answer to the one before it is
    acknowledged. So the flow is never empty by itself. Ends when `until()`. The number of gets.
    """
    asked = 0
    while not until():
        if asked - len(card.freed) < 2:
            slot = asked % 16
            card.message(1, MESSAGE.GET | 0x0500 | slot << 16, slot, get(cookie=slot))
            asked += 1
        else:
            if not (card.buffer or card.wire) and card.jobs:
                card.engine()
            if card.buffer:
                card.transmit()
            if card.wire:
                card.deliver()
        card.step(8)
        card.observe()
        card.library.fake_advance(2 * MICROSECOND)
    return asked


def test_answers_without_pause_are_hardwares_again_in_time(wired):
    """The program has the flow of answers, and owes one all the time. Each get is answered once."""
    wired.ring(2, put(cookie=99, flags=FLAG.FENCE))
    wired.step(4)
    wired.message(1, MESSAGE.GET | 0x0500 | 20 << 16, 20, get(cookie=20))
    wired.step(4)
    assert wired.shared("claims") == 1
    begin = now(wired)
    asked = 1 + answer_without_pause(
        wired, lambda: wired.word("fast_answers") > 20 or now(wired) > begin + 4 * PAUSE
    )
    assert wired.word("fast_answers") > 20, "the flow stays the program's"
    assert now(wired) - begin < PAUSE + LATE + 200 * MICROSECOND
    wired.settle()
    assert wired.shared("claims") == 1 and wired.statuses == {99: 0}
    assert len(wired.freed) == asked
