"""The control program for cards with 16 endpoints, in a process of its own: the number of endpoints
is one for all of a build (gateware/dibber/interface/sizes.py).
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import pathlib
import subprocess
import sys

import pytest
from dibber.interface import sizes

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# Commands, queues and closing of all endpoints; links that change; inline puts in EVENTS.
FILES = ("test_mcp_admin.py", "test_mcp_commands.py", "test_mcp_queues.py", "test_mcp_way_back.py")


def test_a_program_for_16_endpoints_serves_all_of_them(seed):
    assert sizes.ENDPOINTS == 8
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "--seed", str(seed), "-q"]
        + [str(HERE / name) for name in FILES],
        env=os.environ | {"DIBBER_ENDPOINTS": "16"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.parametrize("text", ["", "0", "7", "9", "32", "x", "8 "])
def test_a_number_of_endpoints_that_no_build_has_is_refused_by_name(text):
    with pytest.raises(ValueError, match="a card has 8 or 16"):
        sizes.endpoints_of(text, 16)


def test_16_endpoints_and_64_nodes_are_refused_together():
    with pytest.raises(ValueError, match="EVENTS has no bits for both"):
        sizes.endpoints_of("16", 64)
