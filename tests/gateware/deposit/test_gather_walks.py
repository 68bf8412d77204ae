"""Gather behind walks: covering reads bring each byte once to its place, and fail as a whole."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from litex.gen import *

from dibber.deposit.gather import Gather
from dibber.deposit.walker import Walker
from dibber.interface.description import STATUS

from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.cover import cover, element_walk, random_walk
from tests.gateware.models.drive import finish, sink, source
from tests.gateware.models.gather import FIELDS, expected, memory, run
from tests.gateware.models.hostread import HostRead
from tests.gateware.models.walk import pieces


def plain(walk_pieces):
    """Pieces as `test_gather.run` takes them."""
    return [None if piece.error else (piece.address, piece.length) for piece in walk_pieces]


def outcome(transfer):
    """What a transfer of pieces gives where the host makes no error: (bytes, status)."""
    good = [piece for piece in transfer if piece is not None]
    return expected(good), STATUS.OK if len(good) == len(transfer) else STATUS.BOUNDS


@pytest.mark.parametrize("data_width", [64, 128, 256])
@pytest.mark.parametrize("max_request, busy, crowded", [(128, 0.6, 0), (512, 1.0, 1)])
def test_random_walks(seed, data_width, max_request, busy, crowded):
    """All strides, levels that overlap, completions split and out of order, stalls everywhere."""
    random = Random(seed * 1000 + data_width + max_request)
    walks = [random_walk(random) for _ in range(18)]
    transfers = [plain(pieces(walk, max_request)) for walk in walks]
    got, host = run(
        transfers,
        data_width,
        seed,
        busy,
        busy,
        40000,
        max_request=max_request,
        timeout=3000,
        quarantine=4000,
        crowded=crowded,
    )
    for (data, status), transfer in zip(got, transfers):
        whole, wanted = outcome(transfer)
        assert status == wanted
        assert data == whole if status == STATUS.OK else whole.startswith(data)
    # No byte is read that does not lie between two of the pieces of some walk, all within its
    # region.
    spans = [
        (min(p)[0], max(a + n for a, n in p))
        for p in ([piece for piece in transfer if piece] for transfer in transfers)
        if p
    ]
    assert all(any(low <= a and a + n <= high for low, high in spans) for a, n, _ in host.issued)


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_reads_are_those_that_cost_least(data_width):
    transfers = [pieces(element_walk(8, 8 * stride, 64), 512) for stride in range(2, 9)]
    got, host = run([plain(t) for t in transfers], data_width, timeout=2000, quarantine=3000)
    assert got == [outcome(plain(t)) for t in transfers]
    assert [(a, n) for a, n, _ in host.issued] == [
        (read.begin, read.end - read.begin) for t in transfers for read in cover(t, 512)
    ]


def test_a_pick_a_cycle():
    """Elements of 8 bytes, each in a line of its own of 128 bits: 4 of a read leave in 4 cycles."""
    transfer, when = plain(pieces(element_walk(8, 16, 300), 512)), []
    got, host = run([transfer], 128, tags=64, latency=(20, 20), when=when, split=False)
    assert got == [outcome(transfer)] and len(host.issued) == 75
    assert when[-1] - when[0] <= 300 + 3


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_a_bad_walk_is_read_as_far_as_it_is_good(data_width):
    """An error piece closes the read before it; its data are still void."""
    transfers = [[(0, 8), (16, 8), (32, 8), None], [(64, 8), (76, 4)]]
    got, host = run(transfers, data_width)
    assert [status for _, status in got] == [STATUS.BOUNDS, STATUS.OK]
    assert got[1][0] == expected(transfers[1])
    assert sorted((a, n) for a, n, _ in host.issued) == [(0, 40), (64, 16)]


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_a_failed_covering_read_ends_its_transfer_only(seed, data_width):
    """An error in the middle of a read of several picks, whole reads before and behind it, others
    go on.
    """
    random = Random(seed + data_width)
    for _ in range(2):
        transfers = [
            plain(pieces(element_walk(block, block + 5, count, 2**20 * (n + 1)), 512))
            for n, (block, count) in enumerate(
                (random.choice([1, 4, 8, 30]), random.randint(1, 120)) for _ in range(8)
            )
        ]
        bad = {n: random.choice(transfers[n])[0] for n in random.sample(range(8), 3)}
        pulses = {}
        got, _ = run(
            transfers,
            data_width,
            random.random(),
            0.8,
            0.8,
            30000,
            200,
            pulses=pulses,
            timeout=3000,
            quarantine=4000,
            fault=lambda a: "error" if a in bad.values() else None,
        )
        for n, (data, status) in enumerate(got):
            whole = expected(transfers[n])
            if n in bad:
                assert status == STATUS.READ_ERROR and whole.startswith(data) and data != whole
            else:
                assert (data, status) == (whole, STATUS.OK)
        assert pulses["COMPLETION_ERROR"] >= 3 and pulses["COMPLETION_UNEXPECTED"] == 0


def test_a_failed_walk_asks_for_no_more_reads():
    """Neither are picks left behind of a read that was open when the transfer failed."""
    transfers = [plain(pieces(element_walk(8, 16, 800), 512)), [(0, 8)]]
    for faulty in range(3):
        address = transfers[0][0][0] + 64 * faulty
        got, host = run(
            transfers, seed=faulty, busy=0.7, fault=lambda a: "error" if a == address else None
        )
        assert [status for _, status in got] == [STATUS.READ_ERROR, STATUS.OK]
        assert got[1][0] == expected(transfers[1])
        assert len(host.issued) < 80


class Walked(LiteXModule):
    """Walker and gather, as the send engine has them."""

    def __init__(self, tags):
        self.walker = Walker()
        self.gather = Gather(64, tags=tags, timeout=1000, quarantine=2000)
        self.comb += [
            self.walker.source.connect(self.gather.sink),
            self.walker.abort.eq(self.gather.abort),
            self.walker.max_piece.eq(512),
            self.gather.max_request.eq(512),
            self.gather.extended_tags.eq(1),
        ]


@pytest.mark.parametrize("count", [1, 3, 5, 7, 9, 40])
def test_the_end_of_a_failed_transfer_does_not_end_the_next(count):
    """The last piece of a transfer may be in any stage when it fails; the walker is in the next one
    then.
    """
    dut, random, lines = shared(Walked, tags=2), Random(count), []
    walks = [element_walk(8, 128, count, 2**20 * (n + 1)) for n in range(6)]
    model = HostRead(
        dut.gather.reads,
        dut.gather.completions,
        memory,
        random,
        fault=lambda a: "error" if a >> 20 in (1, 4) else None,
    )

    def main():
        yield from finish(lambda: sum(last for _, _, last, _ in lines) == len(walks), 20000)

    run_simulation(
        dut,
        [
            main(),
            model.run(),
            sink(dut.gather.source, FIELDS, lines, random),
            source(dut.walker.sink, [dict(walk.fields(), last=1) for walk in walks], random),
        ],
    )
    assert [status for _, _, last, status in lines if last] == [
        STATUS.READ_ERROR if n in (0, 3) else STATUS.OK for n in range(6)
    ]
