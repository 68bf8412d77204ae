"""A call without an answer while simulated time stands still: the library names the holder."""

# SPDX-License-Identifier: BSD-2-Clause

import threading
import time
import types

import libdibber
import pytest
from dibber.interface.description import CLOCK_OP, C
from dibber_cli import simulator

from tests.software.mock_vfio_user import Server

pytestmark = pytest.mark.fault

HELD = "time stands: card1 endpoint 0 runs outside the library"


@pytest.fixture
def standing(serve, monkeypatch):
    """standing(text, seconds) → a mock card that keeps a wait for so long, and an observers' socket
    that says `text`.
    """
    observers = []

    def start(text, seconds=2.5, patience="1"):
        monkeypatch.setenv("DIBBER_CLOCK_NOTICE", patience)
        mock = serve()
        if text is not None:
            device = types.SimpleNamespace(
                clock=lambda payload, wants_answer: text.encode(), reset=lambda: None
            )
            observers.append(
                Server(
                    mock.uri.removeprefix("sim:") + ".admin",
                    device,
                    C.BAR0_SIZE,
                    C.CLOCK_MESSAGE,
                    offers_clock=False,
                )
            )
        clock = mock.device.clock

        def slow(payload, wants_answer):
            if payload[0] == CLOCK_OP.JOIN:
                time.sleep(seconds)
            return clock(payload, wants_answer)

        mock.device.clock = slow
        return mock

    yield start
    for server in observers:
        server.stop()


def said(capfd):
    return [line for line in capfd.readouterr().err.splitlines() if line.startswith("dibber: ")]


def test_a_call_without_an_answer_names_the_holder_of_the_clock_and_goes_on(standing, capfd):
    mock = standing(HELD)
    with libdibber.Card(mock.uri) as card:
        assert card.info()
    lines = said(capfd)
    assert 1 <= len(lines) <= 3, "once a second"
    path = mock.uri.removeprefix("sim:")
    assert lines[0] == (
        f"dibber: {path} has not answered for 1 s: {HELD}. A program that waits for something "
        f"else first "
        "leaves the clock: dib_clock_leave()"
    )


def test_a_participant_that_has_not_joined_is_named(standing, capfd):
    with libdibber.Card(standing("time stands: 1 of 2 participants have joined").uri):
        assert "1 of 2 participants have joined" in said(capfd)[0]


def test_a_simulation_that_is_only_slow_is_no_reason_to_speak(standing, capfd):
    with libdibber.Card(standing("time goes on").uri):
        assert said(capfd) == []


def test_the_notice_can_be_turned_off(standing, capfd):
    with libdibber.Card(standing(HELD, patience="0").uri):
        assert said(capfd) == []


@pytest.mark.parametrize("patience", ["", "x", "-1", "1x"])
def test_a_setting_that_is_no_number_leaves_ten_seconds(standing, capfd, patience):
    with libdibber.Card(standing(HELD, patience=patience).uri):
        assert said(capfd) == []


def test_a_server_without_an_observers_socket_is_named_too(standing, capfd):
    mock = standing(None)
    with libdibber.Card(mock.uri):
        assert said(capfd)[0].endswith("has not answered for 1 s: it does not say why")


@pytest.mark.parametrize("text", ["", "x" * 5000, "time stands: \x1b[2J\nnothing"])
def test_what_an_odd_server_says_is_one_line_without_control_characters(standing, capfd, text):
    with libdibber.Card(standing(text).uri):
        lines = said(capfd)
    assert lines and all(line.isprintable() and len(line) < 1500 for line in lines)


def test_sim_status_has_the_same_words(standing):
    mock = standing(HELD)
    path = mock.uri.removeprefix("sim:") + ".admin"
    assert simulator.clock_state_at(path) == HELD
    assert simulator.clock_state_at(path + ".absent") == "unknown"


# Threads ------------------------------------------------------------------------------------------


def threads_of(mock):
    """The threads that the mock is told of, as they come."""
    told, clock = [], mock.device.clock

    def note(payload, wants_answer):
        if wants_answer:
            told.append(int.from_bytes(payload[40:48], "little"))
        return clock(payload, wants_answer)

    mock.device.clock = note
    return told


def test_all_calls_of_the_main_thread_come_from_one_thread_whatever_card_they_are_for(serve):
    mocks = [serve(), serve()]
    told = [threads_of(mock) for mock in mocks]
    cards = [libdibber.Card(mock.uri) for mock in mocks]
    for card in cards:
        card.info()
        card.close()
    assert all(told) and len(set(told[0] + told[1])) == 1 and 0 not in told[0]


def test_two_threads_are_two(loaded):
    mock = loaded()
    told = threads_of(mock)
    mock.endpoint.wait(5)
    other = threading.Thread(target=mock.endpoint.wait, args=(5,))
    other.start()
    other.join()
    mock.endpoint.wait(5)
    assert told[0] == told[-1] and len(set(told)) == 2
