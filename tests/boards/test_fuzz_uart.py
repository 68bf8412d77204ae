# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""A short run of the fuzzer on what comes from a serial port; `python tests/fuzz/fuzz.py uart` runs for long."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]/"fuzz"))

import fuzz

RUNS = 150


def test_whatever_comes_from_a_uart_no_sanitizer_speaks_and_every_call_returns(seed):
    code, said, reached = fuzz.run("uart", seed, RUNS)
    assert code == 0, said
    # It comes to every part of a program's life, and not always to its end.
    assert reached["runs"] == RUNS and RUNS//10 < reached["end"] < reached["region"] < reached["endpoint"] < reached["card"]
    assert reached["card"] < RUNS
