"""The control program of a build for 64 nodes. test_mcp_nodes.py runs these tests with
DIBBER_NODES=64; their nodes lie in all words of the sets of flows.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import LANE, MCP, OPCODE, SHARED, STATUS, C

from tests.firmware.mcp_native import BULK, inline, put, transfer
from tests.firmware.mcp_wire import WiredCard
from tests.gateware.models.cut import whole

MICROSECOND = 125
NODES = (1, 15, 16, 31, 32, 47, 63)
BARRIER = 0x40


@pytest.fixture
def wired():
    return WiredCard()


@pytest.fixture
def fast(wired):
    wired.allow()
    return wired


def once(*packets):
    """A `lose` that loses each of these (cookie, index) the first time."""
    left = set(packets)

    def lose(packet):
        found = (packet.cookie, packet.index) in left
        left.discard((packet.cookie, packet.index))
        return found

    return lose


def test_this_is_a_build_for_64_nodes():
    assert C.NODES == 64 and BULK == 64 and LANE.BULK == 1
    assert MCP["ACKED"].count == 128 and MCP["GIVEN"].count == 4 and SHARED.size == 8192


@pytest.mark.parametrize("kind", [put, inline])
@pytest.mark.parametrize("allowed", [0, 3])
def test_transfers_to_all_nodes_complete_by_either_path(wired, kind, allowed):
    wired.allow(allowed)
    others = [node for node in range(C.NODES) if node != wired["NODE_ID"]]
    for first in range(0, len(others), 16):
        part = others[first : first + 16]
        wired.ring(1, *[kind(length=8, node=node, cookie=node) for node in part])
        wired.settle(200 * MICROSECOND)  # a turn of the loop serves one flow
    assert wired.statuses == dict.fromkeys(others, 0)
    lane = 0 if kind is inline else BULK
    assert all(wired.peers[lane + n].executed == [(n, 0)] for n in others)
    assert wired.shared("claims") == (0 if allowed else len(others))


def test_a_nak_of_one_flow_replays_no_other_flow(wired):
    wired.lose = once((63, 1))
    wired.ring(1, *[put(length=whole(3), node=node, cookie=node) for node in NODES])
    wired.settle()
    assert wired.statuses == dict.fromkeys(NODES, 0)
    assert {n: wired.epoch[BULK + n] for n in NODES} == {n: 1 + (n == 63) for n in NODES}
    assert wired.peers[BULK + 63].executed == [(63, i) for i in range(3)]


@pytest.mark.fault
@pytest.mark.parametrize("lost", [33, 63])
def test_a_node_that_is_gone_times_out_alone(fast, lost):
    fast.cut = {lost}
    fast.ring(1, *[put(length=whole(2), node=n, cookie=n) for n in (1, 31, lost)])
    fast.settle(45_000 * MICROSECOND)
    assert fast.statuses == {1: 0, 31: 0, lost: STATUS.TIMEOUT}
    fast.cut = set()
    fast.ring(1, put(node=lost, cookie=100))
    fast.settle(1000 * MICROSECOND)
    assert fast.statuses[100] == 0


@pytest.mark.fault
def test_a_cable_that_was_out_brings_back_the_flows_of_all_words(fast):
    fast.cut = set(NODES)
    fast.ring(1, *[put(length=whole(2), node=n, cookie=n) for n in NODES])
    fast.step()
    fast.observe()
    fast.work()
    fast.link(0)
    fast.step()
    fast.cut = set()
    fast.link(1)
    fast.settle()
    assert fast.statuses == dict.fromkeys(NODES, 0)
    assert all(fast.epoch[BULK + n] == 2 for n in NODES)


@pytest.mark.fault
def test_a_job_that_fails_gives_away_its_flow_and_no_other(fast):
    fast.fails = {63: (STATUS.BAD_KEY, 1)}
    fast.ring(1, *[put(length=whole(2), node=n, cookie=n) for n in NODES])
    fast.settle()
    assert fast.statuses == {n: STATUS.BAD_KEY if n == 63 else 0 for n in NODES}
    assert fast.shared("claims") == 1 and not any(fast["GIVEN", n] for n in range(4))


@pytest.mark.fault
def test_a_peer_that_began_anew_is_told_from_its_neighbours(wired):
    wired.ring(1, *[inline(node=n, cookie=n) for n in NODES])
    wired.settle()
    wired.peers[47].begin_anew()
    wired.ring(1, *[inline(node=n, cookie=100 + n) for n in NODES])
    wired.settle(1000 * MICROSECOND)
    # It was sent once, to a target that did not hold the flow: so it goes again.
    assert wired.statuses == dict.fromkeys([*NODES, *(100 + n for n in NODES)], 0)
    assert [n for n in NODES if wired.incarnation[n] == 2] == [47]


def test_a_barrier_takes_nodes_of_both_halves(card):
    members = (5, 31, 32, 63)
    mask = sum(1 << n for n in members)
    command = bytearray(
        transfer(BARRIER, length=0, cookie=7, notice=mask & 0xFFFFFFFF, reserved1=mask >> 32)
    )
    card.ring(1, bytes(command))
    card.step()
    card.collect()
    assert [e.node for e in card.express if e.message] == list(members)
    for slot, node in enumerate(members):
        assert card.entries() == []
        card.message(node, 0x80 | 1 << 8, slot)
        card.step()
    assert [(e.cookie, e.status) for e in card.entries()] == [(7, STATUS.OK)]


def test_a_node_that_cannot_be_is_refused(card):
    card.ring(1, put(node=64, cookie=1), transfer(OPCODE.GET, node=64, cookie=2))
    card.step()
    assert [(e.cookie, e.status) for e in card.entries()] == [
        (1, STATUS.BAD_NODE),
        (2, STATUS.BAD_NODE),
    ]
