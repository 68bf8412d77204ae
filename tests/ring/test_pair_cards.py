"""Cards on a pair of rings: two cables each. What is cut, and what goes on by the other way.
`make test-ring` builds the card.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json

import pytest
from dibber.interface.description import STATUS
from dibber_cli.main import main

from tests.ring.test_ring_cards import (
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
    write_profile,
)
from tests.system.network import opened, register

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


# Commands -----------------------------------------------------------------------------------------

# Both ends of each cable, as they are tested: cable0 leads from NEXT of card 0, cable1 to PREVIOUS.
CABLE0, CABLE1 = [(0, "NEXT"), (1, "PREVIOUS")], [(0, "PREVIOUS"), (1, "NEXT")]
FOREVER = "0:1000000"  # µs


@pytest.fixture
def link(capsys, tmp_path, seed):
    """link(command, code, *words) runs it on two cards, checks its exit code, returns stdout."""
    profile_file = write_profile(tmp_path, "ring-pair")

    def run(command, code, *words):
        options = ["--profile", profile_file, "--milliseconds", "0.1", "--seed", str(seed)]
        assert main(["link", command, *options, *words]) == code
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize(
    "fault, deaf",
    [
        (None, []),
        (f"cable0=noise:{FOREVER}", CABLE0),
        (f"cable1=noise:{FOREVER}:0", [(0, "PREVIOUS")]),
        (f"cable1=noise:{FOREVER}:1", [(1, "NEXT")]),
    ],
)
def test_prbs_on_a_pair_tests_each_cable_and_names_the_ends_that_hear_nothing(link, fault, deaf):
    words = ["--json", *(["--fault", fault] if fault else [])]
    cards = json.loads(link("prbs", 1 if deaf else 0, *words))["cards"]
    assert [(card["card"], card["cable"]) for card in cards] == CABLE0 + CABLE1
    assert [(c["card"], c["cable"]) for c in cards if not c["locked"]] == deaf
    assert all(card["errors"] == 0 and card["bits"] > 100_000 for card in cards if card["locked"])


def test_a_card_of_a_pair_tests_each_of_its_transceivers_by_itself(link):
    cards = json.loads(link("prbs", 0, "--json", "--loopback", "near"))["cards"]
    ends = {(card["card"], card["cable"]) for card in cards if card["locked"]}
    assert ends == set(CABLE0 + CABLE1)


def test_the_link_test_of_a_pair_measures_both_cables(link):
    text = link("test", 0, "--megabytes", "1", "--length", "20")
    assert "up, a pair of rings of 2 nodes" in text and "Good: " in text
    assert all(f"PRBS31 at card {card}, {cable}" in text for card, cable in CABLE0 + CABLE1)
    said = next(line for line in text.splitlines() if line.startswith("cables, mean"))
    assert round(abs(float(said.split()[2]) - 20), 1) <= 0.8


def test_the_link_test_of_a_pair_names_the_cable_that_is_out(link):
    text = link("test", 1, "--megabytes", "1", "--fault", f"cable1=unplugged:{FOREVER}")
    assert "folded: both are one ring" in text
    assert "card 0, cable PREVIOUS: not used: this card folds the rings here" in text
    assert "card 1, cable NEXT: not used: this card folds the rings here" in text
    assert (
        "card 0, PREVIOUS did not find the bit sequence" in text and "cable NEXT: good" not in text
    )
