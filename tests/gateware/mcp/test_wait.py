"""The control program waits in a load of EVENTS_HELD: when hardware lets this load go."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.interface.description import C

from tests.gateware.models.compiled import run_simulation
from tests.gateware.mcp.test_control_registers import Bench


def test_a_wait_for_events_ends_with_an_event_and_at_its_limit():
    dut, released = Bench(), []

    @passive
    def clock():
        while True:
            yield dut.cycles.eq((yield dut.cycles) + 1)
            yield

    def bench():
        yield dut.cycles.eq(100)
        for _ in range(2 * C.EVENTS_HOLD):
            yield
            if (yield dut.r.release):
                released.append((yield dut.cycles))
        assert [now % C.EVENTS_HOLD for now in released] == [1, 1]
        yield dut.pages.producer[3].eq(2)
        yield dut.r.pending.eq(1 << 3)
        yield
        yield
        for _ in range(10):
            yield
            assert (yield dut.r.release)
        assert (yield from dut.read("EVENTS_HELD")) == (yield from dut.read("EVENTS")) != 0
        yield dut.r.pending.eq(0)
        yield
        yield
        yield
        assert not (yield dut.r.release) and (yield from dut.read("EVENTS_HELD")) == 0

    run_simulation(dut, [bench(), clock()])
