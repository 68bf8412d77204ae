"""A real deadlock: four cards in a ring of switches, with routes that wait for one another, and
with those of `dibber map`.
"""

# SPDX-License-Identifier: BSD-2-Clause

import libdibber
import pytest
from dibber.interface.description import STATUS, SWITCH_COUNTER, C
from dibber_cli import switch

from tests.system.network import completions, opened, register

SHAPE = "ring-of-switches:4"
BLOCK = 1 << 14
BLOCKS = 6
# Out at port 1, which leads to port 2 of the next switch; on there; out to its card at port 0.
ONWARDS = 3 | 1 << 4 | 15 << 8 | 14 << 12
# Of the switches, in place of 8 ms, which is long for a test. A packet is cut after 7/8 at least.
LIMIT = 64
CUT_US = 7 / 8 * LIMIT * C.SWITCH_LIMIT_UNIT / 125


def run(enter):
    """(microseconds between two completions at most, by card; packets that the switches cut because
    their output was blocked) of four cards that all put to the card after the next.

    enter : (side, network as Card.map() gives it): what is done with the routes
    """
    with opened(SHAPE) as network:
        maps = network.together(lambda side: side.card.map(2))
        network.together(lambda side: enter(side, maps[side.node]))
        keys = network.together(register(2 * BLOCK))

        def fill(side):
            side.memory[:BLOCK] = side.node + 1
            if side.node == 0:
                for remote in switch.remotes(side.card)[1].values():
                    remote.write("LIMIT", LIMIT)

        network.together(fill)
        ended = network.together(lambda side: put(side, keys))
        came = network.together(lambda side: side.memory[BLOCK:].copy())
        cut = network.on({0: blocked})[0]
    assert {status for statuses, _ in ended for status in statuses} == {STATUS.OK}
    assert all((came[(n + 2) % 4] == n + 1).all() for n in range(4))
    return [longest / 1000 for _, longest in ended], cut


def blocked(side):
    """Packets that were cut or dropped because their output took no words, at all switches."""
    return sum(
        remote.read("COUNTERS", C.SWITCH_COUNTER_WORDS * port + SWITCH_COUNTER.DROPPED_BLOCKED)
        for remote in switch.remotes(side.card)[1].values()
        for port in range(4)
    )


def put(side, keys):
    """Put block after block to the card after the next; (statuses, longest gap in nanoseconds)."""
    target = (side.node + 2) % 4
    statuses, longest, last = [], 0, side.now()
    for _ in range(BLOCKS):
        side.endpoint.put(side.region.key, 0, keys[target], BLOCK, BLOCK, node=target)
        statuses += completions(side, 1)
        longest, last = max(longest, side.now() - last), side.now()
    return statuses, longest


def enter_ours(side, network):
    assert libdibber.circle_of(network) == []
    for node in range(4):
        for place, route in enumerate(libdibber.routes_to(network, node)):
            side.card.set_route(node, place, route)


def enter_onwards(side, network):
    """Each way follows the ring in one direction: legal, shortest, and a circle as a whole."""
    ways = [(n, (n + 2) % 4, ONWARDS) for n in range(4)]
    assert len(libdibber.circle_of(network, ways)) == 4
    enter_ours(side, network)
    target = (side.node + 2) % 4
    for place in range(1, 4):
        side.card.set_route(target, place, None)
    side.card.set_route(target, 0, ONWARDS)


@pytest.mark.fault
def test_routes_in_a_circle_deadlock_until_a_switch_cuts_and_ours_never_do(capsys):
    bad, cut = run(enter_onwards)
    good, none = run(enter_ours)
    with capsys.disabled():
        print(
            f"\nlongest gap: {max(bad):.0f} us and {cut} packets cut with routes in a circle, "
            f"{max(good):.0f} us and {none} with those of the map"
        )
    # Nobody of the four got on before a packet was cut. The cards sent it again.
    assert min(bad) >= CUT_US > 2 * max(good)
    assert cut > 0 and none == 0
