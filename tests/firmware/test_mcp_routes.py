"""The routing table, what happens when a route dies, and scouts."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import FLAG, OPCODE, STATUS, C

from tests.firmware.mcp_native import admin, inline, put, route
from tests.firmware.mcp_wire import WiredCard

MICROSECOND = 125
NODES = range(1, C.NODES)


def word(*turns):
    return len(turns) | sum(turn << 4 * (n + 1) for n, turn in enumerate(turns))


def command(card, bytes_, cookie=0x70C0):
    """Run one command of the administrator; its completion, or None while there is none."""
    card.ring(0, bytes_)
    card.step()
    entries = [e for e in card.entries() if e.cookie == cookie]
    return entries[0] if entries else None


def set_route(card, node=1, place=0, turns=(1,), valid=1, **values):
    values.setdefault("route", word(*turns))
    return command(
        card, route(OPCODE.ROUTE_SET, node=node, place=place, valid=valid, cookie=0x70C0, **values)
    ).status


def ask(card, turns=(), back=(), timeout=2000, cookie=0x5C07, **values):
    values = {"route": word(*turns), "back": word(*back), **values}
    return command(card, route(OPCODE.SCOUT, timeout=timeout, cookie=cookie, **values), cookie)


# Routing Table ------------------------------------------------------------------------------------


def test_a_program_that_starts_knows_neighbours_only(card):
    assert card.routes == {node: 0 for node in range(C.NODES)}


def test_the_lowest_valid_place_is_used(card):
    assert set_route(card, place=2, turns=(1, 2)) == STATUS.OK and card.routes[1] == word(1, 2)
    assert set_route(card, place=3, turns=(3,)) == STATUS.OK and card.routes[1] == word(1, 2)
    assert set_route(card, place=0, turns=(4,)) == STATUS.OK and card.routes[1] == word(4)
    assert card.routes_to(1)["valid"] == 0b1101 and card.routes_to(1)["current"] == 0
    assert set_route(card, place=0, valid=0) == STATUS.OK and card.routes[1] == word(1, 2)
    assert set_route(card, place=2, valid=0) == STATUS.OK and card.routes[1] == word(3)
    assert set_route(card, place=3, valid=0) == STATUS.OK and card.routes[1] == 0
    assert all(card.routes[node] == 0 for node in NODES)


@pytest.mark.parametrize(
    "change",
    [
        dict(node=C.NODES),
        dict(node=0),
        dict(place=C.ROUTES),
        dict(valid=2),
        dict(route=C.ROUTE_HOPS + 1),
        dict(route=15),
    ],
)
def test_an_impossible_route_is_refused(card, change):
    before = dict(card.routes)
    assert set_route(card, **change) == STATUS.BAD_ARGUMENT
    assert card.routes == before and card.routes_to(1)["valid"] == 0


def test_only_the_administrator_enters_routes_and_sends_scouts(card):
    card.ring(
        1, route(OPCODE.ROUTE_SET, node=1, valid=1, route=word(1)), route(OPCODE.SCOUT, timeout=100)
    )
    card.step()
    assert [e.status for e in card.entries()] == [STATUS.BAD_OPCODE] * 2
    assert not card.scouts and card.routes[1] == 0


def test_a_flag_that_they_do_not_know_is_refused(card):
    assert (
        command(
            card, route(OPCODE.ROUTE_SET, node=1, valid=1, flags=FLAG.FENCE, cookie=0x70C0)
        ).status
        == STATUS.BAD_FLAGS
    )
    assert (
        command(card, route(OPCODE.SCOUT, timeout=9, flags=FLAG.NOTICE, cookie=0x70C0)).status
        == STATUS.BAD_FLAGS
    )


# Dead Routes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "commands",
    [
        [inline(bytes(8), cookie=n) for n in range(5)],
        [put(length=3 * 4096, cookie=n) for n in range(5)],
    ],
)
def test_a_dead_route_is_left_for_the_next_and_nothing_is_lost(commands):
    wired = WiredCard()
    for place, turns in enumerate([(1,), (2,), (3,)]):
        assert set_route(wired, place=place, turns=turns) == STATUS.OK
    dead = {word(1), word(2)}
    wired.lose = lambda packet: wired.routes[1] in dead
    wired.ring(1, *commands)
    for _ in range(60):
        wired.settle(200 * MICROSECOND)
    assert wired.statuses == {n: STATUS.OK for n in range(5)}
    assert wired.routes[1] == word(3) and wired.routes_to(1)["changes"] == 2
    assert set(wired.incarnation.values()) <= {0, 1}


def test_with_one_route_there_is_nothing_to_turn_to(card):
    wired = WiredCard()
    assert set_route(wired, place=1, turns=(1,)) == STATUS.OK
    wired.cut = {1}
    wired.ring(1, inline(bytes(8), cookie=0))
    for _ in range(300):
        wired.settle(200 * MICROSECOND)
    assert wired.statuses == {0: STATUS.TIMEOUT}
    assert wired.routes[1] == word(1) and wired.routes_to(1)["changes"] == 0


def test_a_loss_that_is_healed_at_once_changes_no_route():
    wired, left = WiredCard(), [1]
    for place in range(2):
        set_route(wired, place=place, turns=(place + 1,))
    wired.lose = lambda packet: bool(left and left.pop())
    wired.ring(1, inline(bytes(8), cookie=0))
    for _ in range(5):
        wired.settle(200 * MICROSECOND)
    assert wired.statuses == {0: STATUS.OK} and wired.routes[1] == word(1)
    heard = wired.routes_to(1)["heard"]
    assert heard
    # Silence is no sign of life.
    wired.settle(500 * MICROSECOND)
    assert wired.routes_to(1)["heard"] == heard
    wired.ring(1, inline(bytes(8), cookie=1))
    wired.settle(200 * MICROSECOND)
    assert wired.routes_to(1)["heard"] > heard


# Two Links ----------------------------------------------------------------------------------------

LINK_1 = 8  # in a route's word


def linked(*routes, up=3):
    """A card with two links, and these routes to node 1."""
    wired = WiredCard()
    wired.links(3)
    wired.settle(1)
    for place, route_word in enumerate(routes):
        assert set_route(wired, place=place, route=route_word) == STATUS.OK
    wired.links(up)
    return wired


@pytest.mark.parametrize("dead", [1, 2])
def test_flows_of_a_link_that_goes_down_take_the_other_one_at_once(dead):
    routes = [word(1), word(2) | LINK_1] if dead == 1 else [word(2) | LINK_1, word(1)]
    wired = linked(*routes)
    wired.cut = {1}  # what was sent is lost
    wired.ring(1, put(length=3 * 4096, cookie=1), inline(bytes(8), cookie=2))
    wired.settle(2)
    wired.cut = set()
    wired.links(3 & ~dead)
    wired.settle(1)
    assert wired.routes[1] == routes[1] and wired.routes_to(1)["changes"] == 1
    wired.settle(60 * MICROSECOND)  # no time limit of a flow has passed
    assert wired.statuses == {1: STATUS.OK, 2: STATUS.OK}


def test_a_link_that_stays_up_for_a_millisecond_has_its_flows_again():
    wired = linked(word(1), word(2) | LINK_1)
    for up in (2, 3, 2, 3):
        wired.links(up)
        wired.settle(300 * MICROSECOND)
        assert wired.routes[1] == word(2) | LINK_1
    wired.settle(900 * MICROSECOND)
    assert wired.routes[1] == word(1)
    wired.ring(1, put(length=2 * 4096, cookie=1))
    wired.settle(100 * MICROSECOND)
    assert wired.statuses == {1: STATUS.OK} and wired.routes[1] == word(1)


def test_a_route_that_was_left_for_its_losses_is_not_taken_again():
    wired = linked(word(1), word(2) | LINK_1)
    wired.lose = lambda packet: wired.routes[1] == word(1)
    wired.ring(1, put(length=4096, cookie=1))
    for _ in range(30):
        wired.settle(200 * MICROSECOND)
    assert wired.statuses == {1: STATUS.OK} and wired.routes[1] == word(2) | LINK_1


def test_flows_of_the_other_link_are_not_sent_again():
    wired = linked(word(1))
    wired.cut = {1}
    wired.ring(1, inline(bytes(8), cookie=1))
    wired.settle(2)
    epochs = dict(wired.epoch)
    for up in (1, 3, 1):
        wired.links(up)
        wired.settle(1)
    assert wired.epoch == epochs and wired.routes_to(1)["changes"] == 0
    wired.links(0)
    wired.links(1)
    wired.settle(1)
    assert wired.epoch != epochs


def test_a_new_route_to_a_dead_link_waits_for_it_and_one_to_a_living_link_is_taken():
    wired = linked(word(1), up=2)
    assert wired.routes[1] == word(1)
    assert set_route(wired, place=1, route=word(2) | LINK_1) == STATUS.OK
    assert wired.routes[1] == word(2) | LINK_1
    assert set_route(wired, place=2, route=word(1, 2, 3, 4, 5, 6, 7) | LINK_1) == STATUS.OK


def test_a_card_with_one_link_refuses_a_route_by_the_second(card):
    assert set_route(card, route=word(1) | LINK_1) == STATUS.BAD_ARGUMENT
    assert card.routes[1] == 0


# Scouts -------------------------------------------------------------------------------------------


def test_a_scout_is_answered_by_the_way_that_it_names(card):
    card.scout(7, 0x1234, word(3, 4))
    card.step()
    assert card.scouts == [(7, 1, word(3, 4), 0, 0x1234)] and card.shared("scouts") == 1


def test_an_answer_of_a_card_with_two_links_says_which_one_the_scout_came_by(card):
    card.links(3)
    for back in (word(3), word(3) | LINK_1):
        card.scout(7, 1, back)
        card.step()
    words = [scout.back for scout in card.scouts]
    assert [scout.route for scout in card.scouts] == [word(3), word(3) | LINK_1]
    assert words[0] & 0xFF == C.SCOUTED_TWO and words[1] == words[0] | C.ROUTE_LINK


def test_a_flood_of_scouts_is_answered_as_far_as_there_is_space(card):
    card["SCOUT_SPACE"] = 2
    for n in range(9):
        card.scout(7, n)
    for _ in range(20):
        card.library.mcp_step()  # nothing leaves meanwhile
    card.collect()
    assert [s.number for s in card.scouts] == [0, 1]
    card.scout(7, 99)
    card.step()
    assert [s.number for s in card.scouts] == [0, 1, 99]


def test_a_scout_that_names_an_impossible_way_is_not_answered(card):
    card.scout(7, 1, 0xF)
    card.step()
    assert not card.scouts


def test_ours_ends_with_its_answer(card):
    assert ask(card, (1, 2), (14, 15)) is None
    [scout] = card.scouts
    assert (scout.target, scout.reply, scout.route, scout.back) == (
        C.ANYBODY,
        0,
        word(1, 2),
        word(14, 15),
    )
    card.scout(9, scout.number + 1, reply=True)  # another's
    card.scout(9, scout.number, 0x70C, reply=True)
    card.step()
    [entry] = card.entries()
    assert (entry.status, entry.node, entry.key, entry.cookie) == (STATUS.OK, 9, 0, 0x5C07)
    assert entry.length == 0x70C  # what the other card said of itself
    assert card.shared("strays") == 1


@pytest.mark.parametrize("link", [0, LINK_1])
def test_ours_ends_when_it_comes_round(card, link):
    assert ask(card, (1, 0, 15)) is None
    card.scout(0, card.scouts[0].number, word(1) | link)
    card.step()
    [entry] = card.entries()
    assert (entry.status, entry.node, entry.key) == (STATUS.OK, 0, 1) and len(card.scouts) == 1
    assert entry.length == link


@pytest.mark.parametrize(
    "question", [0, 5, C.SWITCH_ASK_WORD, C.SWITCH_ASK_WRITE | 9 | 0xABCD << 16]
)
def test_ours_asks_a_switch_and_ends_with_its_word(card, question):
    numbers = []
    for _ in range(3):
        assert ask(card, (3,), question=question) is None
        number = card.scouts[-1].number
        asks = C.SWITCH_ASK_WORD | C.SWITCH_ASK_WRITE
        assert number & asks == question & asks
        assert not question & C.SWITCH_ASK_WRITE or number >> 16 == question >> 16
        card.scout(0, number ^ 1 << 11, 0xBAD, reply=True)  # to another question
        card.scout(0, number, 0x600D + len(numbers), reply=True)
        card.step()
        [entry] = card.entries()
        assert (entry.status, entry.key) == (STATUS.OK, 2)
        assert entry.length == 0x600D + len(numbers)
        numbers.append(number)
    # Late answers to the ones before would have been told from this one.
    assert len(set(numbers)) == 3 and card.shared("strays") == 3


def test_ours_ends_in_time_without_an_answer_and_a_late_one_is_stray(card):
    assert ask(card, timeout=2000) is None
    card.library.fake_advance(2000)
    card.step()
    [entry] = card.entries()
    assert entry.status == STATUS.TIMEOUT
    assert ask(card) is None
    card.scout(9, card.scouts[0].number, reply=True)
    card.step()
    assert card.entries() == [] and card.shared("strays") == 1


def test_one_waits_for_the_one_before_and_other_commands_of_the_administrator_behind_it(card):
    assert ask(card, cookie=1) is None and ask(card, cookie=2) is None
    card.ring(0, admin(OPCODE.NOP, cookie=3))
    card.step()
    assert len(card.scouts) == 1 and card.entries() == []
    card.scout(4, card.scouts[0].number, reply=True)
    card.step()
    assert [e.cookie for e in card.entries()] == [1, 3] and len(card.scouts) == 2
    card.scout(5, card.scouts[1].number, reply=True)
    card.step()
    assert [(e.cookie, e.node) for e in card.entries()] == [(2, 5)]


@pytest.mark.parametrize(
    "change",
    [
        dict(timeout=0),
        dict(timeout=2**20 + 1),
        dict(route=8),
        dict(back=(0,) * 9),
        dict(question=1 << 16),
        dict(question=C.SWITCH_ASK_WRITE | 1 << 11),
    ],
)
def test_an_impossible_scout_is_refused(card, change):
    assert ask(card, **change).status == STATUS.BAD_ARGUMENT and not card.scouts


def test_a_scout_without_space_is_as_good_as_lost(card):
    card["SCOUT_SPACE"] = 0
    assert ask(card, timeout=2000) is None
    card.library.fake_advance(2000)
    card.step()
    assert [e.status for e in card.entries()] == [STATUS.TIMEOUT] and not card.scouts
