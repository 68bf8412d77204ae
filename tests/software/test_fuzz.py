"""Short runs of the fuzzer on a simulator's messages, and on a serial port's bytes; `python
tests/fuzz/fuzz.py` runs for long.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest

from tests.fuzz import fuzz

RUNS = {"vfio-user": 1500, "uart": 150}


@pytest.mark.parametrize("target", RUNS)
def test_whatever_a_card_sends_no_sanitizer_speaks_and_every_call_returns(target, seed):
    runs = RUNS[target]
    code, said, reached = fuzz.run(target, seed, runs)
    assert code == 0, said
    # The fuzzer reaches every part of a program's life, but not always its end. The place where it
    # stops also depends on the machine's speed, because the client waits by the clock. So with few
    # runs, not every place can be required.
    assert (
        reached["runs"] == runs
        and runs // 10
        < reached["end"]
        <= reached["region"]
        <= reached["endpoint"]
        <= reached["card"]
    )
    assert reached["end"] < reached["card"] < runs
