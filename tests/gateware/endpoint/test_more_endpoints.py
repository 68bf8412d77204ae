"""Blocks with something for each endpoint, in a build for 16 endpoints: in a process of its own,
because a build has one number of endpoints (gateware/dibber/interface/description.py).
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parents[1]

# Tests of blocks that have something for each endpoint, and that take seconds.
FILES = ("fastpath/test_digests.py",)


def test_blocks_with_something_for_each_endpoint_work_with_16(seed):
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "--seed", str(seed), "-q"]
        + [str(HERE / name) for name in FILES],
        env=os.environ | {"DIBBER_ENDPOINTS": "16"},
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
