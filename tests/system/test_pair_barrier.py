"""BARRIER between two cards: an operation that gateware and library do not know."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import re
import struct

import pytest
from dibber.interface.description import COMMAND, STATUS

from tests.system.pair import Pair

HEADER = (pathlib.Path(__file__).resolve().parents[2] / "firmware" / "barrier.h").read_text()
OPCODE = int(re.search(r"BARRIER_OPCODE\s+(0x\w+)u", HEADER)[1], 16)


@pytest.fixture(scope="module")
def pair():
    with Pair(preload=True) as p:
        yield p


def command(others, limit=0):
    slot = bytearray(COMMAND.size)
    slot[COMMAND["opcode"].offset] = OPCODE
    struct.pack_into("<I", slot, COMMAND["notice"].offset, sum(1 << n for n in others))
    struct.pack_into("<I", slot, COMMAND["length"].offset, limit)
    return bytes(slot)


def now(side):
    return side.endpoint.clock().now_ps // 1000


def sleep_until(side, time):
    while now(side) < time:
        side.endpoint.wait(time - now(side))


def rounds(side, other, count, nanoseconds):
    """Work for a while, then meet the other, `count` times: when this side entered each barrier,
    and when it left it.
    """
    times, begin = [], now(side)
    for n in range(count):
        sleep_until(side, max(now(side), begin + n * 100_000) + nanoseconds * ((n + other) % 2))
        entered = now(side)
        status = side.submit(command([other]))
        times.append((entered, now(side), status))
    return times


def test_nobody_leaves_before_both_have_entered(pair):
    ours, theirs = pair.together((rounds, 1, 6, 30_000), (rounds, 0, 6, 30_000))
    for (entered, left, status), (entered2, left2, status2) in zip(ours, theirs):
        assert status == status2 == STATUS.OK
        last = max(entered, entered2)
        assert min(left, left2) >= last and max(left, left2) - last < 80_000
    # Who came first has waited.
    assert all(
        max(left - entered for entered, left, _ in both) > 25_000 for both in zip(ours, theirs)
    )


def test_a_limit_ends_it(pair):
    assert pair.first(enter_alone) == STATUS.TIMEOUT


def enter_alone(side):
    return side.submit(command([1], limit=125_000))
