"""Gather: what leaves are the bytes of the pieces in order, whatever the host does."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.deposit.gather import Gather
from dibber.deposit.tags import UNEXTENDED
from dibber.interface.description import STATUS

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, sink, source
from tests.gateware.models.gather import FIELDS, expected, memory, run
from tests.gateware.models.hostread import HostRead


def random_transfer(random, pieces=40):
    result = []
    for _ in range(random.randint(1, pieces)):
        address = random.randrange(2**40)
        length = random.choice([1, 2, 7, 8, 8, 16, 33, 128, 200])
        result.append((address, min(length, 4096 - address % 4096)))
    return result


@pytest.mark.parametrize("data_width", [64, 128, 256])
@pytest.mark.parametrize("busy", [1.0, 0.5])
def test_split_and_reordered_completions(data_width, busy):
    random = Random(data_width)
    transfers = [random_transfer(random) for _ in range(8)]
    got, host = run(transfers, data_width, busy=busy, out_busy=busy)
    assert got == [(expected(t), STATUS.OK) for t in transfers]
    assert [(a, n) for a, n, _ in host.issued] == [p for t in transfers for p in t]


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_reads_of_4096_bytes(data_width):
    transfers = [[(4096, 4096), (8192, 4096), (12288, 5)]]
    got, _ = run(transfers, data_width, timeout=2000, quarantine=3000)
    assert got == [(expected(transfers[0]), STATUS.OK)]


@pytest.mark.parametrize("extended, most", [(0, UNEXTENDED), (1, 64)])
def test_tags_in_flight(extended, most):
    """As many reads in flight as the host allows, and no tag that it did not."""
    transfers = [[(64 * i, 8) for i in range(200)]]
    got, host = run(transfers, tags=64, extended=extended, latency=(150, 150), timeout=400)
    assert got == [(expected(transfers[0]), STATUS.OK)]
    assert host.most == most
    assert {tag for _, _, tag in host.issued} == set(range(most))


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_an_element_a_cycle(data_width):
    """8-byte elements: requests, completions and packing each keep up with one a cycle."""
    transfers = [[(24 * 8 * i, 8) for i in range(300)]]
    when = []
    got, _ = run(transfers, data_width, tags=64, latency=(20, 20), when=when)
    assert got == [(expected(transfers[0]), STATUS.OK)]
    elements = (len(when) - 1) * (data_width // 64)
    assert when[-1] - when[0] <= elements + 3


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_error_completion_ends_its_transfer_only(data_width):
    random = Random(5)
    transfers = [random_transfer(random, 60) for _ in range(9)]
    bad = {transfers[1][0][0], transfers[4][-1][0], transfers[6][len(transfers[6]) // 2][0]}
    pulses = {}
    got, _ = run(
        transfers,
        data_width,
        pulses=pulses,
        settle=200,
        fault=lambda a: "error" if a in bad else None,
    )
    for n, (data, status) in enumerate(got):
        if n in (1, 4, 6):
            assert status == STATUS.READ_ERROR
            assert expected(transfers[n]).startswith(data)
        else:
            assert (data, status) == (expected(transfers[n]), STATUS.OK)
    assert pulses == dict(COMPLETION_ERROR=3, COMPLETION_TIMEOUT=0, COMPLETION_UNEXPECTED=0)


def test_a_failed_transfer_asks_for_no_more_reads():
    transfers = [[(64 * i, 8) for i in range(1000)], [(0, 8)]]
    got, host = run(transfers, fault=lambda a: "error" if a == 64 else None)
    assert [s for _, s in got] == [STATUS.READ_ERROR, STATUS.OK]
    assert len(host.issued) < 200


@pytest.mark.parametrize("fault", ["never", 500])
def test_time_runs_out(fault):
    """No answer, or one that comes late: the transfer fails, nothing late reaches another one."""
    transfers = [[(4096 * i + 128 * n, 64) for n in range(20)] for i in range(8)]
    bad, pulses = 4096 * 2 + 128 * 7, {}
    got, host = run(
        transfers,
        pulses=pulses,
        settle=600,
        out_busy=0.5,
        fault=lambda a: fault if a == bad else None,
    )
    for n, (data, status) in enumerate(got):
        if n == 2:
            assert status == STATUS.READ_TIMEOUT
        else:
            assert (data, status) == (expected(transfers[n]), STATUS.OK)
    assert pulses == dict(COMPLETION_ERROR=0, COMPLETION_TIMEOUT=1, COMPLETION_UNEXPECTED=0)


def test_quarantine_ends():
    """The tag of a read that is never answered is used again after its quarantine, not before."""
    transfers = [[(64 * n, 8) for n in range(2)] for _ in range(150)]
    seen = []

    def fault(address):
        seen.append(address)
        return "never" if len(seen) == 3 * 8 else None

    got, host = run(transfers, tags=2, timeout=100, quarantine=1500, fault=fault, latency=(5, 10))
    lost = host.issued[2][2]
    again = [n for n, (_, _, tag) in enumerate(host.issued) if tag == lost]
    assert [s for _, s in got].count(STATUS.READ_TIMEOUT) == 1
    gap = again[again.index(2) + 1]
    assert 20 < gap < len(host.issued)


def test_unexpected_completion_is_counted():
    pulses = {}

    class Stray(HostRead):
        def answer(self, now, address, length, tag):
            super().answer(now, address, length, tag)
            self.flight[63] = [(now, self.beats(63, 128, 64, 64))]

    dut, random, lines = Gather(64, timeout=100), Random(1), []
    model = Stray(dut.reads, dut.completions, memory, random)

    def main():
        yield from finish(lambda: len(lines) == 1, 1000)
        for _ in range(100):
            pulses["n"] = pulses.get("n", 0) + (yield dut.pulses["COMPLETION_UNEXPECTED"])
            yield

    run_simulation(
        dut,
        [
            main(),
            model.run(),
            source(dut.sink, [dict(address=3, length=5, last=1)], random),
            sink(dut.source, FIELDS, lines, random),
        ],
    )
    assert lines == [(lines[0][0], 5, 1, STATUS.OK)]
    assert lines[0][0].to_bytes(8, "little")[:5] == expected([(3, 5)])


def test_error_piece_ends_the_transfer():
    transfers = [[(0, 64), (64, 64), None], [None], [(128, 3)]]
    got, _ = run(transfers)
    assert [s for _, s in got] == [STATUS.BOUNDS, STATUS.BOUNDS, STATUS.OK]
    assert got[2][0] == expected([(128, 3)])
