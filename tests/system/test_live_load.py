"""A control program that is swapped under traffic, by another program than the one that drives the
card, and one that watches.
"""

# SPDX-License-Identifier: BSD-2-Clause

import collections
import functools
import json
import os
import pathlib
import random
import select
import subprocess
import sys
import time

import libdibber
import pytest
from dibber.interface.description import HOST, MCP_STATE, RIGHT, STATUS
from dibber_cli import paths, profile
from dibber_cli.main import main
from dibber_cli.simulator import Pair as Simulator

from tests.system.pair import Pair

ALL = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
LENGTH = 3000
AREA = 65536
STEP = 20_000  # ns


@pytest.fixture
def pair():
    with Pair() as pair:
        yield pair


# What the sides do --------------------------------------------------------------------------------


def prepare(side):
    """A second endpoint, and memory of each; returns the keys."""
    side.endpoints = [side.endpoint, side.card.endpoint(2)]
    side.areas = []
    for endpoint in side.endpoints:
        memory = libdibber.alloc(AREA)
        memory[:] = endpoint is side.endpoint
        side.areas.append(endpoint.register(memory, ALL))
    return [area.key for area in side.areas]


def give_back(side):
    """All that belonged to the program that is gone."""
    for area in side.areas:
        area.close()
    for endpoint in side.endpoints:
        endpoint.close()
    side.endpoint = side.card.endpoint(1)


def traffic(side, node, keys, until, kinds=("put", "put_inline", "get")):
    """Transfers on both endpoints as fast as they go, until `until` holds for what each has seen,
    as a Counter of statuses: names,
    and "HALTED by the call" for the error of the library; returns that."""
    seen = [collections.Counter() for _ in side.endpoints]
    under = [0, 0]
    over = [False, False]
    start = side.endpoint.clock().now_ps
    while not all(over) or any(under):
        assert side.endpoint.clock().now_ps - start < 10**12, (seen, under)
        for n, endpoint in enumerate(side.endpoints):
            if over[n] and not under[n]:
                continue
            try:
                while not over[n] and under[n] < 12:
                    kind = kinds[(sum(seen[n].values()) + under[n]) % len(kinds)]
                    ours, theirs = side.areas[n].key, keys[n]
                    if kind == "put":
                        endpoint.put(ours, 0, theirs, 8192, LENGTH, node=node)
                    elif kind in ("get", "fenced get"):
                        endpoint.get(
                            theirs, 0, ours, 16384, LENGTH, node=node, fence=kind == "fenced get"
                        )
                    else:
                        endpoint.put_inline(b"inline", theirs, 32768, node=node)
                    under[n] += 1
                for done in endpoint.poll():
                    under[n] -= 1
                    seen[n][STATUS.name_of(done.status)] += 1
            except libdibber.DibberError as error:
                seen[n][f"{error.name} by the call"] += 1
                over[n] = True
            over[n] |= bool(until(seen[n]))
        if any(under):
            next(e for e, n in zip(side.endpoints, under) if n).wait(STEP)
    return [dict(counts) for counts in seen]


def has_halted(seen):
    return seen["HALTED by the call"]


def has_failed(seen):
    return any(count for name, count in seen.items() if name != "OK")


def is_told(flag, seen):
    return flag.exists()


def has_worked(seen):
    return seen["OK"] > 30


# Tests --------------------------------------------------------------------------------------------


def begin(pair, *steps):
    """Have both sides do their steps, and wait until they are in the middle."""
    with libdibber.Card(pair.simulator.uris[0], observe=True) as card:
        rung = card.info()["counters"]["doorbells"]
        for pipe, step in zip(pair.pipes, steps):
            pipe.send(step)
        while card.info()["counters"]["doorbells"] < rung + 60:
            time.sleep(0.02)


def end(pair):
    answers = [pair._answer(node) for node in range(2)]
    assert [kind for kind, _ in answers] == ["done", "done"], answers
    return [value for _, value in answers]


def test_a_program_is_swapped_under_traffic_and_both_sides_go_on(pair, capsys):
    uri = pair.simulator.uris[0]
    theirs = pair.together((prepare,), (prepare,))
    # Gets to the card that is loaded: tests/system/test_peer_restart.py.
    begin(
        pair,
        (traffic, 1, theirs[1], has_halted),
        (traffic, 0, theirs[0], has_failed, ("put", "put_inline")),
    )
    bad = paths.elf()
    assert main(["fw", "load", str(bad), uri]) == 1 and "image" in capsys.readouterr().err
    assert main(["fw", "load", str(paths.FIRMWARE), uri]) == 0
    loaded, peer = end(pair)
    for seen in loaded:
        assert seen["OK"] > 0 and 0 < seen["HALTED"] <= 12 and seen["HALTED by the call"] == 1
        assert set(seen) <= {"OK", "HALTED", "HALTED by the call"}
    for seen in peer:
        assert seen["OK"] > 0 and set(seen) - {"PEER_RESTARTED"} == {"OK", "REMOTE_BAD_KEY"}

    pair.first(give_back)
    theirs[0] = pair.first(prepare)
    found = pair.together((traffic, 1, theirs[1], has_worked), (traffic, 0, theirs[0], has_worked))
    assert all(set(seen) == {"OK"} for side in found for seen in side)


def sleep_until_halted(side, asleep, woken):
    """In poll(2), as a program that has other descriptors, too; what the first look says then."""
    fd = side.event_fd()
    assert side.endpoint.poll() == []
    with side.endpoint.outside_clock():
        asleep.touch()
        ready = select.select([fd], [], [], 60)[0]
    # The other side lets time go on until this side is back: if both are outside, time stands until
    # both are back.
    woken.touch()
    if not ready:
        return "no interrupt came"
    os.read(fd, 8)
    try:
        return side.endpoint.poll()
    except libdibber.DibberError as error:
        return error.name


def let_time_go_on(side, woken):
    while not woken.exists():
        side.endpoint.wait(STEP)


def trap(card):
    """Nothing is an instruction any more, in the trap handler neither: the watchdog bites."""
    card.write_firmware(0, bytes(card.sram_bytes))


HALTS = {
    "another program loads": lambda card: card.load_firmware(paths.FIRMWARE),
    "the watchdog bites": trap,
}


@pytest.mark.parametrize("how", HALTS)
def test_a_sleeper_on_a_descriptor_is_woken_by_a_halt_that_is_not_its_own(pair, tmp_path, how):
    asleep, woken = tmp_path / "asleep", tmp_path / "woken"
    for pipe, step in zip(
        pair.pipes, ((sleep_until_halted, asleep, woken), (let_time_go_on, woken))
    ):
        pipe.send(step)
    while not asleep.exists():
        time.sleep(0.02)
    with libdibber.Card(pair.simulator.uris[0], observe=True) as card:
        HALTS[how](card)
        end_of_sleep, _ = end(pair)
        assert end_of_sleep == "HALTED"
        assert card.info()["mcp_state"] == {"another program loads": MCP_STATE.IDLE}.get(
            how, MCP_STATE.WATCHDOG
        )


def count_of(side, name):
    return side.card.info()["counters"][name]


def one_of_each(side, node, key):
    """A transfer of each kind, one after the other: their statuses."""
    ours = side.areas[0].key
    side.endpoint.put_inline(b"inline", key, 32768, node=node)
    found = [side.completion()]
    side.endpoint.put(ours, 0, key, 8192, LENGTH, node=node)
    found.append(side.completion())
    side.endpoint.get(key, 0, ours, 16384, LENGTH, node=node)
    return [STATUS.name_of(status) for status in [*found, side.completion()]]


def spoil_and_load(side, seed):
    """Other words in all of the program's memory; then the image is loaded again."""
    side.card.write_firmware(0, random.Random(seed).randbytes(side.card.sram_bytes))
    side.card.load_firmware(paths.FIRMWARE)


def test_nothing_in_the_programs_memory_is_needed_by_the_next_one(pair, seed):
    """Each program's packets are new to the other card, whatever the one before it did to its
    memory.
    """
    for n in range(3):
        theirs = pair.together((prepare,), (prepare,))
        found = pair.together((one_of_each, 1, theirs[1][0]), (one_of_each, 0, theirs[0][0]))
        assert found == [["OK"] * 3] * 2, f"after {n} programs"
        # Card 0 refuses a first packet of each lane that card 1 had for the former program; card 1
        # refuses none.
        former, stale = pair.together((count_of, "packet_stale"), (count_of, "packet_stale"))
        assert stale == 0 and former <= 2 * n
        pair.first(spoil_and_load, seed + n)
        pair.first(give_back)
        pair.second(give_back)


def test_top_trace_and_monitor_watch_a_card_that_works(pair, capsys, tmp_path):
    uri = pair.simulator.uris[0]
    theirs = pair.together((prepare,), (prepare,))
    enough = functools.partial(is_told, tmp_path / "enough")
    kinds = ("put", "put_inline", "get", "fenced get")  # hardware does the others alone
    begin(pair, (traffic, 1, theirs[1], enough, kinds), (traffic, 0, theirs[0], enough, kinds))
    assert main(["fw", "top", "--once", "--json", "--interval", "0.5", uri]) == 0
    rates = json.loads(capsys.readouterr().out)
    assert main(["fw", "trace", "--json", uri]) == 0
    events = [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()]
    assert main(["monitor", "--once", "--json", "--interval", "0.2", uri]) == 0
    line = json.loads(capsys.readouterr().out)
    (tmp_path / "enough").touch()
    found = end(pair)
    assert all(set(seen) == {"OK"} for side in found for seen in side), "nobody was disturbed"
    assert (
        rates["seconds"] > 0
        and rates["handlers"]["arrival"]["calls"] > 0
        and rates["per_s"]["doorbells"] > 0
    )
    assert [queue["endpoint"] for queue in rates["queues"]] == [0, 1, 2]
    assert "ARRIVAL" in events and line["packets_sent_per_s"] > 0 and line["errors"] == 0


def cpu_of(process):
    """Seconds of CPU that a process has had."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_from_source_to_a_program_that_runs_takes_seconds(tmp_path, figure):
    """CPU time of make, command and simulator. On an idle machine, wall time is no longer."""
    with (
        Simulator(profile.load("gen2x4"), participants=1) as simulator,
        libdibber.Card(simulator.uris[0]) as card,
    ):
        card.load_firmware(paths.FIRMWARE)
        with card.endpoint(1) as endpoint:
            begin = (
                os.times().children_user + os.times().children_system + cpu_of(simulator.process)
            )
            subprocess.run(
                [
                    "make",
                    "-s",
                    "-C",
                    paths.ROOT / "firmware",
                    f"OUT={tmp_path}",
                    f"PYTHON={sys.executable}",
                ],
                check=True,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "MAKEFLAGS": ""},
            )
            subprocess.run(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "dibber_cli",
                    "fw",
                    "load",
                    tmp_path / "mcp.dibfw",
                    simulator.uris[0],
                ],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            took = (
                os.times().children_user
                + os.times().children_system
                + cpu_of(simulator.process)
                - begin
            )
            with pytest.raises(libdibber.DibberError, match="halted"):
                endpoint.wait()
    figure(
        "firmware-iteration",
        round(took, 1),
        "s of CPU: make -C firmware, all of it anew, then dibber fw load",
        at_most=5,
    )
    assert 0.2 < took < 60, "how far from the target it is depends on the machine"


# Looking ------------------------------------------------------------------------------------------

LOOKS = {
    "info": ["info"],
    "info --json": ["info", "--json"],
    "map": ["map", "--look"],
    "status": ["link", "status"],
    "monitor": ["monitor", "--once", "--interval", "0.01"],
    "top": ["fw", "top", "--once", "--interval", "0.01"],
    "trace": ["fw", "trace"],
}

# Host registers that a program or a user sets. A look that writes one of them shows here.
SET = [register.name for register in HOST.registers if register.access == "rw"]


def state(uri):
    with libdibber.Card(uri, observe=True) as card:
        info = card.info()
        return {
            "identity": card.read_register("MCP_IDENTITY"),
            "stopped": info["mcp_state"] in (MCP_STATE.RESET, MCP_STATE.TRAP),
            "link": info["link_state"],
            **{name: card.read_register(name) for name in SET},
            **{
                f"errors {name}": info["counters"][name]
                for name in ("tlp_malformed", "link_lost", "packet_refused")
            },
            "program": card.read_firmware(0, 4096),
        }


@pytest.mark.fault
def test_each_command_that_looks_leaves_card_and_transfers_as_they_are(pair, tmp_path, capsys):
    flag = tmp_path / "enough"
    told = functools.partial(is_told, flag)
    keys = pair.together((prepare,), (prepare,))
    begin(pair, (traffic, 1, keys[1], told), (traffic, 0, keys[0], told))
    uri = pair.simulator.uris[0]
    try:
        before = state(uri)
        for name, words in LOOKS.items():
            main([*words, uri])
            capsys.readouterr()
            assert state(uri) == before, name
        assert main(["map", "--look", uri]) == 1  # a direct cable: no route was entered
        assert "node 0, link up; the control program" in capsys.readouterr().out
    finally:
        flag.touch()
    assert all(set(seen) == {"OK"} for side in end(pair) for seen in side)
