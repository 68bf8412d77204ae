"""Short runs of the fuzzer on what a simulator sends, and what comes from a serial port; `python
tests/fuzz/fuzz.py` runs for long.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fuzz"))

import fuzz
import pytest

RUNS = {"vfio-user": 1500, "uart": 150}


@pytest.mark.parametrize("target", RUNS)
def test_whatever_a_card_sends_no_sanitizer_speaks_and_every_call_returns(target, seed):
    runs = RUNS[target]
    code, said, reached = fuzz.run(target, seed, runs)
    assert code == 0, said
    # It comes to every part of a program's life, and not always to its end. Where it stops depends
    # on the machine's speed as well, for the client waits by the clock: that some run stops between
    # any two parts cannot be asked of so few.
    assert (
        reached["runs"] == runs
        and runs // 10
        < reached["end"]
        <= reached["region"]
        <= reached["endpoint"]
        <= reached["card"]
    )
    assert reached["end"] < reached["card"] < runs
