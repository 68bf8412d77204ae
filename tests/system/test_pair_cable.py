"""What happens to puts when the cable is pulled or noisy: they end well and late, and no byte is
wrong.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import STATUS

from tests.system.pair import Pair, Side

SIZE = 64 * 1024
UNPLUGGED = (1500, 1900)  # microseconds of simulated time


def sleep_until(side, microseconds):
    """Let simulated time pass; nothing may arrive meanwhile."""
    left = microseconds * 1000 - side.endpoint.clock().now_ps // 1000
    assert left > 0 and not side.endpoint.wait(left)


def now(side):
    """Microseconds."""
    return side.endpoint.clock().now_ps / 1e6


def put(side, key, offset=0, length=4096):
    source = side.regions["memory"].key
    return STATUS.name_of(side.put_strided((source, length, offset), (key, length, offset)))


def memories(pair):
    return pair.together((Side.register, "memory", SIZE), (Side.register, "memory", SIZE))


@pytest.mark.parametrize("before", [50, -100])
def test_a_put_waits_for_a_cable_that_is_pulled(before):
    """Under the put, `before` its time in microseconds, or when the cable is out already."""
    with Pair(options=["--fault", "unplugged:{}:{}".format(*UNPLUGGED)], preload=True) as pair:
        _, key = memories(pair)
        pair.first(Side.fill, "memory", 1)
        pair.second(Side.fill, "memory", None, 0xEE)
        pair.first(sleep_until, UNPLUGGED[0] - before)
        assert pair.first(put, key, 0, SIZE) == "OK"
        assert pair.first(now) >= UNPLUGGED[1]
        sent, got = pair.together((Side.read, "memory"), (Side.read, "memory"))
        assert got == sent
        counters = pair.second(Side.info)["counters"]
        assert counters["link_lost"] == 1 and counters["link_trained"] == 2


def test_bit_errors_never_make_a_wrong_byte():
    with Pair(options=["--ber", "4e-6"], preload=True) as pair:
        _, key = memories(pair)
        pair.first(Side.fill, "memory", 1)
        pair.second(Side.fill, "memory", None, 0xEE)
        assert [pair.first(put, key, 4096 * n) for n in range(16)] == ["OK"] * 16
        sent, got = pair.together((Side.read, "memory"), (Side.read, "memory"))
        counters = pair.second(Side.info)["counters"]
        assert got == sent
        assert counters["code_errors"] + counters["disparity_errors"] > 0
