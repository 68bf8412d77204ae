"""BARRIER, the operation in firmware only."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import re

import pytest
from dibber.interface.description import COMMAND, FLAG, MESSAGE, OPCODE, STATUS, C

from tests.firmware.mcp_native import inline, pack_struct

HEADER = (pathlib.Path(__file__).resolve().parents[2] / "firmware" / "barrier.h").read_text()
BARRIER, TOLD = (
    int(re.search(rf"{name}\s+(0x\w+)u", HEADER)[1], 16)
    for name in ("BARRIER_OPCODE", "BARRIER_MESSAGE")
)


def barrier(nodes=(1,), limit=0, cookie=7, **more):
    return pack_struct(
        COMMAND,
        dict(
            opcode=BARRIER, notice=sum(1 << n for n in nodes), length=limit, cookie=cookie, **more
        ),
    )


def told(card):
    """Nodes that got a message, by the messages' words."""
    card.collect()
    words = [(e.node, e.word) for e in card.express if e.message]
    card.express.clear()
    return words


def tell(card, node, endpoint=1, slot=None):
    card.slot = getattr(card, "slot", -1) + 1
    card.message(node, TOLD | endpoint << 8, card.slot % C.SLOTS)
    card.step()


def test_neither_opcode_nor_message_is_anybody_else_s():
    assert BARRIER not in [v for _, v, *_ in OPCODE.values] and TOLD not in [
        v for _, v, *_ in MESSAGE.values
    ]


def test_an_endpoint_that_enters_tells_the_others_and_waits_for_all(card):
    card.ring(1, barrier((1, 2, 5)))
    card.step()
    assert told(card) == [(node, TOLD | 1 << 8) for node in (1, 2, 5)]
    for node in (5, 1):
        tell(card, node)
        assert card.entries() == []
    tell(card, 2)
    assert [(e.cookie, e.status) for e in card.entries()] == [(7, STATUS.OK)]
    # The slots of their messages are free again.
    assert len(card.freed) == 3


def test_nodes_that_came_first_are_counted(card):
    tell(card, 1)
    tell(card, 2)
    card.ring(1, barrier((1, 2)))
    card.step()
    assert [e.status for e in card.entries()] == [STATUS.OK]
    card.ring(1, barrier((1, 2)))
    card.step()
    assert card.entries() == []


def test_a_node_may_be_one_barrier_ahead_and_no_more(card):
    card.ring(1, barrier((1, 2), cookie=1), barrier((1, 2), cookie=2))
    card.step()
    tell(card, 1)
    tell(card, 1)
    assert card.entries() == [] and card.shared("strays") == 0
    tell(card, 1)
    assert card.shared("strays") == 1
    tell(card, 2)
    assert [e.cookie for e in card.entries()] == [1]
    tell(card, 2)
    assert [e.cookie for e in card.entries()] == [2]


def test_commands_go_on_meanwhile_and_a_fence_waits(card):
    card.ring(
        1,
        barrier(cookie=1),
        inline(bytes(8), cookie=2),
        inline(bytes(8), cookie=3, flags=FLAG.FENCE),
    )
    card.step()
    assert [e.slot for e in card.express if not e.message] == [1]


def test_endpoints_do_not_meet_each_other(card):
    assert card.open(2) == STATUS.OK
    card.entries()
    card.ring(1, barrier(cookie=1))
    card.ring(2, barrier(cookie=2))
    card.step()
    tell(card, 1, endpoint=2)
    assert [e.cookie for e in card.entries()] == [2]


def test_its_limit_ends_it(card):
    card.ring(1, barrier(limit=5000))
    card.step()
    card.library.fake_advance(5000)
    card.step()
    assert [e.status for e in card.entries()] == [STATUS.TIMEOUT] and card.shared("timeouts") == 1


def test_closing_the_endpoint_ends_it_and_the_next_owner_starts_afresh(card):
    tell(card, 2)
    card.ring(1, barrier((1, 2)))
    card.step()
    assert card.administrate(OPCODE.ENDPOINT_CLOSE, endpoint=1) == STATUS.OK
    assert card.open(1) == STATUS.OK
    card.entries()
    card.ring(1, barrier((2,), cookie=9))
    card.step()
    assert card.entries() == []
    tell(card, 2)
    assert [e.cookie for e in card.entries()] == [9]


@pytest.mark.parametrize(
    "change, status",
    [
        (dict(nodes=()), STATUS.BAD_ARGUMENT),
        (dict(nodes=(0, 1)), STATUS.BAD_ARGUMENT),
        (dict(nodes=(16,)), STATUS.BAD_ARGUMENT),
        (dict(limit=0x80000000), STATUS.BAD_ARGUMENT),
        (dict(flags=FLAG.NOTICE), STATUS.BAD_FLAGS),
    ],
)
def test_what_makes_no_sense_is_refused(card, change, status):
    card.ring(1, barrier(**change))
    card.step()
    assert [e.status for e in card.entries()] == [status] and not told(card)


def test_messages_that_make_no_sense_are_strays(card):
    tell(card, 1, endpoint=C.ENDPOINTS)
    tell(card, C.NODES)
    assert card.shared("strays") == 2
    card["ENDPOINTS"] = 4
    tell(card, 1, endpoint=4)
    assert card.shared("strays") == 3
    tell(card, 1, endpoint=3)
    assert card.shared("strays") == 3
