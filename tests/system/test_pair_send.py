"""SEND and RECEIVE between two cards: the first of them waits, and the bytes go directly to their
place.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from dibber.interface.description import RIGHT, STATUS
from libdibber import Walk

from tests.system.pair import Pair, Side

SIZE = 1 << 18
RIGHTS = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE
FIRST, THEN = 0, 20  # microseconds to wait before posting


@pytest.fixture(scope="module")
def pair():
    """Both cards, with 256 KiB of `out` and `in` each."""
    with Pair(preload=True) as p:
        for name in ("out", "in"):
            p.together(*[(Side.register, name, SIZE, True, RIGHTS)] * 2)
        yield p


def play(side, node, steps, delay=0):
    """Post all steps, (opcode name, walk without key) each, and wait: [(status, length)] in the
    order of posting.
    """
    if delay:
        assert not side.endpoint.wait(1000 * delay)
    for tag, (name, *walk) in enumerate(steps):
        region = side.regions["out" if name == "send" else "in"]
        post = side.endpoint.send_strided if name == "send" else side.endpoint.receive_strided
        post(Walk(region.key, *walk), node=node, endpoint=1, tag=tag)
    ended = {}
    while len(ended) < len(steps):
        assert side.endpoint.wait(10**9), f"only {sorted(ended)} of {len(steps)} ended"
        ended.update((e.tag, (STATUS.name_of(e.status), e.length)) for e in side.endpoint.poll())
    return [ended[tag] for tag in range(len(steps))]


def both(pair, first, second, delays=(FIRST, FIRST)):
    """Fill memories, play both sides: their results, and what lies in `in` of each and should if
    all goes well.
    """
    for side, seed in ((pair.first, 1), (pair.second, 2)):
        side(Side.fill, "out", seed)
        side(Side.fill, "in", None, 0xEE)
    return pair.together((play, 1, first, delays[0]), (play, 0, second, delays[1]))


def landed(source, sends, receives):
    """What `in` is after these met in order; each is a walk (block, offset, levels)."""
    memory = bytearray(b"\xee" * SIZE)
    for send, receive in zip(sends, receives):
        data = b"".join(source[o : o + send[0]] for o in Walk(0, *send).blocks())
        for n, offset in enumerate(Walk(0, *receive).blocks()):
            piece = data[n * receive[0] : (n + 1) * receive[0]]
            memory[offset : offset + len(piece)] = piece
    return bytes(memory)


def check(pair, sends, receives, delays):
    """Send from card 0 to card 1."""
    there, here = both(
        pair, [("send", *s) for s in sends], [("receive", *r) for r in receives], delays
    )
    lengths = [size(s) for s in sends]
    assert there == here == [("OK", n) for n in lengths]
    assert pair.second(Side.read, "in") == landed(pair.first(Side.read, "out"), sends, receives)


def size(walk):
    block, _, levels = walk
    for count, _ in levels:
        block *= count
    return block


@pytest.mark.parametrize(
    "delays", [(FIRST, THEN), (THEN, FIRST)], ids=["send first", "receive first"]
)
@pytest.mark.parametrize(
    "sends, receives",
    [
        ([(1, 7, ())], [(1, 9, ())]),
        ([(5000, 3, ())], [(5000, 77, ())]),
        # shorter than its place
        ([(100, 0, ())], [(5000, 64, ())]),
        ([(8, 5, ((1000, 24),))], [(8000, 100, ())]),
        ([(9000, 1, ())], [(9, 11, ((1000, 40),))]),
        # three quarters … exactly
        ([(12, 0, ((20, 32), (40, 2000)))], [(16, 3, ((30, 64), (20, 4096)))]),
        # less, ending in a block
        ([(12, 0, ((19, 32), (40, 2000)))], [(16, 3, ((30, 64), (20, 4096)))]),
        ([(7, 131000, ((3, -64), (5, 512), (9, -8192)))], [(5, 1, ((7, 16), (9, 256), (3, 9000)))]),
    ],
)
def test_messages_lie_where_the_receive_said(pair, sends, receives, delays):
    check(pair, sends, receives, delays)


@pytest.mark.parametrize("delays", [(FIRST, THEN), (THEN, FIRST), (FIRST, FIRST)])
def test_many_outstanding_meet_in_order(pair, seed, delays):
    """More receives than may wait at the other card."""
    rng = random.Random(seed)
    sends = [(rng.randint(1, 9000), rng.randrange(SIZE - 9000), ()) for _ in range(20)]
    receives = [(rng.randint(block, 9000), 10000 * n, ()) for n, (block, *_) in enumerate(sends)]
    check(pair, sends, receives, delays)


def test_both_directions_at_once(pair, seed):
    rng = random.Random(seed)
    steps = [[], []]
    walks = [[[], []], [[], []]]  # of each side: sends, receives
    for n in range(12):
        for side in range(2):
            walks[side][0].append((rng.randint(1, 20000), rng.randrange(SIZE - 20000), ()))
            walks[side][1].append((20000, 20000 * n, ()))
    for side in range(2):
        steps[side] = [("send", *w) for w in walks[side][0]] + [
            ("receive", *w) for w in walks[side][1]
        ]
        rng.shuffle(steps[side])
    ended = both(pair, *steps)
    for side, memory in ((0, pair.first), (1, pair.second)):
        source = (pair.second if side == 0 else pair.first)(Side.read, "out")
        sends = [s[1:] for s in steps[1 - side] if s[0] == "send"]
        receives = [s[1:] for s in steps[side] if s[0] == "receive"]
        assert {status for status, _ in ended[side]} == {"OK"}
        assert memory(Side.read, "in") == landed(source, sends, receives)


@pytest.mark.parametrize(
    "delays", [(FIRST, THEN), (THEN, FIRST)], ids=["send first", "receive first"]
)
def test_a_message_that_is_too_long_ends_both_and_the_next_pair_meets(pair, delays):
    there, here = both(
        pair,
        [("send", 101, 0, ()), ("send", 64, 500, ())],
        [("receive", 100, 0, ()), ("receive", 64, 200, ())],
        delays,
    )
    assert there == [("TRUNCATED", 101), ("OK", 64)] and here == [("TRUNCATED", 101), ("OK", 64)]
    sent = pair.first(Side.read, "out")
    assert pair.second(Side.read, "in") == landed(sent, [(64, 500, ())], [(64, 200, ())])


@pytest.mark.parametrize(
    "send, receive, status",
    [
        ((64, SIZE - 63, ()), (64, 0, ()), ("BOUNDS", "REMOTE_BOUNDS")),
        ((64, 0, ()), (64, SIZE - 63, ()), ("REMOTE_BOUNDS", "BOUNDS")),
        ((65536, 0, ()), (4096, SIZE - 8 * 4096, ((16, 4096),)), ("REMOTE_BOUNDS", "BOUNDS")),
    ],
)
def test_a_walk_that_leaves_its_region_ends_both(pair, send, receive, status):
    """In the last case it does so in the middle: what follows is not let in any more."""
    there, here = both(pair, [("send", *send)], [("receive", *receive)], (THEN, FIRST))
    assert (there[0][0], here[0][0]) == status
    check(pair, [(64, 0, ())], [(64, 64, ())], (FIRST, FIRST))


def send_big(side, until):
    """Post a little before the cable goes out."""
    left = until * 1000 - side.endpoint.clock().now_ps // 1000
    assert left > 0 and not side.endpoint.wait(left)
    return play(side, 1, [("send", SIZE, 0, ())])


def test_a_cable_pulled_under_a_message_and_put_back_costs_neither_end_anything():
    """What waits longer than 40 ms ends as TIMEOUT: tests/firmware/test_mcp_send.py, which need not
    simulate them.
    """
    with Pair(options=["--fault", "unplugged:1500:1700"], preload=True) as pair:
        for name in ("out", "in"):
            pair.together(*[(Side.register, name, SIZE, True, RIGHTS)] * 2)
        pair.first(Side.fill, "out", 1)
        pair.second(Side.fill, "in", None, 0xEE)
        there, here = pair.together((send_big, 1450), (play, 0, [("receive", SIZE, 0, ())]))
        assert there == here == [("OK", SIZE)]
        sent, got = pair.together((Side.read, "out"), (Side.read, "in"))
        assert got == sent and pair.first(Side.info)["counters"]["link_lost"] == 1


def test_bit_errors_never_make_a_wrong_message():
    with Pair(options=["--ber", "4e-6"], preload=True) as pair:
        for name in ("out", "in"):
            pair.together(*[(Side.register, name, SIZE, True, RIGHTS)] * 2)
        check(pair, *[[(8192, 8192 * n, ()) for n in range(8)]] * 2, (FIRST, FIRST))
