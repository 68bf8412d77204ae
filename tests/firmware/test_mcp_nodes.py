"""The control program for 64 nodes, in a process of its own: the number of nodes is one for all of
a build (gateware/dibber/interface/sizes.py).
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

# Besides what nodes_64.py has: these know no number of nodes, and look at flows from all sides.
ALSO = ("test_mcp_flow.py", "test_mcp_barrier.py", "test_mcp_routes.py")
# Whose bounds are those of 16 nodes: of the time to boot, and of a node's number.
BUT = ("test_times_are_by_the_clock_of_the_board", "test_what_makes_no_sense_is_refused")


def test_a_program_for_64_nodes_has_its_flows_in_all_words_of_their_sets(seed):
    assert sizes.NODES == 16
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "--seed", str(seed), "-q", "-k"]
        + [" and ".join(f"not {name}" for name in BUT)]
        + [str(HERE / name) for name in ("nodes_64.py", *ALSO)],
        env=os.environ | {"DIBBER_NODES": "64"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.parametrize("text", ["", "0", "15", "17", "32", "128", "x", "16 "])
def test_a_number_of_nodes_that_no_build_has_is_refused_by_name(text):
    with pytest.raises(ValueError, match="a build is for 16 or 64 nodes"):
        sizes.nodes_of(text)
