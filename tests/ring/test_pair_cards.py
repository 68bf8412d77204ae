"""Cards on a pair of rings: two cables each. What is cut, and what goes on by the other way.
`make test-ring` builds the card.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import STATUS
from network import opened, register
from test_ring_cards import (
    HALF,
    NARROW,
    PART,
    PULLED_US,
    circle,
    compare_circle,
    fill,
    get_from_all,
    memory_for,
    own,
    payload,
    put_to_all,
)

CUT_US = 3000  # how long a lane or a cable is out
OTHER_WAY_NS = 1_000_000  # until the first byte by the other way


@pytest.fixture
def pair(seed):
    """pair(nodes, options) opens cards on a pair of rings, which know their routes."""

    def open_pair(nodes, *options):
        return opened(f"ring-pair:{nodes}", seed=seed, options=options, profile_name=NARROW)

    return open_pair


@pytest.mark.parametrize("nodes", [2, 4])
def test_puts_and_gets_between_all_cards_of_a_pair_arrive_whole(pair, nodes, seed):
    cards = nodes
    with pair(nodes) as network:
        for found in network.map():
            assert sorted(found["ring"]["order"]) == list(range(cards))
        keys = network.together(memory_for(cards, seed))
        for answers in network.together(put_to_all(cards, keys)):
            assert set(answers) == {STATUS.OK}
        for answers in network.together(get_from_all(cards, keys)):
            assert answers == [STATUS.OK] * (cards - 1)

        def compare(side):
            for other in set(range(cards)) - {side.node}:
                whole = PART if side.node % 2 else PART // 48 * 48
                written = side.region.memory[(cards + other) * PART :][:whole]
                assert (written == payload(seed, other, side.node)[:whole]).all()
                whole = PART if other % 2 else PART // 48 * 48
                back = side.back[other * PART :][:whole]
                assert (back == payload(seed, side.node, other)[:whole]).all()

        network.together(compare)
        for link in network.together(own):
            counters = link["counters"]
            assert link["state"] == "UP" and link["ring"]["nodes"] == nodes
            assert counters["link_lost"] == counters["code_errors"] == 0


# A lane of cable 1 is a cut of one ring. Without the whole cable, both rings are one folded ring.
CUTS = {
    "lane of ring 0": ["--fault", f"cable1=unplugged:{PULLED_US}:{PULLED_US + CUT_US}:0"],
    "lane of ring 1": ["--fault", f"cable1=unplugged:{PULLED_US}:{PULLED_US + CUT_US}:1"],
    "cable": ["--at", f"{PULLED_US} pull cable1", "--at", f"{PULLED_US + CUT_US} plug cable1"],
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("nodes", [2, 4])
def test_a_cut_loses_no_byte_and_the_other_way_is_used_within_a_millisecond(pair, nodes, cut, seed):
    with pair(nodes, *CUTS[cut]) as network:
        network.map()
        keys = network.together(register(2 * HALF))
        network.together(fill(seed))
        gaps = []
        for statuses, longest in circle(network, keys, PULLED_US + CUT_US + 500):
            assert statuses == {STATUS.OK}
            gaps.append(longest)
        print(f"{nodes} cards, {cut}: {max(gaps)} ns without a completion")
        assert max(gaps) <= OTHER_WAY_NS
        compare_circle(network, seed)
        links = network.together(own)
        assert all(link["state"] == "UP" and link["ring"]["nodes"] == nodes for link in links)
        # The cut took place: a receiver heard its noise. Both rings leave UP only without a cable.
        assert sum(link["counters"]["code_errors"] for link in links) > 0
        lost = {link["counters"]["link_lost"] for link in links}
        assert min(lost) >= 1 if cut == "cable" else lost == {0}
