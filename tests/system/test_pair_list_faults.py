"""Index lists that may not be, that are taken out, and that are walked again: each ends by its
name, and no byte is wrong.
"""

# SPDX-License-Identifier: BSD-2-Clause

import numpy as np
import pytest
from dibber.interface.description import RIGHT
from libdibber import List, Walk

from tests.system.pair import Side
from tests.system.pair_lists import (
    ALL_OK,
    LISTS,
    SHAPES,
    SIZE,
    Half,
    Memories,
    asked,
    ended,
    move,
    opened,
    transfer,
    write_list,
)


@pytest.fixture(scope="module")
def pair():
    with opened() as pair:
        yield pair


# What goes wrong ----------------------------------------------------------------------------------

ENTRIES = [64 * n for n in range(200)]  # of 8 bytes each: 1600 bytes

# What is wrong with a side, its status on that side, and how many bytes before it may have moved.
WRONG = {
    "no such list": (dict(keys={"list": "unknown"}), "BAD_LIST", 0),
    "another's list": (dict(keys={"list": "foreign"}), "BAD_LIST", 0),
    "an unread list": (dict(keys={"list": "blind"}), "BAD_LIST", 0),
    "an odd list": (dict(keys={"list": "odd"}), "BAD_LIST", 0),
    "behind its region": (dict(at=LISTS), "BAD_LIST", 0),
    "far behind it": (dict(at=1 << 50), "BAD_LIST", 0),
    "it ends early": (dict(at=LISTS - 8 * 150), "BAD_LIST", 150 * 8),
    "an entry too far": (dict(entries=ENTRIES[:120] + [SIZE] + ENTRIES[121:]), "BOUNDS", 120 * 8),
    "one byte too far": (
        dict(entries=ENTRIES[:120] + [SIZE - 100 - 7] + ENTRIES[121:]),
        "BOUNDS",
        120 * 8 + 7,
    ),
    "before it": (dict(entries=[-101] + ENTRIES[1:]), "BOUNDS", 0),
    "an entry of 2⁶³": (dict(entries=ENTRIES[:9] + [-1 << 63] + ENTRIES[10:]), "BOUNDS", 9 * 8),
    "the last one": (dict(entries=ENTRIES[:199] + [1 << 62]), "BOUNDS", 199 * 8),
    "another's walk": (dict(keys={"memory": "other"}), None, 0),
}

# Of a walk whose region and whose list's region have two owners. Who writes to or reads from
# another node's memory need not own it, but its list must be the same endpoint's.
OTHERS = {
    ("put", "source"): "NOT_OWNER",
    ("put", "target"): "REMOTE_BAD_LIST",
    ("get", "source"): "REMOTE_BAD_LIST",
    ("get", "target"): "NOT_OWNER",
    ("message", "source"): ["NOT_OWNER", "REMOTE_NOT_PERMITTED"],
    ("message", "target"): ["REMOTE_NOT_PERMITTED", "NOT_OWNER"],
}


def seen(operation, side, status):
    """The status at card 0; for a message, the statuses at both cards."""
    if status is None:
        return OTHERS[operation, side]
    here, there = status, f"REMOTE_{status}"
    if operation == "message":
        return [here, there] if side == "source" else [there, here]
    return here if (operation, side) in (("put", "source"), ("get", "target")) else there


def write_entries(side, entries, at):
    """As many as `lists` has room for."""
    size = max(0, min(LISTS - at, 8 * len(entries)))
    side.regions["lists"].memory[at : at + size] = np.array(entries, dtype=np.int64).view(np.uint8)[
        :size
    ]


@pytest.mark.parametrize(
    "operation, side",
    [
        ("put", "source"),
        ("put", "target"),
        ("get", "source"),
        ("get", "target"),
        ("message", "source"),
        ("message", "target"),
    ],
)
@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_a_list_has_its_status_and_the_next_transfer_is_whole(
    pair, what, operation, side
):
    change, status, moved = WRONG[what]
    bad = Half(**{**dict(block=8, offset=100, entries=ENTRIES), **change})
    other = Half(1600, 5)
    source, target = (bad, other) if side == "source" else (other, bad)
    nodes = (1, 0) if operation == "get" else (0, 1)
    node = nodes[side == "target"]
    pair.together(
        *[
            (write_entries, bad.entries, min(bad.at, LISTS)) if n == node else (Side.idle,)
            for n in range(2)
        ]
    )
    memories = Memories(pair)
    assert move(pair, operation, source, target, 1600) == seen(operation, side, status)
    # What is before the mistake may have been written; when the target's list is wrong, packets
    # behind that one too, each of which is judged by itself: but nothing outside of the walk.
    after = memories.read()
    changed = np.flatnonzero(after[nodes[1]] != memories.before[nodes[1]])
    allowed = target.places(moved if side == "source" else 1600)
    assert np.isin(changed, allowed).all() and np.array_equal(
        after[nodes[0]], memories.before[nodes[0]]
    )
    good = Half(8, 100, (), ENTRIES, 8)
    memories = Memories(pair, seed=2)
    assert transfer(pair, operation, good, good, 1600) == ALL_OK[operation]
    memories.check(nodes[0], good.places(1600), good.places(1600))


def unregister_meanwhile(side, name, after_us):
    """Once something has come into `memory`, and some time later."""
    memory = side.regions["memory"].memory
    while not memory.any():
        assert not side.endpoint.wait(5000)
    assert not side.endpoint.wait(1000 * after_us + 1)
    side.unregister(name)
    memory[:] = 0


def puts(side, source, target, length, times):
    for tag in range(times):
        side.endpoint.put_indexed(source, target, length, node=1, tag=tag)
    return [status for status, _ in ended(side.endpoint, times)]


@pytest.mark.parametrize("after_us", [0, 60, 150])
def test_a_list_that_is_taken_out_while_puts_use_it(pair, after_us):
    """What has not begun when the call returns is refused by name, and writes nothing."""
    pair.first(Side.fill, "memory", 1)
    pair.second(Side.fill, "memory", None, 0)
    key = pair.second(Side.register, "leaving", 8 * 8000, True, RIGHT.LOCAL_READ)
    pair.second(count_up, "leaving", 8)
    target = Walk(pair.keys[1]["memory"], 8, 0, (), List(key, 8000))
    source = Half(64_000, 1).walk(pair.keys[0])
    statuses, _ = pair.together(
        (puts, source, target, 64_000, 4), (unregister_meanwhile, "leaving", after_us)
    )
    assert "REMOTE_BAD_LIST" in statuses and set(statuses) <= {"OK", "REMOTE_BAD_LIST"}
    assert statuses == sorted(statuses) and not any(pair.second(Side.read, "memory"))
    good = Half(8, 100, (), ENTRIES, 8)
    memories = Memories(pair, seed=3)
    assert transfer(pair, "put", good, good, 1600) == "OK"
    memories.check(0, good.places(1600), good.places(1600))


def count_up(side, name, pitch):
    memory = side.regions[name].memory.view(np.int64)
    memory[:] = pitch * np.arange(len(memory))


def take_out_of_own(side, source, target, length):
    """A source's list goes while the put is under way: how it ends, and the next one."""
    side.endpoint.put_indexed(source, target, length, node=1)
    assert not side.endpoint.wait(60_000)
    side.unregister("leaving")
    return ended(side.endpoint)[0][0]


def test_a_source_list_that_is_taken_out_while_a_put_uses_it(pair):
    key = pair.first(Side.register, "leaving", 8 * 8000, True, RIGHT.LOCAL_READ)
    pair.first(count_up, "leaving", 8)
    memories = Memories(pair, seed=4)
    source = Walk(pair.keys[0]["memory"], 8, 0, (), List(key, 8000))
    # The job found its list when it began, and goes on: the removal waits for it.
    assert pair.first(take_out_of_own, source, Half(64_000, 1).walk(pair.keys[1]), 64_000) == "OK"
    memories.check(0, np.arange(64_000), 1 + np.arange(64_000))
    assert (
        pair.first(asked, "put_indexed", source, Half(64_000, 1).walk(pair.keys[1]), 64_000)
        == "BAD_LIST"
    )


# Replay -------------------------------------------------------------------------------------------

UNPLUGGED = (1500, 1900)  # microseconds of simulated time


def sleep_until(side, microseconds):
    left = microseconds * 1000 - side.endpoint.clock().now_ps // 1000
    assert left > 0 and not side.endpoint.wait(left)


@pytest.mark.parametrize("name", ["packets", "into packets"])
@pytest.mark.parametrize("before", [150, 40])
def test_a_replay_begins_in_the_middle_of_the_lists(name, before):
    """The cable is pulled under the put, so many microseconds after its start."""
    source, target, length = SHAPES[name]
    with opened(options=["--fault", "unplugged:{}:{}".format(*UNPLUGGED)]) as pair:
        memories = Memories(pair)
        pair.together((write_list, source), (write_list, target))
        pair.first(sleep_until, UNPLUGGED[0] - before)
        assert (
            pair.first(
                asked, "put_indexed", source.walk(pair.keys[0]), target.walk(pair.keys[1]), length
            )
            == "OK"
        )
        assert pair.first(now) >= UNPLUGGED[1]
        memories.check(0, source.places(length), target.places(length))


def now(side):
    """Microseconds."""
    return side.endpoint.clock().now_ps / 1e6


def test_bit_errors_never_make_a_wrong_byte():
    with opened(options=["--ber", "4e-6"]) as pair:
        for name in ("packets", "into packets"):
            source, target, length = SHAPES[name]
            memories = Memories(pair)
            for operation in ("put", "get"):
                assert transfer(pair, operation, source, target, length) == "OK"
                memories.check(operation == "get", source.places(length), target.places(length))
                memories = Memories(pair, seed=5)
        counters = pair.second(Side.info)["counters"]
        assert counters["code_errors"] + counters["disparity_errors"] > 0
