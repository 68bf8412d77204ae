"""Completions that disagree with their reads: each fails its own read, and not one byte of them is
used.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest

from migen import *

from dibber.host.completions import CompletionChecker

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive
from tests.gateware.models.completions import FAULTS
from tests.gateware.models.unruly import READERS

pytestmark = pytest.mark.fault


@pytest.mark.parametrize("data_width", [64, 128, 256])
@pytest.mark.parametrize("reader", READERS)
def test_random_good_and_bad_completions_give_no_wrong_byte_and_fail_no_other_read(
    reader, data_width, seed
):
    """A sample of tests/soak/completions.py."""
    test, ended = READERS[reader](data_width, 500, seed)
    assert min(ended.values()) > 30, ended
    assert sum(test.host.hits[fault] > 0 for fault in FAULTS) >= 10, test.host.hits


@pytest.mark.parametrize(
    "data_width, boundary", [(64, 64), (64, 128), (128, 64), (128, 128), (256, 128)]
)
def test_whatever_a_legal_host_sends_passes(data_width, boundary, seed):
    """Any split at a read completion boundary of 64 or 128 bytes, and modified byte counts."""
    test, ended = READERS["gather"](data_width, 300, seed, rate=0.0, boundary=boundary, split=0.8)
    assert ended["failed"] == 0 and test.host.judge.counts == {}


class Bench:
    """A checker alone; `send` a read, `answer` it with one line, and see what the reader
    would get.
    """

    def __init__(self, tags=4):
        self.dut = CompletionChecker(64, tags)
        self.counts = {}

    def send(self, tag, address, length):
        reads = self.dut.reads
        yield from drive(reads, valid=1, tag=tag, address=address, length=length)
        yield from drive(self.dut.requests, ready=1)
        yield
        yield reads.valid.eq(0)
        for _ in range(2):
            yield

    def answer(self, **fields):
        """(valid, status, count, failed) a cycle after the line was shown."""
        yield from drive(self.dut.sink, valid=1, last=1, **fields)
        yield
        yield self.dut.sink.valid.eq(0)
        yield
        got = []
        for signal in (
            self.dut.source.valid,
            self.dut.source.status,
            self.dut.source.count,
            self.dut.source.failed,
        ):
            got.append((yield signal))
        yield
        yield
        return tuple(got)

    @passive
    def count(self):
        while True:
            yield
            for name, pulse in self.dut.pulses.items():
                self.counts[name] = self.counts.get(name, 0) + (yield pulse)

    def run(self, process):
        def main():
            for _ in range(10):
                yield
            yield from process

        run_simulation(self.dut, [main(), self.count()])
        return {name: count for name, count in self.counts.items() if count}


def test_a_read_sent_before_the_card_got_another_bus_number_is_answered_to_the_old_one():
    bench = Bench()
    whole = dict(lower=0, count=8, bytes=8, status=0, flaw=0, modified=0)

    def process():
        yield bench.dut.id.eq(0x0100)
        yield
        yield
        yield from bench.send(0, 4096, 8)
        yield from bench.send(1, 4096, 8)
        yield bench.dut.id.eq(0x0500)
        yield
        yield
        yield from bench.send(2, 4096, 8)
        yield from bench.send(3, 4096, 8)
        assert (yield from bench.answer(tag=0, requester=0x0100, **whole)) == (1, 0, 8, 0)
        assert (yield from bench.answer(tag=1, requester=0x0500, **whole))[::3] == (1, 1)
        assert (yield from bench.answer(tag=2, requester=0x0500, **whole)) == (1, 0, 8, 0)
        assert (yield from bench.answer(tag=3, requester=0x0100, **whole))[::3] == (1, 1)

    assert bench.run(process()) == {"COMPLETION_BAD_REQUESTER": 2}


def test_a_read_that_failed_is_closed_when_its_good_completions_have_all_come():
    bench = Bench()
    rest = dict(status=0, flaw=0, modified=0, requester=0)

    def process():
        yield from bench.send(2, 64, 136)
        answer = lambda **fields: bench.answer(tag=2, **{**rest, **fields})
        assert (yield from answer(lower=64, count=136, bytes=64)) == (1, 0, 136, 0)
        fail = yield from answer(lower=64, count=136, bytes=64)  # once more
        assert fail[0] == fail[3] == 1 and fail[1] != 0
        assert (yield from answer(lower=0, count=72, bytes=64))[0] == 0
        assert (yield from answer(lower=0, count=72, bytes=64))[0] == 0
        close = yield from answer(lower=64, count=8, bytes=8)
        assert close[0] == 1 and close[1] != 0 and close[3] == 0
        assert (yield from answer(lower=64, count=8, bytes=8))[0] == 0
        assert (yield from bench.answer(tag=9, lower=0, count=8, bytes=8, **rest))[0] == 0, (
            "no such tag"
        )

    assert bench.run(process()) == {"COMPLETION_BAD_COUNT": 1, "COMPLETION_UNEXPECTED": 2}
