"""Gets whose answer is late: the question to their node, and its reply."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import MESSAGE, STATUS, C

from tests.firmware.mcp_native import get

MICROSECOND = 125
TIMEOUT = 40_000 * MICROSECOND


def word(kind, tag=C.SLOTS, generation=1):
    """The message word about the command with this tag; by default that in endpoint 1's slot 0."""
    return kind | tag // C.SLOTS << 8 | (tag | generation << 10) << 16


def endings(card):
    return [(e.cookie, STATUS.name_of(e.status)) for e in card.entries()]


def late(card):
    """The questions about late answers that were sent and not looked at yet."""
    found = [m for m in card.express if m.message and m.word & 0xFF == MESSAGE.LATE]
    card.express.clear()
    return found


@pytest.mark.fault
def test_a_get_waits_as_long_as_its_node_says_that_the_answer_is_still_to_come(card):
    card.ring(1, get(cookie=7))
    card.step()
    card.ack(1, 0)
    told = 0
    for _ in range(20):
        card.wait(6_000 * MICROSECOND)
        for question in late(card):
            assert (question.node, question.word) == (1, word(MESSAGE.LATE))
            card.message(1, question.word & ~0xFF | MESSAGE.LATE_REPLY, 5)
            card.step()
            told += 1
    assert card.entries() == [] and told >= 8 and card.shared("strays") == 0
    assert card.freed == [5] * told
    card.wait(TIMEOUT + 300 * MICROSECOND)
    assert endings(card) == [(7, "TIMEOUT")]


@pytest.mark.fault
@pytest.mark.parametrize(
    "node,reply_word",
    [
        (2, word(MESSAGE.LATE_REPLY)),
        (1, word(MESSAGE.LATE_REPLY) ^ 0x100),
        (1, word(MESSAGE.LATE_REPLY, 33)),
        (1, word(MESSAGE.LATE_REPLY, generation=2)),
        (200, word(MESSAGE.LATE_REPLY)),
    ],
)
def test_a_reply_about_another_get_gives_a_get_no_time(card, node, reply_word):
    card.ring(1, get(cookie=7))
    card.step()
    card.ack(1, 0)
    for _ in range(7):
        card.wait(6_000 * MICROSECOND)
        card.message(node, reply_word, 5)
        card.step()
    assert endings(card) == [(7, "TIMEOUT")]


@pytest.mark.fault
def test_a_node_whose_send_engine_works_replies_to_a_question_and_one_that_stands_still_does_not(
    card,
):
    card.wait(10_000 * MICROSECOND)
    card.message(1, word(MESSAGE.LATE, 99), 3)
    card.step()
    assert card.express == [] and card.freed == [3]
    card["SEND_MOVED"] = 1
    card.wait(100 * MICROSECOND)
    card.message(1, word(MESSAGE.LATE, 99), 4)
    card.step()
    [answer] = card.express
    assert (answer.node, answer.word) == (1, word(MESSAGE.LATE_REPLY, 99)) and card.freed == [3]
    card.ack(1, 0)
    card.step()
    assert card.freed == [3, 4] and card.shared("strays") == 0


@pytest.mark.fault
@pytest.mark.parametrize("node", [0, 200])
def test_a_question_of_a_node_that_cannot_ask_is_a_stray(card, node):
    card["SEND_MOVED"] = 1
    card.wait(100 * MICROSECOND)
    card.message(node, word(MESSAGE.LATE), 3)
    card.step()
    assert card.express == [] and card.freed == [3] and card.shared("strays") == 1
