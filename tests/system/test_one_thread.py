"""Both cards in one thread of one process, as in a notebook; and notices without a receiver."""

# SPDX-License-Identifier: BSD-2-Clause

import concurrent.futures
import os
import subprocess
import sys
import time

import libdibber
import pytest
from dibber.interface.description import HOST, LINK_STATE, STATUS
from dibber_cli import paths, profile
from dibber_cli.simulator import Pair, clock_state_at
from libdibber import Right

from tests.system.pair import PRELOAD

pytestmark = pytest.mark.fault

SECOND = 1_000_000_000  # of simulated time, in nanoseconds
RIGHTS = Right.LOCAL_READ | Right.REMOTE_WRITE | Right.REMOTE_READ


def opened(pair):
    """Cards, their endpoints 1 and 4 KiB registered at each, opened one after the other."""
    cards = []
    for node, uri in enumerate(pair.uris):
        cards.append(libdibber.Card(uri))
        cards[node].set_node(node)
        cards[node].load_firmware(paths.FIRMWARE)
    while any(card.info()["link_state"] != LINK_STATE.UP for card in cards):
        pass
    ends = [card.endpoint(1) for card in cards]
    return cards, ends, [end.register(libdibber.alloc(4096), RIGHTS) for end in ends]


def put(ends, regions, source, **how):
    """A put from one card to the other one; returns its status."""
    ends[source].put(
        regions[source].key, 0, regions[1 - source].key, 0, 4096, node=1 - source, **how
    )
    assert ends[source].wait(SECOND)
    [done] = ends[source].poll()
    return done.status


def to_and_fro(cards, ends, regions):
    """Puts with notices in both directions; returns the time of both cards after each."""
    log = []
    for n in range(10):
        source, target = n & 1, ~n & 1
        regions[source].memory[:] = n + 1
        assert put(ends, regions, source, notice=n, endpoint=1) == STATUS.OK
        assert ends[target].wait(SECOND)
        assert [event.notice for event in ends[target].poll_events()] == [n]
        assert (regions[target].memory == n + 1).all()
        log.append([end.clock().now_ps for end in ends])
        time.sleep(0.003 * (n % 3))
    return log


def close(cards):
    for card in cards:
        card.close()


@pytest.fixture
def thread():
    """Runs calls in one thread which is not the main thread. A test ends also when one hangs."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        yield lambda function, *arguments: pool.submit(function, *arguments).result(timeout=300)


def here(function, *arguments):
    return function(*arguments)


@pytest.mark.parametrize("opens", ["main thread", "other thread"])
@pytest.mark.parametrize("drives", ["main thread", "other thread"])
@pytest.mark.parametrize("closes", ["main thread", "other thread"])
def test_a_thread_drives_both_cards_whatever_thread_opens_and_closes_them(
    thread, opens, drives, closes
):
    by = {"main thread": here, "other thread": thread}
    with Pair(profile.load("gen2x4"), participants=1, options=PRELOAD) as pair:
        handles = by[opens](opened, pair)
        first = by[drives](to_and_fro, *handles)
        again = by[opens](to_and_fro, *handles)
        by[closes](close, handles[0])
    times = [time_ for pair_ in first + again for time_ in pair_]
    assert times == sorted(times), "time has gone on and not back"


@pytest.mark.parametrize("drives", ["main thread", "other thread"])
def test_one_thread_drives_both_cards_and_the_run_repeats_to_the_picosecond(thread, drives):
    run = thread if drives == "other thread" else here
    with Pair(profile.load("gen2x4"), participants=1, options=PRELOAD) as pair:
        handles = opened(pair)
        first = run(to_and_fro, *handles)
        close(handles[0])
    with Pair(profile.load("gen2x4"), participants=1, options=PRELOAD) as pair:
        handles = opened(pair)
        assert run(to_and_fro, *handles) == first
        close(handles[0])
    times = [time_ for pair_ in first for time_ in pair_]
    assert times == sorted(times), "a thread has one time"


def test_the_holder_of_the_clock_is_named_and_time_stands_while_the_thread_is_outside():
    with Pair(profile.load("gen2x4"), participants=1, options=PRELOAD) as pair:
        cards, ends, _ = opened(pair)
        admin = pair.directory / "card1.sock.admin"
        assert (
            clock_state_at(admin)
            == "time stands: card0 endpoint 0, card1 endpoint 0 run outside the library"
        )
        with ends[0].outside_clock(), ends[1].outside_clock():
            assert (
                clock_state_at(admin)
                == "time stands: card0 endpoint 0, card1 endpoint 0 have left the clock"
            )
        before = ends[0].clock().now_ps
        time.sleep(0.2)
        assert ends[0].clock().now_ps == before
        for card in cards:
            card.close()


def test_a_simulator_that_waits_for_another_participant_is_said_on_stderr():
    with Pair(profile.load("gen2x4"), participants=2, options=PRELOAD) as pair:
        program = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-c",
                "import libdibber, sys; libdibber.Card(sys.argv[1])",
                pair.uris[0],
            ],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"DIBBER_CLOCK_NOTICE": "1", "PYTHONPATH": ":".join(sys.path)},
        )
        try:
            said = program.stderr.readline()
        finally:
            program.kill()
            program.wait()
            program.stderr.close()
    assert "has not answered for 1 s: time stands: 1 of 2 participants have joined" in said


@pytest.mark.parametrize("fast_path", [True, False])
def test_a_notice_to_a_closed_or_absent_endpoint_is_counted_where_info_shows_it(fast_path):
    with Pair(profile.load("gen2x4"), participants=1, options=PRELOAD) as pair:
        cards, ends, regions = opened(pair)
        cards[1].write_register("FAST_PATH", HOST["FAST_PATH"].reset if fast_path else 0)
        owner = cards[1].endpoint(3)
        shared = owner.register(libdibber.alloc(4096), RIGHTS)
        closed = cards[1].endpoint(2)
        closed.close()
        lost = cards[1].info()["counters"]["events_lost"]
        for n, number in enumerate((2, 7), 1):
            assert put(ends, [regions[0], shared], 0, notice=5, endpoint=number) == STATUS.OK, (
                "the bytes have arrived"
            )
            assert cards[1].info()["counters"]["events_lost"] == lost + n
        assert put(ends, [regions[0], shared], 0, notice=6, endpoint=3) == STATUS.OK
        assert owner.wait(SECOND) and [event.notice for event in owner.poll_events()] == [6]
        assert cards[1].info()["counters"]["events_lost"] == lost + 2
        for card in cards:
            card.close()
