"""Sides with an index list in every operation: well-formed ones, and the status of each mistake."""

# SPDX-License-Identifier: BSD-2-Clause

import itertools

import pytest
from dibber.interface.description import MESSAGE, STATUS, C

from tests.firmware.mcp_native import BULK, get, indexed, put, receive, send, walk
from tests.firmware.mcp_wire import WiredCard
from tests.firmware.test_mcp_messages import endings, outbox, word
from tests.firmware.test_mcp_send import check_job, finish, ready
from tests.gateware.models.cut import packets_of

MAKERS = {"put": put, "get": get, "send": send, "receive": receive}

# Operation, side, and what a target beyond what travels is called.
SIDES = [
    ("put", "source", None),
    ("put", "target", "REMOTE_BOUNDS"),
    ("get", "source", None),
    ("get", "target", "BOUNDS"),
    ("send", "source", None),
    ("receive", "target", "BOUNDS"),
]
COUNTS = [(), (3,), (3, 2)]


def issue(card, operation, side, walked, length, **how):
    card.ring(1, MAKERS[operation](length, cookie=3, **{side: walked}, **how))
    card.step()


def outcome(card):
    """How the command ended, or None: it is under way."""
    ends = endings(card)
    assert len(ends) <= 1 and (not ends or not (card.jobs or card.express))
    return ends[0][1] if ends else None


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("operation, side, _", SIDES)
def test_the_length_need_not_be_whole_nests(card, operation, side, _, counts):
    nest = 5
    for count in counts:
        nest *= count
    for node, length in enumerate(
        (1, 4, 5, nest - 1, nest, nest + 1, 1000 * nest, 1000 * nest + 7, C.MAX_LENGTH), 1
    ):
        issue(card, operation, side, indexed(5, counts), length, node=node)
        assert outcome(card) is None and card["HEAD", 1] == node


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("operation, side, _", SIDES)
def test_no_bytes_need_no_entries(card, operation, side, _, counts):
    for node, walked in enumerate(
        (indexed(0, counts), indexed(5, counts), indexed(5, (0,) * len(counts))), 1
    ):
        issue(card, operation, side, walked, 0, node=node)
        assert outcome(card) is None and card["HEAD", 1] == node


@pytest.mark.parametrize("levels", range(C.LIST + C.LIST_LEVELS + 1, 16))
@pytest.mark.parametrize("operation, side, _", SIDES)
def test_three_strides_under_a_list_and_what_nobody_knows(card, operation, side, _, levels):
    walked = walk(8, (1, 1, 1)) | {"levels": levels}
    issue(card, operation, side, walked, 8)
    assert outcome(card) == "BAD_LEVELS"


@pytest.mark.parametrize("operation, levels", [("send", C.LIST << 4), ("receive", C.LIST)])
def test_a_message_has_one_side(card, operation, levels):
    card.ring(1, MAKERS[operation](8, cookie=3, levels=levels))
    card.step()
    assert outcome(card) == "BAD_LEVELS"


@pytest.mark.parametrize("operation, side, _", SIDES)
def test_nothing_lies_at_the_entries(card, operation, side, _):
    for walked in (
        indexed(0),
        indexed(0, (3, 2)),
        *(indexed(5, c) for c in ((0,), (0, 2), (3, 0), (0, 0), (1 << 31, 0))),
    ):
        issue(card, operation, side, walked, 8)
        assert outcome(card) == "BAD_COUNT"


@pytest.mark.parametrize("operation, side, _", SIDES)
def test_what_lies_at_an_entry_is_no_longer_than_a_transfer_can_be(card, operation, side, _):
    for walked in (
        indexed(1 << 16, (1 << 16,)),
        indexed(1 << 31, (2, 1)),
        indexed(3, (1 << 31, 1 << 31)),
    ):
        issue(card, operation, side, walked, 8)
        assert outcome(card) == "BAD_LENGTH"
    issue(card, operation, side, indexed(0xFFFF, (0x10001,)), 8)
    assert outcome(card) is None


@pytest.mark.parametrize("operation, side, beyond", SIDES)
def test_the_offset_that_entries_are_added_to(card, operation, side, beyond):
    """A target's travels in 48 bits; no packet's place is added to it."""
    issue(card, operation, side, indexed(8, offset=C.MAX_OFFSET - 6), 80)
    assert outcome(card) is None
    card.jobs.clear(), card.express.clear()
    issue(card, operation, side, indexed(8, offset=C.MAX_OFFSET + 1), 80)
    assert outcome(card) == beyond if beyond else outcome(card) is None


def test_what_stands_in_the_place_of_the_third_stride_is_not_looked_at(card):
    """The gateware checks key and place of the list, as it checks all keys."""
    for key, offset in itertools.product((0, 1, 0xFFFFFFFF), (0, 4, -8, 1 << 60)):
        issue(card, "put", "target", indexed(8, list_key=key, list_offset=offset), 80)
        assert outcome(card) is None
    assert len(card.jobs) == 12


@pytest.mark.parametrize("strides", range(C.LIST_LEVELS + 1))
def test_a_job_says_how_the_receivers_list_is_walked(card, strides):
    message = ready(card, 5, length=9000, target=indexed(2, (2,) * strides))
    card.ring(1, send(8000, cookie=7, endpoint=2, source=indexed(80)))
    card.step()
    [job] = card.jobs
    check_job(card, job, 5, message, 8000, levels=C.LIST + strides)
    finish(card, job, packets_of(8000))
    assert endings(card) == [(7, "OK")]


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(
    "status, walked",
    [
        ("BAD_LEVELS", indexed(8) | {"levels": 7}),
        ("BAD_COUNT", indexed(8, (0,))),
        ("BAD_LENGTH", indexed(1 << 16, (1 << 16,))),
    ],
)
def test_a_get_that_its_owner_changed_after_the_check_is_checked_again(card, side, status, walked):
    card.message(3, word(MESSAGE.GET), 5, get(**{side: walked}))
    card.step()
    assert (
        not card.jobs
        and outbox(card, card.express[0]) == (0, getattr(STATUS, status))
        and card.freed == [5]
    )


@pytest.mark.parametrize("status", ["BAD_LIST", "REMOTE_BAD_LIST"])
def test_a_list_that_the_gateware_refuses_ends_the_put_and_the_next_one_goes_well(card, status):
    card.ring(1, put(5000, cookie=3, target=indexed(8)), put(cookie=4))
    card.step()
    first, second = card.jobs
    if status == "BAD_LIST":
        card.job_done(first.tag, first.psn, STATUS.BAD_LIST)
        card.job_done(second.tag, second.psn + 1)
    else:
        card.job_done(first.tag, first.psn + packets_of(5000))
        card.refuse(BULK + 1, first.psn + 1, STATUS.REMOTE_BAD_LIST)
        card.job_done(second.tag, second.psn + 1)
        card.ack(BULK + 1, second.psn)
    card.step()
    if status == "BAD_LIST":
        # Its PSNs are a gap, behind which the other is queued again.
        assert endings(card) == [(3, status)]
        again = card.jobs[-1]
        assert again.slot == 1 and again.incarnation != second.incarnation
        card.job_done(again.tag, again.psn + 1)
        card.ack(BULK + 1, again.psn)
        card.step()
        assert endings(card) == [(4, "OK")]
    else:
        assert endings(card) == [(3, status), (4, "OK")]


# On the fast path ---------------------------------------------------------------------------------


def listed(cookie, length=5000):
    """A put of two packets with lists on both sides."""
    return put(length, cookie=cookie, source=indexed(8), target=indexed(4, (3,)))


@pytest.fixture
def wired():
    card = WiredCard()
    card.allow(11)  # inline puts, puts, gets
    return card


def take(card, *commands):
    """Ring commands that the fast path takes, before any of them is sent."""
    card.ring(1, *commands)
    card.step(2)
    assert card.word("fast_commands") == len(commands)


def test_puts_with_lists_end_without_the_program(wired):
    before = wired.shared("commands")
    take(wired, *[listed(n) for n in range(8)])
    wired.settle()
    assert wired.statuses == dict.fromkeys(range(8), 0)
    assert wired.shared("commands") == before and wired.shared("claims") == 0


def test_a_get_with_lists_is_answered_without_the_program(wired):
    asked = get(5000, source=indexed(8), target=indexed(4, (3,)))
    wired.message(1, word(MESSAGE.GET), 5, asked)
    wired.step(2)
    assert wired.word("fast_answers") == 1 and wired.jobs[0].response


@pytest.mark.parametrize("status", ["BAD_COUNT", "BAD_LENGTH"])
def test_a_list_that_the_fast_path_does_not_take_is_the_programs(wired, status):
    bad = {"BAD_COUNT": indexed(8, (0,)), "BAD_LENGTH": indexed(1 << 16, (1 << 16,))}[status]
    wired.ring(1, put(80, cookie=0, target=bad), put(80, cookie=1, target=indexed(0xFFFF, (999,))))
    wired.settle()
    assert wired.statuses == {0: getattr(STATUS, status), 1: 0}
    assert wired.word("fast_commands") == 0


@pytest.mark.parametrize("sent", [0, 1])
def test_a_list_that_ends_early_gives_the_flow_away_and_fails_alone(wired, sent):
    wired.fails = {1: (STATUS.BAD_LIST, sent)}
    take(wired, *[listed(n) for n in range(4)])
    wired.settle()
    assert wired.statuses == {0: 0, 1: STATUS.BAD_LIST, 2: 0, 3: 0}
    done = wired.peers[BULK + 1].executed
    assert [p for p in done if p[0] != 1] == [(n, i) for n in (0, 2, 3) for i in range(2)]


def test_a_refused_list_claims_the_flow_and_fails_alone(wired):
    wired.refuses = {2: STATUS.REMOTE_BAD_LIST}
    take(wired, *[listed(n) for n in range(5)])
    wired.settle()
    assert wired.statuses == {0: 0, 1: 0, 2: STATUS.REMOTE_BAD_LIST, 3: 0, 4: 0}
    assert wired.shared("claims") == 1


@pytest.mark.parametrize("index", [0, 1])
def test_a_lost_packet_of_a_list_is_sent_again_and_nothing_twice(wired, index):
    left = {(2, index)}

    def lose(packet):
        found = (packet.cookie, packet.index) in left
        left.discard((packet.cookie, packet.index))
        return found

    wired.lose = lose
    take(wired, *[listed(n) for n in range(5)])
    wired.settle()
    assert wired.statuses == dict.fromkeys(range(5), 0) and wired.shared("claims") == 1
    assert wired.peers[BULK + 1].executed == [(n, i) for n in range(5) for i in range(2)]
