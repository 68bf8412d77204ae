"""Blocks with tables by node, in a build for 64 nodes: in a process of its own, because the number
of nodes is one for all of a build (gateware/dibber/interface/description.py).
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import pathlib
import subprocess
import sys

from dibber.packet.acknowledge import lowest
from migen import Module, Signal, run_simulation

HERE = pathlib.Path(__file__).resolve().parent

# Tests of blocks that have something for each node, and that take seconds.
FILES = ("packet/test_route.py", "packet/test_progress.py", "fastpath/test_asks.py")


def test_the_lowest_of_64_bits_is_found_as_that_of_4_and_of_16(seed):
    import random

    source = random.Random(seed)
    for width in (4, 16, 64):
        dut = Module()
        dut.bits, dut.index = Signal(width), Signal(6)
        dut.comb += dut.index.eq(lowest(dut.bits))

        def check(dut=dut, width=width):
            for n in range(width):
                for above in (0, ~0, source.getrandbits(64)):
                    yield dut.bits.eq((1 << n | above << n + 1) & (1 << width) - 1)
                    yield
                    assert (yield dut.index) == n

        run_simulation(dut, check())


def test_blocks_with_tables_by_node_work_with_64_nodes(seed):
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "--seed", str(seed), "-q"]
        + [str(HERE.parent / name) for name in FILES],
        env=os.environ | {"DIBBER_NODES": "64"},
        cwd=HERE.parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
