# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from migen import *

from dibber.deposit.gather import Gather

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, growing, sink, source
from tests.gateware.models.hostread import HostRead

TAGS = 4
SLOTS = 64  # of the table of outcomes: one for each 64 bytes of the buffer
BEFORE = 3 * SLOTS // 2
AFTER = SLOTS


def memory(address):
    return (address * 0x9E3779B1 >> 13) & 0xFF


def reads(count, base):
    """A transfer of `count` elements of 8 bytes, each a read and a line of its own."""
    return [
        dict(address=base + 64 * n, length=8, error=0, last=int(n == count - 1))
        for n in range(count)
    ]


def test_after_a_halt_nothing_of_the_reads_before_it_is_taken_for_an_answer():
    """The reads before leave the table of outcomes in two passes, which a reset alone does not
    forget.
    """
    dut = ResetInserter()(Gather(64, tags=TAGS, timeout=200, quarantine=400))
    random = Random(8)
    pieces = reads(BEFORE, 0)
    lines = []
    host = HostRead(dut.reads, dut.completions, memory, random, latency=(40, 60), split=False)

    def bench():
        yield from finish(lambda: len(lines) == BEFORE, cycles=4000)
        yield dut.reset.eq(1)
        for _ in range(3):
            yield
        yield dut.reset.eq(0)
        pieces.extend(reads(AFTER, 0x10000))
        yield from finish(lambda: len(lines) == BEFORE + AFTER, cycles=4000)

    run_simulation(
        dut,
        [
            bench(),
            host.run(),
            source(dut.sink, growing(pieces), random),
            sink(dut.source, ("dat", "bytes"), lines, random),
        ],
    )
    addresses = [64 * n for n in range(BEFORE)] + [0x10000 + 64 * n for n in range(AFTER)]
    assert lines == [(sum(memory(a + n) << 8 * n for n in range(8)), 8) for a in addresses]
