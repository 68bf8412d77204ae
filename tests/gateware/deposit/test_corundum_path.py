"""Puts from one host's memory to the other's, with Corundum's DMA interface between engines and
memory.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest
from tests.gateware.models.command import command
from tests.gateware.models.compiled import shared
from tests.gateware.models.corundum import CorundumDMA
from tests.gateware.models.deposit_path import PUTS, Pair, Path, expected_memory, memory
from dibber.host.completions import CompletionChecker
from dibber.host.corundum import CorundumHost
from dibber.interface.description import FLAG, STATUS
from migen import passive

COUNT = len(PUTS)


class CorundumPair(Pair):
    """Both engines before a CorundumHost, with the checker of completions between them."""

    def __init__(self, data_width, segment_width, tags):
        Pair.__init__(self, data_width, tags)
        self.host = host = CorundumHost(
            data_width,
            0x10000,
            segment_width=segment_width,
            write_bytes=2048,
            read_bytes=16384,
            writes=16,
            reads=16,
        )
        self.checker = checker = CompletionChecker(data_width)
        self.comb += [
            self.send.reads.connect(checker.reads),
            checker.requests.connect(host.reads),
            host.completions.connect(checker.sink),
            checker.source.connect(self.send.completions),
            self.scatter.writes.connect(host.writes),
            self.scatter.marked.eq(host.marked),
        ]


class HostMemory(dict):
    """What was written, and below it what can be read."""

    def get(self, address, default=0):
        return self[address] if address in self else memory(address)


class Watch:
    """When the last put's notice comes, all bytes of all puts are in memory."""

    def __init__(self, path):
        self.path, self.seen = path, False

    @passive
    def run(self):
        while True:
            if len(self.path.arrivals) == COUNT and not self.seen:
                assert dict(self.path.memory) == expected_memory(PUTS)
                self.seen = True
            yield


class CorundumPath(Path):
    def __init__(self, jobs, data_width, segment_width, seed):
        super().__init__(jobs, data_width, seed, busy=0.8, request=512)
        self.dut = shared(CorundumPair, data_width, segment_width, 16)
        self.memory = HostMemory()
        # In the places of the models of a host: what `Path.run` runs.
        self.reads = CorundumDMA(self.dut.host, self.memory, Random(seed), busy=0.8, delay=(1, 60))
        self.writes = Watch(self)


@pytest.mark.parametrize("data_width, segment_width", [(64, 128), (128, 256)])
def test_puts_of_every_walk_are_byte_exact_and_notices_come_behind_their_bytes(
    data_width, segment_width, seed
):
    flags = FLAG.NOTICE | FLAG.INTERRUPT | FLAG.SOLICIT
    jobs = [(command(s, t, n, node=1, flags=flags, endpoint=4, notice=n), {}) for s, t, n in PUTS]
    path = CorundumPath(jobs, data_width, segment_width, seed)
    path.run(lambda p: len(p.arrivals) == COUNT)
    assert path.writes.seen and dict(path.memory) == expected_memory(PUTS)
    assert path.ended == [(n, STATUS.OK, 10 * n + 1) for n in range(COUNT)]
    assert path.arrivals == [(1, 4, n, n) for _, _, n in PUTS]
