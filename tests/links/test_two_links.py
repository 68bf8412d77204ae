"""Cards with two links: the rate of flows by both, and cables that are pulled under traffic.
`make test-links` builds the card.
"""

# SPDX-License-Identifier: BSD-2-Clause

import libdibber
import numpy as np
import pytest
from dibber.interface.description import STATUS

from tests.system.network import completions, opened, put_blocks, register

BLOCK = 1 << 16
UNDER_WAY = 4  # puts of a flow
LINK_1 = 8  # in a route's word: it begins at link 1
PORTS = 8  # of the switch that three cards with two links need
HALF = 1 << 15


def turn(source, target):
    """A route by one switch, from its port `source` to its port `target`."""
    return 1 | (target - source) % PORTS << 4


def routes(ways):
    """A step: enter {node: [route]} of this card."""

    def step(side):
        for node, words in ways[side.node].items():
            for place, word in enumerate(words):
                side.card.set_route(node, place, word)

    return step


# Card 0 reaches card 1 by its link 0, and card 2 by its link 1. The ways back are the same cables.
SWITCH = "two-link-star:3"
BY_SWITCH = {
    0: {1: [turn(0, 1)], 2: [turn(3, 2) | LINK_1]},
    1: {0: [turn(1, 0)]},
    2: {0: [turn(2, 3)]},
}
# Card 1 is the middle of three in a row: its link 0 leads to card 0, and its link 1 to card 2.
ROW = "two-links:3"
BY_ROW = {0: {1: [LINK_1]}, 1: {0: [0], 2: [LINK_1]}, 2: {1: [0]}}


def pattern(node, target):
    return np.random.default_rng((node, target)).integers(0, 256, BLOCK, np.uint8)


def put_to(targets, keys):
    """A step: put UNDER_WAY blocks to each target, all at once; nanoseconds."""

    def step(side):
        for place, target in enumerate(targets):
            side.memory[place * BLOCK :][:BLOCK] = pattern(side.node, target)
        begin = side.now()
        for _ in range(UNDER_WAY):
            for place, target in enumerate(targets):
                side.endpoint.put(
                    side.region.key, place * BLOCK, keys[target], 2 * BLOCK, BLOCK, node=target
                )
        statuses = completions(side, UNDER_WAY * len(targets))
        assert statuses == [STATUS.OK] * len(statuses)
        return side.now() - begin

    return step


@pytest.mark.parametrize(
    "shape, ways, sender, targets, name",
    [(SWITCH, BY_SWITCH, 0, (1, 2), "switch"), (ROW, BY_ROW, 1, (0, 2), "row")],
)
def test_flows_to_two_cards_by_two_links_have_twice_the_rate_of_one(
    shape, ways, sender, targets, name, figure, capsys
):
    with opened(shape) as network:
        network.together(routes(ways))
        keys = network.together(register(3 * BLOCK))
        rate = lambda *to: (
            1000 * UNDER_WAY * BLOCK * len(to) / network.on({sender: put_to(to, keys)})[sender]
        )
        alone = [rate(target) for target in targets]
        both = rate(*targets)
        with capsys.disabled():
            print(f"\n{name}: {alone[0]:.1f} and {alone[1]:.1f} MB/s alone, {both:.1f} of both")
        for target in targets:
            there = network.on({target: lambda side: side.memory[2 * BLOCK :].copy()})[target]
            assert (there == pattern(sender, target)).all()
        link1 = network.on({sender: lambda side: side.card.read_register("LINK1_WORDS_RECEIVED")})
        assert link1[sender] > 0
    ratio = round(both / max(alone), 2)
    assert figure(f"two-links-{name}", ratio, f"times one flow, two links, {name}", at_least=1.9)


def put_elements(keys, source_stride, target_stride):
    """A step: put 8-byte elements to card 1, UNDER_WAY times; nanoseconds."""
    count = BLOCK // 64

    def step(side):
        source = libdibber.Walk(side.region.key, 8, 0, ((count, source_stride),))
        target = libdibber.Walk(keys[1], 8, BLOCK, ((count, target_stride),))
        begin = side.now()
        for _ in range(UNDER_WAY):
            side.endpoint.put_strided(source, target, node=1)
        assert completions(side, UNDER_WAY) == [STATUS.OK] * UNDER_WAY
        return side.now() - begin

    return step


def test_a_single_flow_of_strides_has_the_rate_of_its_parts(figure, capsys):
    """The parts of a job follow one another, so the time of a strided source's reads shows."""
    with opened("two-links:2") as network:
        keys = network.together(register(3 * BLOCK))
        rates = {
            name: 1000 * UNDER_WAY * BLOCK / 8 / network.on({0: put_elements(keys, *strides)})[0]
            for name, strides in {
                "contiguous": (8, 8),
                "target": (8, 64),
                "source": (64, 8),
            }.items()
        }
    with capsys.disabled():
        print("\n8-byte elements, MB/s: " + ", ".join(f"{n} {r:.1f}" for n, r in rates.items()))
    target, source = (round(100 * rates[n] / rates["contiguous"], 1) for n in ("target", "source"))
    assert figure("two-links-target", target, "% of contiguous, target strided", at_least=90)
    assert figure("two-links-source", source, "% of contiguous, source strided", at_least=90)


# Both links lead to the same card; each card knows both routes.
PAIR = "two-links:2"
BY_PAIR = {0: {1: [0, LINK_1]}, 1: {0: [0, LINK_1]}}
PULLS = {
    "link 0": [(3000, "pull cable0"), (5000, "plug cable0")],
    "link 1": [(3000, "pull cable1"), (5000, "plug cable1")],
    "one after the other": [
        (3000, "pull cable0"),
        (4000, "plug cable0"),
        (5000, "pull cable1"),
        (6000, "plug cable1"),
    ],
    "both": [
        (3000, "pull cable0"),
        (3400, "pull cable1"),
        (5000, "plug cable1"),
        (6000, "plug cable0"),
    ],
}


@pytest.mark.parametrize("pull", PULLS)
def test_a_pulled_cable_loses_no_byte_and_the_other_one_carries_on(pull, seed, capsys):
    options = [word for at, what in PULLS[pull] for word in ("--at", f"{at} {what}")]
    with opened(PAIR, seed=seed, options=options) as network:
        network.together(routes(BY_PAIR))
        keys = network.together(register(2 * HALF))
        wanted = {}
        for node in range(2):
            wanted[node] = np.random.default_rng((seed, node)).integers(0, 256, HALF, np.uint8)

        def fill(side):
            side.memory[:HALF] = wanted[side.node]
            side.memory[HALF:] = 0xEE

        network.together(fill)
        steps = [put_blocks(1 - node, keys[1 - node], 8192, 7_000_000) for node in range(2)]
        answers = network.together(*steps)
        with capsys.disabled():
            print(f"\n{pull}: {[longest for _, longest, _ in answers]} ns without a completion")
        for statuses, longest, _ in answers:
            assert set(statuses) == {STATUS.OK}
            if pull != "both":
                assert longest < 400_000
        for node, memory in enumerate(network.together(lambda side: side.memory[HALF:].copy())):
            assert (memory == wanted[1 - node]).all()
        lost = network.together(
            lambda side: (
                side.card.info()["counters"]["link_lost"],
                side.card.read_register("LINK1_LINK_LOST"),
            )
        )
        assert all(sum(counts) >= 1 for counts in lost)
