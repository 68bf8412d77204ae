"""Mailboxes between two cards: several senders, every byte compared; a peer that ends."""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from libdibber import PeerError
from libdibber.mailbox import MESSAGE, ROOM

from tests.system.pair import SECOND, Pair, Side

SIZES = dict(slots=4, slot_bytes=512, max_length=20_000)
LENGTHS = (0, 8, 56, 57, 504, 505, 3000, 20_000)


def messages(seed, sender, count):
    """What `sender` sends, in order."""
    rng = random.Random(f"{seed}/{sender}")
    return [
        rng.randbytes(rng.choice((rng.choice(LENGTHS), rng.randrange(504)))) for _ in range(count)
    ]


def open_hub(side):
    """One mailbox for two peers; their addresses of it."""
    side.mailboxes = [side.endpoint.mailbox(peers=2, **SIZES)]
    return [side.mailboxes[0].address(n) for n in range(2)]


def open_leaves(side, hub):
    """Two mailboxes at endpoints 1 and 2; their addresses."""
    side.other = side.card.endpoint(2)
    side.mailboxes = [endpoint.mailbox(**SIZES) for endpoint in (side.endpoint, side.other)]
    for mailbox, address in zip(side.mailboxes, hub):
        mailbox.connect(address)
    return [mailbox.address() for mailbox in side.mailboxes]


def connect_hub(side, leaves):
    for n, address in enumerate(leaves):
        side.mailboxes[0].connect(address, n)


def play(side, sends, awaited):
    """Send the lists `sends`, {(mailbox, peer): messages}, receiving meanwhile: what came,
    {(mailbox, peer): messages}.
    """
    left, got = {key: list(data) for key, data in sends.items()}, {}
    while any(left.values()) or sum(map(len, got.values())) < awaited:
        busy = False
        for (n, peer), data in left.items():
            if data and side.mailboxes[n].send(data[0], peer):
                data.pop(0)
                busy = True
        for n, mailbox in enumerate(side.mailboxes):
            if message := mailbox.receive():
                got.setdefault((n, message[1]), []).append(message[0])
                busy = True
        if not busy:
            side.mailboxes[0].wait(MESSAGE | ROOM, 1000)
    return got


def close(side):
    for mailbox in side.mailboxes:
        mailbox.close()


@pytest.mark.parametrize("fast", [True, False])
def test_two_senders_and_one_receiver_exchange_messages_of_all_lengths_both_ways(seed, fast):
    with Pair(seed=seed, preload=True) as pair:
        pair.together((Side.fast_path, fast), (Side.fast_path, fast))
        leaves = pair.second(open_leaves, pair.first(open_hub))
        pair.first(connect_hub, leaves)
        count = 30
        sent = {
            name: messages(seed, name, count) for name in ("hub 0", "hub 1", "leaf 0", "leaf 1")
        }
        hub, leaf = pair.together(
            (play, {(0, 0): sent["hub 0"], (0, 1): sent["hub 1"]}, 2 * count),
            (play, {(0, 0): sent["leaf 0"], (1, 0): sent["leaf 1"]}, 2 * count),
        )
        assert hub == {(0, 0): sent["leaf 0"], (0, 1): sent["leaf 1"]}
        assert leaf == {(0, 0): sent["hub 0"], (1, 0): sent["hub 1"]}
        pair.together((close,), (close,))


def send_until_told(side):
    """Send to peer 1 until it is known what became of it."""
    try:
        while True:
            side.mailboxes[0].send(b"is anybody there?", 1)
            side.mailboxes[0].wait(MESSAGE, SECOND)
            assert side.mailboxes[0].receive() is None
    except PeerError as error:
        return error.name, error.peer


def vanish(side):
    """The memory is unmapped without a message."""
    side.other.close()
    side.mailboxes.pop().close()


def test_a_peer_that_is_gone_without_a_word_is_told():
    """One that cannot be reached at all: tests/software/test_mailbox.py, which need not simulate 40
    ms.
    """
    with Pair(preload=True) as pair:
        leaves = pair.second(open_leaves, pair.first(open_hub))
        pair.first(connect_hub, leaves)
        pair.second(vanish)
        assert pair.first(send_until_told) == ("CLOSED", 1)
        pair.together((close,), (close,))
