"""The arbiter of writes: it splits no write, the first sink goes first, and marks go back to their
sinks.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.deposit.writes import WriteArbiter

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, whole
from tests.gateware.models.hostwrite import HostWrite


def write_of(random, origin, number, width):
    """(address, length, mark, data) in a range of addresses of its own."""
    address = (origin << 32) + 512 * number + random.randrange(64)
    length = random.randint(1, 200)
    return address, length, int(random.random() < 0.6), random.randbytes(length)


def lines_of(write, width):
    address, length, mark, data = write
    padded = bytes(address % width) + data
    for at in range(0, len(padded), width):
        yield dict(
            dat=int.from_bytes(padded[at : at + width], "little"),
            address=address,
            length=length,
            mark=mark,
            last=int(at + width >= len(padded)),
        )


def run(data_width, random, writes, busy=1.0, host_busy=1.0, depth=64, delay=(0, 20)):
    """Returns host, and for each sink the host's count of marks at each of its own."""
    dut = WriteArbiter(data_width, len(writes), depth)
    host = HostWrite(dut.source, dut.marked, random, 256, host_busy, delay)
    landed = [[] for _ in writes]

    @passive
    def watch():
        while True:
            yield
            for n, signal in enumerate(dut.landed):
                if (yield signal):
                    landed[n].append(sum(map(len, landed)))

    total = sum(map(len, writes))
    marks = sum(mark for list_of in writes for _, _, mark, _ in list_of)

    def wait():
        yield from finish(lambda: len(host.tlps) == total and sum(map(len, landed)) == marks, 8000)
        for _ in range(30):
            yield

    run_simulation(
        dut,
        [
            host.run(),
            watch(),
            wait(),
            *[
                whole(sink, [lines_of(write, data_width // 8) for write in list_of], random, busy)
                for sink, list_of in zip(dut.sinks, writes)
            ],
        ],
    )
    return host, landed


@pytest.mark.parametrize("data_width", [64, 128, 256])
@pytest.mark.parametrize("busy, host_busy, depth", [(1.0, 1.0, 64), (0.2, 0.6, 64), (0.5, 0.9, 2)])
def test_writes_come_out_whole_and_their_marks_go_back(data_width, busy, host_busy, depth, seed):
    random = Random(seed)
    writes = [
        [write_of(random, origin, n, data_width // 8) for n in range(20)] for origin in range(3)
    ]
    host, landed = run(data_width, random, writes, busy, host_busy, depth)
    assert host.memory == {
        address + i: byte
        for list_of in writes
        for address, _, _, data in list_of
        for i, byte in enumerate(data)
    }
    for origin, list_of in enumerate(writes):
        assert [tlp for tlp in host.tlps if tlp[0] >> 32 == origin] == [
            write[:3] for write in list_of
        ]
    # The marks of all, in the order of their writes at the host: each came back to its own sink.
    order = [address >> 32 for address, _, mark in host.tlps if mark]
    assert landed == [[n for n, origin in enumerate(order) if origin == sink] for sink in range(3)]


def test_the_first_sink_goes_before_the_others(seed):
    random = Random(seed)
    writes = [[write_of(random, origin, n, 8) for n in range(4)] for origin in range(3)]
    host, _ = run(64, random, writes)
    assert [address >> 32 for address, _, _ in host.tlps][:8] == [0] * 4 + [1] * 4


def test_a_line_a_cycle(seed):
    random = Random(seed)
    writes = [[((origin << 32) + 8 * n, 8, 0, bytes(8)) for n in range(30)] for origin in range(2)]
    host, _ = run(64, random, writes)
    assert host.cycles[-1] - host.cycles[0] == 59
