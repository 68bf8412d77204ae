"""Peers that restart: nothing is executed twice, packets that were not executed are sent again, and
the rest ends with PEER_RESTARTED.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from dibber.interface.description import MESSAGE, STATUS, C

from tests.firmware.mcp_native import BULK, atomic, get, inline, put, receive, send
from tests.firmware.mcp_wire import WiredCard
from tests.firmware.test_mcp_messages import word
from tests.firmware.test_mcp_replay import executed, run_at_random
from tests.gateware.models.cut import packets_of, whole

MICROSECOND = 125
TIMEOUT = 40_000 * MICROSECOND
FLOW = BULK + 1

pytestmark = pytest.mark.fault


@pytest.fixture(params=[0, 3], ids=["program", "fast"])
def wired(request):
    """A card whose flows to node 1 have executed packets before."""
    card = WiredCard()
    card.allow(request.param)
    card.ring(1, inline(cookie=90), put(length=whole(2), cookie=91))
    card.settle(200 * MICROSECOND)
    assert card.statuses == {90: 0, 91: 0}
    return card


def begin_anew(card, node=1):
    for flow in node, BULK + node:
        card.peers[flow].begin_anew()


@pytest.mark.parametrize(
    "command,flow", [(inline(cookie=0), 1), (put(length=whole(3), cookie=0), FLOW)]
)
def test_what_is_sent_after_the_peer_began_anew_goes_again_at_once_and_is_executed_once(
    wired, command, flow
):
    begin_anew(wired)
    incarnation = wired.incarnation[flow]
    start = wired.library.fake_now()
    wired.ring(1, command)
    wired.settle()
    assert wired.statuses[0] == STATUS.OK and wired.library.fake_now() - start < 100 * MICROSECOND
    assert [done for done in executed(wired, flow) if done[0] == 0] == [
        (0, n) for n in range(1 if flow == 1 else 3)
    ]
    assert wired.incarnation[flow] == incarnation + 1


def test_a_put_is_still_the_fast_path_s_after_its_flow_went_to_a_peer_that_began_anew():
    card = WiredCard()
    card.allow(3)
    for number in range(4):
        begin_anew(card)
        card.ring(1, inline(cookie=2 * number), put(length=8, cookie=2 * number + 1))
        card.settle(200 * MICROSECOND)
    before = card.word("fast_commands")
    card.ring(1, inline(cookie=50), put(length=8, cookie=51))
    card.settle()
    assert set(card.statuses.values()) == {0} and card.word("fast_commands") == before + 2


def test_what_had_left_before_the_packet_that_is_refused_ends_with_peer_restarted_and_the_rest_goes_again(  # noqa: E501
    wired,
):
    """The first put is executed but for its last packet, and no acknowledgement comes; the third
    one has sent nothing.
    """
    wired.deaf = True
    wired.ring(1, *[put(length=whole(4), cookie=n) for n in range(3)])
    wired.step()
    wired.observe()
    wired.engine(3)
    while wired.buffer:
        wired.transmit()
    while wired.wire:
        wired.deliver()
    assert [done for done in executed(wired) if done[0] == 0] == [(0, 0), (0, 1), (0, 2)]
    begin_anew(wired)
    wired.deaf = False
    wired.settle()
    assert [wired.statuses[n] for n in range(3)] == [STATUS.PEER_RESTARTED, 0, 0]
    assert executed(wired)[5:] == [(n, i) for n in (1, 2) for i in range(4)]
    assert not wired.shared("timeouts")


def test_of_inline_puts_those_that_had_left_end_with_peer_restarted_and_the_rest_goes_again_in_order(  # noqa: E501
    wired,
):
    wired.deaf = True
    wired.ring(1, *[inline(cookie=n) for n in range(10)])
    wired.step(16)
    wired.observe()
    for _ in range(4):
        wired.express_engine()
    while wired.buffer:
        wired.transmit()
    while wired.wire:
        wired.deliver()
    begin_anew(wired)
    wired.deaf = False
    wired.settle()
    assert [wired.statuses[n] for n in range(10)] == [STATUS.PEER_RESTARTED] * 4 + [0] * 6
    assert [n for n, _ in executed(wired, 1) if n < 10] == list(range(10))


def test_what_a_rewind_sent_again_is_in_doubt_although_its_second_transmission_is_refused(wired):
    wired.deaf = True
    wired.ring(1, inline(cookie=0), put(length=8, cookie=1))
    wired.settle()
    begin_anew(wired)
    wired.deaf = False
    wired.settle(200 * MICROSECOND)
    assert wired.statuses[0] == wired.statuses[1] == STATUS.PEER_RESTARTED
    assert executed(wired, 1).count((0, 0)) == executed(wired).count((1, 0)) == 1


def test_a_peer_that_begins_anew_without_end_is_given_up():
    card = WiredCard()

    class Forgetful(type(card.peers[1])):
        def receive(self, packet):
            self.begin_anew()
            return super().receive(packet)

    for flow in 1, FLOW:
        card.peers[flow] = Forgetful()
    card.ring(1, inline(cookie=0), put(length=8, cookie=1))
    card.settle(1000 * MICROSECOND)
    assert card.statuses == {0: STATUS.PEER_RESTARTED, 1: STATUS.PEER_RESTARTED}
    assert not executed(card, 1) and not executed(card)


# Requests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [get(cookie=0), atomic(cookie=0), receive(cookie=0, endpoint=1)],
    ids=["get", "atomic", "receive"],
)
def test_a_request_that_was_acknowledged_ends_when_its_node_is_next_heard(wired, command):
    wired.ring(1, command)
    wired.settle()
    assert 0 not in wired.statuses
    begin_anew(wired)
    wired.ring(1, inline(cookie=1))
    wired.settle(10 * MICROSECOND)
    assert wired.statuses[0] == STATUS.PEER_RESTARTED and wired.statuses[1] == STATUS.OK
    # Its answer comes late, and the next request in the slot is another one.
    sent = wired.sent[-1]
    wired.respond(1, sent.word)
    wired.step()
    assert wired.shared("strays") == 1


@pytest.mark.parametrize(
    "command",
    [get(cookie=0), atomic(cookie=0), receive(cookie=0, endpoint=1)],
    ids=["get", "atomic", "receive"],
)
def test_a_node_that_owes_an_answer_is_told_something_from_time_to_time(wired, command):
    """Nobody else sends to it: it ends within 1 ms all the same, and without a restart it
    waits on.
    """
    wired.ring(1, command)
    wired.settle(3000 * MICROSECOND)
    assert 0 not in wired.statuses
    begin_anew(wired)
    wired.settle(1000 * MICROSECOND)
    assert wired.statuses[0] == STATUS.PEER_RESTARTED


def test_a_request_that_was_not_executed_goes_again_and_its_answer_is_taken(wired):
    begin_anew(wired)
    wired.ring(1, get(cookie=0))
    wired.settle()
    assert 0 not in wired.statuses
    wired.respond(1, wired.sent[-1].word)
    wired.settle()
    assert wired.statuses[0] == STATUS.OK


def test_a_send_that_has_met_nobody_waits_on_while_its_node_begins_anew(wired):
    wired.ring(1, send(cookie=0, endpoint=1))
    wired.settle()
    begin_anew(wired)
    wired.ring(1, inline(cookie=1), put(length=8, cookie=2))
    wired.settle(1000 * MICROSECOND)
    assert 0 not in wired.statuses and wired.statuses[1] == wired.statuses[2] == STATUS.OK


def test_a_receive_of_a_node_s_former_life_is_dropped_when_its_slot_asks_again(wired):
    """So those that a peer leaves here, life after life, do not fill the inbox."""
    for life in range(3):
        wired.message(
            1,
            word(MESSAGE.READY, 2 * C.SLOTS, generation=life + 1),
            5 + life,
            receive(node=0, endpoint=1),
        )
        wired.step()
    assert wired.freed == [5, 6]
    wired.ring(1, send(cookie=0, endpoint=2))
    wired.settle()
    assert wired.statuses[0] == STATUS.OK and wired.freed == [5, 6, 7]


# At any moment ------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", range(3))
@pytest.mark.parametrize("loss", [0, 0.05])
@pytest.mark.parametrize("fast", [0, 3])
def test_whenever_peers_begin_anew_no_packet_is_executed_twice_and_ok_means_all_of_it(
    fast, loss, more, seed
):
    rng = random.Random(f"{seed + more} restart {fast} {loss}")
    card = WiredCard()
    card.allow(fast)
    card.lose = lambda packet: rng.random() < loss
    commands, flows, packets = [], [], []
    for number in range(120):
        node, length = rng.choice((1, 1, 2)), rng.choice((0, 8, 4097, 30000, 100 * 4096))
        small = rng.random() < 0.5
        commands.append(
            inline(bytes(8), node=node, cookie=number)
            if small
            else put(length=length, node=node, cookie=number)
        )
        flows.append(node if small else BULK + node)
        packets.append(1 if small else packets_of(length))
    restarts = []

    def act():
        card.deaf = rng.random() < 3 * loss
        if rng.random() < 0.05:
            restarts.append(begin_anew(card, rng.choice((1, 2))))

    run_at_random(rng, card, commands, act)
    for n in range(len(commands)):
        done = [i for c, i in executed(card, flows[n]) if c == n]
        assert len(set(done)) == len(done), "a packet was executed twice"
        assert card.statuses[n] in (STATUS.OK, STATUS.PEER_RESTARTED)
        assert card.statuses[n] != STATUS.OK or done == list(range(packets[n]))
    assert len(restarts) > 5 and set(card.statuses.values()) == {STATUS.OK, STATUS.PEER_RESTARTED}
