"""A peer that restarts: later transfers to it are fast and right, and those under way end with a
named status.
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import signal

import libdibber
import pytest
from dibber.interface.description import RIGHT, STATUS
from dibber_cli import paths

from tests.system.pair import Pair, Side, open_again, stay
from tests.system.pair_boxes import (
    GIVES_UP,
    connect_box,
    hear,
    open_box,
    say,
    send_until_told,
    wait_for_room,
)

pytestmark = pytest.mark.fault

ALL = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
LENGTH = 1 << 16
BYTES = 5000  # of a put or get: two packets
UNUSED = slice(22_000, 32_000)  # bytes of the memory that no transfer names
QUICK = 100_000  # ns in which a transfer to the new life ends
STEP = 20_000  # ns
SOON = 5_000_000  # ns until a request of before is told of

# What the sides do --------------------------------------------------------------------------------


def offer(side, value):
    """Memory of one value; returns its key."""
    side.register("memory", LENGTH, rights=ALL)
    side.fill("memory", value=value)
    return side.regions["memory"].key


def now(side):
    return side.endpoint.clock().now_ps // 1000


def take(side):
    """What has ended since the transfers were left under way."""
    side.ended = getattr(side, "ended", {}) | {
        done.tag: STATUS.name_of(done.status) for done in side.endpoint.poll()
    }


def start(side, kind, key, node, tag=0):
    me, own = side.endpoint, side.regions["memory"].key
    {
        "put": lambda: me.put(own, 0, key, 8192, BYTES, node=node, tag=tag),
        "inline": lambda: me.put_inline(bytes(range(8)), key, 100, node=node, tag=tag),
        "get": lambda: me.get(key, 0, own, 16384, BYTES, node=node, tag=tag),
        "atomic": lambda: me.fetch_add(key, 64, 1, node=node, tag=tag),
        "send": lambda: me.send(own, 0, BYTES, node=node, endpoint=1, tag=tag),
        "receive": lambda: me.receive(own, 32768, BYTES, node=node, endpoint=1, tag=tag),
    }[kind]()


def one(side, kind, key, node):
    """A transfer alone: its status and how long it took."""
    begin = now(side)
    start(side, kind, key, node)
    status = side.completion()
    return STATUS.name_of(status) if status is not None else "none", now(side) - begin


def leave_under_way(side, kinds, key, node):
    for tag, kind in enumerate(kinds):
        start(side, kind, key, node, tag)
    side.endpoint.wait(STEP)


def collect(side, count):
    """The statuses of so many transfers, by tag, and how long they took."""
    begin = now(side)
    while len(side.ended) < count and now(side) < begin + 10 * SOON:
        side.endpoint.wait(STEP)
        take(side)
    return [side.ended.get(tag) for tag in range(count)], now(side) - begin


def load_again(side, over):
    """Another control program on the card that stays open."""
    side.card.load_firmware(paths.FIRMWARE)
    side.endpoint.close()
    side.regions.pop("memory").close()
    side.endpoint = side.card.endpoint(1)
    over.touch()


# How card 1 begins anew ---------------------------------------------------------------------------


def by_step(step):
    def again(pair, over, each):
        with libdibber.Card(pair.simulator.uris[1], observe=True):
            pair.together((stay, over, each), (step, over))

    return again


def by_kill(pair, over, each):
    """Its process is killed, and a new one opens the card and loads the program."""
    with libdibber.Card(pair.simulator.uris[1], observe=True):
        os.kill(pair.processes[1].pid, signal.SIGKILL)
        pair.processes[1].join(60)
        pair.replace(1, over, each)


AGAIN = {
    "killed": by_kill,
    "opened again": by_step(open_again),
    "without power": by_step(open_again),
    "loaded": by_step(load_again),
}
OTHERS = {"send": "receive", "receive": "send"}
KINDS = ("inline", "put", "get", "atomic", "send", "receive")


@pytest.fixture(params=AGAIN)
def restart(request, tmp_path):
    """A pair, and the call that restarts its card 1; the call returns the new key. Meanwhile card 0
    does `each` again and again.
    """
    with Pair(options=["--reset-takes-power"] * (request.param == "without power")) as pair:

        def again(each=take):
            AGAIN[request.param](pair, tmp_path / "over", each)
            return pair.second(offer, 2)

        yield pair, again


def exchange(pair, kind, keys):
    """A transfer of card 0 and what it needs of card 1: (status, nanoseconds) of each."""
    other = (one, OTHERS[kind], keys[0], 0) if kind in OTHERS else (Side.idle,)
    return pair.together((one, kind, keys[1], 1), other)


def test_the_first_transfer_of_each_kind_to_the_new_life_ends_well_within_100_us(restart):
    """From the card that stayed and from the new one, on flows that have been used before."""
    pair, again = restart
    keys = [pair.first(offer, 1), pair.second(offer, 2)]
    for kind in KINDS:
        exchange(pair, kind, keys)
    for kind in KINDS:
        keys[1] = again()
        for found in exchange(pair, kind, keys):
            assert found is None or found[0] == "OK" and found[1] < QUICK, (kind, found)
        # And the way back, on flows of which the new life knows nothing.
        status, took = pair.second(one, kind, keys[0], 0) if kind not in OTHERS else ("OK", 0)
        assert status == "OK" and took < QUICK, (kind, status, took)
    assert pair.second(Side.read, "memory")[64] == 2, "the last life was asked to add nothing"


def test_requests_that_the_former_life_had_taken_end_with_peer_restarted(restart):
    """Nothing else is sent to it: a receive waits, because there is no send. Then the restarted
    card is used normally.
    """
    pair, again = restart
    keys = [pair.first(offer, 1), pair.second(offer, 2)]
    pair.first(one, "inline", keys[1], 1)
    pair.first(leave_under_way, ("receive", "receive"), keys[1], 1)
    keys[1] = again()
    found, took = pair.first(collect, 2)
    assert found == ["PEER_RESTARTED"] * 2 and took < SOON
    for kind in KINDS:
        for ended in exchange(pair, kind, keys):
            assert ended is None or ended[0] == "OK", (kind, ended)


def test_a_mailbox_hears_by_name_that_its_peer_began_anew_and_reaches_the_new_life(restart):
    pair, again = restart
    pair.first(offer, 1)
    pair.second(offer, 2)
    former = pair.first(open_box)
    pair.first(connect_box, pair.second(open_box))
    pair.second(connect_box, former)
    pair.first(say, b"the first life")
    assert pair.second(hear) == (b"the first life", 0)
    again(each=wait_for_room)
    name, took = pair.first(send_until_told, wait_for_room)
    assert name in ("CLOSED", "TIMEOUT", "PEER_RESTARTED") and took < GIVES_UP
    new = pair.second(open_box)
    pair.second(connect_box, pair.first(connect_box, new))
    pair.first(say, b"the second life")
    assert pair.second(hear) == (b"the second life", 0)
    pair.second(say, b"heard")
    assert pair.first(hear) == (b"heard", 0)


# Both sides at once -------------------------------------------------------------------------------


def both_killed(pair, folder):
    for process in pair.processes:
        os.kill(process.pid, signal.SIGKILL)
    for process in pair.processes:
        process.join(60)
    pair.replace_both()


def both_by_step(step):
    def again(pair, folder):
        pair.together((step, folder / "first"), (step, folder / "second"))

    return again


BOTH = {
    "killed": both_killed,
    "opened again": both_by_step(open_again),
    "without power": both_by_step(open_again),
    "loaded": both_by_step(load_again),
}


@pytest.mark.parametrize("how", BOTH)
def test_after_both_sides_began_anew_at_once_the_first_transfer_of_each_kind_ends_well(
    how, tmp_path
):
    """The flows were used before, and transfers were under way when both sides began anew.

    What needs an answer starts two flows anew, one after the other.
    """
    with Pair(options=["--reset-takes-power"] * (how == "without power")) as pair:
        keys = [pair.first(offer, 1), pair.second(offer, 2)]
        for kind in KINDS:
            exchange(pair, kind, keys)
            pair.together(
                (leave_under_way, ("put", "get", "receive"), keys[1], 1),
                (leave_under_way, ("get", "atomic", "receive"), keys[0], 0),
            )
            BOTH[how](pair, tmp_path)
            keys = pair.together((offer, 1), (offer, 2))
            limit = QUICK if kind in ("inline", "put") else 2 * QUICK
            for found in exchange(pair, kind, keys):
                assert found is None or found[0] == "OK" and found[1] < limit, (kind, found)
            status, took = pair.second(one, kind, keys[0], 0) if kind not in OTHERS else ("OK", 0)
            assert status == "OK" and took < QUICK, (kind, status, took)
            # Nothing that was under way was executed in the new lives.
            mine, others = pair.together((Side.read, "memory"), (Side.read, "memory"))
            assert set(mine[UNUSED]) == {1} and set(others[UNUSED]) == {2}
