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
HALF = 1 << 15

SWITCH = "two-link-star:3"
ROW = "two-links:3"  # card 1 is the middle: its link 0 leads to card 0, and its link 1 to card 2
PAIR = "two-links:2"  # both links lead to the same card


def mapped(network):
    """Give all cards the routes of their own maps; {card: {node: links of its routes}}."""
    maps = network.map()
    for found in maps:
        assert not found["conflicts"] and not found["unreachable"] and not found["truncated"]
    return {
        one["own"]: {r["node"]: [n for n in r["links"] if n is not None] for r in one["routes"]}
        for one in maps
    }


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
    "shape, sender, targets, name",
    [(SWITCH, 0, (1, 2), "switch"), (ROW, 1, (0, 2), "row")],
)
def test_flows_to_two_cards_by_two_links_have_twice_the_rate_of_one(
    shape, sender, targets, name, figure, capsys
):
    with opened(shape) as network:
        links = mapped(network)[sender]
        assert {links[target][0] for target in targets} == {0, 1}
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


# Cables by number, and times in microseconds. Both links of a pair lead to the same card.
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
# Cards 0 and 1 use cable 0, of link 0 of card 0, and cable 3, of link 1 of card 1.
STAR_PULLS = {"cable 0": [(3000, "pull cable0")], "cable 3": [(3000, "pull cable3")]}
CLOSE_NS = 400_000  # a card sees that its own link is down …
FAR_NS = 1_500_000  # … but of another card's link only that its packets are lost


def put_both_ways(shape, pulls, seed):
    """Cards 0 and 1 put to each other until 7 ms, by the routes of their maps. Each put ends OK,
    with right bytes. Returns the longest time without a completion (ns) of each, and the number of
    times that each one's links were lost.
    """
    options = [word for at, what in pulls for word in ("--at", f"{at} {what}")]
    with opened(shape, seed=seed, options=options) as network:
        links = mapped(network)
        assert set(links[0][1][:2]) == set(links[1][0][:2]) == {0, 1}
        keys = network.together(register(2 * HALF))
        assert max(network.together(lambda side: side.now())) < 1000 * pulls[0][0]
        wanted = [np.random.default_rng((seed, n)).integers(0, 256, HALF, np.uint8) for n in (0, 1)]

        def fill(side):
            side.memory[:HALF] = wanted[side.node]
            side.memory[HALF:] = 0xEE

        network.on({0: fill, 1: fill})
        steps = {n: put_blocks(1 - n, keys[1 - n], 8192, 7_000_000) for n in (0, 1)}
        answers = network.on(steps)
        for statuses, _, _ in answers.values():
            assert set(statuses) == {STATUS.OK}
        there = network.on({n: lambda side: side.memory[HALF:].copy() for n in (0, 1)})
        for node, memory in there.items():
            assert (memory == wanted[1 - node]).all()
        lost = network.together(
            lambda side: (
                side.card.info()["counters"]["link_lost"]
                + side.card.read_register("LINK1_LINK_LOST")
            )
        )
    return [longest for _, longest, _ in answers.values()], lost[:2]


@pytest.mark.parametrize("pull", PULLS)
def test_a_pulled_cable_loses_no_byte_and_the_other_one_carries_on(pull, seed, capsys):
    longest, lost = put_both_ways(PAIR, PULLS[pull], seed)
    with capsys.disabled():
        print(f"\n{pull}: {longest} ns without a completion")
    assert min(lost) >= 1 and (pull == "both" or max(longest) < CLOSE_NS)


@pytest.mark.parametrize("pull", STAR_PULLS)
def test_routes_of_the_map_carry_on_when_a_cable_into_a_switch_is_pulled(pull, seed, capsys):
    longest, lost = put_both_ways(SWITCH, STAR_PULLS[pull], seed)
    with capsys.disabled():
        print(f"\nstar, {pull}: {longest} ns without a completion")
    assert sorted(lost) == [0, 1] and max(longest) < FAR_NS
