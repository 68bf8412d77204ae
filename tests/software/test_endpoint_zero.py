"""Endpoint 0 that a program opened: it shares queue and completions with the library's own
commands.
"""

# SPDX-License-Identifier: BSD-2-Clause

import itertools

import libdibber
import pytest
from dibber.interface.description import ADMIN, OPCODE, RIGHT, C

from tests.software.expect import fails
from tests.software.mock_card import encode

RIGHTS = RIGHT.LOCAL_READ | RIGHT.REMOTE_WRITE


@pytest.fixture
def shared(loaded):
    """(mock, endpoint 0, a region of it)."""
    opened = []

    def start(**options):
        mock = loaded(**options)
        zero = mock.card.endpoint(0)
        region = zero.register(libdibber.alloc(4096), RIGHTS)
        opened.append(zero)
        return mock, zero, region

    yield start
    for zero in opened:
        zero.close()


def tags(endpoint, count):
    """Tags of so many completions."""
    found = []
    while len(found) < count:
        assert endpoint.wait(1_000_000)
        found += [done.tag for done in endpoint.poll()]
    return found


@pytest.mark.parametrize("clock", [True, False])
def test_its_commands_and_the_librarys_pass_by_each_other(shared, clock):
    mock, zero, region = shared(clock=clock)
    sent = []
    for n in itertools.count():
        zero.put(region.key, 0, region.key, 64, 8, node=1, tag=n)
        sent.append(n)
        if n % 3 == 0:
            with mock.endpoint.register(libdibber.alloc(4096), RIGHTS):
                pass
        if n % 7 == 0:
            assert tags(zero, len(sent)) == sent
            sent = []
        if n == 280:
            break
    # all kinds were there
    assert len({cookie for _, slot in mock.device.commands[-400:] for cookie in [slot[:1]]}) == 3


def test_a_slot_whose_completion_nobody_polls_does_not_stop_the_library(shared):
    mock, zero, region = shared()
    for n in range(C.SLOTS - 1):
        zero.put(region.key, 0, region.key, 64, 8, node=1, tag=n)
    for _ in range(2 * C.SLOTS):
        mock.endpoint.register(libdibber.alloc(4096), RIGHTS).close()
    assert tags(zero, C.SLOTS - 1) == list(range(C.SLOTS - 1))


def test_all_slots_in_use_is_again_for_the_program_and_a_wait_for_the_library(shared):
    mock, zero, region = shared()
    mock.device.silent = True
    for n in range(C.SLOTS):
        zero.put(region.key, 0, region.key, 64, 8, node=1, tag=n)
    with fails("AGAIN", "the administrator has the next slot"):
        zero.put(region.key, 0, region.key, 64, 8, node=1)
    with fails("TIMEOUT", "registering memory"):
        mock.endpoint.register(libdibber.alloc(4096), RIGHTS)


def test_events_come(shared):
    _, zero, region = shared()
    zero.put(region.key, 0, region.key, 64, 8, node=1, notice=5, endpoint=0)
    assert tags(zero, 1) == [0]
    assert [event.notice for event in zero.poll_events()] == [5]


def test_a_mailbox_of_it(shared):
    mock, zero, _ = shared()
    with (
        zero.mailbox(slots=4, slot_bytes=128, max_length=1000) as here,
        mock.endpoint.mailbox(slots=4, slot_bytes=128, max_length=1000) as there,
    ):
        here.connect(there.address())
        there.connect(here.address())
        for n in range(100):
            assert (
                here.send(bytes([n]) * (n % 5 * 200))
                and there.wait()
                and there.receive() == (bytes([n]) * (n % 5 * 200), 0)
            )


def test_what_would_wait_in_its_slots_or_is_the_librarys_is_refused(shared):
    _, zero, region = shared()
    for call in (zero.send, zero.receive):
        with fails("ARGUMENT", "has no sends and receives"):
            call(region.key, 0, 8, node=1)
    for opcode in (OPCODE.SEND, OPCODE.RECEIVE, OPCODE.ENDPOINT_CLOSE, OPCODE.REGION_ADD):
        with fails("ARGUMENT", "only the library may use"):
            zero.submit(encode(ADMIN, opcode=opcode))


@pytest.mark.parametrize(
    "options", [dict(own_clock=True), dict(cq_entries=128), dict(eq_entries=512)]
)
def test_it_has_the_queues_and_the_clock_of_the_card(loaded, options):
    with fails("ARGUMENT", "endpoint 0 has 64 completions"):
        loaded().card.endpoint(0, **options)


def test_it_is_closed_and_opened_again(shared):
    mock, zero, region = shared()
    zero.put(region.key, 0, region.key, 64, 8, node=1)
    zero.close()
    with fails("IN_USE", "endpoint 1"):
        mock.card.endpoint(1)
    with mock.card.endpoint(0) as again:
        assert again.poll() == [] and again.poll_events() == []
        again.put(region.key, 0, region.key, 64, 8, node=1, tag=9)
        assert tags(again, 1) == [9]
