"""The mapper in random networks: hosts and switches found, links removed, routes that arrive and
cannot deadlock.
"""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes
from random import Random

import pytest
from dibber.interface.description import C

from tests.software.mapper_fabric import (
    HOST,
    NONE,
    SWITCH,
    Fabric,
    Network,
    assert_no_circle,
    circle,
    library,
    plain,
    random_switches,
)


@pytest.fixture(scope="module")
def mapper():
    return library()


def random_fabric(library, random, loss=0, most=4):
    """Up to `most` 4 switches and 16 hosts, connected, with some more cables than a tree; loops and
    parallel ones too.
    """
    sizes, free = random_switches(random, most)
    cables = []
    for n in range(1, len(sizes)):
        to = random.choice([m for m in range(n) if len(free[m]) > 1])
        cables.append((free[n].pop(), free[to].pop()))
    for _ in range(random.randrange(4)):
        ports = [n for n in range(len(sizes)) for _ in free[n]]
        if len(ports) < 6:
            break
        a, b = random.sample(ports, 2)
        cables.append((free[a].pop(), free[b].pop()))
    places = [port for ports in free for port in ports]
    nodes = random.sample(range(C.NODES), min(len(places), random.randrange(2, C.NODES + 1)))
    return Fabric(library, sizes, dict(zip(nodes, random.sample(places, len(nodes)))), cables, loss)


def check(fabric, telling=0):
    """All hosts have the same complete map, every route arrives, and no circle of cables waits for
    itself.

    telling : a bit for each switch that answers scouts
    """
    maps, waits, routed = {}, {}, 0
    fabric.library.fabric_tell(telling)
    silent = telling != (1 << len(fabric.sizes)) - 1
    for node in fabric.hosts:
        nodes, switches = fabric.reachable(node)
        network = fabric.map(node)
        assert network.hosts == sum(1 << n for n in nodes) and network.conflicts == 0
        # From a switch at the end of a chain of four, a fifth cannot be found without its answer.
        assert not network.truncated or (silent and fabric.farthest(node) >= 3)
        assert sum(sw.tells for sw in network.sw[: network.switches]) == sum(
            telling >> n & 1 for n in switches
        )
        assert network.switches == len(switches)
        maps.setdefault(min(nodes), plain(network))
        assert plain(network) == maps[min(nodes)]
        for target in set(fabric.hosts):
            routes = fabric.routes(network, target)
            assert len(set(routes)) == len(routes) and (not routes) == (
                target == node or target not in nodes
            )
            lengths = [route & 15 for route in routes]
            assert lengths[:1] == sorted(lengths)[:1]
            for route in routes:
                end, left = fabric.walk(node, route)
                assert end == fabric.hosts[target], (node, target, hex(route))
                routed += 1
                for held, wanted in zip(left, left[1:]):
                    waits.setdefault(held, set()).add(wanted)
    assert_no_circle(waits)
    for node in fabric.hosts:
        assert circle(fabric.library, fabric.map(node)) == (0, [])
    return routed


def test_random_networks_are_mapped_and_routed_and_again_when_links_are_removed(mapper, seed):
    random, routed, removed = Random(seed), 0, 0
    for _ in range(60):
        fabric = random_fabric(mapper, random)
        routed += check(fabric)
        for _ in range(random.randrange(3)):
            if fabric.cables:
                fabric.unplug(random.choice(fabric.cables))
                removed += 1
                routed += check(fabric)
    assert routed > 5000 and removed > 30


def test_switches_that_answer_make_the_same_map_with_few_scouts(mapper, seed):
    """None, all or some of the switches answer; where some do, the others are found by probing."""
    random, scouts = Random(seed), {}
    for number in range(40):
        fabric = random_fabric(mapper, random)
        every = (1 << len(fabric.sizes)) - 1
        for name, telling in (("none", 0), ("all", every), ("some", random.getrandbits(4) & every)):
            check(fabric, telling)
            scouts.setdefault(name, []).append(sum(fabric.map(n).scouts for n in fabric.hosts))
            mapper.fabric_tell(telling)
        mapper.fabric_tell(every)
        for node in fabric.hosts:
            network = fabric.map(node)
            ports = sum(fabric.sizes[n] for n in fabric.reachable(node)[1])
            # Two for each port behind a switch's first one, three more for each end of a cable.
            assert network.scouts <= 2 * ports + 3 * (1 + 2 * len(fabric.cables)) + 1
    assert sum(scouts["all"]) < 0.8 * sum(scouts["none"])


def test_a_chain_of_seven_switches_that_answer_is_mapped_and_routed(mapper):
    cables = [(4 * n + 1, 4 * (n + 1)) for n in range(6)]
    fabric = Fabric(mapper, [4] * 7, {0: 2, 1: 4 * 6 + 2}, cables)
    mapper.fabric_tell(0)
    assert fabric.map(0).truncated
    mapper.fabric_tell(0x7F)
    for node in (0, 1):
        network = fabric.map(node)
        assert (network.switches, network.truncated, network.hosts) == (7, 0, 0b11)
        [route] = fabric.routes(network, 1 - node)
        assert fabric.walk(node, route)[0] == fabric.hosts[1 - node]
        assert [sw.first for sw in network.sw[:7]] == [2, 0, 0, 0, 0, 0, 0]


def test_a_ring_of_eight_switches_has_all_routes_and_one_of_nine_lacks_a_pair(mapper):
    """Up/down routes go round the ring on the side of the root, and pass seven switches at most."""
    for switches, lacking in ((8, []), (9, [(3, 5), (5, 3)])):
        fabric = ring(mapper, switches)
        mapper.fabric_tell((1 << switches) - 1)
        found = []
        for node in fabric.hosts:
            network = fabric.map(node)
            assert (network.hosts, network.truncated) == ((1 << switches) - 1, 0)
            found += [
                (node, m) for m in fabric.hosts if m != node and not fabric.routes(network, m)
            ]
        assert found == lacking


def test_a_map_ends_where_routes_end(mapper):
    """In a ring of 16 switches, a card sees those that seven hops reach, and says that there may be
    more.
    """
    fabric = ring(mapper, 16)
    mapper.fabric_tell(0xFFFF)
    for node in (0, 7):
        network = fabric.map(node)
        assert network.switches == 15 and network.truncated
        assert network.hosts.bit_count() == 13


def test_a_switch_whose_answers_are_lost_is_asked_again(mapper):
    fabric = Fabric(mapper, [8, 8], {0: 0, 1: 15, 4: 10}, [(3, 9), (5, 12)], loss=5)
    mapper.fabric_tell(0b11)
    network = fabric.map(0, attempts=4)
    assert network.hosts == 0b10011 and network.switches == 2
    assert all(sw.tells for sw in network.sw[:2])


def test_a_check_that_finds_no_circle_would_find_one():
    with pytest.raises(AssertionError, match="wait for each other"):
        assert_no_circle({1: {2}, 2: {3}, 3: {1}})


def test_a_square_of_switches_has_a_route_that_is_not_taken(mapper):
    """Four switches in a circle: shortest paths alone would wait for each other."""
    sizes = [4] * 4
    cables = [(4 * n + 1, 4 * ((n + 1) % 4)) for n in range(4)]
    fabric = Fabric(mapper, sizes, {n: 4 * n + 2 for n in range(4)}, cables)
    assert check(fabric) >= 12


def ring(library, switches=4):
    """Switches in a circle: port 1 leads to port 0 of the next one, and a host is at port 2."""
    cables = [(4 * n + 1, 4 * ((n + 1) % switches)) for n in range(switches)]
    return Fabric(library, [4] * switches, {n: 4 * n + 2 for n in range(switches)}, cables)


def test_routes_round_a_ring_are_found_to_wait_for_one_another(mapper):
    """Each host sends to the one after the next, all in one direction."""
    network = ring(mapper).map(0)
    # Turns are relative, so the map may number ports by a rule of its own.
    onwards = [(n, (n + 2) % 4, 3 | 3 << 4 | 1 << 8 | 2 << 12) for n in range(4)]
    found, outputs = circle(mapper, network, onwards)
    assert found == 4 and len({number for number, _ in outputs}) == 4
    for number, port in outputs:
        assert network.sw[number].peer[port].kind == SWITCH
    # Without one of the four there is no circle.
    assert circle(mapper, network, onwards[1:]) == (0, [])
    assert circle(mapper, network) == (0, [])


def test_a_way_that_leads_elsewhere_is_refused(mapper):
    network = ring(mapper).map(0)
    for wrong in ((0, 2, 1 | 3 << 4), (0, 3, 3 | 3 << 4 | 1 << 8 | 2 << 12), (9, 0, 0)):
        assert circle(mapper, network, [wrong])[0] == -1


def test_flows_are_spread_over_parallel_links(mapper):
    """Four hosts at each of two switches that two cables join: each cable has half of the flows."""
    hosts = {n: n for n in range(4)} | {n: 8 + n - 4 for n in range(4, 8)}
    fabric = Fabric(mapper, [8, 8], hosts, [(4, 12), (5, 13)])
    used = {}
    for source in range(8):
        network = fabric.map(source)
        for target in range(8):
            for route in fabric.routes(network, target)[:1]:
                for port in fabric.walk(source, route)[1]:
                    if port in (4, 5, 12, 13):
                        used[port] = used.get(port, 0) + 1
    assert used == dict.fromkeys((4, 5, 12, 13), 8)


def test_alternatives_share_as_few_links_as_can_be(mapper):
    """Two switches with two cables: the second route takes the other one."""
    fabric = Fabric(mapper, [8, 8], {0: 0, 1: 15}, [(3, 9), (5, 12)])
    network = fabric.map(0)
    routes = fabric.routes(network, 1)
    assert len(routes) == 2
    assert {fabric.walk(0, route)[1][1] for route in routes} == {3, 5}


def test_lost_scouts_are_asked_again(mapper, seed):
    fabric = Fabric(mapper, [8, 8], {0: 0, 1: 15, 4: 10}, [(3, 9), (5, 12)], loss=5)
    network = fabric.map(0, attempts=4)
    assert network.hosts == 0b10011 and network.switches == 2


def test_a_direct_cable_and_none(mapper):
    mapper.fabric_clear(0)
    for node, port in ((2, 0), (5, 1)):
        mapper.fabric_host(node, port)
    network = Network()
    assert mapper.fabric_map(2, 1, ctypes.byref(network)) == 0
    assert (network.uplink[0].kind, network.hosts, network.switches) == (NONE, 1 << 2, 0)
    mapper.fabric_plug(0, 1)
    assert mapper.fabric_map(2, 1, ctypes.byref(network)) == 0
    assert (network.uplink[0].kind, network.uplink[0].number, network.hosts) == (
        HOST,
        5,
        1 << 2 | 1 << 5,
    )
    routes = (ctypes.c_uint32 * C.ROUTES)()
    assert mapper.dib_network_routes(ctypes.byref(network), 5, routes) == 1 and routes[0] == 0


@pytest.mark.parametrize("address", range(5))
def test_a_ring_is_mapped_by_one_scout_to_each_address_and_routes_lead_round(mapper, address):
    """Nodes 3, 9, 0 and 4, and one that does not answer. A way that is not one round the ring is an
    error.
    """
    order = [3, 9, 0, -1, 4]
    if order[address] < 0:
        return
    network, own = Network(), order[address]
    at = (ctypes.c_int * 5)(*order)
    assert mapper.fabric_ring(own, address, 5, at, ctypes.byref(network)) == 0
    assert network.hosts == 1 << 3 | 1 << 9 | 1 << 0 | 1 << 4
    assert (network.switches, network.sw[0].ports) == (1, 5)
    # 3 to others, and 8 times to the one that does not answer.
    assert network.scouts == 3 + 8
    # Ports are counted from the lowest node, at address 2.
    assert network.uplink[0].port == (address - 2) % 5
    routes = (ctypes.c_uint32 * C.ROUTES)()
    for target, node in enumerate(order):
        if node in (-1, own):
            continue
        assert mapper.dib_network_routes(ctypes.byref(network), node, routes) == 1
        assert routes[0] == 1 | (target - address) % 5 << 4
    assert mapper.dib_network_circle(ctypes.byref(network), None, 0, None) == 0


def test_a_ring_is_mapped_by_a_node_with_a_number_above_31(mapper):
    network, at = Network(), (ctypes.c_int * 3)(3, 63, 0)
    assert mapper.fabric_ring(63, 1, 3, at, ctypes.byref(network)) == 0
    assert network.hosts == 1 << 63 | 1 << 3 | 1 << 0


def test_a_number_that_two_hosts_have_is_in_conflict_and_not_routed(mapper):
    fabric = Fabric(mapper, [8], {0: 0, 3: 4}, [])
    mapper.fabric_switch(0, 0, 8)
    twin = 60
    mapper.fabric_host(9, twin)
    fabric.plug(twin, 6)
    # Another host with the number 3.
    mapper.fabric_host(3, twin)
    network = fabric.map(0)
    assert network.conflicts == 1 << 3 and fabric.routes(network, 3) == []


def test_a_chain_that_is_too_long_is_told(mapper):
    cables = [(4 * n + 1, 4 * (n + 1)) for n in range(5)]
    fabric = Fabric(mapper, [4] * 6, {0: 2, 1: 4 * 5 + 2}, cables)
    network = fabric.map(0)
    assert network.truncated and not network.hosts & 2


@pytest.mark.parametrize("after", range(12))
def test_an_error_ends_the_mapping(mapper, after):
    network = Network()
    assert mapper.fabric_fail(after, ctypes.byref(network)) == -6
