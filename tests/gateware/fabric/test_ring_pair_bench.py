"""Pairs of rings of bare nodes in Verilator: rates, cuts, folds, faults."""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest

from gateware.fabric import ring_bench
from gateware.fabric.test_ring_bench import CYCLE_NS, FULL_DUPLEX, GIGARING, HALF_DUPLEX

MILLISECOND = 1_000_000 / CYCLE_NS  # cycles
RINGS = 2
BULK_AND_SPARE = 0b1100


@pytest.fixture(scope="session")
def program():
    return ring_bench.build("ring_pair")


def whole(result):
    assert not result["failed"] and result["missing"] == 0 and result["lost"] == 0
    assert result["overflows"] == 0 and result["port_lost"] == 0
    return result


def test_two_nodes_have_gigarings_share_of_raw_of_both_rings(program):
    words, payload = GIGARING
    options = dict(nodes=2, channels=BULK_AND_SPARE)
    half = whole(ring_bench.run_pair(program, pattern="single", **options))
    full = whole(ring_bench.run_pair(program, pattern="uniform", **options))
    assert half["throughput"][0] * payload / words / RINGS >= HALF_DUPLEX
    assert full["throughput"][0] * payload / words / (2 * RINGS) >= FULL_DUPLEX


@pytest.mark.parametrize("nodes", [4, 8])
def test_a_pair_moves_more_than_twice_as_much_as_a_ring(program, nodes):
    """Because the shorter way spares links. A ring moves at most 1.4 words a cycle."""
    result = whole(ring_bench.run_pair(program, nodes=nodes))
    assert result["throughput"][0] > 3 and result["jain"][0] >= 0.95


@pytest.mark.parametrize("nodes, channels", [(2, BULK_AND_SPARE), (4, 4), (8, 4)])
@pytest.mark.parametrize("cut", ["ring", "cable"])
def test_a_cut_under_full_load_is_survived_and_both_rings_are_used_again(
    program, nodes, channels, cut
):
    # In so many cycles each flow has a packet, and the time in which a flow is held is over.
    options = dict(nodes=nodes, channels=channels, cut=cut, cycles=30000 if nodes < 8 else 50000)
    result = ring_bench.run_pair(program, **options)
    assert not result["failed"] and not result["strayed"] and not result["overflows"]
    before, cut_off, after = result["throughput"]
    # Each flow of each card, by the other ring or by the folded one.
    flows = nodes * (nodes - 1) * channels.bit_count()
    assert result["resumed"]["count"] == flows and result["resumed"]["most"] <= MILLISECOND
    assert cut_off > 0.3 * before and after > 0.95 * before
    # Nothing is lost but what was on its way: 4 packets of each channel and ring.
    assert result["missing"] <= 2 * 2 * 4 * nodes * channels.bit_count()
    assert 0 < result["balanced_after"] < MILLISECOND
    for ring in ("used0", "used1"):
        assert result[ring][2] > 0.9 * result[ring][0]
    assert result["folded"] == (cut == "cable")
    # The port stays UP when one ring is cut.
    assert (result["port_lost"] == 0) == (cut == "ring")


def test_all_others_go_on_when_a_card_is_off(program):
    result = ring_bench.run_pair(program, nodes=5, cut="card")
    assert not result["failed"] and result["folded"]
    # All pairs of the other four.
    assert result["resumed"]["count"] >= 4 * 3 and result["throughput"][1] > 0.3


def test_stalls_and_faults_lose_nothing_in_silence(program, seed):
    """Random stalls, code errors, and cuts of lanes, cables and cards."""
    for number in range(4):
        options = ring_bench.faulty_pair(random.Random(f"{seed}/{number}"))
        result = ring_bench.run_pair(program, **{**options, "cycles": 25000})
        assert not result["failed"], (options, result)
