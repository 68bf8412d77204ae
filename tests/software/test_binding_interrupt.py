"""Ctrl-C ends every call of the binding that waits, and the card can be used afterwards."""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
import os
import random
import signal
import threading
import time

import libdibber
import numpy as np
import pytest
from dibber.interface.description import COMMAND, OPCODE, RIGHT, STATUS
from libdibber import background
from libdibber.background import Caller, Job

from tests.software.mock_card import encode

pytestmark = pytest.mark.fault

MILLISECOND = 1_000_000  # in nanoseconds


def interrupted(call, after=0.3):
    """Make a call that must end with KeyboardInterrupt. The signal comes after so many seconds."""
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call()
        raise AssertionError("it ended by itself")
    timer.join()


@pytest.fixture
def standing(loaded):
    """A card whose time goes on when the test sets the Event `go`."""
    mock = loaded()
    mock.go, answer = threading.Event(), mock.device.clock
    mock.go.set()

    def clock(*arguments):
        mock.go.wait(20)
        return answer(*arguments)

    mock.device.clock = clock
    yield mock
    mock.go.set()


def works(endpoint):
    """Whether a command completes."""
    endpoint.submit(encode(COMMAND, opcode=OPCODE.NOP), tag=77)
    done = []
    while not done and endpoint.wait(MILLISECOND):
        done = endpoint.poll()
    return [(one.tag, one.status) for one in done] == [(77, STATUS.OK)]


CALLS = {
    "wait": lambda mock: mock.endpoint.wait(),
    "poll": lambda mock: mock.endpoint.poll(),
    "poll_events": lambda mock: mock.endpoint.poll_events(),
    "clock": lambda mock: mock.endpoint.clock(),
    "outside_clock": lambda mock: contextlib.ExitStack().enter_context(
        mock.endpoint.outside_clock()
    ),
    "register": lambda mock: mock.endpoint.register(np.zeros(64, "u1"), RIGHT.LOCAL_READ),
    "endpoint": lambda mock: mock.card.endpoint(2),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_waits_while_time_stands_ends_with_ctrl_c_and_the_card_works_afterwards(
    standing, name
):
    mock, call = standing, CALLS[name]
    mock.go.clear()
    interrupted(lambda: call(mock))
    mock.go.set()
    deadline = time.monotonic() + 10
    while mock.endpoint._caller.is_busy and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not mock.endpoint._caller.is_busy
    assert mock.endpoint.regions == [], "what nobody got is withdrawn"
    assert works(mock.endpoint)


def test_a_wait_for_ever_ends_with_ctrl_c_and_the_card_works_afterwards(loaded):
    mock = loaded()
    interrupted(mock.endpoint.wait)
    assert works(mock.endpoint)
    interrupted(mock.endpoint.wait)
    assert works(mock.endpoint)


def test_a_wait_for_a_message_ends_with_ctrl_c_and_the_mailbox_works_afterwards(loaded):
    mock = loaded()
    ours = mock.endpoint.mailbox()
    other = mock.card.endpoint(2)
    theirs = other.mailbox()
    ours.connect(theirs.address())
    theirs.connect(ours.address())
    interrupted(ours.wait)
    theirs.send(b"message")
    while not (got := ours.receive()):
        ours.wait()
    assert got == (b"message", 0)
    theirs.close()
    other.close()
    ours.close()


def test_a_card_that_is_waited_for_can_be_given_up(serve):
    mock = serve()
    mock.device.bar_read, answer = lambda *a: time.sleep(1.5) or answer(*a), mock.device.bar_read
    interrupted(lambda: libdibber.Card(mock.uri), after=0.5)


def test_what_an_interrupted_call_took_is_not_lost(loaded):
    """The signal may come when the completion has left the card's queue."""
    mock = loaded()
    caller = mock.endpoint._caller
    look = caller.look

    def late(function, undo):
        def slow():
            result = function()
            time.sleep(0.5)
            return result

        return look(slow, undo)

    mock.endpoint.submit(encode(COMMAND, opcode=OPCODE.NOP), tag=9)
    assert mock.endpoint.wait()
    caller.look = late
    interrupted(mock.endpoint.poll, after=0.2)
    caller.look = look
    caller.now(lambda: 0)  # the interrupted call has ended
    assert mock.endpoint.wait(0) and [one.tag for one in mock.endpoint.poll()] == [9]


def test_a_handler_that_raises_something_else_ends_the_call_too(loaded):
    mock = loaded()
    before = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(LookupError("alarm")))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(LookupError, match="alarm"):
            mock.endpoint.wait()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert works(mock.endpoint)


def test_a_child_of_fork_has_a_thread_of_its_own():
    caller = Caller(simulated=True)
    assert caller.long(lambda: 1) == 1
    child = os.fork()
    if child == 0:
        os._exit(caller.long(lambda: 7))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


# A signal at any place ----------------------------------------------------------------------------


def test_a_job_whose_waiting_was_cut_short_is_over_all_the_same():
    undone = []
    job = Job(lambda: 7, undone.append)
    job.run()
    job._over.acquire()  # as a signal leaves it between the two calls of Job.wait()
    assert job.wait() and job.wait(0)
    job.abandon().run()
    assert undone == [7]


def test_a_job_runs_once_and_not_at_all_when_it_was_given_up_before_it_began():
    calls, undone = [], []
    job = Job(lambda: calls.append(1), undone.append)
    job.run()
    job.run()
    assert calls == [1] and job.wait(0)
    given_up = Job(lambda: calls.append(2), undone.append)
    assert not given_up.wait(0) and given_up.abandon() is None
    given_up.run()
    assert calls == [1] and undone == [] and given_up.wait(0)


def test_signals_at_any_place_leave_a_card_that_can_be_used(serve):
    def interrupt(*_):
        raise KeyboardInterrupt

    choice = random.Random(1)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with libdibber.Card(serve().uri) as card:
            identity = card.read_register("BUILD")
            for _ in range(200):
                with contextlib.suppress(KeyboardInterrupt):
                    signal.setitimer(signal.ITIMER_REAL, choice.uniform(1e-4, 5e-3))
                    while True:
                        card.read_register("CYCLES_LOW")
                assert card.read_register("BUILD") == identity
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.fault
def test_a_library_that_cannot_be_loaded_is_an_error_and_no_wait_for_ever(monkeypatch):
    """As an old libdibber.so that lacks a function of the binding."""

    def too_old():
        raise AttributeError("undefined symbol: dib_window_map")

    monkeypatch.setattr(background, "library", too_old)
    caller = Caller(simulated=True)
    for _ in range(2):
        with pytest.raises(AttributeError, match="dib_window_map"):
            caller.long(lambda: 1)
