"""A first part of the fault run through a network of switches. `make soak` has a torus."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest

from tests.system.soak_sample import sample

PACKETS = 1200


@pytest.mark.fault
def test_each_transfer_ends_ok_with_right_bytes_under_faults_that_end(seed, capsys):
    result = sample(
        "torus.py",
        seed,
        "--shape",
        "ring-of-switches:4",
        "--packets",
        str(PACKETS),
        "--faults",
        "6",
    )
    assert result["statuses"] == {"OK": PACKETS} and sum(result["faults"].values()) == 6
    # A fault was met: without one a transfer takes some microseconds.
    assert result["longest_us"] > 100
    with capsys.disabled():
        print(f"\nlongest transfer under {result['faults']}: {result['longest_us']:g} us")
