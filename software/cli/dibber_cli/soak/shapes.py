"""Random lengths and shapes for the soak test."""

# SPDX-License-Identifier: BSD-2-Clause

import math
import random

from dibber.interface.description import C

from dibber_cli.soak.layout import Shape

ENTRIES = 1024  # of a list


def factors(number: int) -> list[int]:
    found, p = [], 2
    while p * p <= number:
        while number % p == 0:
            found.append(p)
            number //= p
        p += 1
    return found + [number] * (number > 1)


def random_length(choice: random.Random) -> int:
    """Log-uniform up to 32 KiB, some up to 256 KiB; many with small factors, for walks of many
    kinds.
    """
    length = int(
        math.exp(choice.random() * math.log(choice.choices((1 << 15, 1 << 18), (9, 1))[0]))
    )
    if choice.random() < 0.6:
        smooth = 1
        while smooth < length:
            smooth *= choice.choice((2, 2, 2, 3, 5, 7, 11, 13))
        length = min(smooth, 1 << 18)
    return max(length, 1)


def random_shape(
    choice: random.Random, length: int, room: int, apart: bool
) -> tuple[Shape, int, int]:
    """A Shape of `length` bytes within `room`, and its first and last place from that of its first
    block.

    apart : blocks do not overlap
    """
    if choice.random() < 0.25:
        found = random_list(choice, length, room, apart)
        if found:
            return found
    return random_strides(choice, length, room, apart, C.LEVELS)


def random_list(
    choice: random.Random, length: int, room: int, apart: bool
) -> tuple[Shape, int, int] | None:
    """The same with an index list over random strides; None when there is no room."""
    nest = min(length, choice.choice((1, 3, 4, 8, 8, 8, 12, 24, 100, 1000, 5000)))
    nest = max(nest, -(-length // ENTRIES))
    inner, low, high = random_strides(choice, nest, min(room, 4 * nest + 64), apart, C.LIST_LEVELS)
    count, extent = -(-length // nest), high - low
    if extent > room or apart and count * extent > room:
        return None
    if apart:
        pitch = extent + choice.randrange(min((room - count * extent) // count, 2 * extent + 8) + 1)
        places = [pitch * n for n in choice.sample(range(count), count)]
    else:
        reach = choice.choice((0, 64, 4096, room)) % (room - extent + 1)
        places = [choice.randint(0, reach) for _ in range(count)]
    # The origin of the entries is any place among them, so they have either sign.
    origin = choice.choice((min(places), places[0], choice.randint(min(places), max(places))))
    entries = tuple(place - origin for place in places)
    return (
        Shape(inner.block, 0, inner.levels, entries, count * nest - length),
        min(entries) + low,
        max(entries) + high,
    )


def random_strides(
    choice: random.Random, length: int, room: int, apart: bool, most: int
) -> tuple[Shape, int, int]:
    """The same with up to `most` levels of strides."""
    block, counts = 1, [1] * choice.choices(range(most + 1), (3, 4, 2, 2)[: most + 1])[0]
    for p in factors(length):
        n = choice.randrange(-2, len(counts))
        if n < 0:
            block *= p
        else:
            counts[n] *= p
    while math.prod(counts) > choice.choice((64, 512, 8192)):
        n = counts.index(max(counts))
        block, counts[n] = block * counts[n], 1
    levels, low, high = [], 0, block
    for count in counts:
        extent = high - low
        spare = (room - extent * count) // max(count - 1, 1)
        if spare < 0:
            return Shape(length, 0), 0, length
        gap = choice.choice(
            (0, 0, 1, 3, 8, -extent % 64, choice.randrange(4096), choice.randrange(1 << 16))
        )
        stride = extent + min(gap, spare)
        if not apart and choice.random() < 0.2:
            stride = choice.randrange(min(extent, 100) + 1)
        stride *= choice.choice((1, 1, -1))
        levels.append((count, stride))
        low, high = low + min(0, stride * (count - 1)), high + max(0, stride * (count - 1))
    if choice.random() < 0.3:
        choice.shuffle(levels)
    return Shape(block, 0, tuple(levels)), low, high
