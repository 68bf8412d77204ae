"""Gets and atomics: requests, answers and replies on both sides, and any other messages from the
wire.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from dibber.interface.description import FLAG, MESSAGE, OPCODE, REPLY, STATUS, C

from tests.firmware.mcp_native import BULK, admin, atomic, get, inline, pack_struct, put, walk
from tests.gateware.models.cut import packets_of, whole

MICROSECOND = 125
TIMEOUT = 40_000 * MICROSECOND


def context(tag, generation=1):
    """Of a request from the slot with this tag; by default the slot's first one."""
    return tag | generation << 10


def word(kind, tag=C.SLOTS, generation=1):
    """The message word about the command with this tag; by default that in endpoint 1's slot 0."""
    return kind | tag // C.SLOTS << 8 | context(tag, generation) << 16


def reply(status=0, value=0):
    return pack_struct(REPLY, dict(status=status, value=value))


def outbox(card, packet, box=C.OUTBOX):
    """(value, status) in the slot of the OUTBOX, or the INBOX, that a message was made from."""
    assert packet.endpoint == box
    base = (box * C.SLOTS + packet.slot) * C.SLOT_BYTES
    content = bytes(card.slots[base : base + 12])
    return int.from_bytes(content[:8], "little"), int.from_bytes(content[8:], "little")


def endings(card):
    return [(e.cookie, STATUS.name_of(e.status)) for e in card.entries()]


# Get, asking --------------------------------------------------------------------------------------


def test_a_get_goes_as_a_message_from_its_slot_and_ends_with_its_answer(card):
    card.expected.clear()
    card.ring(1, get(length=5000, cookie=7, flags=FLAG.SOLICIT, target=walk(5000, key=0x305)))
    card.step()
    [message] = card.express
    assert (message.endpoint, message.slot, message.message, message.node) == (1, 0, 1, 1)
    assert message.word == word(MESSAGE.GET) and not card.jobs
    assert card.expected == [(context(C.SLOTS), 1, 1, 0x305)]
    card.ack(1, 0)
    card.step()
    assert card.entries() == []
    card.respond(1, message.word)
    card.step()
    [entry] = card.entries()
    assert (entry.status, entry.cookie, entry.length, entry.node, entry.interrupt) == (
        0,
        7,
        5000,
        1,
        1,
    )
    assert card.expected[1][:3] == (context(C.SLOTS), 1, 0)


def test_an_answer_that_overtakes_the_acknowledgement_waits_for_it(card):
    """Until then the request may be sent again from its slot."""
    card.ring(1, get(cookie=7))
    card.step()
    card.respond(1, word(MESSAGE.GET))
    card.step()
    assert card.entries() == []
    card.ack(1, 0)
    card.step()
    assert endings(card) == [(7, "OK")]


def test_what_is_expected_is_entered_before_the_message_is_queued(card):
    card.ring(1, get())
    card.library.mcp_step()
    names = [card.names[e.offset] for e in card.log[: card.logged.value]]
    assert names.index("EXPECT_WRITE") < names.index("EXPRESS_START")


@pytest.mark.parametrize(
    "name,change",
    [
        ("BAD_FLAGS", dict(flags=FLAG.NOTICE)),
        ("BAD_FLAGS", dict(flags=FLAG.CHECKSUM)),
        ("BAD_LEVELS", dict(levels=7)),
        ("BAD_LEVELS", dict(levels=0x70)),
        ("BAD_NODE", dict(node=0)),
        ("BAD_NODE", dict(node=C.NODES)),
        ("BAD_COUNT", dict(source=walk(0))),
        ("BAD_LENGTH", dict(source=walk(9))),
        ("BAD_LENGTH", dict(target=walk(8, [2]))),
        ("BOUNDS", dict(target=walk(8, offset=C.MAX_OFFSET + 1))),
        ("BOUNDS", dict(target=walk(8, offset=C.MAX_OFFSET - 6))),
    ],
)
def test_a_malformed_get_asks_nobody(card, name, change):
    card.expected.clear()
    card.ring(1, get(cookie=3, **change))
    card.step()
    assert endings(card) == [(3, name)] and not card.express and not card.expected


@pytest.mark.parametrize(
    "there,here",
    [
        ("BAD_KEY", "REMOTE_BAD_KEY"),
        ("NOT_PERMITTED", "REMOTE_NOT_PERMITTED"),
        ("BOUNDS", "REMOTE_BOUNDS"),
        ("READ_ERROR", "REMOTE_READ_ERROR"),
        ("READ_TIMEOUT", "REMOTE_READ_ERROR"),
        ("REMOTE_BAD_KEY", "BAD_KEY"),
        ("REMOTE_NOT_PERMITTED", "NOT_PERMITTED"),
        ("REMOTE_BOUNDS", "BOUNDS"),
        ("REMOTE_READ_ERROR", "READ_ERROR"),
        ("BAD_LIST", "REMOTE_BAD_LIST"),
        ("REMOTE_BAD_LIST", "BAD_LIST"),
        ("TIMEOUT", "TIMEOUT"),
        ("OK", "REMOTE_BAD_HEADER"),
        (200, "REMOTE_BAD_HEADER"),
    ],
)
def test_a_get_that_failed_there_is_told_as_it_is_seen_from_here(card, there, here):
    card.ring(1, get(cookie=7))
    card.step()
    card.ack(1, 0)
    card.message(
        1,
        word(MESSAGE.GET_FAILED),
        9,
        reply(getattr(STATUS, there) if isinstance(there, str) else there),
    )
    card.step()
    assert endings(card) == [(7, here)] and card.freed == [9] and card.expected[-1][2] == 0


def test_two_requests_are_under_way_to_a_node_and_others_wait_in_their_slots(card):
    card.ring(1, get(cookie=0), atomic(cookie=1), get(cookie=2), get(node=2, cookie=3))
    assert card.open(2) == 0
    card.ring(2, get(node=2, cookie=4), inline(cookie=5))
    card.step()
    assert [m.word >> 16 & 0x3FF for m in card.express if m.message] == [32, 33, 64]
    assert (card["HEAD", 1], card["HEAD", 2]) == (2, 2)
    card.ack(1, 1)
    card.step()
    assert card["HEAD", 1] == 2
    card.respond(1, word(MESSAGE.GET, 32))
    card.step()
    assert card["HEAD", 1] == 4


def test_a_get_whose_answer_never_comes_ends_40_ms_after_its_request_was_acknowledged(card):
    card.ring(1, get(cookie=7))
    card.step()
    card.ack(1, 0)
    card.wait(TIMEOUT - 300 * MICROSECOND, present=(1,))
    assert card.entries() == []
    card.wait(600 * MICROSECOND, present=(1,))
    assert endings(card) == [(7, "TIMEOUT")] and card.expected[-1][2] == 0
    card.respond(1, word(MESSAGE.GET))
    card.step()
    assert card.entries() == [] and card.shared("strays") == 1
    card.ring(1, get(cookie=8), get(cookie=9))
    card.step()
    gets = [p for p in card.express if p.message and p.word & 0xFF == MESSAGE.GET]
    assert len(gets) == 3


def test_what_is_late_for_a_get_is_not_taken_for_the_next_one_in_its_slot(card):
    """It was given up: sixty-three times over; the table at home compares the same context."""
    card.expected.clear()
    seen = set()
    for n in range(64):
        for slot in range(C.SLOTS):
            card.ring(1, get(cookie=n) if slot == 0 else bytes(C.SLOT_BYTES))
            card.step(2)
        [message] = card.express
        assert message.word not in seen
        card.ack(1, n)
        for old in seen:
            card.respond(1, old)
        card.step(12)
        assert [e.cookie for e in card.entries() if e.node == 1] == []
        seen.add(message.word)
        card.wait(TIMEOUT + 300 * MICROSECOND)
        assert endings(card) == [(n, "TIMEOUT")]
        card.express.clear()
    assert len({context for context, *_ in card.expected}) == 64


def test_requests_that_are_answered_and_those_given_up_together_have_one_generation(card):
    words = []
    for n in range(3):
        card.ring(1, get(cookie=2 * n), get(cookie=2 * n + 1, node=2))
        card.step(2)
        words.append({message.word >> 26 for message in card.express})
        card.ack(1, n)
        card.ack(2, n)
        if n == 0:
            for message in card.express:
                card.respond(message.node, message.word)
            card.step()
        else:
            card.wait(TIMEOUT + 300 * MICROSECOND)
        assert sorted(endings(card)) == [
            (2 * n, "TIMEOUT" if n else "OK"),
            (2 * n + 1, "TIMEOUT" if n else "OK"),
        ]
        card.express.clear()
    assert (
        words[0] == words[1]
        and all(len(of) == 1 for of in words)
        and words[2] == {(*words[0],)[0] + 1}
    )


def test_a_long_get_has_time_for_its_bytes(card):
    card.ring(1, get(length=4096 * 800, cookie=7))
    card.step()
    card.ack(1, 0)
    card.wait(2 * TIMEOUT - 300 * MICROSECOND)
    assert card.entries() == []
    card.wait(600 * MICROSECOND)
    assert endings(card) == [(7, "TIMEOUT")]


def test_a_get_whose_request_is_never_acknowledged_ends_with_its_flow(card):
    card.ring(1, get(cookie=7), inline(cookie=8))
    card.wait(TIMEOUT + 300 * MICROSECOND)
    assert endings(card) == [(7, "TIMEOUT"), (8, "TIMEOUT")] and card.expected[-1][2] == 0


def test_a_request_is_sent_again_from_its_slot(card):
    card.ring(1, get(cookie=7))
    card.step()
    card.wait(300 * MICROSECOND)
    assert len(card.express) == 1
    card.left(1, 0)
    card.wait(300 * MICROSECOND)
    first, again = card.express[:2]
    assert again._replace(epoch=first.epoch) == first


def test_closing_an_endpoint_waits_for_its_gets(card):
    card.ring(1, get(cookie=7), atomic(cookie=8))
    card.step()
    card.ring(0, admin(OPCODE.ENDPOINT_CLOSE, endpoint=1, cookie=99))
    card.step()
    card.ack(1, 1)
    card.respond(1, word(MESSAGE.GET))
    card.step()
    assert endings(card) == [(7, "OK")]
    card.message(1, word(MESSAGE.ATOMIC_REPLY, 33), 3, reply())
    card.step()
    assert endings(card) == [(8, "OK"), (99, "OK")]


# Get, answering -----------------------------------------------------------------------------------


def test_a_request_becomes_a_job_on_the_inbox_slot_and_frees_it_when_acknowledged(card):
    card.message(3, 0x0045_0200 | MESSAGE.GET, 5, get(length=whole(3), node=0))
    card.step()
    [job] = card.jobs
    assert (job.endpoint, job.slot, job.tag, job.response) == (C.INBOX, 5, C.INBOX * C.SLOTS + 5, 1)
    assert (job.node, job.length, job.message, job.psn) == (
        3,
        whole(3),
        0x0045_0200 | MESSAGE.GET,
        0,
    )
    card.job_done(job.tag, 3)
    card.step()
    assert card.freed == []
    card.ack(BULK + 3, 2)
    card.step()
    assert card.freed == [5] and not card.express


def test_an_answer_without_bytes_is_one_packet(card):
    card.message(3, word(MESSAGE.GET), 0, get(length=0))
    card.step()
    card.job_done(card.jobs[0].tag, 1)
    card.ack(BULK + 3, 0)
    card.step()
    assert card.freed == [0]


def test_answers_are_replayed_like_puts(card):
    card.message(3, word(MESSAGE.GET), 5, get(length=whole(3)))
    card.step()
    card.job_done(card.jobs[0].tag, 3)
    card.nak(BULK + 3, 0)
    card.step()
    again = card.jobs[1]
    assert (again.endpoint, again.slot, again.response, again.psn, again.skip) == (
        C.INBOX,
        5,
        1,
        1,
        whole(1),
    )
    assert again.message == word(MESSAGE.GET)


@pytest.mark.parametrize("status", ["BAD_KEY", "BOUNDS", "READ_ERROR"])
def test_an_answer_whose_job_failed_is_told_and_frees_the_slot(card, status):
    card.message(3, word(MESSAGE.GET, 77), 5, get(length=9000))
    card.step()
    card.job_done(card.jobs[0].tag, 1, getattr(STATUS, status))
    card.ack(BULK + 3, 0)
    card.step()
    [message] = card.express
    assert (message.node, message.word, message.message) == (3, word(MESSAGE.GET_FAILED, 77), 1)
    assert outbox(card, message) == (0, getattr(STATUS, status)) and card.freed == [5]


def test_an_answer_that_was_refused_at_home_is_told(card):
    card.message(3, word(MESSAGE.GET), 5, get())
    card.step()
    card.job_done(card.jobs[0].tag, 1)
    card.refuse(BULK + 3, 0, STATUS.REMOTE_NOT_PERMITTED)
    card.ack(BULK + 3, 0)
    card.step()
    assert outbox(card, card.express[0]) == (0, STATUS.REMOTE_NOT_PERMITTED)


@pytest.mark.parametrize(
    "status,content",
    [
        ("BAD_OPCODE", put()),
        ("BAD_LEVELS", get(levels=0x70)),
        ("BAD_LENGTH", get(source=walk(9))),
        ("BAD_COUNT", get(target=walk(8, [0]))),
        ("BOUNDS", get(target=walk(8, offset=1 << 48))),
    ],
)
def test_a_request_that_its_owner_changed_after_the_check_is_checked_again(card, status, content):
    card.message(3, word(MESSAGE.GET), 5, content)
    card.step()
    assert (
        not card.jobs
        and outbox(card, card.express[0]) == (0, getattr(STATUS, status))
        and card.freed == [5]
    )


def test_an_answer_waits_for_space_in_the_engine(card):
    card["JOB_SPACE"] = 0
    for slot in range(4):
        card.message(slot + 1, word(MESSAGE.GET), slot, get())
    card.step()
    assert not card.jobs
    card["JOB_SPACE"] = 4
    card.step()
    assert sorted(job.slot for job in card.jobs) == [0, 1, 2, 3]


def test_answers_to_a_node_that_is_gone_end_and_free_their_slots(card):
    card.message(3, word(MESSAGE.GET), 5, get())
    card.step()
    card.job_done(card.jobs[0].tag, 1)
    while not card.shared("timeouts"):
        card.wait(1000 * MICROSECOND)
        for job in card.jobs[1:]:
            card.job_done(job.tag, 1)
        card.jobs, card["JOB_SPACE"] = card.jobs[:1], 16
    card.step()
    assert card.freed == [5]


# Atomics ------------------------------------------------------------------------------------------


def test_an_atomic_ends_with_its_reply_and_the_value_before(card):
    card.ring(1, atomic(cookie=7))
    card.step()
    assert card.express[0].word == word(MESSAGE.ATOMIC) and card.express[0].message
    card.ack(1, 0)
    card.message(1, word(MESSAGE.ATOMIC_REPLY), 4, reply(value=0x1122334455667788))
    card.step()
    [entry] = card.entries()
    assert (entry.status, entry.cookie, entry.length, entry.key) == (0, 7, 0x55667788, 0x11223344)
    assert card.freed == [4]


@pytest.mark.parametrize(
    "there,here",
    [
        (STATUS.REMOTE_ALIGNMENT, "REMOTE_ALIGNMENT"),
        (STATUS.REMOTE_READ_ERROR, "REMOTE_READ_ERROR"),
        (STATUS.REMOTE_BAD_KEY, "REMOTE_BAD_KEY"),
        (STATUS.BAD_OPCODE, "REMOTE_BAD_HEADER"),
        (0x1000, "REMOTE_BAD_HEADER"),
    ],
)
def test_an_atomic_that_failed_there_is_outbox(card, there, here):
    card.ring(1, atomic(cookie=7))
    card.step()
    card.ack(1, 0)
    card.message(1, word(MESSAGE.ATOMIC_REPLY), 4, reply(there))
    card.step()
    assert endings(card) == [(7, here)]


@pytest.mark.parametrize(
    "name,change",
    [
        ("BAD_FLAGS", dict(flags=FLAG.NOTICE)),
        ("BAD_LEVELS", dict(levels=1)),
        ("BAD_NODE", dict(node=0)),
        ("BAD_LENGTH", dict(length=2)),
        ("BAD_LENGTH", dict(length=16)),
        ("REMOTE_BOUNDS", dict(offset=1 << 48)),
    ],
)
def test_a_malformed_atomic_asks_nobody(card, name, change):
    card.ring(1, atomic(cookie=3, **change))
    card.step()
    assert endings(card) == [(3, name)] and not card.express


def test_an_atomic_that_was_executed_is_replied_to_from_its_slot_which_is_free_when_acknowledged(
    card,
):
    """The gateware executes them; the program sees one only when it must reply."""
    for slot in (7, 2):
        card.message(3, word(MESSAGE.ATOMIC, 40 + slot), slot, atomic())
    card.step()
    assert not card.express and card.shared("strays") == 0
    for slot, status, value in ((7, STATUS.OK, 0x100000002), (2, STATUS.REMOTE_ALIGNMENT, 0)):
        assert card.atomic_done(status, value) == slot
        card.step()
        message = card.express[-1]
        assert (message.word, message.node, message.slot, message.message) == (
            word(MESSAGE.ATOMIC_REPLY, 40 + slot),
            3,
            slot,
            1,
        )
        assert outbox(card, message, C.INBOX) == (value, status)
    assert not card.freed
    card.ack(3, 0)
    card.step()
    assert card.freed == [7]
    card.ack(3, 1)
    card.step()
    assert card.freed == [7, 2] and not card.entries()


def test_a_reply_that_was_lost_is_sent_again_and_an_unreachable_asker_s_slot_comes_free(card):
    card.message(3, word(MESSAGE.ATOMIC), 5, atomic())
    card.atomic_done(STATUS.OK, 1)
    card.step()
    card.left(3, 0)
    card.wait(300 * MICROSECOND)
    words = [(message.word, message.psn, message.slot) for message in card.express]
    assert len(words) > 1 and len(set(words)) == 1 and not card.freed
    card.wait(TIMEOUT)
    card.step()
    assert card.freed == [5] and card.shared("timeouts") == 1


def test_an_atomic_of_this_node_itself_is_not_replied_to(card):
    card.message(0, word(MESSAGE.ATOMIC), 5, atomic())
    card.atomic_done(STATUS.OK, 1)
    card.step()
    assert card.freed == [5] and not card.express and card.shared("strays") == 1


def test_replies_wait_for_room_on_their_flow_and_then_for_slots_of_the_outbox(card):
    """Those to atomics need none of these."""
    card["EXPRESS_SPACE"] = 0
    card.message(3, word(MESSAGE.GET), 5, bytes(C.SLOT_BYTES))
    card.message(3, word(MESSAGE.ATOMIC), 6, atomic())
    card.atomic_done(0, 1)
    card.step()
    assert not card.express and not card.freed
    card["EXPRESS_SPACE"] = 2
    card.step()
    assert card.freed == [5] and [
        message.slot for message in card.express if message.endpoint == C.INBOX
    ] == [6]
    card.ack(3, 1)
    card.step()
    assert card.freed == [5, 6]
    card.express.clear()
    for n in range(40):
        card.message(1 + n % 2, word(MESSAGE.GET), n % 31, bytes(C.SLOT_BYTES))
        card.step()
        if n == 31:
            assert len(card.express) == C.SLOTS
            for node in range(1, 3):
                card.ack(node, sum(m.node == node for m in card.express) - 1)
            card.step()
    assert len(card.express) == 40 and len({m.slot for m in card.express}) == C.SLOTS


# Unexpected messages ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [0, MESSAGE.GET_FAILED, MESSAGE.ATOMIC_REPLY, 9, 255])
def test_a_message_that_nothing_answers_to_is_counted_and_its_slot_freed(card, kind):
    card.message(1, word(kind), 6, reply())
    card.step()
    assert (
        card.shared("strays") == 1 and card.freed == [6] and not card.entries() and not card.express
    )


@pytest.mark.parametrize(
    "node,answer",
    [
        (2, word(MESSAGE.GET)),  # another node than was asked
        (1, word(MESSAGE.GET) ^ 0x100),  # another endpoint
        (1, word(MESSAGE.GET, 33)),  # a context that asked for nothing
        (1, word(MESSAGE.GET, 34)),  # one that is another kind of command
        (1, word(MESSAGE.ATOMIC)),  # another kind of answer
        (200, word(MESSAGE.GET)),
        (1, word(MESSAGE.GET) | 0xFFF00000),
    ],
)
def test_an_answer_that_does_not_fit_what_was_asked_ends_nothing(card, node, answer):
    card.ring(1, get(cookie=7), inline(cookie=8), put(cookie=9))
    card.step()
    card.respond(node, answer)
    card.message(
        node,
        answer & ~0xFF | MESSAGE.GET_FAILED if answer != word(MESSAGE.ATOMIC) else answer ^ 7,
        3,
        reply(1),
    )
    card.step()
    assert card.entries() == [] and card.shared("strays") == 2


def test_whatever_the_wire_brings_the_program_goes_on(card, seed):
    """4,000 arrivals of random or nearly right words, and random slots, with gets and atomics
    between them.
    """
    rng = random.Random(seed)
    used = set()
    for number in range(4000):
        kind, node = (
            rng.choice((1, 1, 2, 3, 3, 4, rng.randrange(256))),
            rng.choice((1, 2, 3, rng.randrange(256))),
        )
        value = (
            word(kind, rng.choice((32, 33, 40, rng.randrange(1024))))
            if rng.random() < 0.9
            else rng.getrandbits(32)
        )
        content = rng.choice(
            (
                get(length=rng.choice((0, 8, 9000))),
                atomic(),
                reply(rng.randrange(30)),
                rng.randbytes(C.SLOT_BYTES),
            )
        )
        free = set(range(C.SLOTS)) - used
        if rng.random() < 0.3:
            card.respond(node, value)
        elif free:
            used.add(slot := rng.choice(sorted(free)))
            card.message(node, value, slot, content)
        if rng.random() < 0.3 and card["PRODUCER", 1] - card["CQ_CONSUMER", 1] < C.SLOTS:
            card.ring(
                1, rng.choice((get, atomic, inline, put))(cookie=number, node=rng.choice((1, 2)))
            )
        if rng.random() < 0.1:
            for node in (1, 2, 3):
                card.ack(node, sum(m.node == node for m in card.express) - 1)
        if card.word("atomics") and rng.random() < 0.5:
            card.atomic_done(rng.randrange(25), rng.getrandbits(64))
        while card.jobs and rng.random() < 0.5:
            job = card.jobs.pop(0)
            card["JOB_SPACE"] += 1
            end = job.psn + packets_of(job.length)
            card.job_done(job.tag, end)
            card.ack(BULK + job.node, end - 1)
        card.step(2)
        assert used >= set(card.freed) and len(set(card.freed)) == len(card.freed)
        used -= set(card.freed)
        card.freed.clear()
        card.entries()
    assert card.shared("strays") > 100 and card["STATE"] != 8


@pytest.mark.fault
def test_a_get_has_time_while_payload_of_its_node_comes_and_40_ms_behind_that(card):
    card.ring(1, get(cookie=7))
    card.step()
    card.ack(1, 0)
    for _ in range(100_000 // 40):
        card.mark("PEER_WORKS", 1)
        card.wait(40 * MICROSECOND, step=20 * MICROSECOND)
    card.wait(TIMEOUT - 300 * MICROSECOND)
    assert card.entries() == []
    card.wait(600 * MICROSECOND)
    assert endings(card) == [(7, "TIMEOUT")]


@pytest.mark.fault
def test_payload_of_another_node_gives_a_get_no_time(card):
    card.ring(1, get(cookie=7))
    card.step()
    card.ack(1, 0)
    for _ in range(40_400 // 40):
        card.mark("PEER_WORKS", 2, BULK + 1)
        card.wait(40 * MICROSECOND, step=20 * MICROSECOND)
    assert endings(card) == [(7, "TIMEOUT")]
