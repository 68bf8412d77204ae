"""A card that loses its power while its peer keeps running, and begins to count where its former
life began.
"""

# SPDX-License-Identifier: BSD-2-Clause

import libdibber
import pytest
from dibber.interface.description import STATUS

from tests.system.pair import Pair, Side, open_again, stay

LENGTH = 1 << 16
STEP = 5000  # bytes of a put, two packets


@pytest.fixture
def pair():
    with Pair(options=["--reset-takes-power"]) as pair:
        yield pair


def begin(side):
    return side.register("memory", LENGTH)


def transfers(side, key, count, value):
    """Puts on both lanes, each to a place of its own: their statuses. A get would need packets from
    the peer, whose flows start again after 40 ms."""
    own = side.regions["memory"]
    found = []
    for n in range(count):
        own.memory[:STEP] = value + n
        side.endpoint.put(own.key, 0, key, n * STEP, STEP, node=1)
        found.append(side.completion())
        side.endpoint.put_inline(bytes([value + n]) * 8, key, LENGTH // 2 + 8 * n, node=1)
        found.append(side.completion())
    return {STATUS.name_of(status) for status in found}


@pytest.mark.parametrize("before, after", [(1, 1), (2, 6), (6, 2)])
def test_nothing_is_taken_for_what_the_former_life_sent(pair, tmp_path, before, after):
    """The new life sends as many packets as the former one, more, and less: each is executed."""
    pair.first(begin)
    key = pair.second(begin)
    assert pair.first(transfers, key, before, 10) == {"OK"}
    for life in range(1, 4):
        # With an observer, the simulator looks for new clients at each turn, which otherwise takes
        # long.
        with libdibber.Card(pair.simulator.uris[1], observe=True):
            pair.together((open_again, tmp_path / "over"), (stay, tmp_path / "over"))
        pair.first(begin)
        assert pair.first(transfers, key, after, 50 * life) == {"OK"}
        memory = pair.second(Side.read, "memory")
        for n in range(after):
            assert set(memory[n * STEP : (n + 1) * STEP]) == {50 * life + n}, (
                f"put {n} of life {life}"
            )
            assert set(memory[LENGTH // 2 + 8 * n :][:8]) == {50 * life + n}, (
                f"inline put {n} of life {life}"
            )
