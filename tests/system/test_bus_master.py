"""Two cards. One loses Bus Master Enable in the middle of transfers: for a short time, for a long
time, or with its process.
"""

# SPDX-License-Identifier: BSD-2-Clause

import collections
import json
import os
import signal
import socket
import struct

import libdibber
import pytest
from dibber.interface.description import MCP_STATE, RIGHT, STATUS
from dibber_cli import paths

from tests.system.pair import Pair, Side

ALL = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
LENGTH = 1 << 16
STEP = 20_000  # ns
GIVE_UP_MS = 43  # a transfer has ended by then
MEMORY, MASTER = 2, 4  # PCI Local Bus 3.0, 6.2.2: bits of the command register

# What the sides do --------------------------------------------------------------------------------


def allow(side, on):
    """Write the command register in the library's stead, on its socket: a configuration write that
    wants no answer.
    """
    command = struct.pack("<QIIH", 4, 7, 2, MEMORY | (MASTER if on else 0))
    path = side.uri.removeprefix("sim:")
    for name in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(name))) as copy:
                if copy.family == socket.AF_UNIX and copy.getpeername() == path:
                    copy.sendall(struct.pack("<HHIII", 0, 10, 16 + len(command), 0x10, 0) + command)
                    return
        except OSError:
            continue
    raise AssertionError(f"no socket to {path}")


def begin(side):
    return side.register("memory", LENGTH, rights=ALL)


def pass_time(side, ns, seen):
    """Let so much time go on; count the statuses of what completes in `seen`. False when the
    endpoint is not usable any more.
    """
    endpoint = side.endpoint
    end = endpoint.clock().now_ps + 1000 * ns
    try:
        while (left := end - endpoint.clock().now_ps) > 0:
            for done in endpoint.poll():
                seen[STATUS.name_of(done.status)] += 1
            endpoint.wait(min(STEP, left // 1000 + 1))
    except libdibber.DibberError as error:
        seen[f"{error.name} by the call"] += 1
        return False
    return True


def transfers(side, node, key, count, gap=None, kinds=("put", "put_inline", "get")):
    """Transfers, and in the middle of them no bus mastering for `gap` ns. Their statuses, counted,
    and the ms that they took.
    """
    own, endpoint = side.regions["memory"].key, side.endpoint
    start, seen = endpoint.clock().now_ps, collections.Counter()
    for n in range(count):
        kind = kinds[n % len(kinds)]
        if kind == "put":
            endpoint.put(own, 0, key, 8192 * (n % 2), 8000, node=node)
        elif kind == "get":
            endpoint.get(key, 0, own, 32768, 8000, node=node)
        else:
            endpoint.put_inline(b"inline", key, 16384, node=node)
    usable = True
    if gap is not None:
        usable = pass_time(side, 4_000, seen)
        allow(side, False)
        usable = usable and pass_time(side, gap, seen)
        allow(side, True)
    while usable and sum(seen.values()) < count and endpoint.clock().now_ps - start < 200 * 10**9:
        usable = pass_time(side, STEP, seen)
    return dict(seen), (endpoint.clock().now_ps - start) / 10**9


def stand(side, gap, rest):
    """No transfers of its own, and for `gap` ns no bus mastering."""
    seen = collections.Counter()
    pass_time(side, 8_000, seen)
    allow(side, False)
    pass_time(side, gap, seen)
    allow(side, True)
    pass_time(side, rest, seen)


def stay(side, ns):
    pass_time(side, ns, collections.Counter())


def state(side):
    return side.card.info()["mcp_state"]


def load_again(side):
    """As a program does whose control program was halted."""
    side.unregister("memory")
    side.endpoint.close()
    side.card.load_firmware(paths.FIRMWARE)
    side.endpoint = side.card.endpoint(1)
    return begin(side)


def check(pair, keys, seed):
    """Transfers in both directions end with OK, and every byte is there."""
    for source, target in ((0, 1), (1, 0)):
        run = [pair.first, pair.second]
        run[source](Side.fill, "memory", seed + source)
        run[target](Side.fill, "memory", None, 0)
        seen, _ = run[source](transfers, target, keys[target], 4, None, ("put",))
        assert seen == {"OK": 4}
        sent, found = run[source](Side.read, "memory"), run[target](Side.read, "memory")
        assert found[:8000] == found[8192:16192] == sent[:8000]


@pytest.fixture
def pair():
    """Two sides; at the end no request has begun while the bit was clear."""
    with Pair() as pair:
        yield pair
        pair.simulator.stop()
        statistics = json.loads(pair.simulator.stats.read_text())
    for card in statistics["cards"]:
        assert "not_bus_master" not in card["faults"], card["faults"]
        assert card["stream_errors"] == 0


# Tests --------------------------------------------------------------------------------------------


@pytest.mark.fault
@pytest.mark.parametrize("role", ["source", "target"])
def test_what_was_under_way_goes_on_when_the_bit_returns(pair, role, seed):
    keys = [pair.first(begin), pair.second(begin)]
    gap = 300_000
    if role == "source":
        (seen, _), _ = pair.together((transfers, 1, keys[1], 24, gap), (stay, 2 * gap))
    else:
        (seen, _), _ = pair.together((transfers, 1, keys[1], 24), (stand, gap, gap))
    assert sum(seen.values()) == 24 and set(seen) <= {
        "OK",
        "READ_TIMEOUT",
        "READ_ERROR",
        "REMOTE_READ_ERROR",
    }, seen
    # Either may be in a handler at this moment; neither has stopped.
    stopped = {MCP_STATE.RESET, MCP_STATE.TRAP, MCP_STATE.WATCHDOG, MCP_STATE.BUS_MASTER}
    assert not {pair.first(state), pair.second(state)} & stopped
    check(pair, keys, seed)


@pytest.mark.fault
def test_all_that_is_under_way_ends_by_name_when_the_bit_stays_away(pair, seed):
    keys = [pair.first(begin), pair.second(begin)]
    gap = 50_000_000
    (peer, _), (own, took) = pair.together(
        (transfers, 1, keys[1], 6, None, ("put", "put_inline")),
        (transfers, 0, keys[0], 6, gap, ("put_inline", "put")),
    )
    # What had completed before is there; the rest is halted, and so is the endpoint.
    assert (
        sum(own.values()) == 7
        and set(own) <= {"OK", "HALTED", "HALTED by the call"}
        and own["HALTED"] > 0
    ), own
    assert took < GIVE_UP_MS
    assert (
        sum(peer.values()) == 6
        and set(peer) <= {"OK", "TIMEOUT", "REMOTE_BAD_KEY"}
        and set(peer) != {"OK"}
    ), peer
    assert pair.second(state) == MCP_STATE.BUS_MASTER
    keys[1] = pair.second(load_again)
    check(pair, keys, seed)


@pytest.mark.fault
def test_no_request_begins_after_a_process_was_killed_in_a_transfer(pair):
    keys = [pair.first(begin), pair.second(begin)]
    for node, target in ((0, 1), (1, 0)):
        pair.pipes[node].send((transfers, target, keys[target], 30))
    with libdibber.Card(pair.simulator.uris[0], observe=True) as card:
        counters = lambda: card.info()["counters"]
        while counters()["packets_sent"] < 3:
            pass
        os.kill(pair.processes[1].pid, signal.SIGKILL)
        pair.processes[1].join()
        with libdibber.Card(pair.simulator.uris[1], observe=True) as other:
            for _ in range(200):
                other.read_register("PCIE_STATUS")
    os.kill(pair.processes[0].pid, signal.SIGKILL)
