"""Benchmarks of networks: which flows a pattern has, and what cuts and links allow."""

# SPDX-License-Identifier: BSD-2-Clause

import importlib
import itertools

import pytest
from dibber_cli import profile, topology
from dibber_cli.bench import MODULES, NETWORK_TESTS, cuts, traffic


def test_each_benchmark_of_networks_is_a_module_with_what_a_run_needs():
    for name in NETWORK_TESTS:
        test = importlib.import_module(f"dibber_cli.bench.{MODULES.get(name, name)}")
        assert test.NAME == name and all(
            callable(getattr(test, f))
            for f in ("points", "measure", "evaluate", "tables", "panels")
        )
        few, all_of = len(test.points(**test.QUICK)), len(test.points())
        assert 0 < few < all_of


@pytest.mark.parametrize("cards", [4, 8, 16])
def test_each_pattern_has_its_flows_and_no_card_sends_to_itself(cards, seed):
    for kind in traffic.KINDS:
        flows = traffic.flows_of(kind, cards, seed)
        assert len(set(flows)) == len(flows) and all(a != b for a, b in flows)
        if kind in ("shift", "random"):
            assert sorted(a for a, _ in flows) == sorted(b for _, b in flows) == [*range(cards)]
    assert len(traffic.flows_of("all-to-all", cards, seed)) == cards * (cards - 1)
    assert len(traffic.flows_of("hot-spot", cards, seed)) == min(8, cards - 1)


def test_a_cut_bounds_a_shift_over_the_two_uplinks_of_a_leaf():
    tree = topology.named("tree:8")
    shift = traffic.flows_of("shift", 8, 1)
    # Four flows leave each leaf, over two cables.
    assert cuts.fullest_cut(tree, shift) == 2
    # All of them come to one card, whose cable is one.
    assert cuts.fullest_cut(tree, traffic.flows_of("hot-spot", 8, 1)) == 7
    # Four cards of a leaf send to each of four: 16 flows on two cables. A card's cable has 7.
    assert cuts.fullest_cut(tree, traffic.flows_of("all-to-all", 8, 1)) == 8


def test_no_cut_holds_up_a_star_but_the_cables_of_its_cards():
    star = topology.named("star:8")
    for kind, load in (("shift", 1), ("random", 1), ("hot-spot", 7), ("all-to-all", 7)):
        assert cuts.fullest_cut(star, traffic.flows_of(kind, 8, 1)) == load


def test_no_cut_of_few_switches_is_fuller_than_the_one_that_is_found(seed):
    """By all sets of switches of a ring, one by one."""
    ring = topology.named("ring-of-switches:6")
    flows = traffic.flows_of("random", 6, seed)
    fullest = 1.0
    for size in range(1, 6):
        for inside in itertools.combinations(range(6), size):
            across = sum(a in inside and b not in inside for a, b in flows)
            cables = sum((n in inside) != ((n + 1) % 6 in inside) for n in range(6))
            fullest = max(fullest, across / cables)
    assert cuts.fullest_cut(ring, flows) == fullest


def test_a_path_follows_the_turns_and_a_wrong_one_is_refused():
    ring = topology.named("ring-of-switches:4")
    # In at port 0, out at port 1; in at port 2, out at port 0.
    assert cuts.path(ring, 0, [1, -2]) == ([("card0", 0), ("switch0", 1), ("switch1", 0)], 1)
    for wrong in ([1], [1, -2, 1], [3]):
        with pytest.raises(ValueError, match="route"):
            cuts.path(ring, 0, wrong)
    entered = [cuts.path(ring, n, [1, -1, -2])[0] for n in range(4)]
    assert cuts.most_loaded(entered) == 2


def test_the_fullest_cable_of_a_ring_is_its_fullest_cut():
    ring = topology.named("ring:4")
    assert cuts.around(ring, 3, 1) == [("card3", 0), ("card0", 0)]
    assert cuts.fullest_cut(ring, traffic.flows_of("one", 4, 1)) == 1
    # To the card across: two flows pass each cable. All to all: 1 + 2 + 3 cables for each card.
    assert cuts.fullest_cut(ring, traffic.flows_of("shift", 4, 1)) == 2
    assert cuts.fullest_cut(ring, traffic.flows_of("all-to-all", 4, 1)) == 6


def test_the_pattern_of_a_ring_has_rings_in_place_of_switches():
    from dibber_cli.bench import commands

    found = commands._points(traffic, "all-to-all", False, fabric="ring")
    assert [point.x for point in found] == ["pair", "ring:4", "ring:8"]
    found = commands._points(traffic, "all-to-all", True, fabric="ring")
    assert [(point.x, point.pieces) for point in found] == [("pair", 24), ("ring:4", 24)]
    # What a report says of itself.
    assert commands._choice(traffic, "ring", quick=True) == {"networks": ("ring:4",), "pieces": 24}


def test_a_report_has_bound_limit_and_shares_of_flows_that_end_at_different_times():
    """Two flows into one card: when the first has ended, the other has half of its bytes there."""
    point = traffic.Traffic("hot-spot", "star:4", 4)
    ms = 10**9
    result = {
        "point": point,
        "flows": [(1, 0), (2, 0)],
        "pieces": 4,
        "ended": [[n * ms for n in (1, 2, 3, 4)], [n * ms for n in (2, 4, 6, 8)]],
        "link_load": 2,
        "cut_load": 2.0,
        "bytes_wrong": 0,
        "guards": 0,
        "wall_seconds": 0.1,
    }
    row = traffic.evaluate(profile.load("gen2x4"), 1, [result])["points"][0]
    assert row["value"] == round(2 * 4 * 4096 / 8e-3 / 1e6, 1)
    assert (row["least_share"], row["most_share"]) == (0.667, 1.333)
    assert row["fairness"] == row["card_fairness"] == 0.9 and row["bound"] == row["limit"] == 494.2


def test_series_of_pattern_are_patterns_and_networks():
    named = lambda *series: {(p.series, p.x) for p in traffic.points(series or traffic.KINDS)}
    one = {("one", traffic.BASE)}
    assert named() == one | {(k, n) for k in traffic.KINDS for n in traffic.NETWORKS}
    assert named("torus:4x4") == one | {(k, "torus:4x4") for k in traffic.KINDS}
    assert named("shift", "tree:16") == one | {("shift", "tree:16")}
    assert named("all-to-all", "ring:8") == one | {("all-to-all", "ring:8")}


def test_flows_of_one_card_may_differ_and_the_cards_be_equal():
    flows = [(0, 1), (0, 2), (1, 0), (1, 2)]
    ended = [[10, 20, 30], [30, 60, 90], [30, 60, 90], [10, 20, 30]]
    assert traffic.of_cards({"flows": flows, "ended": ended}) == [4 * 4096 / 30e-12] * 2
    assert (
        traffic.jain([1, 0, 0, 0]) == 0.25 and traffic.jain([5, 5]) == 1 and traffic.jain([0]) == 1
    )
