"""Pairs of rings of bare nodes in Verilator: rates, cuts, folds, faults."""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest

from tests.gateware.fabric import ring_bench
from tests.gateware.fabric.test_ring_bench import FULL_DUPLEX, GIGARING, HALF_DUPLEX

RINGS = 2
BULK_AND_SPARE = 0b1100


@pytest.fixture(scope="session")
def program():
    return ring_bench.build("ring_pair")


def whole(result):
    assert not result["failed"] and result["missing"] == 0 and result["lost"] == 0
    assert result["overflows"] == 0 and result["port_lost"] == 0
    return result


def test_two_nodes_have_gigarings_share_of_raw_of_both_rings(program, figure):
    words, payload = GIGARING
    options = dict(nodes=2, channels=BULK_AND_SPARE, cycles=15000)
    half = whole(ring_bench.run_pair(program, pattern="single", **options))
    full = whole(ring_bench.run_pair(program, pattern="uniform", **options))
    shares = [
        result["throughput"][0] * payload / words / links
        for result, links in ((half, RINGS), (full, 2 * RINGS))
    ]
    for name, share, least in zip(("half", "full"), shares, (HALF_DUPLEX, FULL_DUPLEX)):
        value, unit = round(100 * share, 1), f"% of both rings, packets of {4 * payload} bytes"
        assert figure(f"ring-pair-{name}-duplex", value, unit, at_least=100 * least)


def test_a_pair_moves_more_than_twice_as_much_as_a_ring(program):
    """Because the shorter way spares links. A ring moves at most 1.4 words a cycle."""
    result = whole(ring_bench.run_pair(program, nodes=4, cycles=15000))
    assert result["throughput"][0] > 3 and result["jain"][0] >= 0.95


@pytest.mark.parametrize("options", ring_bench.CUTS_OF_A_TEST, ids=str)
def test_a_cut_under_full_load_is_survived_and_both_rings_are_used_again(program, options):
    """A sample of tests/soak/ring.py."""
    result = ring_bench.run_pair(program, **options)
    assert not ring_bench.cut_faults(options, result), result


def test_all_others_go_on_when_a_card_is_off(program):
    result = ring_bench.run_pair(program, nodes=5, cut="card", cycles=25000)
    assert not result["failed"] and result["folded"]
    # All pairs of the other four.
    assert result["resumed"]["count"] >= 4 * 3 and result["throughput"][1] > 0.3


def test_stalls_and_faults_lose_nothing_in_silence(program, seed):
    """A sample of tests/soak/ring.py."""
    for number in range(3):
        options = ring_bench.faulty_pair(random.Random(f"{seed}/{number}"))
        result = ring_bench.run_pair(program, **{**options, "cycles": 20000})
        assert not result["failed"], (options, result)
