"""Mailboxes on a mock card, both ends at endpoints of it: order, room, lengths, and the writes of a
hostile peer.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random
import struct

import numpy as np
import pytest
from dibber.interface.description import CALL, CLOCK_OP, OPCODE, RIGHT, STATUS
from libdibber import DibberError, PeerError
from libdibber.binding import MailboxAddress
from libdibber.mailbox import MESSAGE, ROOM

SLOTS, SLOT_BYTES, LONGEST = 4, 128, 1000
SIZES = dict(slots=SLOTS, slot_bytes=SLOT_BYTES, max_length=LONGEST)
SHORT = SLOT_BYTES - 8  # bytes of the longest message that a slot holds


class Ends:
    """Mailboxes of endpoints 1, 2 …; the first one's peers are the others."""

    def __init__(self, mock, others=1, **sizes):
        self.mock = mock
        self.endpoints = [mock.endpoint, *(mock.card.endpoint(2 + n) for n in range(others))]
        self.here = self.endpoints[0].mailbox(peers=others, **{**SIZES, **sizes})
        self.others = [e.mailbox(**{**SIZES, **sizes}) for e in self.endpoints[1:]]
        for n, other in enumerate(self.others):
            self.here.connect(other.address(), n)
            other.connect(self.here.address(n))
        self.there = self.others[0]

    def ring(self, mailbox, peer=0):
        """(mock's address of the peer's memory of a mailbox, bytes of its ring)."""
        address = MailboxAddress.from_buffer_copy(mailbox.address(peer))
        return self.mock.device.regions[address.key]["base"], address.slots * address.slot_bytes

    def close(self):
        for mailbox in (self.here, *self.others):
            mailbox.close()
        for endpoint in self.endpoints[1:]:
            endpoint.close()


@pytest.fixture
def ends(loaded):
    made = []
    yield (
        lambda others=1, clock=True, **sizes: (
            made.append(Ends(loaded(clock=clock), others, **sizes)) or made[-1]
        )
    )
    for one in made:
        one.close()


def drain(mailbox, calls=100):
    """All messages that come in so many calls."""
    return [m for m in (mailbox.receive() for _ in range(calls)) if m]


@pytest.mark.parametrize(
    "length", [0, 1, 8, 55, 56, 57, 64, SHORT - 1, SHORT, SHORT + 1, 500, LONGEST]
)
def test_a_message_of_any_length_arrives_as_it_was_sent(ends, length, seed):
    e, data = ends(), random.Random(seed).randbytes(length)
    assert e.here.send(data)
    assert e.there.wait() and drain(e.there) == [(data, 0)]
    assert drain(e.there) == []


@pytest.mark.parametrize("clock", [True, False])
def test_messages_arrive_in_order_in_spite_of_their_lengths_and_of_many_rounds_of_the_ring(
    ends, seed, clock
):
    e, rng = ends(clock=clock), random.Random(seed)
    sent, got = [], []
    while len(sent) < 200:
        data = rng.randbytes(
            rng.choice([0, 3, 56, 57, SHORT, SHORT + 1, LONGEST, rng.randrange(LONGEST)])
        )
        if e.here.send(data):
            sent.append((data, 0))
        if rng.random() < 0.4:
            got += drain(e.there, rng.randrange(1, 6))
    while len(got) < len(sent):
        assert e.there.wait(timeout_ns=10**10)
        got += drain(e.there, 1)
    assert got == sent and drain(e.there) == []


def test_the_senders_memory_is_its_own_again_at_once(ends):
    e, data = ends(), np.arange(LONGEST, dtype=np.uint8)
    for length in (8, SHORT, LONGEST):
        part = data[:length].copy()
        assert e.here.send(part)
        part[:] = 0xEE
    assert [m[0] for m in drain(e.there)] == [bytes(data[:n]) for n in (8, SHORT, LONGEST)]


def test_a_full_ring_says_so_and_there_is_room_when_half_of_it_was_taken(ends):
    e = ends()
    assert [e.here.send(bytes([n])) for n in range(SLOTS + 2)] == [True] * SLOTS + [False] * 2
    assert not e.here.wait(ROOM, 1000)
    # nobody is told of each single one
    assert e.there.receive() == (b"\0", 0) and not e.here.send(b"x")
    assert e.there.receive() == (b"\1", 0)
    assert (
        e.here.wait(ROOM, 1000)
        and e.here.send(b"x")
        and e.here.send(b"y")
        and not e.here.send(b"z")
    )
    assert [m[0] for m in drain(e.there)] == [b"\2", b"\3", b"x", b"y"]


def test_two_long_messages_wait_at_the_sender_and_short_ones_behind_them(ends):
    e, long = ends(), [bytes([n]) * LONGEST for n in range(3)]
    assert (
        e.here.send(long[0])
        and e.here.send(long[1])
        and not e.here.send(long[2])
        and e.here.send(b"short")
    )
    assert [m[0] for m in drain(e.there)] == [long[0], long[1], b"short"]
    assert e.here.wait(ROOM, 1000) and e.here.send(long[2])
    assert [m[0] for m in drain(e.there)] == [long[2]]


def test_peers_have_rings_of_their_own_and_take_turns(ends):
    e = ends(others=3)
    for n, other in enumerate(e.others):
        assert all(other.send(bytes([n, k])) for k in range(SLOTS)) and not other.send(b"too many")
    got = drain(e.here)
    assert [peer for _, peer in got[:6]] == [0, 1, 2, 0, 1, 2]
    assert sorted(got) == sorted((bytes([n, k]), n) for n in range(3) for k in range(SLOTS))
    assert (
        e.here.send(b"to the last", 2)
        and drain(e.others[2]) == [(b"to the last", 0)]
        and drain(e.others[1]) == []
    )


def test_too_little_room_leaves_the_message_there(ends):
    e = ends()
    e.here.send(b"12345678")
    assert e.there.wait()
    with pytest.raises(
        DibberError, match="room for 4 bytes, and the message of peer 0 has 8"
    ) as raised:
        e.there.receive_into(np.empty(4, np.uint8))
    assert raised.value.name == "ARGUMENT" and e.there.receive() == (b"12345678", 0)


def test_a_closed_mailbox_is_told_once_and_after_its_messages(ends):
    e = ends()
    e.there.send(b"last words")
    e.there.close()
    assert e.here.wait() and e.here.receive() == (b"last words", 0)
    assert e.here.wait()
    with pytest.raises(PeerError, match="peer 0 .* has closed its mailbox") as raised:
        e.here.receive()
    assert raised.value.name == "CLOSED" and raised.value.peer == 0
    assert e.here.receive() is None
    with pytest.raises(DibberError, match="has closed its mailbox"):
        e.here.wait(MESSAGE, 1000)
    with pytest.raises(DibberError, match="has closed its mailbox"):
        e.here.send(b"too late")


def test_closing_waits_a_while_for_long_messages_and_not_for_ever(ends):
    e = ends()
    e.here.send(bytes(LONGEST))
    before = e.endpoints[1].clock().now_ps
    e.here.close()
    assert 100e9 < e.endpoints[1].clock().now_ps - before < 400e9
    with pytest.raises(PeerError, match="has closed its mailbox"):
        drain(e.there)


@pytest.mark.parametrize(
    "status, name",
    [
        (STATUS.TIMEOUT, "TIMEOUT"),
        (STATUS.REMOTE_BAD_KEY, "CLOSED"),
        (STATUS.REMOTE_BOUNDS, "COMMAND"),
    ],
)
def test_a_peer_that_cannot_be_reached_is_told_and_given_up(ends, status, name):
    e = ends()
    e.mock.device._execute = lambda *_: status
    e.here.send(b"to nobody")
    assert e.here.wait(timeout_ns=1000)
    with pytest.raises(PeerError) as raised:
        e.here.receive()
    assert raised.value.name == name
    with pytest.raises(DibberError) as raised:
        e.here.send(b"again")
    assert raised.value.name == name


def test_a_program_that_only_waits_finds_out_too(ends):
    e = ends()
    e.mock.device._execute = lambda *_: STATUS.TIMEOUT
    assert e.there.wait()  # for ever, if the peer was not asked
    with pytest.raises(PeerError, match="cannot be reached"):
        e.there.receive()


def test_a_failed_fetch_is_told_and_other_peers_go_on(ends):
    e = ends(others=2)
    e.others[0].send(bytes(LONGEST))
    real = e.mock.device._execute
    e.mock.device._execute = lambda endpoint, command, slot: (
        STATUS.TIMEOUT if command["opcode"] == 3 else real(endpoint, command, slot)
    )
    with pytest.raises(PeerError) as raised:
        drain(e.here)
    assert raised.value.peer == 0 and drain(e.here) == []
    e.mock.device._execute = real
    e.others[1].send(bytes(LONGEST))
    assert drain(e.here) == [(bytes(LONGEST), 1)]


# Peers that are gone ------------------------------------------------------------------------------

GIVES_UP = 40 * 10**9  # ps, of a transfer to a card that cannot be reached


def let_die(e):
    """The peer's process is dead and its card lives: the card takes puts, but its memory cannot be
    read.
    """
    real = e.mock.device._execute
    e.mock.device._execute = lambda endpoint, command, slot: (
        STATUS.REMOTE_READ_ERROR if command["opcode"] == OPCODE.GET else STATUS.OK
    )
    return real


@pytest.mark.fault
@pytest.mark.parametrize("how", ["send", "wait for room", "wait for a message", "receive"])
def test_a_peer_whose_process_died_is_told_by_each_call_that_waits_for_it(ends, how):
    e = ends()
    let_die(e)
    begin = e.endpoints[0].clock().now_ps

    def go_on():
        e.mock.device.now += 10**7  # a call of the mock takes next to no time: 10 µs more
        if how == "receive":
            return e.here.receive()
        e.here.send(b"is anybody there?")
        if how.startswith("wait"):
            e.here.wait(ROOM if how == "wait for room" else MESSAGE, 10**6)
            return how == "wait for a message" and e.here.receive()

    with pytest.raises(DibberError, match="has closed its mailbox, or has ended") as raised:
        while e.endpoints[0].clock().now_ps - begin < GIVES_UP:
            go_on()
    assert raised.value.name == "CLOSED"


@pytest.mark.fault
@pytest.mark.parametrize(
    "status, name", [(STATUS.TIMEOUT, "TIMEOUT"), (STATUS.REMOTE_READ_ERROR, "CLOSED")]
)
@pytest.mark.parametrize("timeout_ns", [1000, 2**64 - 1])
def test_a_waiting_program_hears_of_a_loss_that_was_told_already(ends, status, name, timeout_ns):
    e = ends()
    e.mock.device._execute = lambda *_: status
    assert e.here.wait()
    with pytest.raises(PeerError) as raised:
        e.here.receive()
    assert raised.value.name == name
    with pytest.raises(DibberError) as raised:
        e.here.wait(MESSAGE, timeout_ns)
    assert raised.value.name == name


@pytest.mark.fault
def test_a_peer_that_lives_and_does_not_receive_is_no_error(ends):
    e = ends()
    while e.here.send(b"wait for me"):
        pass
    for _ in range(30):
        assert not e.here.wait(ROOM, 10 * 10**6) and not e.here.send(b"no room")
    assert e.here.receive() is None and len(drain(e.there)) == SLOTS and e.here.send(b"room")


@pytest.mark.fault
@pytest.mark.parametrize(
    "status, name",
    [
        (STATUS.TIMEOUT, "TIMEOUT"),
        (STATUS.REMOTE_BAD_KEY, "CLOSED"),
        (STATUS.REMOTE_READ_ERROR, "CLOSED"),
    ],
)
def test_another_mailbox_is_connected_in_the_place_of_one_that_was_given_up(ends, status, name):
    e, real = ends(), None
    for turn in range(3):
        e.here.send(bytes([turn]))
        e.here.send(bytes(LONGEST))
        assert [len(m[0]) for m in drain(e.there)] == [1, LONGEST] and e.there.send(b"unread")
        real = e.mock.device._execute
        e.mock.device._execute = lambda *_: status
        with pytest.raises(DibberError) as raised:
            while True:
                e.here.send(b"x")
                e.here.wait(ROOM, 1000)
        assert raised.value.name == name
        e.mock.device._execute = real
        former, left = e.here.address(), e.there
        e.others[0] = e.there = None
        left.close()
        e.endpoints[1].close()
        e.endpoints[1] = e.mock.card.endpoint(2)
        e.others[0] = e.there = e.endpoints[1].mailbox(**SIZES)
        e.here.connect(e.there.address())
        e.there.connect(e.here.address())
        assert drain(e.here) == [] and former == e.here.address(), (
            "the address that was asked for behind the error stays"
        )
        assert e.there.send(b"anew") and e.here.wait() and drain(e.here) == [(b"anew", 0)]
    with pytest.raises(DibberError, match="peer 0 is connected already"):
        e.here.connect(e.there.address())


@pytest.mark.fault
def test_a_peer_that_was_given_up_and_lives_writes_into_no_other_ones_ring(ends):
    e = ends()
    base, ring = e.ring(e.here)
    e.mock.server.write_memory(base + ring, struct.pack("<II", 7, 0))
    with pytest.raises(DibberError, match="wrote an invalid slot or count"):
        e.here.send(b"x")
    former = MailboxAddress.from_buffer_copy(e.there.address()).key
    known = [key for key in e.mock.device.regions]
    key = MailboxAddress.from_buffer_copy(e.here.address()).key
    assert key not in known and former in e.mock.device.regions
    e.there.send(b"to the former address")
    with pytest.raises(DibberError, match="has closed its mailbox, or has ended"):
        while True:
            e.there.send(b"x")
            e.there.wait(ROOM, 1000)


@pytest.mark.fault
def test_closing_does_not_linger_for_a_peer_that_is_gone(ends):
    e = ends()
    e.here.send(bytes(LONGEST))
    let_die(e)
    begin = e.endpoints[1].clock().now_ps
    e.here.close()
    assert e.endpoints[1].clock().now_ps - begin < GIVES_UP


# Hostile peers ------------------------------------------------------------------------------------

LONG, SECOND = 1 << 31, 1 << 30


@pytest.mark.parametrize(
    "length", [SHORT + 1, SECOND, SECOND | 8, LONG, LONG | LONGEST + 1, 0x7FFFFFFF, 0xFFFFFFFF]
)
def test_a_length_that_cannot_be_ends_the_peer_and_reads_nothing(ends, length):
    e = ends()
    base, _ = e.ring(e.there)
    e.mock.server.write_memory(base + SLOT_BYTES - 8, struct.pack("<II", length, 1))
    with pytest.raises(PeerError, match="wrote an invalid slot or count") as raised:
        e.there.receive()
    assert raised.value.name == "PROTOCOL" and e.there.receive() is None
    with pytest.raises(DibberError, match="wrote an invalid slot or count"):
        e.there.send(b"no more")


@pytest.mark.parametrize("number", [0, 2, SLOTS + 1, 0xFFFFFFFF])
def test_a_number_that_is_not_next_is_no_message(ends, number):
    e = ends()
    base, _ = e.ring(e.there)
    e.mock.server.write_memory(base + SLOT_BYTES - 8, struct.pack("<II", 8, number))
    assert e.there.receive() is None


@pytest.mark.parametrize("words", [(3, 0), (0xFFFFFFFF, 0), (0, 2), (0, 0x80000001)])
def test_taking_what_was_not_sent_ends_the_peer(ends, words):
    e = ends()
    e.here.send(b"1")
    e.here.send(b"2")
    base, ring = e.ring(e.here)
    e.mock.server.write_memory(base + ring, struct.pack("<II", *words))
    with pytest.raises(DibberError, match="wrote an invalid slot or count"):
        e.here.send(b"3")


def test_notices_of_any_value_and_more_than_the_queue_holds_change_nothing(ends, seed):
    e, rng = ends(), random.Random(seed)
    e.here.send(b"before")
    for _ in range(1000):
        e.mock.device.post(
            2, rng.randrange(1 << 32), kind=rng.randrange(256), queue=1, key=rng.randrange(1 << 32)
        )
    e.here.send(b"after")
    assert [m[0] for m in drain(e.there)] == [b"before", b"after"] and not e.there.wait(
        timeout_ns=1000
    )


def test_a_peer_is_reached_by_a_key_of_its_own(ends):
    e = ends(others=2)
    keys = [MailboxAddress.from_buffer_copy(e.here.address(n)).key for n in range(2)]
    assert len(set(keys)) == 2
    for region in e.mock.device.regions.values():
        remote = region["rights"] & (RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE)
        assert not remote or not region["rights"] & (RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE)


# Handles ------------------------------------------------------------------------------------------


def test_the_endpoint_is_the_mailboxs_until_it_is_closed(ends):
    e = ends()
    for call in (
        e.endpoints[0].poll,
        e.endpoints[0].poll_events,
        lambda: e.endpoints[0].put(1, 0, 1, 0, 8, node=1),
        lambda: e.endpoints[0].submit(bytes(128)),
        e.endpoints[0].mailbox,
    ):
        with pytest.raises(DibberError) as raised:
            call()
        assert raised.value.name == "IN_USE"
    e.here.close()
    assert e.endpoints[0].poll() == [] and e.endpoints[0].poll_events() == []


def test_endpoint_and_card_may_be_closed_first(ends):
    e = ends()
    e.endpoints[1].close()
    for call in (e.there.receive, lambda: e.there.send(b""), e.there.address, e.there.wait):
        with pytest.raises(DibberError, match="the endpoint of this mailbox was closed"):
            call()
    e.mock.card.close()
    with pytest.raises(DibberError, match="the card of this mailbox was closed"):
        e.here.receive()


def test_what_is_opened_is_given_back(ends):
    e = ends()
    e.close()
    assert e.mock.device.regions == {}


@pytest.mark.parametrize(
    "sizes",
    [
        dict(peers=33),
        dict(slots=1),
        dict(slots=3),
        dict(slots=512),
        dict(slot_bytes=64),
        dict(slot_bytes=130),
        dict(slot_bytes=1 << 18),
        dict(max_length=1 << 30),
    ],
)
def test_sizes_that_cannot_be_are_refused(loaded, sizes):
    with pytest.raises(DibberError) as raised:
        loaded().endpoint.mailbox(**sizes)
    assert raised.value.name == "ARGUMENT"


def test_peers_are_connected_once_with_mailboxes_of_the_same_sizes(ends):
    e = ends()
    with pytest.raises(DibberError, match="peer 0 is connected already"):
        e.here.connect(e.there.address())
    with pytest.raises(DibberError, match="peer 1: this mailbox has 1"):
        e.here.connect(e.there.address(), 1)
    other = e.mock.card.endpoint(3)
    odd = other.mailbox(slots=8, slot_bytes=SLOT_BYTES, max_length=LONGEST)
    with pytest.raises(DibberError, match="has 4 slots of 128 bytes .* this one 8"):
        odd.connect(e.here.address())
    far = MailboxAddress.from_buffer_copy(odd.address())
    far.node = 16
    with pytest.raises(DibberError, match="no node 16"):
        odd.connect(bytes(far))
    with pytest.raises(DibberError, match="0 bytes to peer 0"):
        odd.send(b"")
    odd.close()
    other.close()


def test_a_message_that_is_too_long_is_refused(ends):
    with pytest.raises(DibberError) as raised:
        ends().here.send(bytes(LONGEST + 1))
    assert raised.value.name == "ARGUMENT"


# The clock ----------------------------------------------------------------------------------------


def test_calls_and_copies_are_charged(ends):
    e = ends()

    def charged():
        e.endpoints[0].clock()  # answered when all messages before it were handled
        new = [(call, count) for op, call, count, _ in e.mock.device.calls if op == CLOCK_OP.CHARGE]
        e.mock.device.calls.clear()
        return new

    charged()
    e.here.send(bytes(8))
    assert charged() == [(CALL.MAILBOX_SEND, 1)]
    e.here.send(bytes(100))
    assert [c for c in charged() if c[0] != CALL.POLL_ENTRY] == [
        (CALL.COPY, 100),
        (CALL.MAILBOX_SEND, 1),
    ]
    e.here.send(bytes(LONGEST))
    assert [c for c in charged() if c[0] != CALL.POLL_ENTRY] == [
        (CALL.COPY, LONGEST),
        (CALL.MAILBOX_SEND, 1),
    ]
    for length in (8, 100):
        assert e.there.receive()
        assert [c for c in charged() if c[0] not in (CALL.POLL_ENTRY, CALL.PUT)] == [
            (CALL.MAILBOX_RECEIVE, 1),
            (CALL.COPY, length),
        ]
    assert e.there.receive() is None
    assert (CALL.MAILBOX_EMPTY, 1) in charged()
