"""Two cards, one cable, no switch: the pair discovers itself, and dead routes are left without
loss.
"""

# SPDX-License-Identifier: BSD-2-Clause

import libdibber
import pytest
from dibber.interface.description import STATUS

from tests.system.pair import SECOND, Pair, Side

DIRECT, DEAD = 0, 0x11  # DEAD has a hop, and there is no switch to take it
SIZE = 1 << 16


@pytest.fixture(scope="module")
def pair():
    with Pair(preload=True) as p:
        p.keys = p.together((Side.register, "memory", SIZE), (Side.register, "memory", SIZE))
        yield p


def found(side):
    network = side.card.map()
    return (
        network.own,
        network.uplink[0].kind,
        network.uplink[0].number,
        network.hosts,
        network.scouts,
        libdibber.routes_to(network, 1 - network.own),
    )


def test_the_pair_discovers_itself(pair):
    assert pair.together((found,), (found,)) == [
        (0, 1, 1, 0b11, 1, (DIRECT,)),
        (1, 1, 0, 0b11, 1, (DIRECT,)),
    ]


def test_a_way_that_leads_nowhere_has_nobody_at_its_end(pair):
    assert pair.first(ask_both_ways) == 1
    assert pair.second(misrouted) >= 1


def ask_both_ways(side):
    with pytest.raises(libdibber.DibberError, match="no node answered"):
        side.card.scout(DEAD)
    return side.card.scout()


def misrouted(side):
    return side.info()["counters"]["packet_misrouted"]


def table(side):
    return side.card.routes(1)


def forget(side):
    for place in range(4):
        side.card.set_route(1, place, None)


def put_all(side, key, count, routes, each):
    """Puts one after the other, while the routes change under them; their statuses."""
    statuses, waiting = [], 0
    for n in range(count):
        if n in routes:
            for place, route in routes[n].items():
                side.card.set_route(1, place, route)
        side.endpoint.put(side.regions["memory"].key, n * each, key, n * each, each, node=1)
        waiting += 1
        while waiting > (16 if n < count - 1 else 0):
            done = side.endpoint.poll()
            if not done and not side.endpoint.wait(SECOND):
                return statuses
            statuses += [c.status for c in done]
            waiting -= len(done)
    return statuses


@pytest.mark.parametrize("fast", [True, False])
def test_routes_are_replaced_live_and_nothing_is_lost(pair, fast):
    count = 64
    pair.together((Side.fast_path, fast), (Side.fast_path, fast))
    pair.together((Side.fill, "memory", 5 + fast), (Side.fill, "memory", None))
    before = pair.second(misrouted)
    routes = {
        0: {0: DIRECT, 1: DIRECT},
        20: {0: DEAD},
        40: {0: DIRECT},
        41: {0: DEAD},
        42: {1: None, 2: DIRECT},
    }
    assert pair.first(put_all, pair.keys[1], count, routes, SIZE // count) == [STATUS.OK] * count
    assert pair.together((Side.read, "memory"), (Side.read, "memory"))[0] == pair.second(
        Side.read, "memory"
    )
    assert pair.second(misrouted) > before

    ways, current, age, changes = pair.first(table)
    assert ways == [DEAD, None, DIRECT, None] and current == 2 and changes >= 2
    pair.first(forget)
