# SPDX-License-Identifier: BSD-2-Clause

from collections import deque
from random import Random

import pytest

from migen import *

from dibber.deposit.departures import Departures

from tests.gateware.models.compiled import run_simulation

MOST = 9


@pytest.mark.parametrize("doors", [1, 2])
def test_busy_until_all_that_was_inside_has_left(doors, seed):
    random = Random(f"{seed} {doors}")
    enters, leaves = Signal(), [Signal() for _ in range(doors)]
    dut = Departures(enters, leaves, MOST)
    seen = set()

    def play():
        inside, number = deque(), 0
        marks = deque([False] * 4, maxlen=4)  # of this cycle and the three before
        awaited = -1  # the last that is waited for
        for _ in range(4000):
            come = len(inside) < MOST and random.random() < 0.4
            go = [len(inside) > n and random.random() < 0.3 for n in range(doors)]
            marks.append(random.random() < 0.02)
            yield dut.mark.eq(marks[-1])
            yield enters.eq(come)
            for leave, out in zip(leaves, go):
                yield leave.eq(out)
            yield
            busy = yield dut.busy
            assert busy == (any(marks) or bool(inside and inside[0] <= awaited))
            seen.add(busy)
            for _ in range(sum(go)):
                inside.popleft()
            if come:
                inside.append(number)
                number += 1
            if marks[0]:
                awaited = number - 1

    run_simulation(dut, play())
    assert seen == {0, 1}
