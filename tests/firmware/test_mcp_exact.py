"""What small changes of the program spoil: generations, owners of completions, the last tick."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import MESSAGE, OPCODE, STATUS, C

from tests.firmware.mcp_native import BULK, admin, atomic, get, inline, put, receive, send
from tests.firmware.test_mcp_messages import reply

MICROSECOND = 125
GIVE_UP = 40_000 * MICROSECOND  # cycles
TICK = 50 * MICROSECOND

# Generations --------------------------------------------------------------------------------------


def reopened(card):
    """The endpoint was closed and opened again; what its commands ended with."""
    card.ring(0, admin(OPCODE.ENDPOINT_CLOSE, endpoint=1, cookie=99))
    card.step(20)
    ended = {entry.cookie: entry.status for entry in card.entries()}
    card["HEAD", 1] = card["PRODUCER", 1] = 0
    card["CQ_CONSUMER", 1] = 0
    assert card.open(1) == STATUS.OK
    return ended


@pytest.mark.fault
def test_what_was_flushed_has_another_generation_than_what_takes_its_slot(card):
    """The answer to it may still come. It ends nothing of the new owner, neither here nor in the
    gateware's table."""
    card.ring(1, receive(64, cookie=7))
    card.step()
    card.ack(1, 0)
    card.step()
    old = card.express[-1].word
    assert reopened(card) == {7: STATUS.FLUSHED, 99: STATUS.OK}
    card.express.clear()
    card.expected.clear()
    card.ring(1, receive(64, cookie=8))
    card.step()
    [new] = [packet.word for packet in card.express if packet.word & 0xFF == MESSAGE.READY]
    assert new & 0x3FFFF00 == old & 0x3FFFF00 and new >> 26 != old >> 26
    assert card.expected[-1][0] == new >> 16
    strays = card.shared("strays")
    card.respond(1, old, 64)
    card.step()
    assert card.entries() == [] and card.shared("strays") == strays + 1
    card.ack(1, 2)
    card.respond(1, new, 32)
    card.step()
    assert [(entry.cookie, entry.status, entry.length) for entry in card.entries()] == [
        (8, STATUS.OK, 32)
    ]


# Whose completion ---------------------------------------------------------------------------------


@pytest.mark.fault
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
@pytest.mark.parametrize("kind", ["receive", "get", "atomic"])
def test_a_completion_has_node_cookie_and_length_of_its_own_command(card, kind, order):
    """Its neighbours wait in the slots beside it, for other nodes; one of them is of another
    endpoint's last slot."""
    make, message = {
        "receive": (receive, MESSAGE.READY),
        "get": (get, MESSAGE.GET),
        "atomic": (atomic, MESSAGE.ATOMIC),
    }[kind]
    assert card.open(2) == STATUS.OK
    for n in range(C.SLOTS - 2):
        card.ring(1, bytes(C.SLOT_BYTES))
        card.step(2)
        card.entries()
    length = 4 if kind == "atomic" else 1000
    commands = [
        (endpoint, node, 0x1000 * node + 7) for endpoint, node in ((1, 1), (1, 2), (2, 3), (2, 4))
    ]
    for endpoint, node, cookie in commands:
        card.ring(endpoint, make(length=length, node=node, cookie=cookie))
    card.step()
    asked = {packet.node: packet.word for packet in card.express if packet.word & 0xFF == message}
    assert sorted(asked) == [1, 2, 3, 4]
    for endpoint, node, cookie in (commands[n] for n in order):
        card.ack(node, 0)
        card.step()
        if kind == "atomic":
            card.message(
                node,
                asked[node] & ~0xFF | MESSAGE.ATOMIC_REPLY,
                5,
                reply(STATUS.OK, 0xABC0 + node + (node << 32)),
            )
        else:
            card.respond(node, asked[node], 100 * node)
        card.step()
        [entry] = card.entries()
        told = {"receive": 100 * node, "get": length, "atomic": 0xABC0 + node}[kind]
        assert (entry.cookie, entry.node, entry.status, entry.length) == (
            cookie,
            node,
            STATUS.OK,
            told,
        )
        assert entry.key == (node if kind == "atomic" else 0)
        assert entry.address & ~0xFFFF == card.cq(endpoint) & ~0xFFFF


# The last tick ------------------------------------------------------------------------------------


def before_tick(card, cycles):
    """Go to so many cycles before the next tick."""
    card.wait(TICK)  # the first one after boot is at 0
    ahead = (card["TIMER"] - card.library.fake_now()) % 2**32
    card.library.fake_advance((ahead - cycles) % TICK)
    card.step(1)
    assert 0 < (card["TIMER"] - card.library.fake_now()) % 2**32 <= TICK


def tick(card):
    """Go to the next tick. The engine has ended what jobs it had, and nobody acknowledges."""
    for job in card.jobs:
        card.job_done(job.tag, job.psn + 1)
    card.jobs.clear()
    card.step(1)
    ahead = (card["TIMER"] - card.library.fake_now()) % 2**32
    card.library.fake_advance(ahead if 0 < ahead <= TICK else 1)
    card.step(1)


def until_given_up(card):
    """Cycles until a command ends with TIMEOUT, to the tick."""
    begin = card.library.fake_now()
    while not (ended := card.entries()):
        tick(card)
        assert card.library.fake_now() - begin < 2 * GIVE_UP
    assert {(entry.status, entry.key) for entry in ended} == {(STATUS.TIMEOUT, 0)}
    return card.library.fake_now() - begin


KINDS = {
    "a put": lambda card: card.ring(1, put(cookie=1)),
    "an inline put": lambda card: card.ring(1, inline(cookie=1)),
    "a get that is not acknowledged": lambda card: card.ring(1, get(cookie=1)),
    "an atomic that is not acknowledged": lambda card: card.ring(1, atomic(cookie=1)),
    "a READY that is not acknowledged": lambda card: card.ring(1, receive(cookie=1)),
}


@pytest.mark.fault
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ahead", [40, TICK // 2, TICK - 300])
def test_nothing_is_given_up_before_40_ms_have_passed_and_all_is_two_ticks_later(card, kind, ahead):
    """Counted from the command, wherever it comes between two ticks."""
    before_tick(card, ahead)
    KINDS[kind](card)
    card.step(2)
    assert GIVE_UP <= until_given_up(card) <= GIVE_UP + 2 * TICK


@pytest.mark.fault
@pytest.mark.parametrize("make", [get, atomic])
@pytest.mark.parametrize("ahead", [40, TICK // 2])
def test_an_answer_has_40_ms_from_the_acknowledgement_of_its_request(card, make, ahead):
    card.ring(1, make(cookie=1))
    card.step()
    before_tick(card, ahead)
    card.ack(1, 0)
    card.step(2)
    # A get of some bytes has no more time than an atomic: 4,096 of them are another tick.
    assert GIVE_UP <= until_given_up(card) <= GIVE_UP + 2 * TICK


@pytest.mark.fault
@pytest.mark.parametrize("command", [receive(cookie=1), send(cookie=1)], ids=["receive", "send"])
@pytest.mark.parametrize("ahead", [40, TICK // 2])
def test_what_waits_for_a_node_has_40_ms_from_when_the_link_went_down(card, command, ahead):
    card.ring(1, command)
    card.step()
    card.ack(1, 0)
    card.step()
    before_tick(card, ahead)
    card.link(0)
    card.step(2)
    assert GIVE_UP <= until_given_up(card) <= GIVE_UP + 2 * TICK


@pytest.mark.fault
def test_an_acknowledgement_gives_a_flow_all_of_its_time_again(card):
    """The last one that it can come to: a tick before it would be given up."""
    before_tick(card, 40)
    card.ring(1, put(cookie=1), put(cookie=2))
    for _ in range(GIVE_UP // TICK - 2):
        tick(card)
    assert card.entries() == []
    card.ack(BULK + 1, 0)
    card.step()
    assert [entry.cookie for entry in card.entries()] == [1]
    assert GIVE_UP <= until_given_up(card) <= GIVE_UP + 4 * TICK


# The first number that does not exist -------------------------------------------------------------


@pytest.mark.parametrize("make", [put, inline, get, atomic, receive, send])
@pytest.mark.parametrize("node", [C.NODES, C.NODES + 1, 0xFFFF])
def test_the_first_node_that_does_not_exist_is_refused(card, make, node):
    card.ring(1, make(node=node, cookie=5), make(node=C.NODES - 1, cookie=6))
    card.step()
    assert [(entry.cookie, entry.status) for entry in card.entries()] == [(5, STATUS.BAD_NODE)]
    assert {packet.node for packet in [*card.express, *card.jobs]} <= {C.NODES - 1}


# What comes after a long time ---------------------------------------------------------------------


@pytest.mark.parametrize("make, flow", [(put, BULK + 1), (inline, 1)])
def test_what_is_under_way_belongs_to_an_incarnation_that_lasted_for_a_billion_packets(
    card, make, flow
):
    """A tick moves the start of the flow then. PSNs that are not acknowledged are behind it all
    the same, and end well."""
    card.ring(1, make(cookie=1), make(cookie=2))
    card.step()
    # the two that are under way are the last of 2^30 + 1
    card.library.fake_age(flow, (1 << 30) - 1)
    tick(card)
    card.ack(flow, 0)
    card.step()
    tick(card)
    card.ack(flow, 1)
    card.step()
    assert [(entry.cookie, entry.status) for entry in card.entries()] == [
        (1, STATUS.OK),
        (2, STATUS.OK),
    ]
    card.ring(1, make(cookie=3))
    card.step()
    for job in card.jobs:
        card.job_done(job.tag, job.psn + 1)
    card.ack(flow, 2)
    card.step()
    assert [(entry.cookie, entry.status) for entry in card.entries()] == [(3, STATUS.OK)]


def test_what_the_host_wrote_is_looked_at_once(card):
    """Code is fetched again once after a write of the host, not at each tick."""
    card["SRAM_WRITTEN"] = 1
    tick(card)
    tick(card)
    assert not card["SRAM_WRITTEN"]
