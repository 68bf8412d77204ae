"""Run a sample of a program of tests/soak, and read what it says."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def sample(program, seed, *options):
    """The result that `tests/soak/PROGRAM --json` prints; it must have passed without a failure."""
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "tests" / "soak" / program),
            *options,
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
    return result
