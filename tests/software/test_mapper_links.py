"""The mapper in networks of hosts with two links: a host that is met twice is one host, and routes
leave by both links.
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


def link_of(route):
    return 1 if route & C.ROUTE_LINK else 0


def ends_of(fabric, node):
    """The ports of a host's cables, by link."""
    return [ends[node] for ends in (fabric.hosts, fabric.second) if node in ends]


def link_at(fabric, node, port):
    """The link of a host that this port is."""
    return ends_of(fabric, node).index(port)


def groups(fabric):
    """The switches that cables join, as {switch: set of switches}."""
    group = {n: {n} for n in range(len(fabric.sizes))}
    for one, other in fabric.cables:
        joined = group[fabric.switch_of(one)] | group[fabric.switch_of(other)]
        for n in joined:
            group[n] = joined
    return group


def places(fabric, node):
    """The switch ports of a host, None where a link has no cable."""
    at = fabric.at[node]
    return [at] if isinstance(at, int) else list(at)


def reachable(fabric, node):
    """(switches by each link, {node: links by which each one is met}) from a host."""
    group = groups(fabric)
    by = [set() if p is None else group[fabric.switch_of(p)] for p in places(fabric, node)]
    seen = set().union(*by)
    met = {
        other: {
            n
            for n, p in enumerate(places(fabric, other))
            if p is not None and fabric.switch_of(p) in seen
        }
        for other in fabric.hosts
    }
    return by, {other: links for other, links in met.items() if links}


def random_fabric(library, random):
    """One to four switches, not always joined, and hosts of which most have two links."""
    sizes, free = random_switches(random)
    cables = []
    for _ in range(random.randrange(6)):
        ports = [n for n in range(len(sizes)) for _ in free[n]]
        if len(ports) < 8:
            break
        a, b = random.sample(ports, 2)
        cables.append((free[a].pop(), free[b].pop()))
    rest = [port for ports in free for port in ports]
    random.shuffle(rest)
    hosts = {}
    for node in random.sample(range(C.NODES), C.NODES):
        kind = random.choice(["one", "two", "two", "two", "first", "second"])
        if len(rest) < 2 or len(hosts) == 8:
            break
        if kind == "one":
            hosts[node] = rest.pop()
        else:
            pair = (rest.pop(), rest.pop())
            hosts[node] = {"two": pair, "first": (pair[0], None), "second": (None, pair[1])}[kind]
    return Fabric(library, sizes, hosts, cables)


def check(fabric, telling):
    """Each host has a complete map, and all with the same switches have the same one. Each route
    arrives, a target in reach of both links has routes by both, and no circle of ports waits for
    itself. Returns the number of routes.
    """
    fabric.library.fabric_tell(telling)
    maps, waits, routed = {}, {}, 0
    for node in fabric.hosts:
        by, met = reachable(fabric, node)
        seen = set().union(*by)
        network = fabric.map(node)
        assert (network.conflicts, network.switches) == (0, len(seen))
        assert network.hosts == sum(1 << n for n in {*met, node})
        assert network.links == len(places(fabric, node))
        assert plain(network) == maps.setdefault(frozenset(seen), plain(network))
        for link, place in enumerate(places(fabric, node)):
            uplink = network.uplink[link]
            assert uplink.kind == (NONE if place is None else SWITCH)
            if place is not None:
                peer = network.sw[uplink.number].peer[uplink.port]
                assert (peer.kind, peer.number, peer.port) == (HOST, node, link)
        for target in fabric.hosts:
            routes = fabric.routes(network, target)
            wanted = set()
            for link, switches in enumerate(by):
                if target != node and any(
                    p is not None and fabric.switch_of(p) in switches
                    for p in places(fabric, target)
                ):
                    wanted.add(link)
            assert {link_of(route) for route in routes} == wanted
            assert len(set(routes)) == len(routes)
            if len(wanted) == 2:
                assert link_of(routes[0]) != link_of(routes[1])
            for route in routes:
                end, left = fabric.walk(node, route)
                assert end in ends_of(fabric, target)
                routed += 1
                for held, then in zip(left, left[1:]):
                    waits.setdefault(held, set()).add(then)
    assert_no_circle(waits)
    for node in fabric.hosts:
        assert circle(fabric.library, fabric.map(node)) == (0, [])
    return routed


def test_random_networks_are_mapped_and_routed_by_both_links(mapper, seed):
    """All switches answer scouts, none, or some."""
    random, routed = Random(seed), 0
    for _ in range(40):
        fabric = random_fabric(mapper, random)
        every = (1 << len(fabric.sizes)) - 1
        for telling in (every, 0, random.getrandbits(4) & every):
            routed += check(fabric, telling)
    assert routed > 3000


def star(library, cards=4, ports=8):
    """As the topology two-link-star: card n has its link 0 at port n, link 1 at port cards + n."""
    return Fabric(library, [ports], {n: (n, cards + n) for n in range(cards)}, [])


def loads(fabric, flows):
    """Flows by the first routes through each port of a card: {(node, link, direction): number}."""
    used = {}
    for source, target in flows:
        route = fabric.routes(fabric.map(source), target)[0]
        end, _ = fabric.walk(source, route)
        for key in (
            (source, link_of(route), "out"),
            (target, link_at(fabric, target, end), "in"),
        ):
            used[key] = used.get(key, 0) + 1
    return used


@pytest.mark.parametrize("cards", [3, 4, 8])
def test_all_to_all_loads_both_links_of_each_card_alike(mapper, cards):
    fabric = star(mapper, cards, 16)
    mapper.fabric_tell(1)
    flows = [(a, b) for a in range(cards) for b in range(cards) if a != b]
    used = loads(fabric, flows)
    assert len(used) == 4 * cards  # two links, two directions
    assert max(used.values()) - min(used.values()) <= 1


@pytest.mark.parametrize("cards", [4, 5])
def test_each_rail_of_two_is_a_network_of_its_own(mapper, cards):
    """Links 0 are at one switch, links 1 at another, and no cable joins them."""
    hosts = {n: (n, 8 + n) for n in range(cards)}
    fabric = Fabric(mapper, [8, 8], hosts, [])
    for telling in (0b11, 0):
        assert check(fabric, telling) == cards * (cards - 1) * 2
    used = loads(fabric, [(a, b) for a in range(cards) for b in range(cards) if a != b])
    assert len(used) == 4 * cards and max(used.values()) == 2
    network = fabric.map(2)
    assert [sw.level for sw in network.sw[:2]] == [0, 0]


def test_a_host_that_is_met_twice_is_one_host(mapper):
    fabric = star(mapper)
    mapper.fabric_tell(1)
    network = fabric.map(0)
    assert (network.hosts, network.conflicts, network.links) == (0b1111, 0, 2)
    assert len(fabric.routes(network, 1)) == 4


@pytest.mark.parametrize(
    "first, second, twin",
    [
        ((1, None), (2, None), 1),  # both are met by link 0
        ((1, None), (None, 2), 2),  # one by link 0, the other by link 1
        ((1, 2), (3, None), 3),  # the third place
        ((1, 2), (None, 3), 3),
        (1, (None, 2), 2),  # a card with one link, and one with two
        (1, (2, 3), 2),
    ],
)
def test_two_cards_with_one_number_are_in_conflict(mapper, first, second, twin):
    fabric = Fabric(mapper, [8], {0: 0, 3: first}, [])
    mapper.fabric_tell(1)
    start = 60
    mapper.fabric_host_of_two(3, start, start + 1, 99)
    for end, at in zip((start, start + 1), second):
        if at is not None:
            fabric.plug(end, at)
    network = fabric.map(0)
    assert network.conflicts == 1 << 3 and fabric.routes(network, 3) == []


def test_cables_without_a_switch(mapper):
    """Three cards in a row, then two cards with both cables between them, then a card whose links
    are joined, and one with no cable.
    """
    hosts = {n: (10 * n, 10 * n + 1) for n in range(4)}

    def fresh(*cables):
        mapper.fabric_clear(0)
        for node, ends in hosts.items():
            mapper.fabric_host_of_two(node, *ends, node)
        for one, other in cables:
            mapper.fabric_plug(one, other)

    def found(node):
        network, routes = Network(), (ctypes.c_uint32 * C.ROUTES)()
        assert mapper.fabric_map(node, 1, ctypes.byref(network)) == 0
        count = lambda n: mapper.dib_network_routes(ctypes.byref(network), n, routes)
        ways = {n: list(routes[: count(n)]) for n in range(4)}
        uplinks = [(end.kind, end.number, end.port) for end in network.uplink]
        assert circle(mapper, network) == (0, [])
        return network.hosts, network.conflicts, uplinks, {n: w for n, w in ways.items() if w}

    link_1 = C.ROUTE_LINK
    fresh((1, 10), (11, 20))
    assert found(1) == (0b111, 0, [(HOST, 0, 1), (HOST, 2, 0)], {0: [0], 2: [link_1]})
    fresh((0, 10), (1, 11))
    assert found(0) == (0b11, 0, [(HOST, 1, 0), (HOST, 1, 1)], {1: [0, link_1]})
    fresh((0, 1))
    assert found(0) == (1, 0, [(HOST, 0, 1), (HOST, 0, 0)], {})
    fresh()
    assert found(0) == (1, 0, [(NONE, 0, 0)] * 2, {})


def test_ways_by_the_second_link_are_checked_for_circles(mapper):
    """Four switches in a circle, and hosts whose links 1 alone have cables."""
    hosts = {n: (None, 4 * n + 2) for n in range(4)}
    cables = [(4 * n + 1, 4 * ((n + 1) % 4)) for n in range(4)]
    network = Fabric(mapper, [4] * 4, hosts, cables).map(0)
    onwards = [(n, (n + 2) % 4, 3 | C.ROUTE_LINK | 3 << 4 | 1 << 8 | 2 << 12) for n in range(4)]
    assert circle(mapper, network, onwards)[0] == 4
    assert circle(mapper, network, onwards[1:]) == (0, [])
    assert circle(mapper, network, [(0, 2, onwards[0][2] & ~C.ROUTE_LINK)])[0] == -1


def test_lost_scouts_of_a_card_with_two_links_are_asked_again(mapper):
    hosts = {0: (0, 8), 1: (15, 7), 4: 10}
    fabric = Fabric(mapper, [8, 8], hosts, [(3, 9), (5, 12)], loss=5)
    for telling in (0b11, 0):
        mapper.fabric_tell(telling)
        network = fabric.map(0, attempts=4)
        assert network.hosts == 0b10011 and network.switches == 2
        assert [end.kind for end in network.uplink] == [SWITCH, SWITCH]
