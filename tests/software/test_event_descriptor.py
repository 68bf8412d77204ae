"""A program that sleeps on dib_event_fd() is woken by each end of the card or the endpoint, and
does not fall asleep again.
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import select
import threading
import time

import pytest
from libdibber import DibberError

from tests.software.expect import fails
from tests.software.mock_vfio_user import HEADER

pytestmark = pytest.mark.fault

SECONDS = 20  # more than any wake-up takes


def by_select(fd):
    return bool(select.select([fd], [], [], SECONDS)[0])


def by_epoll(fd):
    with select.epoll() as epoll:
        epoll.register(fd, select.EPOLLIN)
        return [events for _, events in epoll.poll(SECONDS)] == [select.EPOLLIN]


def breaks_the_protocol(mock):
    """A message of impossible size, which the library finds when it reads its socket next."""
    mock.server.connection.sendall(HEADER.pack(0, 2, 3, 0, 0))
    with pytest.raises(DibberError, match="impossible size"):
        mock.card.info()


def halts_and_is_noticed(mock):
    mock.device.halt()
    with fails("HALTED", "halted"):
        while True:
            mock.endpoint.poll()


LASTING = {
    "simulator": (lambda mock: mock.server.disconnect(), "LOST"),
    "protocol": (breaks_the_protocol, "PROTOCOL"),
    "control program": (halts_and_is_noticed, "HALTED"),
}
CLOSES = {"endpoint": lambda mock: mock.endpoint.close(), "card": lambda mock: mock.card.close()}


def asleep(sleep, fd):
    """Start a thread that sleeps: a function that waits for its answer."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(sleep(fd)))
    thread.start()
    time.sleep(0.1)

    def answer():
        thread.join(2 * SECONDS)
        return answers == [True]

    return answer


@pytest.mark.parametrize("clock", [True, False])
@pytest.mark.parametrize("sleep", [by_select, by_epoll])
@pytest.mark.parametrize("end", LASTING)
def test_a_sleeper_is_woken_by_an_end_and_never_sleeps_again(loaded, end, sleep, clock):
    mock = loaded(clock=clock)
    fd = mock.endpoint.event_fd()
    wakes = asleep(sleep, fd)
    provoke, error = LASTING[end]
    provoke(mock)
    assert wakes()
    for _ in range(3):
        os.read(fd, 8)
        assert sleep(fd)
        with pytest.raises(DibberError) as told:
            for _ in range(10_000):
                mock.endpoint.poll()
        assert told.value.name == error
        assert sleep(fd)


def test_a_program_that_sleeps_on_a_new_descriptor_after_the_loss_is_woken(loaded):
    mock = loaded()
    fd = mock.endpoint.event_fd()
    mock.server.disconnect()
    with fails("LOST", "closed the connection"):
        for _ in range(10_000):
            mock.endpoint.poll()
    for _ in range(3):
        assert by_select(fd)
        os.read(fd, 8)


@pytest.mark.parametrize("sleep", [by_select, by_epoll])
@pytest.mark.parametrize("what", CLOSES)
def test_a_sleeper_is_woken_by_another_thread_that_closes(loaded, what, sleep):
    mock = loaded()
    fd = mock.endpoint.event_fd()
    wakes = asleep(sleep, fd)
    CLOSES[what](mock)
    assert wakes()


def test_every_endpoint_of_a_card_is_woken_and_others_are_not(loaded):
    mock, other = loaded(), loaded()
    fds = [mock.endpoint.event_fd(), *(mock.card.endpoint(n).event_fd() for n in (2, 7))]
    alive = other.endpoint.event_fd()
    mock.server.disconnect()
    assert all(by_select(fd) for fd in fds)
    assert not select.select([alive], [], [], 0.3)[0]


def test_descriptors_of_closed_endpoints_are_bounded(loaded):
    mock = loaded()
    fds = set()
    for _ in range(30):
        with mock.card.endpoint(2) as endpoint:
            fds.add(endpoint.event_fd())
        for fd in mock.device.vectors.values():  # the server's copies
            os.close(fd)
        mock.device.vectors.clear()
    assert len(fds) < 15
