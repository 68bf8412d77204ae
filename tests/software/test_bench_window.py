"""`bench window`: its points, and what becomes of the answers of both programs, without a card."""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses

import pytest
from dibber_cli import paths, profile
from dibber_cli.bench import TESTS, chart, window
from dibber_cli.bench.window_program import BARRIER, LOAD, MEMCPY, STORE, VISIBLE
from dibber_cli.errors import CommandError

MACHINE = profile.load("gen2x4")


def result(name, answers):
    """A result of the first point of a series."""
    return {"point": window.points((name,))[0], "answers": answers, "busy": [{}, {}]}


def rows(*results):
    return window.evaluate(MACHINE, 1, list(results))["points"]


def test_a_quick_run_has_fewer_points_of_the_same_series_and_bench_all_has_none():
    few, full = window.points(**window.QUICK), window.points()
    assert len(few) < len(full) and {p.series for p in few} == {p.series for p in full}
    assert [p.number for p in full] == list(range(len(full))) and "window" not in TESTS


@pytest.mark.parametrize("name", [STORE, MEMCPY])
def test_a_rate_is_the_payload_over_the_time_to_the_barrier(name):
    answer = {"elapsed_ps": 60_000_000, "cpu_ps": 0}
    (row,) = rows(result(name, [answer, {}]))
    payload = window.ELEMENTS * 8
    assert row["value"] == pytest.approx(payload / 60, abs=0.1) and row["x"] == 1
    assert row["bound_by"] == "link" and row["cpu_percent"] == 100
    assert row["limited_by"] == ("link" if row["value"] >= 0.9 * row["bound"] else "latency")


def test_a_store_is_timed_until_the_other_side_sees_it():
    answers = [
        {"rounds_ps": [1_000_000, 20_000_000], "cpu_ps": 21_000},
        {"seen_ps": [2_050_000, 21_050_000]},
    ]
    found = rows(result(VISIBLE, answers))
    assert [row["value"] for row in found] == [1.05] * 3 and found[0]["unit"] == "us"
    assert found[0]["cpu_percent"] == 1


@pytest.mark.parametrize("name", [LOAD, BARRIER])
def test_a_processor_waits_for_a_load_and_for_a_barrier(name):
    found = rows(result(name, [{"rounds_ps": [2_000_000] * 9, "cpu_ps": 0}, {}]))
    assert {row["value"] for row in found} == {2.0}
    assert {row["cpu_percent"] for row in found} == {100}


def test_the_legend_says_what_each_series_stands_for():
    panel = window.panels({"profile": "x", "points": [{"series": STORE}]})[0]
    assert chart._label(panel, STORE) == f"{STORE}\n{window.STANDS_FOR[STORE]}"
    assert "SCI" in window.STANDS_FOR[STORE] and chart._label(panel, "other") == "other"
    assert set(window.STANDS_FOR) == set(panel.series)


def test_cards_that_are_not_built_are_an_error_that_says_how(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    with pytest.raises(CommandError, match="dibber-sim-128-window is not built") as error:
        window.measure(MACHINE, 1, window.points())
    assert "build.py --window" in error.value.advice
    assert paths.simulator(dataclasses.replace(MACHINE, window=True)).name.endswith("-window")
