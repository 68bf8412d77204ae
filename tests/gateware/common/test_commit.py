"""The commit FIFO against a list, with a reader that lets lines wait while the memory fills up."""

# SPDX-License-Identifier: BSD-2-Clause

from collections import deque
from random import Random

import pytest

from dibber.common.commit import CommitFIFO

from tests.gateware.models.compiled import run_simulation

DEPTH = 8


@pytest.mark.parametrize("takes", [0.05, 0.5, 1.0])
def test_what_was_committed_comes_out_once_and_in_order(seed, takes):
    """At 0.05 the FIFO is mostly full, so the place of the waiting line is written again."""
    random = Random(seed)
    dut = CommitFIFO(16, DEPTH)
    open_entries, waiting, came, filled = [], deque(), [], 0

    def bench():
        nonlocal filled
        for cycle in range(3000):
            value = random.getrandbits(16)
            we = random.random() < 0.7
            commit = random.random() < 0.3
            rollback = not commit and random.random() < 0.1
            re = random.random() < takes
            for name in ["we", "commit", "rollback", "re"]:
                yield getattr(dut, name).eq(locals()[name])
            yield dut.din.eq(value)
            yield
            if (yield dut.readable) and re:
                came.append(((yield dut.dout), waiting.popleft()))
            if not (yield dut.writable):
                filled += 1
            elif we:
                open_entries.append(value)
            if commit:
                waiting.extend(open_entries)
            if commit or rollback:
                open_entries.clear()

    run_simulation(dut, bench())
    assert all(got == expected for got, expected in came)
    assert len(came) > 100
    assert filled > 100 or takes == 1.0
