"""A first part of the fault run through a network of switches. `make soak` has a torus."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKETS = 1200


@pytest.mark.fault
def test_each_transfer_ends_ok_with_right_bytes_under_faults_that_end(seed, capsys):
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "tests" / "soak" / "torus.py"),
            "--shape",
            "ring-of-switches:4",
            "--packets",
            str(PACKETS),
            "--faults",
            "6",
            "--seed",
            str(seed),
            "--json",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert done.stdout, done.stderr[-3000:]
    result = json.loads(done.stdout)
    assert not result["failures"] and result["pass"] and done.returncode == 0
    assert result["statuses"] == {"OK": PACKETS} and sum(result["faults"].values()) == 6
    # A fault was met: without one a transfer takes some microseconds.
    assert result["longest_us"] > 100
    with capsys.disabled():
        print(f"\nlongest transfer under {result['faults']}: {result['longest_us']:g} us")
