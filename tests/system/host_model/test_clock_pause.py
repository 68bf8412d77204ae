"""A pause at the clock: a participant that no other one waits for."""

# SPDX-License-Identifier: BSD-2-Clause

import time

import pytest

from tests.system.host_model.vfio_client import Client, ClockReply

NS = 1000


def test_one_who_pauses_holds_no_time_and_nobody_waits_for_its_return(simulator):
    sim = simulator("--participants", 2)
    first, second = Client(sim.path(0)), Client(sim.path(1))
    first.clock("LEAVE", count=2)
    second.clock("LEAVE")
    second.clock("ENTER")
    before = second.clock("NOW").now
    assert second.wait(deadline=5000 * NS).now - before == 5000 * NS
    assert first.clock("ENTER").now >= before + 5000 * NS
    waiting = second.send_clock("WAIT", deadline=5000 * NS)
    second.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        second.receive()
    first.send_clock("WAIT")
    second.socket.settimeout(600)
    assert ClockReply(second.answer(waiting)).woken == 0


def test_time_stands_while_all_pause(simulator):
    sim = simulator("--participants", 2)
    first, second = Client(sim.path(0)), Client(sim.path(1))
    at = [first.clock("LEAVE", count=2).now, second.clock("LEAVE", count=2).now]
    time.sleep(0.2)
    assert [first.clock("ENTER").now, second.clock("ENTER").now] == at
