"""Bus Master Enable at the host interface: what is held, what is dropped, and when the control
program is halted.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest

from dibber.host.master import BusMaster
from dibber.interface.description import C

from tests.gateware.models.compiled import run_simulation
from tests.gateware.host.test_posts import BAR, pause, post, sent, set_vector
from tests.gateware.host.tlps import WIDTHS, Bench, read

PATIENCE = 20

# Model --------------------------------------------------------------------------------------------


def expected(steps):
    """(enable, discard, lost) after each step of (allowed, running, waits)."""
    enable = discard = held = 0
    for allowed, running, waits in steps:
        lost = 0
        if enable or not running or not waits:
            held = 0
        elif held == PATIENCE - 1:
            held, lost = 0, 1
        else:
            held += 1
        enable, discard = allowed, int(not allowed and not running)
        yield enable, discard, lost


@pytest.mark.fault
def test_a_program_is_halted_when_a_request_has_waited_for_the_patience_and_not_before(seed):
    rng, steps = random.Random(seed), []
    for _ in range(300):
        steps += [
            (int(rng.random() < 0.2), int(rng.random() < 0.8), int(rng.random() < 0.9))
        ] * rng.choice((1, 3, 19, 20, 21, 45))
    dut = BusMaster(PATIENCE)
    found = []

    def bench():
        for allowed, running, waits in steps:
            yield dut.allowed.eq(allowed)
            yield dut.running.eq(running)
            yield dut.waits.eq(waits)
            yield
            found.append(((yield dut.enable), (yield dut.discard), (yield dut.lost)))
        yield

    run_simulation(dut, [bench()])
    want = list(expected(steps))
    assert sum(lost for _, _, lost in want) > 20
    # What is seen in a cycle was decided in the one before.
    assert found[1:] == want[:-1]


# Host Interface -----------------------------------------------------------------------------------


def is_request(tlp):
    return tlp.fmt_type.name.startswith("MEM")


@pytest.mark.fault
@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_entries_and_interrupts_wait_and_bar_reads_are_answered(data_width, endianness):
    bench = Bench(data_width, endianness)
    set_vector(bench, 0, 0xFEE0_0000, 7)

    def scenario(bench):
        yield bench.dut.running.eq(1)
        yield from pause(40)
        yield bench.phy.bus_master.eq(0)
        yield from pause(5)
        yield from post(bench, 0x1000, bytes(range(32)), 0, 1)
        bench.send(read(BAR + C.MSIX_TABLE_BASE + 8, 4, tag=1))
        yield from pause(200)
        assert [tlp.tag for _, _, tlp in bench.received if tlp.fmt_type.name == "CPL_DATA"] == [1]
        assert not any(is_request(tlp) for _, _, tlp in bench.received)
        yield bench.phy.bus_master.eq(1)

    bench.run(scenario)
    assert sent(bench) == [(0x1000, bytes(range(32))), (0xFEE0_0000, b"\x07\0\0\0")]
    assert bench.count["REQUESTS_DROPPED"] == 0


@pytest.mark.fault
@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_without_a_program_entries_are_dropped_and_interrupts_stay_pending(data_width, endianness):
    bench = Bench(data_width, endianness)
    set_vector(bench, 0, 0xFEE0_0000, 7)

    def scenario(bench):
        yield from pause(40)
        yield bench.phy.bus_master.eq(0)
        yield from pause(5)
        for _ in range(3):
            yield from post(bench, 0x1000, bytes(32), 0, 1)
        yield from pause(100)
        assert sent(bench) == []
        yield bench.phy.bus_master.eq(1)

    bench.run(scenario)
    assert sent(bench) == [(0xFEE0_0000, b"\x07\0\0\0")]
    assert bench.count["REQUESTS_DROPPED"] == 3
