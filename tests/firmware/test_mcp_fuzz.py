# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""A short run of the fuzzer on all that parses a command or a packet; `python tests/fuzz/fuzz.py firmware` runs for long."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]/"fuzz"))

import fuzz

RUNS = 1000


def test_whatever_comes_each_command_completes_once_and_each_endpoint_can_be_closed(seed):
    code, said, reached = fuzz.run("firmware", seed, RUNS)
    assert code == 0, said
    # Inputs come to where something is at stake.
    assert reached["runs"] == reached["completed"] == RUNS
    assert min(reached["stray"], reached["claimed"]) > RUNS//2 and reached["timed_out"] > RUNS//5
