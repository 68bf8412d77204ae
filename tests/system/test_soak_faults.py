"""A first part of the fault soak: some of each kind. `make soak` runs all of it."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = 52  # four batches of 13: two of faults of the cable, one of bit errors, one of restarts


def test_no_fault_makes_a_hang_or_a_wrong_byte_and_each_is_counted(seed):
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "tests" / "soak" / "faults.py"),
            "--runs",
            str(RUNS),
            "--size",
            "13",
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
    assert result["runs"] == RUNS
    assert {"bit errors", "restart", "unplug", "noise", "stop", "truncated", "injected"} <= set(
        result["kinds"]
    )
