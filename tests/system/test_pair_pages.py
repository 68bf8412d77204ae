"""Regions whose pages lie anywhere, on both cards: every operation finds each byte, also across the
ends of pages, and no other.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random

import libdibber
import numpy as np
import pytest
from dibber.interface.description import OPCODE, RIGHT, STATUS, C
from libdibber import Walk

from tests.system.pair import SECOND, Pair, Side

ALL = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE

# name: log2 of a page's bytes or None (in one piece), pages, first byte in the first page, bytes
# left of the last
SPACES = {"4k": (12, 40, 1234, 77), "64k": (16, 4, 40_001, 5000), "flat": (None, 40, 0, 0)}
SPARE = 2  # pages of the memory that are not in the region


class Space:
    """Where the bytes of a region are in its memory, which is some pages longer.

    Attributes
    ----------
    key    : of the region
    length : bytes of the region
    ends   : offset of each page's end in the region
    """

    def __init__(self, name, key, order):
        self.name, self.key = name, key
        shift, count, first, tail = SPACES[name]
        self.shift, self.first = shift or 12, first
        self.order = np.array(order)
        self.length = (count << self.shift) - first - tail
        self.ends = [(n << self.shift) - first for n in range(1, count)]

    def places(self, walk):
        """Index in the memory of each byte of a walk."""
        starts = np.array(walk.blocks())
        inside = self.first + (starts[:, None] + np.arange(walk.block)).reshape(-1)
        assert inside.min() >= self.first and inside.max() < self.first + self.length
        return self.order[inside >> self.shift] << self.shift | inside & (1 << self.shift) - 1

    def walk(self, block, offset, levels=()):
        return Walk(self.key, block, offset, levels)


# Steps of one side --------------------------------------------------------------------------------


def register(side, name, region, seed, absent=(), heap=False):
    """Register scrambled pages of new memory, without those `absent`, as a region; its Space."""
    shift, count, first, tail = SPACES[name]
    order = list(range(count))
    size = 1 << (shift or 12)
    if shift:
        order = random.Random(seed).sample(range(count + SPARE), count)
    if heap:
        memory = np.zeros((count + SPARE) * size + 4096, np.uint8)
        start = -memory.__array_interface__["data"][0] % 4096
        memory = memory[start : start + (count + SPARE) * size]
    else:
        memory = libdibber.alloc((count + SPARE) * size)
    if shift:
        pages = [
            None if n in absent else memory[at * size : (at + 1) * size]
            for n, at in enumerate(order)
        ]
        entry = side.endpoint.register_pages(pages, shift, first, count * size - first - tail, ALL)
    else:
        entry = side.endpoint.register(memory[: count * size], ALL)
    entry.memory = memory
    side.regions[region] = entry
    return Space(name, entry.key, order)


def ended(endpoint, count=1):
    """The next completions as [(tag, status, value)], in the order of their tags, waited for."""
    done = []
    while len(done) < count:
        done += [(c.tag, STATUS.name_of(c.status), c.value) for c in endpoint.poll()]
        if len(done) < count:
            assert endpoint.wait(SECOND), f"{len(done)} of {count} commands ended"
    return sorted(done)


def call(side, name, *arguments):
    """One command of card 0: (status, value)."""
    getattr(side.endpoint, name)(*arguments, node=1)
    return ended(side.endpoint)[0][1:]


def fetch_add(side, key, offset, operand, size):
    side.endpoint.fetch_add(key, offset, operand, node=1, size=size)
    return ended(side.endpoint)[0][1:]


def inline_puts(side, key, puts):
    """Inline puts of (offset, bytes), 16 under way: whether all went well."""
    for first in range(0, len(puts), 16):
        some = puts[first : first + 16]
        for tag, (offset, data) in enumerate(some):
            side.endpoint.put_inline(data, key, offset, node=1, tag=tag)
        if {status for _, status, _ in ended(side.endpoint, len(some))} != {"OK"}:
            return False
    return True


@pytest.fixture(scope="module", params=["fast path", "control program"])
def pair(request):
    """Both cards with a region of each of SPACES; `pair.spaces[node][name]`."""
    with Pair(preload=True) as p:
        p.together(*[(Side.fast_path, request.param == "fast path")] * 2)
        p.spaces = [{}, {}]
        for n, name in enumerate(SPACES):
            for node, space in enumerate(
                p.together((register, name, name, 2 * n), (register, name, name, 2 * n + 1))
            ):
                p.spaces[node][name] = space
        yield p


class Memories:
    """What lies in one region's memory on each side: filled, then changed as an operation should,
    then compared.
    """

    def __init__(self, pair, here, there):
        self.pair, self.names = pair, (here, there)
        pair.together((Side.fill, here, 1), (Side.fill, there, 2))
        self.expected = self.read()

    def read(self):
        return [
            np.frombuffer(b, np.uint8).copy()
            for b in self.pair.together((Side.read, self.names[0]), (Side.read, self.names[1]))
        ]

    def move(self, source, source_walk, target, target_walk):
        """Sides by number."""
        spaces = [self.pair.spaces[n][name] for n, name in enumerate(self.names)]
        data = self.expected[source][spaces[source].places(source_walk)]
        self.expected[target][spaces[target].places(target_walk)] = data

    def check(self):
        for side, (found, expected) in enumerate(zip(self.read(), self.expected)):
            wrong = np.flatnonzero(found != expected)
            assert not len(wrong), (
                f"card {side}: {len(wrong)} bytes wrong, from {wrong[0]} to {wrong[-1]}"
            )


# Puts and gets ------------------------------------------------------------------------------------

KINDS = [("4k", "4k"), ("4k", "flat"), ("flat", "4k"), ("64k", "4k"), ("4k", "64k"), ("64k", "64k")]
WALKS = [  # source, target: block, offset, levels
    ((1, 0), (1, 0)),
    ((100_000, 3), (100_000, 17)),
    ((8, 5, ((38, 4096),)), (304, 9)),
    ((304, 9), (8, 4093, ((38, 4096),))),
    ((8, 1, ((1200, 104),)), (8, 4, ((1200, 128),))),
    ((3, 60_000, ((7, 5), (11, -100), (13, 4097))), (7, 70_000, ((3, 9), (11, -1000), (13, 21)))),
    ((64, 120_000, ((900, -130),)), (900, 100, ((64, 1800),))),
]


@pytest.mark.parametrize("here, there", KINDS)
def test_puts_and_gets_are_byte_exact(pair, here, there):
    ours, theirs = pair.spaces[0][here], pair.spaces[1][there]
    for source, target in WALKS:
        memories = Memories(pair, here, there)
        walks = ours.walk(*source), theirs.walk(*target)
        assert pair.first(call, "put_strided", *walks) == ("OK", 0)
        memories.move(0, walks[0], 1, walks[1])
        memories.check()
        # The other way with the same walks, so that each is a source and a target.
        walks = theirs.walk(*source), ours.walk(*target)
        assert pair.first(call, "get_strided", *walks)[0] == "OK"
        memories.move(1, walks[0], 0, walks[1])
        memories.check()


def test_puts_one_after_the_other(pair, seed):
    """Puts that are under way together, to and from pages of both sizes."""
    choice = random.Random(seed)
    memories = Memories(pair, "4k", "4k")
    ours, theirs = pair.spaces[0]["4k"], pair.spaces[1]["4k"]
    commands = []
    for n in range(24):
        block, count = choice.choice((1, 8, 64, 300)), choice.randint(1, 12)
        at = 6000 * n
        source = ours.walk(block, choice.randrange(20_000), ((count, choice.randint(block, 9000)),))
        target = theirs.walk(
            block, at + choice.randrange(2000), ((count, block + choice.choice((0, 8, 33))),)
        )
        commands.append((source, target))
        memories.move(0, source, 1, target)
    assert pair.first(put_all, commands) == {"OK"}
    memories.check()


def put_all(side, commands):
    statuses = set()
    for first in range(0, len(commands), 8):
        some = commands[first : first + 8]
        for source, target in some:
            side.endpoint.put_strided(source, target, node=1)
        statuses |= {status for _, status, _ in ended(side.endpoint, len(some))}
    return statuses


@pytest.mark.parametrize("there", ["4k", "64k"])
def test_inline_puts_across_the_ends_of_pages(pair, there):
    """Every length, each cut by a page's end at another byte or not at all."""
    space = pair.spaces[1][there]
    memories = Memories(pair, "flat", there)
    puts = []
    for length in range(1, C.INLINE_BYTES + 1):
        offset = (
            space.ends[length % len(space.ends)]
            - 37 * length % (length + 1)
            + 200 * (length // len(space.ends)) * (length % 3 == 0)
        )
        data = bytes((length + i) % 256 for i in range(length))
        puts.append((offset, data))
        memories.expected[1][space.places(space.walk(length, offset))] = np.frombuffer(
            data, np.uint8
        )
    assert pair.first(inline_puts, space.key, puts)
    memories.check()


# Atomics, sends -----------------------------------------------------------------------------------


@pytest.mark.parametrize("there", ["4k", "64k"])
def test_atomics_find_their_word(pair, there):
    space = pair.spaces[1][there]
    memories = Memories(pair, "flat", there)
    for n, (size, end) in enumerate([(8, 0), (4, 1), (8, 2), (8, 1)]):
        offset = space.ends[end] + (-size if n % 2 else 0)
        places = space.places(space.walk(size, offset))
        before = int.from_bytes(memories.expected[1][places].tobytes(), "little")
        assert pair.first(fetch_add, space.key, offset, 1000 + n, size) == ("OK", before)
        after = (before + 1000 + n) % 256**size
        memories.expected[1][places] = np.frombuffer(after.to_bytes(size, "little"), np.uint8)
    memories.check()


@pytest.mark.parametrize("here, there", [("4k", "64k"), ("64k", "4k")])
def test_sends_meet_receives(pair, here, there):
    memories = Memories(pair, here, there)
    source = pair.spaces[0][here].walk(8, 7, ((1000, 72),))
    target = pair.spaces[1][there].walk(80, 3, ((100, 1030),))
    sent, received = pair.together(
        (message, "send_strided", source, 1), (message, "receive_strided", target, 0)
    )
    assert sent == received == "OK"
    memories.move(0, source, 1, target)
    memories.check()


def message(side, name, walk, node):
    getattr(side.endpoint, name)(walk, node=node, endpoint=1)
    return ended(side.endpoint)[0][1]


def test_pages_that_are_reached_by_message(pair):
    """From the heap to the heap: pages that cannot be shared."""
    spaces = pair.together(
        (register, "4k", "heap", 5, (), True), (register, "4k", "heap", 6, (), True)
    )
    for node in range(2):
        pair.spaces[node]["heap"] = spaces[node]
    memories = Memories(pair, "heap", "heap")
    walks = spaces[0].walk(8, 5, ((200, 520),)), spaces[1].walk(16, 4090, ((100, 1040),))
    assert pair.first(call, "put_strided", *walks) == ("OK", 0)
    memories.move(0, walks[0], 1, walks[1])
    memories.check()
    pair.together((Side.unregister, "heap"), (Side.unregister, "heap"))


# What is not there --------------------------------------------------------------------------------

GAP = 6  # the page that is absent


@pytest.fixture
def gaps(pair):
    """A region "gap" on each side of which a page is absent; their Spaces."""
    spaces = pair.together((register, "4k", "gap", 31, (GAP,)), (register, "4k", "gap", 32, (GAP,)))
    for node in range(2):
        pair.spaces[node]["gap"] = spaces[node]
    yield spaces
    pair.together((Side.unregister, "gap"), (Side.unregister, "gap"))


def across(space):
    """A walk of which the elements come to the absent page."""
    return space.walk(8, 3, ((20, 2048),))


def absent_cases(pair, gaps):
    """command, arguments, status."""
    ours, theirs = [pair.spaces[n]["flat"] for n in range(2)]
    there = lambda space: space.ends[GAP - 1] + 8
    return {
        "put from": ("put_strided", (across(gaps[0]), theirs.walk(160, 0)), "READ_ERROR"),
        "put into": ("put_strided", (ours.walk(160, 0), across(gaps[1])), "REMOTE_READ_ERROR"),
        "long put into": (
            "put_strided",
            (ours.walk(60_000, 0), gaps[1].walk(60_000, 0)),
            "REMOTE_READ_ERROR",
        ),
        "get from": ("get_strided", (across(gaps[1]), ours.walk(160, 0)), "REMOTE_READ_ERROR"),
        "get into": ("get_strided", (theirs.walk(160, 0), across(gaps[0])), "READ_ERROR"),
        "inline put": (
            "put_inline",
            (b"12345678", gaps[1].key, there(gaps[1])),
            "REMOTE_READ_ERROR",
        ),
        "inline put, second page": (
            "put_inline",
            (b"12345678", gaps[1].key, gaps[1].ends[GAP - 1] - 4),
            "REMOTE_READ_ERROR",
        ),
        "atomic": ("atomic", (OPCODE.SWAP, gaps[1].key, there(gaps[1]), 5), "REMOTE_READ_ERROR"),
    }


@pytest.mark.parametrize(
    "what",
    [
        "put from",
        "put into",
        "long put into",
        "get from",
        "get into",
        "inline put",
        "inline put, second page",
        "atomic",
    ],
)
def test_a_page_that_is_not_there_has_its_status(pair, gaps, what):
    """In a region, and the spare pages of its memory are not touched. What comes after it goes
    well.
    """
    name, arguments, status = absent_cases(pair, gaps)[what]
    memories = Memories(pair, "gap", "gap")
    assert pair.first(call, name, *arguments)[0] == status
    for node, found in enumerate(memories.read()):
        absent = slice(gaps[node].order[GAP] << 12, (gaps[node].order[GAP] + 1) << 12)
        spare = [n for n in range(SPACES["4k"][1] + SPARE) if n not in gaps[node].order]
        assert np.array_equal(found[absent], memories.expected[node][absent])
        for n in spare:
            assert np.array_equal(
                found[n << 12 : (n + 1) << 12], memories.expected[node][n << 12 : (n + 1) << 12]
            )
    memories = Memories(pair, "gap", "gap")
    for _ in range(2):
        walks = (
            gaps[0].walk(8, 5, ((100, 40),)),
            gaps[1].walk(8, gaps[1].ends[GAP + 1] - 4, ((100, 512),)),
        )
        assert pair.first(call, "put_strided", *walks) == ("OK", 0)
        memories.move(0, walks[0], 1, walks[1])
        walks = gaps[1].walk(800, 9000), gaps[0].walk(8, gaps[0].ends[GAP], ((100, 800),))
        assert pair.first(call, "get_strided", *walks)[0] == "OK"
        memories.move(1, walks[0], 0, walks[1])
    memories.check()


def test_a_message_into_a_page_that_is_not_there(pair, gaps):
    """Each end gets the side of the fault, and the next message is whole."""
    memories = Memories(pair, "gap", "gap")
    source = gaps[0].walk(160, 0)
    for target, there, here in [
        (across(gaps[1]), "REMOTE_READ_ERROR", "READ_ERROR"),
        (gaps[1].walk(160, 9), "OK", "OK"),
    ]:
        assert pair.together(
            (message, "send_strided", source, 1), (message, "receive_strided", target, 0)
        ) == [there, here]
    found = memories.read()[1]
    assert np.array_equal(
        found[gaps[1].places(gaps[1].walk(160, 9))], memories.expected[0][gaps[0].places(source)]
    )


def test_a_region_entered_anew_has_its_new_pages(pair):
    """The same index, another table: what the card has kept of the old one is not used."""
    keys = []
    for turn in range(3):
        space = pair.second(
            register_in_entry, keys[0] % C.REGIONS if keys else None, "4k", "anew", 50 + turn
        )
        pair.spaces[1]["anew"] = space
        keys.append(space.key)
        memories = Memories(pair, "flat", "anew")
        walks = pair.spaces[0]["flat"].walk(8, 3, ((500, 24),)), space.walk(8, 4090, ((500, 280),))
        assert pair.first(call, "put_strided", *walks) == ("OK", 0)
        memories.move(0, walks[0], 1, walks[1])
        assert pair.first(inline_puts, space.key, [(space.ends[3] - 3, b"abcdefgh")])
        memories.expected[1][space.places(space.walk(8, space.ends[3] - 3))] = np.frombuffer(
            b"abcdefgh", np.uint8
        )
        memories.check()
        pair.second(Side.unregister, "anew")
        assert pair.first(call, "put_strided", *walks)[0] == "REMOTE_BAD_KEY"
    assert len({key % C.REGIONS for key in keys}) == 1 and len(set(keys)) == 3


def put_again(side, source, target, times):
    """Statuses of puts that are under way together."""
    for _ in range(times):
        side.endpoint.put_strided(source, target, node=1)
    return {status for _, status, _ in ended(side.endpoint, times)}


def register_in_entry(side, entry, *arguments):
    """As register(), behind as many other regions as it takes for `entry` of the card's table to be
    next; None: any.
    """
    memory = libdibber.alloc(4096)
    for _ in range(C.REGIONS):
        last = side.endpoint.register(memory)
        last.close()
        if entry is None or (last.key + 1) % C.REGIONS == entry:
            break
    return register(side, *arguments)


def unregister_meanwhile(side, name, after_us):
    """Once something of it has come, and some time later."""
    memory = side.regions[name].memory
    while not memory.any():
        assert not side.endpoint.wait(5000)
    assert not side.endpoint.wait(1000 * after_us + 1)
    side.unregister(name)


def test_a_region_that_is_taken_out_while_puts_go_into_it(pair):
    """What is under way ends in its own pages, not in those of the region whose table was told
    last.
    """
    pair.first(Side.fill, "flat", 7)
    for turn in range(3):
        target = pair.second(register, "4k", "leaving", 70 + turn)
        other = pair.second(register, "4k", "other", 90 + turn)
        pair.second(Side.fill, "other", 8)
        before = pair.second(Side.read, "other")
        length = 150_000
        walks = pair.spaces[0]["flat"].walk(length, 0), target.walk(8, 0, ((length // 8, 8),))
        statuses, _ = pair.together(
            (put_again, *walks, 4), (unregister_meanwhile, "leaving", 50 * turn)
        )
        assert "REMOTE_BAD_KEY" in statuses and statuses <= {"OK", "REMOTE_BAD_KEY"}
        assert pair.second(Side.read, "other") == before
        assert pair.first(inline_puts, other.key, [(other.ends[3] - 3, b"abcdefgh")])
        pair.second(Side.unregister, "other")
