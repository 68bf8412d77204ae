# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""What happens to puts when the cable is pulled or noisy: a name for it, no wrong byte, and it goes on afterwards."""

from dibber.interface.description import STATUS
from pair import Pair, Side

SIZE      = 64*1024
UNPLUGGED = (1500, 1900)    # microseconds of simulated time


def sleep_until(side, microseconds):
    """Let simulated time pass; nothing may arrive meanwhile."""
    left = microseconds*1000 - side.endpoint.clock().now_ps//1000
    assert left > 0 and not side.endpoint.wait(left)


def put(side, key, offset=0, length=4096):
    source = side.regions["memory"].key
    return STATUS.name_of(side.put_strided((source, length, offset), (key, length, offset)))


def memories(pair):
    return pair.together((Side.register, "memory", SIZE), (Side.register, "memory", SIZE))


def test_a_cable_pulled_under_a_put_is_a_timeout_and_afterwards_puts_work_again():
    with Pair(options=["--fault", "unplugged:{}:{}".format(*UNPLUGGED)]) as pair:
        _, key = memories(pair)
        pair.first(Side.fill, "memory", 1)
        pair.second(Side.fill, "memory", None, 0xee)
        pair.first(sleep_until, UNPLUGGED[0] - 50)
        assert pair.first(put, key, 0, SIZE) == "TIMEOUT"
        sent, got = pair.together((Side.read, "memory"), (Side.read, "memory"))
        there = next(n for n in range(SIZE) if got[n:] == bytes([0xee])*(SIZE - n))
        assert 0 < there < SIZE and got[:there] == sent[:there]
        assert pair.first(put, key, 0, SIZE) == "OK"
        assert pair.second(Side.read, "memory") == sent


def test_a_put_that_finds_the_cable_out_waits_for_it():
    with Pair(options=["--fault", "unplugged:{}:{}".format(*UNPLUGGED)]) as pair:
        _, key = memories(pair)
        pair.first(sleep_until, UNPLUGGED[0] + 100)
        assert pair.first(put, key) == "OK"


def test_bit_errors_never_make_a_wrong_byte():
    with Pair(options=["--ber", "4e-6"]) as pair:
        _, key = memories(pair)
        pair.first(Side.fill, "memory", 1)
        pair.second(Side.fill, "memory", None, 0xee)
        ended = [pair.first(put, key, 4096*n) for n in range(16)]
        sent, got = pair.together((Side.read, "memory"), (Side.read, "memory"))
        counters  = pair.second(Side.info)["counters"]
        assert counters["code_errors"] + counters["disparity_errors"] > 0
        assert set(ended) <= {"OK", "TIMEOUT"} and "OK" in ended
        for n, status in enumerate(ended):
            block = slice(4096*n, 4096*(n + 1))
            if status == "OK":
                assert got[block] == sent[block]
            else:
                # A packet that was cut short may have left its first blocks, and nothing else.
                assert all(g in (0xee, s) for g, s in zip(got[block], sent[block]))
