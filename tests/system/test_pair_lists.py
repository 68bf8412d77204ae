"""Index lists between two cards: every operation finds the places that a list names, on either
side, and no other byte.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random
import struct

import libdibber
import numpy as np
import pytest
from dibber.interface.description import COMMAND, OPCODE, RIGHT, STATUS, C
from libdibber import List, Walk

from tests.system.pair import SECOND, Side
from tests.system.pair_lists import (
    ALL,
    ALL_OK,
    LISTS,
    SHAPES,
    Half,
    Memories,
    asked,
    ended,
    message,
    opened,
    shuffled,
    transfer,
    write_list,
)


@pytest.fixture(scope="module")
def pair():
    with opened() as pair:
        yield pair


@pytest.mark.parametrize("operation", ALL_OK)
@pytest.mark.parametrize("name", SHAPES)
def test_every_byte_is_where_the_lists_say(pair, name, operation):
    source, target, length = SHAPES[name]
    memories = Memories(pair)
    assert transfer(pair, operation, source, target, length) == ALL_OK[operation]
    memories.check(operation == "get", source.places(length), target.places(length))


def taken(side):
    """Commands and answers of hardware, so far."""
    counters = side.info()["counters"]
    return counters["fast_commands"] + counters["fast_answers"]


@pytest.mark.parametrize("fast", [True, False], ids=["hardware", "control program"])
def test_puts_and_gets_with_lists_are_hardwares_if_it_may(fast):
    """Messages claim the flows, so they come last."""
    names = ("both", "unlike nests", "into packets")
    with opened(fast=fast) as fresh:
        for operation in ALL_OK:
            if operation == "message":
                counts = fresh.together((taken,), (taken,))
            for name in names:
                source, target, length = SHAPES[name]
                memories = Memories(fresh)
                assert transfer(fresh, operation, source, target, length) == ALL_OK[operation]
                memories.check(operation == "get", source.places(length), target.places(length))
    # Commands here, answers there.
    assert counts == ([2 * len(names), len(names)] if fast else [0, 0])


def test_a_message_that_is_shorter_needs_fewer_entries(pair):
    """Those that the sender does not fill are never read: the list may end before them."""
    source, target = Half(3000, 5), Half(8, 40, (), shuffled(375, 24, 2), LISTS - 8 * 375)
    memories = Memories(pair)
    pair.second(write_list, target)
    ends = pair.together(
        (message, "send_indexed", source.walk(pair.keys[0]), 3000, 1),
        (message, "receive_indexed", target.walk(pair.keys[1]), 100_000, 0),
    )
    assert ends == ["OK", "OK"]
    memories.check(0, source.places(3000), target.places(3000))


def no_bytes(side, key, list_key, opcode):
    """A command of 0 bytes with lists on both sides, which the library does not make: the same keys
    on both.
    """
    slot = bytearray(C.SLOT_BYTES)
    struct.pack_into("<BBBBHHIIII", slot, 0, opcode, 0, (C.LIST | C.LIST << 4), 0, 1, 0, 0, 0, 0, 0)
    for name in ("source", "target"):
        struct.pack_into(
            "<IIQ6I3I", slot, COMMAND[name].offset, key[name], 8, 0, *(0,) * 6, 0, 0, list_key[name]
        )
    side.endpoint.submit(bytes(slot))
    return ended(side.endpoint)


@pytest.mark.parametrize("opcode", [OPCODE.PUT, OPCODE.GET])
def test_no_bytes_need_no_list(pair, opcode):
    memories = Memories(pair)
    near, far = ("target", "source") if opcode == OPCODE.GET else ("source", "target")
    assert pair.first(
        no_bytes,
        {near: pair.keys[0]["memory"], far: pair.keys[1]["memory"]},
        {near: pair.keys[0]["lists"], far: pair.keys[1]["lists"]},
        opcode,
    ) == [("OK", 0)]
    memories.check()


def put_all(side, commands):
    """Statuses of puts that are under way together."""
    for first in range(0, len(commands), 8):
        for source, target, length in commands[first : first + 8]:
            side.endpoint.put_indexed(source, target, length, node=1)
        assert {status for status, _ in ended(side.endpoint, len(commands[first : first + 8]))} == {
            "OK"
        }


def test_puts_under_way_together_each_have_their_own_list(pair, seed):
    """Short and long ones, listed and not, so that the next walk begins while the last one still
    reads.
    """
    choice, memories = random.Random(seed), Memories(pair)
    commands, places, free = [], ([], []), [0, 0]
    for n in range(40):
        block = choice.choice((1, 8, 24, 300))
        count = choice.randint(1, min(90 if n % 3 == 0 else 12, 5900 // (block + 8)))
        length = block * count - choice.randrange(block)
        halves = []
        for node in range(2):
            pitch, start = block + choice.choice((0, 3, 8)), 5 + node + 6000 * n
            if choice.random() < 0.7:
                halves.append(
                    Half(
                        block,
                        start,
                        (),
                        [pitch * k for k in choice.sample(range(count), count)],
                        free[node],
                    )
                )
                free[node] += 8 * count
            elif length == block * count:
                halves.append(Half(block, start, ((count, pitch),)))
            else:
                halves.append(Half(length, start))
            places[node].append(halves[node].places(length))
        pair.together(*[(write_list, half) for half in halves])
        commands.append((*(half.walk(keys) for half, keys in zip(halves, pair.keys)), length))
    pair.first(put_all, commands)
    memories.check(0, *map(np.concatenate, places))


def test_a_checksum_and_a_notice_of_what_a_list_gathers(pair):
    source, target = Half(7, 3, (), shuffled(900, 20, 21)), Half(6300, 99)
    memories = Memories(pair)
    pair.first(write_list, source)
    value, event = pair.together(
        (checksum, source.walk(pair.keys[0]), target.walk(pair.keys[1])), (Side.event,)
    )
    data = memories.before[0][source.places(6300)].tobytes()
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    assert value == total ^ 0xFFFF and event == (5, 6300, pair.keys[1]["memory"], 0)
    memories.check(0, source.places(6300), target.places(6300))


def checksum(side, source, target):
    side.endpoint.put_indexed(source, target, node=1, checksum=True, notice=5, endpoint=1)
    while not (done := side.endpoint.poll()):
        assert side.endpoint.wait(SECOND)
    assert done[0].status == STATUS.OK
    return done[0].value


def test_an_index_of_an_array_as_a_program_writes_it(pair):
    place = pair.second(land)
    assert pair.first(migrate, place) == "OK"
    assert pair.second(landed)


def migrate(side, place):
    side.objects = libdibber.alloc(500 * 40).view("i4").reshape(500, 10)
    side.objects[:] = np.arange(5000).reshape(500, 10)
    with (
        side.endpoint.register(side.objects),
        side.endpoint.indexed(side.objects[:, 1:8], [499, 0, -3, 17]) as leaving,
    ):
        side.endpoint.put_array(place, leaving, node=1)
        return ended(side.endpoint)[0][0]


def land(side):
    side.objects = libdibber.alloc(500 * 40).view("i4").reshape(500, 10)
    side.room = side.endpoint.register(side.objects, RIGHT.REMOTE_WRITE)
    side.landing = side.endpoint.indexed(side.objects[:, 2:9], [4, 8, 6, 400])
    return side.landing.walk


def landed(side):
    right = np.zeros((500, 10), dtype="i4")
    right[[4, 8, 6, 400], 2:9] = np.arange(5000).reshape(500, 10)[[499, 0, -3, 17], 1:8]
    side.landing.close(), side.room.close()
    return np.array_equal(right, side.objects)


# Pages --------------------------------------------------------------------------------------------


def scrambled(side, name, pages, seed, rights):
    """A region of pages of 4 KiB in another order than its memory."""
    memory = libdibber.alloc(pages * 4096)
    order = random.Random(seed).sample(range(pages), pages)
    region = side.endpoint.register_pages(
        [memory[n << 12 : (n + 1) << 12] for n in order], 12, rights=rights
    )
    region.memory, region.order = memory, np.array(order)
    side.regions[name] = region
    return region.key


def in_pages(side, name, offset, data=None, size=None):
    """Write or read a region by the order of its pages."""
    region = side.regions[name]
    inside = offset + np.arange(len(data) if data is not None else size)
    places = region.order[inside >> 12] << 12 | inside & 4095
    if data is not None:
        region.memory[places] = np.frombuffer(data, np.uint8)
    return region.memory[places].tobytes()


def test_lists_and_what_they_name_in_scrambled_pages(pair):
    length, data = 16_000, np.random.default_rng(31).bytes(40 * 4096)
    lists = [np.array(shuffled(2000, 72, 32 + n), dtype=np.int64) for n in range(2)]
    keys = [
        pair.together(*[(scrambled, name, pages, 10 * len(name) + n, ALL) for n in range(2)])
        for name, pages in (("paged", 40), ("paged lists", 6))
    ]
    pair.first(in_pages, "paged", 0, data)
    pair.second(in_pages, "paged", 0, bytes(40 * 4096))
    pair.together(*[(in_pages, "paged lists", 40, entries.tobytes()) for entries in lists])
    source, target = (
        Walk(keys[0][n], 8, 4090 + n, (), List(keys[1][n], 2000, 40)) for n in range(2)
    )
    right = np.zeros(40 * 4096, np.uint8)
    bytes_ = np.arange(8)
    right[(lists[1][:, None] + 4091 + bytes_).ravel()] = np.frombuffer(data, np.uint8)[
        (lists[0][:, None] + 4090 + bytes_).ravel()
    ]
    assert pair.first(asked, "put_indexed", source, target, length) == "OK"
    assert pair.second(in_pages, "paged", 0, None, 40 * 4096) == right.tobytes()
    pair.second(in_pages, "paged", 0, data)
    pair.first(in_pages, "paged", 0, bytes(40 * 4096))
    swapped = [Walk(keys[0][n], 8, 4091 - n, (), List(keys[1][n], 2000, 40)) for n in range(2)]
    right[:] = 0
    right[(lists[0][:, None] + 4091 + bytes_).ravel()] = np.frombuffer(data, np.uint8)[
        (lists[1][:, None] + 4090 + bytes_).ravel()
    ]
    assert pair.first(asked, "get_indexed", swapped[1], swapped[0], length) == "OK"
    assert pair.first(in_pages, "paged", 0, None, 40 * 4096) == right.tobytes()
    for name in ("paged", "paged lists"):
        pair.together((Side.unregister, name), (Side.unregister, name))
