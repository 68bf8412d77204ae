"""Orders of both sides leave in the order in which they came, and neither side takes the other's
places.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest

from migen import passive

from litex.soc.interconnect.stream import EndpointDescription

from dibber.fastpath.orders import OrderQueue

from tests.gateware.models.compiled import run_simulation

PLACES = 4, 3  # program's, fast path's


@pytest.mark.parametrize("busy", [0.2, 0.9])
def test_orders_keep_their_order_and_their_places(seed, busy):
    choice = random.Random(f"{seed} {busy}")
    dut = OrderQueue(EndpointDescription([("data", 16)]), *PLACES)
    given, taken, spaces = [], [], []

    def give():
        number, program = 0, False
        for _ in range(1500):
            space = (yield dut.space) - program  # less what is given in this cycle
            spaces.append(space)
            program, fast = space > 0 and choice.random() < 0.5, choice.random() < 0.6
            yield dut.program.valid.eq(program)
            yield dut.program.data.eq(number)
            yield dut.fast.valid.eq(fast)
            yield dut.fast.data.eq(number + 1)
            yield
            if program:
                given.append(number)
            if fast and (yield dut.fast.ready):
                given.append(number + 1)
            number += 2
        yield dut.program.valid.eq(0)
        yield dut.fast.valid.eq(0)
        for _ in range(40):
            yield

    @passive
    def take():
        while True:
            yield dut.source.ready.eq(choice.random() > busy)
            yield
            if (yield dut.source.valid) and (yield dut.source.ready):
                taken.append((yield dut.source.data))

    run_simulation(dut, [give(), take()])
    assert (
        len(taken) > 100 and taken == given[: len(taken)] and len(given) - len(taken) <= sum(PLACES)
    )
    assert min(spaces) == 0 and max(spaces) == PLACES[0]
    assert {n % 2 for n in taken} == {0, 1}
