"""Slots of commands for the fast path, good ones and such with one fault; what the control program
would do with each.
"""

# SPDX-License-Identifier: BSD-2-Clause

import struct
from math import prod

from dibber.interface.description import COMMAND, FAST_KIND, FLAG, INLINE, LANE, OPCODE, WALK, C

NODE_ID = 5
ATOMICS = (OPCODE.FETCH_ADD, OPCODE.SWAP, OPCODE.COMPARE_SWAP, OPCODE.MASKED_SWAP)

# What the control program would do ----------------------------------------------------------------


def word(slot, offset):
    return struct.unpack_from("<I", slot, offset)[0]


def product_is(slot, walk, levels, length):
    """As put.c, check_walk. With an index list, what lies at one entry may have any length. The
    fast path counts no further than FAST_LENGTH.
    """
    base = COMMAND[walk].offset
    product = word(slot, base + WALK["block"].offset)
    for n in range(levels & C.LIST - 1):
        product *= word(slot, base + WALK["count"].offset + 4 * n)
    return 0 < product <= C.FAST_LENGTH if levels & C.LIST else product == length


def levels_are_known(levels):
    return max(levels & 15, levels >> 4) <= C.LIST + C.LIST_LEVELS


def walks_are_good(slot, levels, length, offset):
    """As put.c and get.c: the same, whatever way the bytes go."""
    return (
        product_is(slot, "source", levels & 15, length)
        and product_is(slot, "target", levels >> 4, length)
        and (levels >> 4 or offset + length - 1 < 2**48)
    )


def judge(slot, inline_too, put_too, get_too=False, atomic_too=False, walks_too=True):
    """Fields of the fast put, or None if the command is missed."""
    opcode, flags, levels, _ = slot[:4]
    node, length, cookie = word(slot, 4), word(slot, 8), word(slot, 12)
    offset = struct.unpack_from("<Q", slot, INLINE["offset"].offset)[0]
    asks = opcode == OPCODE.GET or opcode in ATOMICS
    known = FLAG.SOLICIT if asks else FLAG.NOTICE | FLAG.INTERRUPT | FLAG.SOLICIT
    if flags & ~known or (flags & FLAG.INTERRUPT and not flags & FLAG.NOTICE):
        return None
    if node >= C.NODES or node == NODE_ID or offset >= 2**48:
        return None
    if opcode == OPCODE.PUT_INLINE:
        good = inline_too and not levels and length <= C.INLINE_BYTES
    elif opcode in (OPCODE.PUT, OPCODE.GET):
        good = (
            (get_too if asks else put_too)
            and levels_are_known(levels)
            and 0 < length <= C.FAST_LENGTH
            and (not walks_too or walks_are_good(slot, levels, length, offset))
        )
    else:
        good = atomic_too and opcode in ATOMICS and not levels and length in (4, 8)
    return (
        good
        and dict(
            kind=FAST_KIND.ASK if asks else FAST_KIND.PUT,
            atomic=int(opcode in ATOMICS),
            lane=LANE.BULK if opcode == OPCODE.PUT else LANE.EXPRESS,
            node=node,
            cookie=cookie,
            length=length,
            solicit=int(flags & FLAG.SOLICIT != 0),
        )
        or None
    )


# Slots --------------------------------------------------------------------------------------------


def put_word(slot, offset, value):
    struct.pack_into("<I", slot, offset, value & 0xFFFFFFFF)


def head(rng, opcode, length):
    """Random bytes, but good where it matters."""
    slot = bytearray(rng.randbytes(C.SLOT_BYTES))
    slot[:4] = opcode, rng.choice([0, 0, 1, 3, 4, 5, 7]), 0, rng.randrange(256)
    put_word(slot, 4, rng.choice([n for n in range(C.NODES) if n != NODE_ID]))
    put_word(slot, 8, length)
    struct.pack_into(
        "<Q", slot, INLINE["offset"].offset, rng.getrandbits(rng.choice([0, 20, 47, 48]))
    )
    return slot


def inline(rng):
    return head(rng, OPCODE.PUT_INLINE, rng.choice([0, 1, 8, 63, 64]))


def atomic(rng):
    slot = head(rng, rng.choice(ATOMICS), rng.choice([4, 8]))
    slot[1] &= FLAG.SOLICIT
    return slot


def get(rng):
    slot = put(rng)
    slot[0] = OPCODE.GET
    slot[1] &= FLAG.SOLICIT
    return slot


def put(rng):
    """Lengths up to the longest, in walks of up to three levels whose products they are."""
    numbers = [rng.choice([1, 2, 3, 5, 7, 31, 40])] * rng.randrange(4) + [rng.randint(2, 60)]
    if rng.random() < 0.1:
        numbers = rng.choice(
            [[1], [C.FAST_LENGTH], [3, C.FAST_LENGTH // 3], [1, 1, C.FAST_LENGTH, 1]]
        )
    length = prod(numbers)
    slot = head(rng, OPCODE.PUT, length)
    for shift, walk in ((0, "source"), (4, "target")):
        factors = list(numbers)
        while len(factors) > 1 and rng.random() < 0.5:
            factors.append(factors.pop() * factors.pop())
        rng.shuffle(factors)
        slot[2] |= len(factors) - 1 << shift
        base = COMMAND[walk].offset
        put_word(slot, base + WALK["block"].offset, factors[0])
        for n, count in enumerate(factors[1:]):
            put_word(slot, base + WALK["count"].offset + 4 * n, count)
    return slot


def listed(rng):
    """A put with an index list on one side or both. The length need not be a multiple of what lies
    at one entry.
    """
    slot = put(rng)
    for walk in rng.choice([["source"], ["target"], ["source", "target"]]):
        contiguous(slot, walk, *[rng.randint(1, 40) for _ in range(rng.randrange(3))])
        slot[2] |= C.LIST << SHIFT[walk]
        put_word(slot, BLOCK[walk], rng.choice([1, 4, 8, 24, rng.randint(1, 2000)]))
    return slot


def listed_get(rng):
    slot = listed(rng)
    slot[0] = OPCODE.GET
    slot[1] &= FLAG.SOLICIT
    return slot


SHIFT = {"source": 0, "target": 4}
BLOCK = {walk: COMMAND[walk].offset + WALK["block"].offset for walk in ("source", "target")}
COUNT = {walk: COMMAND[walk].offset + WALK["count"].offset for walk in ("source", "target")}


def put_byte(slot, offset, value):
    slot[offset] = value


def contiguous(slot, walk, *counts):
    """A walk whose block is the whole length, `counts` beside it."""
    slot[2] = slot[2] & ~(15 << SHIFT[walk]) | len(counts) << SHIFT[walk]
    put_word(slot, BLOCK[walk], word(slot, 8))
    for n, count in enumerate(counts):
        put_word(slot, COUNT[walk] + 4 * n, count)


def entries(slot, walk, block, *counts):
    """A walk with an index list, and what lies at each entry of it."""
    contiguous(slot, walk, *counts)
    slot[2] |= C.LIST << SHIFT[walk]
    put_word(slot, BLOCK[walk], block)


def reach(slot, end):
    """A contiguous target whose last byte is at this offset."""
    contiguous(slot, "target")
    struct.pack_into("<Q", slot, 32, end - word(slot, 8) + 1)


# What a command may have wrong: a function that spoils a good one.
FAULTS = {
    "opcode": lambda rng, slot: put_byte(slot, 0, rng.choice([0, 4, 5, 6, 7, 12, 16, 0x80, 0xFF])),
    "checksum": lambda rng, slot: put_byte(slot, 1, slot[1] | FLAG.CHECKSUM),
    "fence": lambda rng, slot: put_byte(slot, 1, slot[1] | FLAG.FENCE),
    "unknown flag": lambda rng, slot: put_byte(slot, 1, slot[1] | 1 << rng.randrange(5, 8)),
    "interrupt": lambda rng, slot: put_byte(
        slot, 1, FLAG.INTERRUPT | rng.choice([0, FLAG.SOLICIT])
    ),
    "source levels": lambda rng, slot: put_byte(slot, 2, slot[2] & 0xF0 | rng.randrange(7, 16)),
    "target levels": lambda rng, slot: put_byte(
        slot, 2, slot[2] & 0x0F | rng.randrange(7, 16) << 4
    ),
    "node": lambda rng, slot: put_word(slot, 4, rng.choice([16, 255, 256, 0x8000])),
    "own node": lambda rng, slot: put_word(slot, 4, NODE_ID),
    "reserved": lambda rng, slot: put_word(slot, 4, word(slot, 4) | 1 << rng.randrange(16, 32)),
    "offset": lambda rng, slot: put_word(slot, 36, 1 << rng.randrange(16, 32)),
    "length": lambda rng, slot: put_word(slot, 8, word(slot, 8) + 65),
    "far length": lambda rng, slot: put_word(slot, 8, word(slot, 8) | 1 << rng.randrange(22, 32)),
}
INLINE_FAULTS = {
    "levels": lambda rng, slot: put_byte(slot, 2, 1 << rng.randrange(8)),
}
ASK_FAULTS = {
    "notice": lambda rng, slot: put_byte(slot, 1, slot[1] | FLAG.NOTICE),
    "both": lambda rng, slot: put_byte(slot, 1, slot[1] | FLAG.NOTICE | FLAG.INTERRUPT),
}
ATOMIC_FAULTS = (
    ASK_FAULTS
    | INLINE_FAULTS
    | {
        "operand": lambda rng, slot: put_word(
            slot, 8, rng.choice([0, 1, 2, 3, 5, 6, 7, 9, 12, 16, 0x10004, 0x80000008])
        ),
    }
)
PUT_FAULTS = {
    "no length": lambda rng, slot: put_word(slot, 8, 0),
    "zero block": lambda rng, slot: put_word(slot, BLOCK["source"], 0),
    "block": lambda rng, slot: put_word(
        slot, BLOCK["target"], word(slot, BLOCK["target"]) ^ 1 << rng.randrange(32)
    ),
    "count": lambda rng, slot: contiguous(slot, "source", rng.choice([0, 2, 0x80000001, 1 << 22])),
    "count of 0": lambda rng, slot: contiguous(slot, "source", 1 << 31, 2, 0),
    # their product is 1, modulo 2^32
    "wrapped": lambda rng, slot: contiguous(slot, "target", 0x8001, 0xFFFF8001, 1),
    "long": lambda rng, slot: (
        put_word(slot, 8, C.FAST_LENGTH + 1),
        contiguous(slot, "source"),
        contiguous(slot, "target"),
    ),
    "end": lambda rng, slot: (put_word(slot, 8, 2), contiguous(slot, "source"), reach(slot, 2**48)),
}
# Both sides may have a list, and then each length is good.
LIST_FAULTS = {name: fault for name, fault in FAULTS.items() if name != "length"} | {
    "nothing at an entry": lambda rng, slot: entries(slot, "source", 0, 5),
    "no block there": lambda rng, slot: entries(slot, "target", 8, 3, 0),
    "no list's level": lambda rng, slot: entries(slot, "target", 2, 3, 2, 2),
    "more than 32 bits": lambda rng, slot: entries(slot, "source", 0x8001, 0xFFFF8001),
    "long": lambda rng, slot: entries(slot, "target", C.FAST_LENGTH + 1),
    "no length": PUT_FAULTS["no length"],
}
LIST_EDGES = {
    "one byte": lambda rng, slot: entries(slot, "source", 1),
    "less than an entry": lambda rng, slot: (
        put_word(slot, 8, 1),
        contiguous(slot, "source"),
        entries(slot, "target", C.FAST_LENGTH),
    ),
    "two strides": lambda rng, slot: entries(slot, "target", 3, 5, 7),
    "ends beyond 48 bits": lambda rng, slot: (
        reach(slot, 2**48 - 2),
        put_word(slot, 8, 4000),
        entries(slot, "source", 8),
        entries(slot, "target", 4000),
    ),
}
EDGES = {
    "end": lambda rng, slot: reach(slot, 2**48 - 1),
    "carry": lambda rng, slot: reach(slot, 2**47 + 2),
    "levels": lambda rng, slot: contiguous(slot, "target", 1, 1, 1),
}


def some_slot(rng):
    what = rng.random()
    if what < 0.05:
        return bytearray(rng.randbytes(C.SLOT_BYTES))
    make, faults = (
        (inline, FAULTS | INLINE_FAULTS)
        if what < 0.3
        else (atomic, FAULTS | ATOMIC_FAULTS)
        if what < 0.5
        else (put, FAULTS | PUT_FAULTS | EDGES)
        if what < 0.65
        else (listed, PUT_FAULTS | LIST_FAULTS | LIST_EDGES)
        if what < 0.8
        else (get, FAULTS | ASK_FAULTS | PUT_FAULTS | EDGES)
        if what < 0.9
        else (listed_get, ASK_FAULTS | LIST_FAULTS | LIST_EDGES)
    )
    slot = make(rng)
    if rng.random() < 0.5:
        faults[rng.choice(sorted(faults))](rng, slot)
    return slot
