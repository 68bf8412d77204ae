"""`dibber bench window` on two simulated cards."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def report(program, tmp_path_factory):
    """The result of a quick run, and the chart as text."""
    out = tmp_path_factory.mktemp("out")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "dibber_cli", "bench", "window", "--quick", "--out", out],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((out / "window-gen2x4.json").read_text(encoding="utf-8"))
    return found, (out / "window-gen2x4.svg").read_text(encoding="utf-8")


def values(report, series):
    return {p["x"]: p for p in report[0]["points"] if p["series"] == series}


def test_every_byte_of_every_series_is_right(report):
    from dibber_cli.bench import window

    assert report[0]["bytes_wrong"] == 0 and report[0]["bytes_compared"] > 500_000
    assert {p["series"] for p in report[0]["points"]} == set(window.CHOICE)


@pytest.mark.parametrize("series", ["window-store", "window-memcpy"])
def test_stores_reach_nine_tenths_of_what_the_link_allows(report, series):
    for x, point in values(report, series).items():
        # A packet of 64 bytes has 104 on the cable, one of 8 has 48: docs/design/packets.md.
        assert point["bound"] == pytest.approx(500 * (64 / 104 if x == 1 else 8 / 48), abs=0.1)
        assert point["bound_by"] == "link" and point["value"] >= 0.9 * point["bound"], x


def test_the_engine_keeps_its_rate_at_strides_where_stores_lose_theirs(report):
    stores, engine = values(report, "window-store"), values(report, "put-dst-strided")
    for x in (2, 8, 64):
        assert stores[x]["value"] < 0.3 * stores[1]["value"]
        assert engine[x]["value"] > 5 * stores[x]["value"]
        assert stores[x]["cpu_percent"] == 100 and engine[x]["cpu_percent"] < 1


def test_the_times_of_one_access_are_those_of_the_page(report):
    for series, most in (("remote-store", 1.1), ("barrier", 1.45), ("remote-load", 2.7)):
        assert values(report, series)[50]["value"] <= most, series
