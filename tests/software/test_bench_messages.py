"""`latency` and `rate`: results from rounds and counters, and what the programs must agree on."""

# SPDX-License-Identifier: BSD-2-Clause

import numpy as np
import pytest
from dibber_cli import profile
from dibber_cli.bench import latency, rate, stages
from dibber_cli.bench.asking import Asking
from dibber_cli.bench.flood import Flood
from dibber_cli.bench.pingpong import PingPong


def busy(**cycles):
    return {
        **dict.fromkeys(
            (*stages.STAGES, *stages.HANDLERS, *(f"{h} calls" for h in stages.HANDLERS)), 0
        ),
        **cycles,
    }


def rounds(series, bulk, picoseconds):
    """A result of `latency`. Both control programs took a command a round, 100 and 200 cycles."""
    count = len(picoseconds)
    return {
        "point": PingPong(series, count, bulk, fast=series.startswith("fast")),
        "answers": [
            {"rounds_ps": picoseconds, "elapsed_ps": sum(picoseconds), "cpu_ps": 64_000 * count},
            {},
        ],
        "busy": [
            busy(COMMAND=100 * count, **{"COMMAND calls": count}),
            busy(COMMAND=200 * count, **{"COMMAND calls": count}),
        ],
    }


@pytest.fixture
def results():
    return [
        rounds("mcp", False, [4_000_000] * 98 + [8_000_000, 12_000_000]),
        rounds("mcp-under-bulk", True, [10_000_000] * 100),
    ]


def test_latency_is_half_of_a_round(results):
    report = latency.evaluate(profile.load("gen2x4"), 1, results)
    idle = {p["x"]: p["value"] for p in report["points"] if p["series"] == "mcp"}
    assert idle == {1: 2.0, 50: 2.0, 99: 4.0, 99.9: 6.0}
    assert "mcp: median under bulk 2.50 times idle" in report["findings"]


def test_stages_add_up_to_the_median(results):
    parts = latency.evaluate(profile.load("gen2x4"), 1, results)["stages_cycles"]["mcp"]
    assert parts["CPU charge"] == 8.0 and parts["control program"] == 150.0
    assert (parts["PCIe to the card"], parts["cable"], parts["PCIe to memory"]) == (
        25.0,
        19.4,
        25.0,
    )
    assert sum(parts.values()) == pytest.approx(250, abs=0.3)


def test_no_control_program_is_on_the_fast_path():
    results = [rounds("fastpath", False, [2_000_000] * 100)]
    report = latency.evaluate(profile.load("gen2x4"), 1, results)
    assert "control program" not in report["stages_cycles"]["fastpath"]
    assert {p["limited_by"] for p in report["points"]} == {"rest of both cards"}


def test_the_largest_stage_limits_latency(results):
    report = latency.evaluate(profile.load("gen2x4"), 1, results)
    parts = report["stages_cycles"]
    assert {p["limited_by"] for p in report["points"] if p["series"] == "mcp"} == {
        "control program"
    }
    assert {p["limited_by"] for p in report["points"] if p["series"] == "mcp-under-bulk"} == {
        "rest of both cards"
    }
    assert (
        parts["mcp-under-bulk"]["rest of both cards"] > parts["mcp-under-bulk"]["control program"]
    )


def test_no_latency_is_below_the_wire(results):
    for point in latency.evaluate(profile.load("gen2x4"), 1, results)["points"]:
        assert point["value"] > point["bound"] and point["bound_by"] == "wire"


def asked(series, picoseconds):
    """A result of a command with an answer: the program that asks had a handler of 100 cycles, the
    other one of 300.
    """
    count = len(picoseconds)
    return {
        "point": Asking(series, latency.ASKED[series], count),
        "answers": [
            {"rounds_ps": picoseconds, "elapsed_ps": sum(picoseconds), "cpu_ps": 64_000 * count},
            {},
        ],
        "busy": [busy(COMMAND=100 * count, ACK=1000 * count), busy(ARRIVAL=300 * count)],
    }


def test_of_what_has_an_answer_the_whole_round_counts():
    report = latency.evaluate(profile.load("gen2x4"), 1, [asked("mcp-get", [8_000_000] * 100)])
    idle = latency.evaluate(profile.load("gen2x4"), 1, [rounds("mcp", False, [8_000_000] * 100)])
    assert {p["value"] for p in report["points"]} == {8.0}
    assert report["points"][0]["bound"] == pytest.approx(2 * idle["points"][0]["bound"], abs=2e-4)
    parts = report["stages_cycles"]["mcp-get"]
    assert (parts["control program"], parts["cable"]) == (400.0, 38.8) and sum(
        parts.values()
    ) == pytest.approx(1000, abs=0.3)


def test_each_series_of_latency_can_be_chosen():
    points = latency.points()
    assert [p.series for p in points] == list(latency.CHOICE)
    assert all(p.fast == p.series.startswith("fastpath") for p in points)


def test_words_are_distinct_and_not_what_memory_holds_before():
    words = PingPong("mcp", 1000).words(1, 0)
    assert len(set(words.tolist())) == 1000 and words.max() < 0xEEEE_EEEE
    assert (words != PingPong("mcp", 1000).words(1, 1)).any()


def test_rate_counts_messages_and_names_the_limit():
    flood = Flood("mcp", 8, 1, 100)
    result = {
        "point": flood,
        "answers": [{"elapsed_ps": 200_000_000, "cpu_ps": 2_000_000}, {}],
        "busy": [busy(COMMAND=20_000), busy()],
    }
    report = rate.evaluate(profile.load("gen2x4"), 1, [result])
    (point,) = report["points"]
    assert (point["value"], point["unit"], point["cpu_percent"]) == (0.5, "Mmsg/s", 1.0)
    assert (point["limited_by"], point["limit"]) == ("control program", 0.625)
    assert report["best"] == {"mcp": 0.5}


def test_rate_goes_from_one_command_to_all_slots_and_from_one_endpoint_to_all():
    every = rate.points()
    points = [p for p in every if isinstance(p, Flood)]
    assert {p.outstanding for p in points} == {1, 2, 4, 8, 16, 32} and {
        p.endpoints for p in points
    } == {1, 2, 4, 8}
    assert {p.fast for p in points} == {True, False}
    assert [p.number for p in points] == list(range(48)) and len(
        {(p.series, p.x) for p in every}
    ) == len(every) == 60
    assert {(p.operation, p.outstanding) for p in every[48:]} == {
        (o, n) for o in ("get", "fetch-add") for n in (1, 2, 4, 8, 16, 32)
    }
    assert all(
        p.messages > 2 * p.outstanding * p.endpoints or p.messages == rate.MANY for p in points
    )


def test_messages_are_the_same_on_both_sides():
    flood = Flood("mcp", 8, 1, 100, number=3)
    assert flood.payload == 800 and (flood.data(1) == flood.data(1)).all()
    assert np.count_nonzero(flood.data(1) != flood.data(2)) > 700
