"""Two simulated cards of profile gen3x8: 256 bits, and a bonded link of four lanes between them.
`make test-wide` builds the card.
"""

# SPDX-License-Identifier: BSD-2-Clause

import numpy as np
import pytest
from dibber.interface.description import STATUS
from libdibber import Walk

from tests.system.pair import Pair

PROFILE = "gen3x8"
ELEMENTS = 4096
STRIDE = 40
SPAN = ELEMENTS * STRIDE
TIMES = 8


def register_and_fill(side):
    side.register("memory", 2 * SPAN)
    side.fill("memory", seed=side.node)
    return side.regions["memory"].key


def put_both_strided(side, target, times):
    """Strided puts of 8-byte elements to the other side, by any way; the statuses."""
    own = side.regions["memory"].key
    statuses = []
    for _ in range(times):
        side.endpoint.put_strided(
            Walk(own, 8, 0, ((ELEMENTS, STRIDE),)),
            Walk(target, 8, SPAN, ((ELEMENTS, STRIDE),)),
            node=1 - side.node,
        )
        statuses.append(side.completion())
    return statuses


def counters(side):
    return side.info()["counters"]


def elements(memory, begin):
    return memory[begin : begin + SPAN].reshape(ELEMENTS, STRIDE)[:, :8]


@pytest.mark.parametrize(
    "options, healed",
    [
        ((), False),
        (("--set", "link.bit_error_rate=2e-6"), True),
        (("--set", "link.skew_ns=150"), False),
    ],
    ids=["clean", "bit errors", "skew"],
)
def test_strided_puts_of_both_cards_land_whole_over_four_lanes(options, healed, seed):
    with Pair(PROFILE, seed=seed, options=options, preload=True) as pair:
        keys = pair.together((register_and_fill,), (register_and_fill,))
        done = pair.together(*[(put_both_strided, keys[1 - node], TIMES) for node in range(2)])
        assert done == [[STATUS.OK] * TIMES] * 2
        memories = [
            np.frombuffer(content, np.uint8)
            for content in pair.together((read_memory,), (read_memory,))
        ]
        for node in range(2):
            expected = np.random.default_rng(node).integers(0, 256, 2 * SPAN, np.uint8)
            elements(expected, SPAN)[:] = elements(
                np.random.default_rng(1 - node).integers(0, 256, 2 * SPAN, np.uint8), 0
            )
            assert (memories[node] == expected).all()
        counts = pair.together((counters,), (counters,))
        wrong = sum(
            count[name]
            for count in counts
            for name in ("payload_crc_error", "header_crc_error", "code_errors")
        )
        assert (wrong > 0) == healed


def read_memory(side):
    return side.read("memory")


@pytest.mark.parametrize("kind", ["unplugged", "noise"])
def test_a_broken_cable_comes_back_and_no_byte_is_lost(kind, seed):
    """The cable is out for 400 µs while both sides send; both links are trained again."""
    options = ("--fault", f"{kind}:400:800")
    with Pair(PROFILE, seed=seed, options=options, preload=True) as pair:
        keys = pair.together((register_and_fill,), (register_and_fill,))
        done = pair.together(*[(put_both_strided, keys[1 - node], 40) for node in range(2)])
        assert done == [[STATUS.OK] * 40] * 2
        memories = pair.together((read_memory,), (read_memory,))
        for node in range(2):
            there = elements(np.frombuffer(memories[1 - node], np.uint8), SPAN)
            own = np.random.default_rng(node).integers(0, 256, 2 * SPAN, np.uint8)
            assert (there == elements(own, 0)).all()
        lost = [count["link_lost"] for count in pair.together((counters,), (counters,))]
        assert all(count >= 1 for count in lost)
