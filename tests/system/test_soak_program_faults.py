"""A sample of the faults of the control program of tests/soak/program_faults.py."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = 52
# µs: the watchdog stops whatever it has to within 2 ms; `make soak` waits twice as long
PATIENCE = 2500


def test_no_fault_of_a_control_program_harms_the_other_card(seed):
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "tests" / "soak" / "program_faults.py"),
            "--runs",
            str(RUNS),
            "--seed",
            str(seed),
            "--patience",
            str(PATIENCE),
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
    assert result["runs"] == RUNS and all(
        result["kinds"][kind]["runs"] for kind in ("wild writes", "illegal", "loop")
    )
    assert sum(kind.get("stopped", 0) for kind in result["kinds"].values()) > RUNS // 2
