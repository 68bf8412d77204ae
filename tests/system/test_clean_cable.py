"""On a cable without errors no word is sent twice, however slowly a source is gathered or a target
is stored.

`tests/soak/elements.py` has the whole grid.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest

from tests.system.pair_elements import Case, open_pair, run, sample

pytestmark = pytest.mark.fault

CASES = 6  # of each element size one


@pytest.mark.parametrize("machine", ["gen2x4", "gen2x4 short", "gen2x1", "gen2x1 slow"])
def test_elements_of_any_size_and_stride_are_sent_once_by_one_user(machine, seed):
    with open_pair(machine, seed) as pair:
        for case in sample(seed, CASES, length=6144, most=4500, users=(1,)):
            assert run(pair, case).trouble(machine) == [], case


@pytest.mark.parametrize("machine", ["gen2x1 slow", "gen2x1 short"])
def test_elements_of_any_size_and_stride_are_sent_once_by_eight_users(machine, seed):
    with open_pair(machine, seed) as pair:
        for case in sample(seed, CASES // 2, length=8192, most=6000, users=(8,)):
            assert run(pair, case).trouble(machine) == [], case


@pytest.mark.parametrize(
    "case",
    [
        Case(2, 4500, -66),
        Case(1, 4500, 1000),
        Case(1, 4500, 0, 7),
        Case(1, 4500, 7, 1000, way="get"),
    ],
    ids=["gathered", "far apart", "stored", "got"],
)
def test_a_packet_that_takes_longer_than_the_replay_timer_is_sent_once_and_ends_without_the_program(
    case, seed
):
    """A byte takes 112 to 224 ns of PCIe, a packet of 4096 up to 0.9 ms. The timer has 0.1 ms."""
    with open_pair("gen2x1 slow", seed) as pair:
        outcome = run(pair, case)
        assert outcome.trouble("gen2x1 slow") == []
