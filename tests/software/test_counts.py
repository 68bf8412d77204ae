"""A wrapped counter, a card that was reset, and reasons for dropped packets."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import re

import pytest
from dibber.interface.description import COUNTERS
from dibber_cli import counts, monitor
from dibber_cli.fw import top, trace
from dibber_cli.fw.shared import Shared
from dibber_cli.link import causes, status

from tests.software.test_cli_monitor import sampled as monitored
from tests.software.test_fw import sampled as topped

pytestmark = pytest.mark.fault

SECOND = 125_000_000  # cycles


@pytest.mark.parametrize(
    "before, after, cycles, reset",
    [
        ({"a": 5}, {"a": 9}, (100, 200), False),
        ({"a": 2**32 - 1}, {"a": 4}, (0, SECOND), False),  # wrapped
        ({"a": 2**32 - 1}, {"a": 0}, (0, 1), False),
        ({"a": 5}, {"a": 9}, (10**12, 200), True),  # the clock went back
        # early in the card's life: the clock did not
        ({"a": 1_000_000}, {"a": 0}, (1000, SECOND), True),
        ({"a": 3}, {"a": 2}, (SECOND, 2 * SECOND), True),
        ({"a": 3, "b": 7}, {"a": 3, "b": 7}, (10**13, 10**13 + 1), False),
    ],
)
def test_a_reset_and_a_wrap_are_told_apart(before, after, cycles, reset):
    assert counts.was_reset(before, after, *cycles) == reset
    assert counts.changes(before, after, reset) == (
        after if reset else {name: (after[name] - before[name]) % 2**32 for name in after}
    )


def test_after_a_reset_the_monitor_counts_from_0_and_finds_no_error_that_did_not_happen():
    rates = monitor.between(
        monitored(900 * SECOND, doorbells=70_000, code_errors=3, packets_sent=10**6),
        monitored(SECOND, doorbells=500),
        SECOND,
    )
    assert rates["reset"] and rates["seconds"] == 1 and rates["doorbells_per_s"] == 500
    assert rates["errors"] == 0 and rates["packets_sent_per_s"] == 0
    assert not monitor.between(monitored(0), monitored(SECOND, doorbells=5), SECOND)["reset"]


def test_after_a_new_program_fw_top_counts_from_0():
    rates = top.between(
        topped(SECOND, 900, 90_000_000, 50_000_000, 70),
        topped(2 * SECOND, 10, 1_250_000, 100_000, 75),
        SECOND,
    )
    assert rates["restarted"] and rates["seconds"] == 1
    assert rates["handlers"]["command"]["calls"] == 10 and rates["busy_percent"] == 1
    # hardware goes on counting
    assert rates["per_s"]["turns"] == 100_000 and rates["per_s"]["posts"] == 5
    rates = top.between(topped(9 * SECOND, 900, 1, 1, 70), topped(SECOND, 10, 1, 1, 3), SECOND)
    assert rates["restarted"] and rates["per_s"]["posts"] == 3


def test_the_trace_of_a_program_that_began_anew_is_shown_from_its_start():
    from tests.software.test_fw import SRAM_BYTES, Memory

    memory = Memory()
    memory.trace(0, 1, 2)
    entries, lost, following = trace.read(Shared(memory.read, SRAM_BYTES), since=500)
    assert len(entries) == 1 and lost == 0 and following == 1


# Causes -------------------------------------------------------------------------------------------


def lost(card, **counted):
    zero = {name.lower(): 0 for name, _ in COUNTERS}
    return [{**zero, **(counted if card == n else {})} for n in range(2)]


def test_a_transfer_without_loss_needs_no_sentence():
    assert causes.sentences(lost(0)) == []
    assert causes.sentences(lost(1, stops_sent=30, acks_sent=9, packets_sent=9)) == []


@pytest.mark.parametrize("card", [0, 1])
@pytest.mark.parametrize("name", [name for name, _ in causes.CAUSES])
def test_each_counter_of_loss_has_a_sentence_that_names_the_card(name, card):
    said = causes.sentences(lost(card, **{name: 7}), metres=99.2)
    assert len(said) == 1 and f"card {card}" in said[0] and "7" in said[0]


def test_a_cable_beyond_the_reach_of_flow_control_is_not_called_damage():
    said = "; ".join(
        causes.sentences(
            lost(1, slack_overflow=21, packet_truncated=11, packet_gap=12), metres=99.2
        )
    )
    assert "the cable of 99.2 m is longer than STOP and GO reach" in said
    assert "cut off" not in said and "damaged" not in said and "12 packets that came behind" in said


def test_a_flap_is_not_called_damage():
    said = causes.sentences(
        lost(1, link_lost=1, code_errors=16, disparity_errors=9, packet_truncated=1, packet_gap=1)
    )
    assert said == [
        "card 1 lost the link once: a plug that is loose, or the other end was reset",
        "1 packets that came behind a missing one were dropped, and all were sent again",
    ]


def test_a_gap_that_no_counter_explains_is_said_to_be_unexplained():
    assert "no counter tells why" in causes.sentences(lost(1, packet_gap=3))[0]
    assert "came twice" in causes.sentences(lost(1, packet_duplicate=3))[0]


def test_dropped_frames_of_a_link_over_ethernet_are_no_symbols():
    said = causes.sentences(lost(1, code_errors=3, packet_gap=3), ethernet=True)
    assert said[0].startswith("card 1 dropped 3 frames with a wrong FCS")


def test_each_counter_of_the_card_that_tells_of_loss_has_a_cause_or_is_a_consequence():
    told = {name for name, _ in causes.CAUSES} | {causes.GAP, causes.DOUBLE}
    kinds = (
        "_CRC_ERROR",
        "_TRUNCATED",
        "_OVERFLOW",
        "_LOST",
        "_MISROUTED",
        "_WRONG_NODE",
        "_REFUSED",
        "CODE_ERRORS",
        "DISPARITY_ERRORS",
    )
    of_loss = {name.lower() for name, _ in COUNTERS if name.endswith(kinds)} - {"events_lost"}
    assert of_loss <= told


def test_the_page_of_verdicts_has_each_sentence():
    page = (pathlib.Path(__file__).parents[2] / "docs" / "verdicts.md").read_text()
    for name, text in causes.CAUSES:
        assert (
            f"| {name.upper()} | "
            + text.format(card="N", other="M", n="…", times="… times", length="the cable of … m ")
            in page
        )
    for name, text in causes.OVER_ETHERNET.items():
        said = text.format(card="N", n="…")
        assert f"| {name.upper()}, link over Ethernet | {said} |" in page
    for reason, sentence in status.ADVICE.items():
        assert re.search(rf"\| {reason} \|[^|]*\| {re.escape(sentence)} \|", page), reason
