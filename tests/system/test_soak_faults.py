"""A first part of the fault soak: some of each kind. `make soak` runs all of it."""

# SPDX-License-Identifier: BSD-2-Clause

from tests.system.soak_sample import sample

RUNS = 52  # four batches of 13: two of faults of the cable, one of bit errors, one of restarts


def test_no_fault_makes_a_hang_or_a_wrong_byte_and_each_is_counted(seed):
    result = sample("faults.py", seed, "--runs", str(RUNS), "--size", "13")
    assert result["runs"] == RUNS
    assert {"bit errors", "restart", "unplug", "noise", "stop", "truncated", "injected"} <= set(
        result["kinds"]
    )
