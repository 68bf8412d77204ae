"""The EXPRESS lane: inline puts, their order, their replay; and fences."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import FLAG, OPCODE, STATUS, C

from tests.firmware.mcp_native import BULK, Express, admin, inline, put
from tests.firmware.mcp_wire import WiredCard

MICROSECOND = 125
TIMEOUT = 40_000 * MICROSECOND


@pytest.fixture
def wired():
    return WiredCard()


def executed(card, node=1):
    return card.peers[node].executed


def test_an_inline_put_is_one_packet_and_completes_when_it_is_acknowledged(card):
    card.ring(
        1,
        inline(
            bytes(range(24)),
            cookie=7,
            flags=FLAG.SOLICIT | FLAG.NOTICE | FLAG.INTERRUPT,
            endpoint=3,
        ),
    )
    card.step()
    assert card.express == [
        Express(1, 0, 24, card.rewinds[1][1], 0, 0, 1, 1, card["EXPRESS_MESSAGE"])
    ]
    assert card["HEAD", 1] == 1 and card.entries() == []
    card.ack(1, 0)
    card.step()
    [entry] = card.entries()
    assert (entry.status, entry.cookie, entry.length, entry.node, entry.key) == (
        STATUS.OK,
        7,
        24,
        1,
        0,
    )
    assert entry.interrupt == 1


@pytest.mark.parametrize(
    "name,change",
    [
        ("BAD_FLAGS", dict(flags=FLAG.INTERRUPT)),
        ("BAD_FLAGS", dict(flags=FLAG.CHECKSUM)),
        ("BAD_FLAGS", dict(flags=64)),
        ("BAD_LEVELS", dict(levels=0x10)),
        ("BAD_LEVELS", dict(levels=1)),
        ("BAD_NODE", dict(node=0)),
        ("BAD_NODE", dict(node=C.NODES)),
        ("BAD_NODE", dict(reserved0=1)),
        ("BAD_LENGTH", dict(length=C.INLINE_BYTES + 1)),
        ("BAD_LENGTH", dict(length=0x100)),
        ("REMOTE_BOUNDS", dict(offset=C.MAX_OFFSET + 1)),
    ],
)
def test_a_malformed_inline_put_gets_its_status_and_sends_nothing(card, name, change):
    card.ring(1, inline(**change), inline(cookie=1))
    card.step()
    assert [STATUS.name_of(e.status) for e in card.entries()] == [name] and len(card.express) == 1


@pytest.mark.parametrize("length", [0, 1, C.INLINE_BYTES])
def test_every_length_that_fits_is_sent(card, length):
    card.ring(1, inline(bytes(length), offset=C.MAX_OFFSET))
    card.step()
    assert [e.length for e in card.express] == [length]


def test_inline_puts_do_not_wait_for_bulk(card):
    card.ring(1, put(length=1 << 20, cookie=0), inline(cookie=1))
    card.step()
    card.ack(1, 0)
    card.step()
    assert [e.cookie for e in card.entries()] == [1]


def test_one_acknowledgement_completes_all_that_it_covers(card):
    card.ring(1, *[inline(cookie=n) for n in range(20)])
    card.step()
    card.ack(1, 18)
    card.step()
    assert [(e.cookie, e.status) for e in card.entries()] == [(n, 0) for n in range(19)]


def test_no_more_than_a_window_is_under_way_to_a_node(card):
    assert card.open(2) == 0 and card.open(3) == 0
    for endpoint in (1, 2, 3):
        card.ring(endpoint, *[inline() for _ in range(30)])
    card.step(40)
    assert len(card.express) == C.WINDOW
    card.ack(1, 3)
    card.step()
    assert [e.psn for e in card.express] == list(range(C.WINDOW + 4))


def test_a_full_window_stops_no_command_to_another_node(card):
    for endpoint in (2, 3, 4):
        assert card.open(endpoint) == 0
    for endpoint in (1, 2, 3):
        card.ring(endpoint, *[inline() for _ in range(30)])
    card.step(40)
    card.ring(4, *[inline(node=2, cookie=n) for n in range(5)])
    card.step(20)
    assert [e.node for e in card.express] == [1] * C.WINDOW + [2] * 5
    card.ack(1, C.WINDOW - 1)
    card.step(40)
    assert len(card.express) == 90 + 5


def test_endpoints_share_the_window_of_a_node(card):
    for endpoint in (2, 3):
        assert card.open(endpoint) == 0
    for endpoint in (1, 2, 3):
        card.ring(endpoint, *[inline() for _ in range(30)])
    card.step(40)
    counts = [sum(e.endpoint == endpoint for e in card.express) for endpoint in (1, 2, 3)]
    assert sum(counts) == C.WINDOW and max(counts) - min(counts) <= 1


def test_what_its_owner_writes_after_it_was_read_is_not_believed(card):
    card["EXPRESS_SPACE"] = 0
    card.ring(1, inline(length=8, cookie=5))
    card.step()
    card.write_slot(1, 0, inline(length=64, cookie=6, node=2))
    card["EXPRESS_SPACE"] = 16
    card.step()
    card.ack(1, 0)
    card.step()
    assert [(e.node, e.length) for e in card.express] == [(1, 8)]
    assert [(e.node, e.length, e.cookie) for e in card.entries()] == [(1, 8, 5)]


def test_completions_wait_for_room_in_the_gateware(card, monkeypatch):
    card.ring(1, *[inline(cookie=n) for n in range(20)])
    card.step()
    monkeypatch.setattr(card, "post_space", lambda: None)
    space = card["POST_SPACE"]
    card.ack(1, 19)
    card.step()
    assert [e.cookie for e in card.entries()] == list(range(space))
    card["POST_SPACE"] = 20 - space
    card.step()
    assert [e.cookie for e in card.entries()] == list(range(space, 20))


def test_one_to_this_card_itself_fails_even_when_its_number_was_changed_since(card):
    card["NODE_ID"] = 7
    card.ring(1, inline(node=0, cookie=1), inline(cookie=2))
    card.step()
    card.ack(1, 0)
    card.step()
    assert [(e.cookie, e.status) for e in card.entries()] == [(1, STATUS.BAD_NODE), (2, STATUS.OK)]


def test_an_endpoint_is_closed_when_its_inline_puts_have_ended(card):
    card.ring(1, *[inline(cookie=n) for n in range(3)])
    card.step()
    card.ring(0, admin(OPCODE.ENDPOINT_CLOSE, endpoint=1, cookie=7))
    card.step()
    assert card.entries() == []
    card.ack(1, 2)
    card.step()
    assert [(e.cookie, e.status) for e in card.entries()] == [(0, 0), (1, 0), (2, 0), (7, 0)]


def test_without_space_the_command_stays_in_its_slot(card):
    card["EXPRESS_SPACE"] = 0
    card.ring(1, inline())
    card.step()
    assert card["HEAD", 1] == 0 and not card.express
    card["EXPRESS_SPACE"] = 1
    card.step()
    assert len(card.express) == 1


def test_a_refused_inline_put_tells_why_and_those_around_it_are_not_touched(wired):
    wired.refuses = {1: STATUS.REMOTE_BOUNDS}
    wired.ring(1, *[inline(cookie=n) for n in range(3)])
    wired.settle()
    assert wired.statuses == {0: 0, 1: STATUS.REMOTE_BOUNDS, 2: 0}


def test_a_refusal_of_what_is_not_under_way_does_nothing(wired):
    for psn in (0, 1, 63, 64, 0xFFFF):
        wired.refuse(1, psn, STATUS.REMOTE_BOUNDS)
    wired.step()
    wired.ring(1, inline(cookie=0))
    wired.settle()
    assert wired.statuses == {0: STATUS.OK}


def test_a_lost_inline_put_and_all_after_it_are_queued_again_from_their_slots(wired):
    lost = {4}
    wired.lose = lambda packet: packet.cookie in lost and not lost.discard(packet.cookie)
    wired.ring(1, *[inline(cookie=n) for n in range(20)])
    wired.settle()
    assert wired.statuses == {n: 0 for n in range(20)}
    assert executed(wired) == [(n, 0) for n in range(20)] and wired.incarnation[1] == 1


def test_the_requeue_waits_for_space_and_new_commands_for_the_requeue(wired):
    wired["EXPRESS_SPACE"] = 8
    wired.ring(1, *[inline(cookie=n) for n in range(8)])
    wired.step()
    wired.express, wired["EXPRESS_SPACE"] = [], 0
    wired.nak(1, 1)
    wired.step()
    wired.ring(2, inline(cookie=8))
    wired.step()
    assert wired.express == [] and wired["HEAD", 2] == 0
    wired["EXPRESS_SPACE"] = 2
    wired.step(20)
    assert [e.psn for e in wired.express] == list(range(2, 9))
    assert wired["HEAD", 2] == 1


def test_psns_of_inline_puts_go_round(wired):
    """The flow is brought close to 65,536, where the numbers begin again."""
    number = 0
    for _ in range(65536 // 30 - 1):
        commands = [inline(cookie=number + n) for n in range(30)]
        wired.ring(1, *commands)
        wired.step(5)
        wired.express.clear()
        number += 30
        wired.ack(1, number - 1)
        wired.step(5)
        wired.entries()
    wired.peers[1].held, wired.peers[1].expected = 1, number
    lost = {number + 40}
    wired.lose = lambda packet: packet.cookie in lost and not lost.discard(packet.cookie)
    for _ in range(4):
        wired.ring(1, *[inline(cookie=number + n) for n in range(30)])
        wired.settle()
        number += 30
    assert executed(wired) == [(n, 0) for n in range(number - 120, number)]
    assert wired.statuses == {n: 0 for n in range(number - 120, number)} and number > 65536


def test_after_40_ms_all_end_as_timeouts_and_the_next_works(wired):
    wired.cut = {1}
    wired.ring(1, *[inline(cookie=n) for n in range(20)])
    wired.settle(TIMEOUT - 200 * MICROSECOND)
    assert wired.statuses == {}
    wired.settle(600 * MICROSECOND)
    assert wired.statuses == {n: STATUS.TIMEOUT for n in range(20)} and wired.incarnation[1] == 2
    wired.cut = set()
    wired.ring(1, inline(cookie=20))
    wired.settle()
    assert wired.statuses[20] == STATUS.OK and executed(wired) == [(20, 0)]


def test_an_acknowledgement_from_before_the_end_of_a_flow_completes_nothing(card):
    """Its event is left; what it said went with the reset of the flow."""
    card.ring(1, inline(cookie=0))
    card.step()
    while card.shared("timeouts") == 0:
        card.library.replay_timer_handler()
    card.ack(1, 0xFFFF)
    card.step()
    assert [e.status for e in card.entries()] == [STATUS.TIMEOUT]


# Fence --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fenced", [put, inline])
def test_a_fence_waits_for_all_earlier_commands_of_its_endpoint_and_no_others(card, fenced):
    assert card.open(2) == 0
    card.ring(
        1, put(cookie=0), inline(cookie=1), fenced(cookie=2, flags=FLAG.FENCE), inline(cookie=3)
    )
    card.ring(2, inline(cookie=4))
    card.step()
    assert (card["HEAD", 1], card["HEAD", 2]) == (2, 1)
    card.ack(1, 1)
    card.step()
    assert card["HEAD", 1] == 2
    card.job_done(card.jobs[0].tag, 1)
    card.ack(BULK + 1, 0)
    card.step()
    assert card["HEAD", 1] == 4 and {e.cookie for e in card.entries()} == {0, 1, 4}


def test_a_fence_with_nothing_before_it_does_not_wait(card):
    card.ring(1, inline(flags=FLAG.FENCE))
    card.step()
    assert card["HEAD", 1] == 1
