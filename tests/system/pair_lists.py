"""Two cards with index lists beside their memory: transfers from and to places that lists name, and
what memory holds then.
"""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
import random
from dataclasses import dataclass, field

import numpy as np
from dibber.interface.description import RIGHT, STATUS
from libdibber import List, Walk

from tests.system.pair import SECOND, Pair, Side

SIZE = 1 << 18  # bytes of `memory`
LISTS = 1 << 16  # bytes of `lists`
ALL = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE


@contextlib.contextmanager
def opened(options=(), fast=True):
    """Both cards; keys in `keys[node]` of the Pair. Without `fast` the control programs queue and
    end all transfers.
    """
    with Pair(options=options, preload=True) as pair:
        pair.together(*[(Side.fast_path, fast)] * 2)
        pair.keys = pair.together((prepare,), (prepare,))
        yield pair


def prepare(side):
    """`memory` and `lists`; lists that may not be used: `blind`, not to be read, `foreign`, another
    endpoint's, `odd`, which
    begins at no multiple of 8 bytes. `other` is memory of that endpoint."""
    keys = {
        "memory": side.register("memory", SIZE, rights=ALL),
        "lists": side.register("lists", LISTS, rights=RIGHT.LOCAL_READ),
        "unknown": 0x5500,
    }
    lists, side.second = side.regions["lists"].memory, side.card.endpoint(2)
    side.others = {
        "blind": side.endpoint.register(lists, ALL & ~RIGHT.LOCAL_READ),
        "odd": side.endpoint.register(lists[4:], ALL),
        "foreign": side.second.register(lists, ALL),
        "other": side.second.register(side.regions["memory"].memory, ALL),
    }
    return keys | {name: region.key for name, region in side.others.items()}


# Places -------------------------------------------------------------------------------------------


@dataclass
class Half:
    """One side of a transfer in `memory`: a walk, and what its list has (None: no list), which
    begins at `at` in `lists`.
    """

    block: int
    offset: int = 0
    levels: tuple = ()
    entries: list = None
    at: int = 0
    keys: dict = field(default_factory=dict)  # other ones than "memory" and "lists"

    def walk(self, keys):
        places = (
            None
            if self.entries is None
            else List(keys[self.keys.get("list", "lists")], len(self.entries), self.at)
        )
        return Walk(
            keys[self.keys.get("memory", "memory")], self.block, self.offset, self.levels, places
        )

    def places(self, length):
        """Where each byte of the transfer is in `memory`, in order."""
        walk = Walk(0, self.block, self.offset, self.levels)
        blocks = np.array(
            walk.blocks([0] if self.entries is None else self.entries), dtype=np.int64
        )
        return (blocks[:, None] + np.arange(self.block)).reshape(-1)[:length]


def write_list(side, half):
    entries = np.array(half.entries or [], dtype=np.int64)
    side.regions["lists"].memory[half.at : half.at + 8 * len(entries)] = entries.view(np.uint8)


class Memories:
    """What both memories held before a transfer, and must hold after it."""

    def __init__(self, pair, seed=1):
        self.pair = pair
        pair.together((Side.fill, "memory", 2 * seed), (Side.fill, "memory", 2 * seed + 1))
        self.before = self.read()

    def read(self):
        return [
            np.frombuffer(b, np.uint8).copy()
            for b in self.pair.together((Side.read, "memory"), (Side.read, "memory"))
        ]

    def check(self, source_node=0, source=(), target=()):
        """A transfer from the places `source` to the places `target` of the other node; a byte that
        is written more than once
        has one of its values. Nothing else has changed."""
        found, right = self.read(), self.before
        payload = right[source_node][source] if len(source) else []
        for node in range(2):
            written = np.zeros(SIZE, dtype=bool)
            if node == 1 - source_node and len(target):
                written[target] = True
                some = np.zeros(SIZE, dtype=bool)
                some[target[found[node][target] == payload]] = True
                assert some[written].all(), (
                    f"card {node}: {np.flatnonzero(written & ~some)[:4]} … wrong"
                )
            others = np.flatnonzero((found[node] != right[node]) & ~written)
            assert not len(others), (
                f"card {node}: {len(others)} bytes changed that nobody may write, from {others[0]}"
            )


# Steps of one side --------------------------------------------------------------------------------


def ended(endpoint, count=1):
    """[(status, length)] in the order of their tags, waited for."""
    done = []
    while len(done) < count:
        done += endpoint.poll()
        if len(done) < count:
            assert endpoint.wait(SECOND), f"{len(done)} of {count} commands ended"
    return [(STATUS.name_of(c.status), c.length) for c in sorted(done, key=lambda c: c.tag)]


def transfer(pair, operation, source, target, length):
    """Lists written and bytes moved: the status of a put or get of card 0; of a message from card 0
    to card 1, of both ends.
    """
    ends = {1: source, 0: target} if operation == "get" else {0: source, 1: target}
    pair.together((write_list, ends[0]), (write_list, ends[1]))
    return move(pair, operation, source, target, length)


def move(pair, operation, source, target, length):
    nodes = (1, 0) if operation == "get" else (0, 1)  # of source, of target
    walks = [half.walk(pair.keys[node]) for node, half in zip(nodes, (source, target))]
    if operation == "message":
        return pair.together(
            (message, "send_indexed", walks[0], length, 1),
            (message, "receive_indexed", walks[1], length, 0),
        )
    return pair.first(asked, f"{operation}_indexed", *walks, length)


def asked(side, name, source, target, length):
    getattr(side.endpoint, name)(source, target, length, node=1)
    return ended(side.endpoint)[0][0]


def message(side, name, walk, length, node):
    getattr(side.endpoint, name)(walk, length, node=node, endpoint=1)
    return ended(side.endpoint)[0][0]


# Shapes -------------------------------------------------------------------------------------------


def shuffled(count, pitch, seed):
    return [pitch * n for n in random.Random(seed).sample(range(count), count)]


# Name: source, target, bytes.
SHAPES = {
    "one byte": (Half(1, 77, (), [1000]), Half(1, 99, (), [-50]), 1),
    "source": (Half(8, 40, (), shuffled(1500, 24, 1)), Half(12_000, 77), 12_000),
    "target": (Half(12_000, 13), Half(8, 40, (), shuffled(1500, 24, 2)), 12_000),
    "both": (
        Half(8, 41, (), shuffled(1500, 24, 3), 8),
        Half(8, 42, (), shuffled(1500, 40, 4), 56),
        12_000,
    ),
    "nests of two": (
        Half(3, 60_000, ((7, 5), (11, -100)), shuffled(13, 4097, 5), 4088),
        Half(3003, 5),
        3003,
    ),
    "into nests": (
        Half(5000, 3),
        Half(4, 90_000, ((5, -9), (25, 90)), shuffled(10, 3001, 6), 512),
        5000,
    ),
    "unlike nests": (
        Half(7, 30, ((3, 30),), shuffled(200, 111, 7), 24),
        Half(10, 50, ((2, 12), (3, 40)), shuffled(70, 200, 8)),
        4200,
    ),
    "long blocks": (
        Half(5000, 9, (), shuffled(7, 9001, 9)),
        Half(4999, 2, (), shuffled(8, 7777, 10), 8),
        35_000,
    ),
    "odd blocks": (
        Half(1, 3, (), shuffled(5000, 7, 11)),
        Half(13, 1, (), shuffled(385, 29, 12)),
        5000,
    ),
    "cut short": (
        Half(24, 0, (), shuffled(500, 40, 13)),
        Half(100, 5, ((2, 300),), shuffled(60, 700, 14)),
        11_993,
    ),
    "again and again": (Half(16, 100, (), [0, 0, 16, 0, 8, 24] * 50), Half(4800, 1), 4800),
    "overlapping": (Half(4000, 6), Half(8, 1000, (), [4 * n % 1600 for n in range(500)]), 4000),
    "backwards": (
        Half(8, 100_000, (), [-9 * n for n in range(2000)]),
        Half(8, 200_000, (), [-16 * n for n in range(2000)]),
        16_000,
    ),
    "neighbours": (
        Half(8, 64, (), [8 * n for n in range(3000)], 16),
        Half(8, 24, (), [8 * n for n in range(3000)], 40),
        24_000,
    ),
    "far apart": (
        Half(8, 0, (), [(8192 * n + 40 * n) % (SIZE - 8) for n in range(400)]),
        Half(8, 4, (), [(12_296 * n) % (SIZE - 16) for n in range(400)]),
        3200,
    ),
    "packets": (Half(12, 0, (), shuffled(7000, 16, 15), 800), Half(84_000, 3), 84_000),
    "into packets": (Half(84_000, 3), Half(12, 0, ((2, 16),), shuffled(3500, 40, 16), 72), 84_000),
}


ALL_OK = {"put": "OK", "get": "OK", "message": ["OK", "OK"]}
