"""A process, a control program or a card ends and another one begins: what a peer knows of the
former reaches nothing.
"""

# SPDX-License-Identifier: BSD-2-Clause

import libdibber
import numpy as np
import pytest
from dibber.interface.description import RIGHT, STATUS, C
from dibber_cli import paths
from libdibber import DibberError, List, Walk

from tests.system.pair import Pair, open_again, stay
from tests.system.pair_boxes import GIVES_UP, connect_box, hear, open_box, say, send_until_told

ALL = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
LENGTH = 8192
MARK = 0x5A

# Lives --------------------------------------------------------------------------------------------


def begin(side):
    """A region of each kind; their keys."""
    side.register("plain", LENGTH, rights=ALL)
    memory = libdibber.alloc(LENGTH)
    side.regions["paged"] = side.endpoint.register_pages(
        [memory[:4096], memory[4096:]], 12, rights=ALL
    )
    offsets = libdibber.alloc(4096)
    offsets.view(np.int64)[:8] = np.arange(8) * 64
    side.regions["list"] = side.endpoint.register(offsets, rights=ALL)
    return {name: region.key for name, region in side.regions.items()}


def fill_up(side):
    """As many regions as there is room for, all of the same memory, in pieces and in pages by
    turns; their keys.
    """
    side.memory = libdibber.alloc(LENGTH)
    side.memory[:] = MARK
    side.more = []
    try:
        while True:
            side.more.append(
                side.endpoint.register(side.memory, ALL)
                if len(side.more) % 2
                else side.endpoint.register_pages(
                    [side.memory[:4096], side.memory[4096:]], 12, rights=ALL
                )
            )
    except DibberError as error:
        assert error.name == "LIMIT"
    return [region.key for region in side.more]


def is_unchanged(side):
    return bool((side.memory == MARK).all()) and side.endpoint.poll_events() == []


def load_again(side):
    """Another control program under the same process."""
    side.endpoint.close()
    side.card.load_firmware(paths.FIRMWARE)
    for region in [*side.regions.values(), *getattr(side, "more", ())]:
        region.close()
    side.regions = {}
    side.endpoint = side.card.endpoint(1)


def kill(pair, node):
    pair.processes[node].kill()
    pair.processes[node].join()


def end(pair, how, over):
    """Card 0's life ends, and another one begins."""
    if how == "killed":
        kill(pair, 0)
        pair.replace(0, over)
    elif how == "reloaded":
        pair.first(load_again)
    else:
        pair.together((open_again, over), (stay, over))


# Keys ---------------------------------------------------------------------------------------------


def endings_of(side, keys, present):
    """The status of each kind of command with each of the keys: {(command, key's name): status}. A
    list's region is named
    beside a region that there is, `present`."""
    own = side.register("own", LENGTH, rights=ALL)
    side.regions["own"].memory.view(np.int64)[:8] = np.arange(8) * 64
    e = side.endpoint
    here = Walk(own, 8, 0, ((8, 64),))
    found = {}
    for name, key in keys.items():
        for command, issue in {
            "put": lambda key=key: e.put(own, 0, key, 0, LENGTH, node=0),
            "inline put": lambda key=key: e.put_inline(
                b"12345678", key, 8, node=0, notice=7, endpoint=1
            ),
            "strided put": lambda key=key: e.put_strided(here, Walk(key, 8, 0, ((8, 72),)), node=0),
            "get": lambda key=key: e.get(key, 0, own, 0, LENGTH, node=0),
            "listed put": lambda key=key: e.put_indexed(
                here, Walk(present, 8, 0, (), List(key, 8)), node=0
            ),
            "fetch-add": lambda key=key: e.fetch_add(key, 0, 1, node=0),
            "swap": lambda key=key: e.compare_swap(key, 8, 0x5A5A5A5A5A5A5A5A, 1, node=0),
        }.items():
            issue()
            found[command, name] = STATUS.name_of(side.completion())
    side.unregister("own")
    return found


@pytest.mark.fault
@pytest.mark.parametrize(
    "how, options",
    [("closed", []), ("power", ["--reset-takes-power"]), ("killed", []), ("reloaded", [])],
)
def test_a_key_of_a_former_life_reaches_nothing(how, options, tmp_path):
    """After the restart, all regions of the card are registered, twice. Nothing was sent before,
    because a used flow first starts again, which another test covers."""
    with Pair(options=options) as pair:
        former = pair.first(begin)
        given = set(former.values())
        for _ in range(2):
            end(pair, how, tmp_path / "over")
            present = pair.first(fill_up)
            assert len(present) == C.REGIONS and not given & set(present)
            given |= set(present)
            found = pair.second(endings_of, former, present[0])
            assert found == {
                at: "REMOTE_BAD_LIST" if at[0] == "listed put" else "REMOTE_BAD_KEY" for at in found
            }
            assert pair.first(is_unchanged)
            former = dict(zip(former, present))
            if how != "reloaded":
                break


def test_keys_repeat_with_the_seed_and_differ_with_power():
    lives = []
    for seed, options in ((1, []), (1, []), (2, [])):
        with Pair(seed=seed, options=options) as pair:
            lives.append(pair.first(begin))
    assert lives[0] == lives[1] != lives[2]


# Receives -----------------------------------------------------------------------------------------


def receive(side, value):
    """Begin to receive from endpoint 1 of card 1 into new memory."""
    side.register("target", 4096, rights=ALL)
    side.fill("target", value=value)
    side.endpoint.receive(side.regions["target"].key, 0, 4096, node=1, endpoint=1)
    side.endpoint.wait(200_000)


def send(side, value):
    side.register("source", 4096, rights=ALL)
    side.fill("source", value=value)
    side.endpoint.send(side.regions["source"].key, 0, 4096, node=0, endpoint=1)
    status = STATUS.name_of(side.completion())
    side.unregister("source")
    return status


def received(side):
    return STATUS.name_of(side.completion()), set(side.read("target"))


@pytest.mark.fault
def test_a_receive_of_a_killed_process_takes_nothing_for_the_next(tmp_path):
    """Its READY lies at the peer, with the context and the key of the former life."""
    with Pair() as pair:
        pair.first(receive, 1)
        kill(pair, 0)
        pair.replace(0, tmp_path / "over")
        pair.first(fill_up)
        first = pair.second(send, 7)
        assert first == "REMOTE_BAD_KEY" and pair.first(is_unchanged)


# Mailboxes ----------------------------------------------------------------------------------------


@pytest.mark.fault
def test_a_mailbox_s_killed_peer_is_told_by_name_before_a_transfer_would_give_up():
    with Pair() as pair:
        former = pair.first(open_box)
        pair.first(connect_box, pair.second(open_box))
        pair.second(connect_box, former)
        pair.first(say, b"the first life")
        assert pair.second(hear) == (b"the first life", 0)
        kill(pair, 0)
        pair.pipes[1].send((send_until_told,))
        name, time = pair._answer(1)[1]
        # The killed process's card was reset, and holds no program that could answer: TIMEOUT.
        # CLOSED if it was read first.
        assert name in ("CLOSED", "TIMEOUT") and time < GIVES_UP
