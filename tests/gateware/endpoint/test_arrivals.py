# SPDX-License-Identifier: BSD-2-Clause

import random

from migen import *

from dibber.interface.description import C
from dibber.endpoint.arrivals import Arrivals

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, sink, source


def test_arrivals_of_each_engine_keep_their_order_and_none_waits_for_long(seed):
    rng, dut, got = random.Random(seed), Arrivals(2), []
    sent = [[dict(value=1000 * n + i) for i in range(50)] for n in range(2)]
    run_simulation(
        dut,
        [finish(lambda: len(got) == 100, 600), sink(dut.source, ("value",), got, rng, 0.7)]
        + [source(dut.sinks[n], sent[n], rng) for n in range(2)],
    )
    for n in range(2):
        assert [value for (value,) in got if value // 1000 == n] == [
            item["value"] for item in sent[n]
        ]
    assert 15 < sum(value < 1000 for (value,) in got[:50]) < 35


def test_a_halted_program_frees_its_inbox_and_what_comes_meanwhile():
    """Slots are freed by the sweep, then those of messages, also of one that waited since before;
    notices have none.
    """
    rng, dut, freed, got = random.Random(1), Arrivals(2), [], []
    items = [dict(is_message=1, slot=30), dict(is_message=0, slot=7), dict(is_message=1, slot=5)]

    @passive
    def watch():
        while True:
            yield
            if (yield dut.freed.strobe):
                freed.append((yield dut.freed.slot))

    def bench():
        yield dut.free.slot.eq(9)
        yield dut.free.strobe.eq(1)
        yield
        yield dut.free.strobe.eq(0)
        yield dut.halted.eq(1)
        yield dut.sweep.eq(1)
        for n in range(C.SLOTS):
            yield dut.index.eq(n)
            yield
        yield dut.sweep.eq(0)
        for _ in range(20):
            yield
        assert got == []

    run_simulation(dut, [bench(), watch(), source(dut.sinks[1], items, rng)])
    assert freed == [9] + list(range(C.SLOTS)) + [30, 5]
