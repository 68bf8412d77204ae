# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.deposit.checksum import Checksum

from tests.gateware.models.checksum import internet_checksum
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, sink


def test_the_models_example_is_the_standards():
    assert internet_checksum(bytes.fromhex("0001f203f4f5f6f7")) == ~0xDDF2 & 0xFFFF


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_every_run_has_the_checksum_of_its_bytes(data_width, seed):
    random = Random(seed)
    width = data_width // 8
    lengths = [1, 2, 7, 8, 9, 15, 16, 17, 33, 500, 4096] + [
        random.randrange(1, 100) for _ in range(30)
    ]
    runs = (
        [random.randbytes(n) for n in lengths] + [b"\xff" * n for n in (2, 16, 1000)] + [bytes(40)]
    )
    dut = Checksum(data_width)
    got, ends, now = [], [], [0]

    def feed():
        for data in runs:
            for at in range(0, len(data), width):
                part = data[at : at + width]
                while random.random() < 0.2:
                    yield dut.valid.eq(0)
                    yield
                yield dut.valid.eq(1)
                # What does not count is anything.
                yield dut.dat.eq(
                    int.from_bytes(part + random.randbytes(width - len(part)), "little")
                )
                yield dut.bytes.eq(len(part))
                yield dut.last.eq(at + width >= len(data))
                yield
            ends.append(now[0])
        yield dut.valid.eq(0)
        yield from finish(lambda: len(got) == len(runs), 30)

    @passive
    def clock():
        while True:
            yield
            now[0] += 1

    cycle = []
    run_simulation(
        dut, [feed(), clock(), sink(dut.source, ("checksum",), got, random, cycle=cycle)]
    )
    assert [checksum for (checksum,) in got] == [internet_checksum(data) for data in runs]
    assert {taken - end for end, taken in zip(ends, cycle)} == {
        {64: 8, 128: 9, 256: 10}[data_width]
    }
