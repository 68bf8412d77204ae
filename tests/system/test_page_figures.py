"""What page tables cost: an element in every second page, against the same walks over memory in one
piece.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random

import libdibber
import pytest
from dibber.interface.description import RIGHT, STATUS
from libdibber import Walk

from tests.system.pair import SECOND, Pair

ELEMENT, PAGE = 8, 4096
ELEMENTS, PUTS = 2048, 4
STRIDE = 8192
RIGHTS = RIGHT.LOCAL_READ | RIGHT.REMOTE_WRITE


def register(side, seed):
    """The same length in one piece and in scrambled pages of 4 KiB; their keys."""
    count = ELEMENTS * STRIDE // PAGE
    flat = side.endpoint.register(libdibber.alloc(count * PAGE), RIGHTS)
    memory = libdibber.alloc(count * PAGE)
    order = random.Random(seed).sample(range(count), count)
    paged = side.endpoint.register_pages(
        [memory[n * PAGE : (n + 1) * PAGE] for n in order], 12, rights=RIGHTS
    )
    side.kept = flat, paged
    return flat.key, paged.key


def rate(side, source, target):
    """MB/s of puts one behind the other, from the first call to the last completion."""

    def put(count):
        begin = side.endpoint.clock().now_ps
        for _ in range(count):
            side.endpoint.put_strided(Walk(*source), Walk(*target), node=1)
        while count:
            assert side.endpoint.wait(SECOND)
            for done in side.endpoint.poll():
                assert done.status == STATUS.OK
                count -= 1
        return side.endpoint.clock().now_ps - begin

    put(1)
    return PUTS * ELEMENTS * ELEMENT * 1e6 / put(PUTS)


@pytest.fixture(scope="module")
def pair():
    with Pair("gen2x4") as p:
        p.keys = p.together((register, 1), (register, 2))
        yield p


# A line of the table takes 84 bytes of PCIe downstream for four elements, and the read of a source
# element takes 28 there: 28/49 is what would be left if the link let all of it through without
# tables.
@pytest.mark.parametrize("side, share", [("src", 60), ("dst", 90)])
def test_a_stride_over_pages_against_one_over_memory_in_one_piece(pair, figure, side, share):
    """Each element lies in another page; four of them share a line of the page table."""
    levels = ((ELEMENTS, STRIDE),)
    rates = []
    for kind in range(2):
        near, far = (
            pair.keys[0][kind if side == "src" else 0],
            pair.keys[1][kind if side == "dst" else 0],
        )
        source = (near, ELEMENT, 0, levels) if side == "src" else (near, ELEMENT * ELEMENTS, 0)
        target = (far, ELEMENT, 0, levels) if side == "dst" else (far, ELEMENT * ELEMENTS, 0)
        rates.append(pair.first(rate, source, target))
    flat, paged = rates
    figure(
        f"pages-{side}-strided",
        round(paged, 1),
        f"MB/s, 8 bytes every 8 KiB in pages of 4 KiB; {flat:.1f} in one piece",
        profile="gen2x4",
    )
    assert figure(
        f"pages-{side}-of-flat",
        round(100 * paged / flat, 1),
        "% of the rate in one piece",
        at_least=share,
        profile="gen2x4",
    )
