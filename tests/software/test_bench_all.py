"""`dibber bench all` and `--quick`: every benchmark once, pages of all, and fewer points with a
note.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
from pathlib import Path

import pytest
from dibber_cli.bench import TESTS, chart, litepcie, mpi, results, session
from dibber_cli.errors import CommandError
from dibber_cli.main import main


def draw(report, panels, files):
    """In place of chart.draw(), which takes a second."""
    for file in files:
        file.write(b"<svg ></svg>") if hasattr(file, "write") else file.write_bytes(b"<svg ></svg>")


@pytest.fixture
def ran(monkeypatch):
    """Benchmarks that measure nothing; ran: [(test, number of points)]. `ran.wrong` and
    `ran.broken` name a faulty one.
    """

    class Ran(list):
        wrong = broken = None

    seen = Ran()

    def run(test, profile, seed, command, points, progress, cards=None, timeline=None):
        seen.append((test.NAME, len(points)))
        if test.NAME == seen.broken:
            raise CommandError("card 0: it hangs")
        # All of them as `rate` shows itself, which takes any series.
        row = {
            "series": "mcp",
            "x": 1,
            "x_unit": "outstanding",
            "value": 0.2,
            "unit": "Mmsg/s",
            "bound": 8.9,
            "bound_by": "link",
            "limit": None,
            "limited_by": "link",
            "cycles": 1,
            "cpu_percent": 1.0,
        }
        return {
            "test": test.NAME,
            "profile": profile.name,
            "machine": {},
            "seed": seed,
            "command": command,
            "versions": {"gateware": "a"},
            "time_base": "simulated",
            "bytes_compared": 8,
            "guard_bytes_compared": 8,
            "bytes_wrong": int(test.NAME == seen.wrong),
            "wall_seconds": 0.1,
            "points": [row],
            "findings": [],
            "notes": ["measured"],
        }

    rate = results.module("rate")
    for name in TESTS:
        for view in ("tables", "panels"):
            monkeypatch.setattr(results.module(name), view, getattr(rate, view))
    monkeypatch.setattr(session, "run", run)
    # Nothing is measured here, so the peer need not be built.
    monkeypatch.setattr(litepcie, "_binary", lambda: Path(__file__))
    monkeypatch.setattr(mpi, "check", lambda: None)
    monkeypatch.setattr(chart, "draw", draw)
    return seen


def test_every_benchmark_is_run_once_and_the_pages_have_them_all(ran, tmp_path, capsys):
    assert main(["bench", "all", "--out", str(tmp_path)]) == 0
    assert [name for name, _ in ran] == list(TESTS)
    out, text = capsys.readouterr().out, (tmp_path / "report.html").read_text()
    for name in TESTS:
        assert f"{name}-gen2x4" in text and name in out


def test_one_that_fails_is_named_and_the_others_are_measured(ran, tmp_path, capsys):
    ran.broken, ran.wrong = "block", "rate"
    assert main(["bench", "all", "--out", str(tmp_path), "--json"]) == 1
    out, err = capsys.readouterr()
    found = {row["test"]: row for row in json.loads(out)["tests"]}
    assert found["block"]["failed"] == "card 0: it hangs"
    assert found["rate"]["bytes_wrong"] == 1 and found["soak"]["bytes_wrong"] == 0
    assert (
        "failed: block, rate" in err and "block-gen2x4" not in (tmp_path / "report.md").read_text()
    )


def test_quick_has_fewer_points_and_every_result_says_so(ran, tmp_path):
    assert main(["bench", "all", "--out", str(tmp_path / "all")]) == 0
    full = dict(ran)
    ran.clear()
    assert main(["bench", "all", "--quick", "--out", str(tmp_path / "quick")]) == 0
    quick = dict(ran)
    assert (
        all(quick[name] <= full[name] for name in TESTS)
        and sum(quick.values()) < sum(full.values()) / 2
    )
    for name in TESTS:
        result = json.loads((tmp_path / "quick" / f"{name}-gen2x4.json").read_text())
        assert result["quick"] and result["command"].endswith("--quick")
        assert result["notes"][0].startswith(f"quick: {quick[name]} of {full[name]} points")
    assert "quick" not in json.loads((tmp_path / "all" / "rate-gen2x4.json").read_text())
    assert (tmp_path / "quick" / "report.md").read_text().count("a quick run") == len(TESTS)


def test_series_and_quick_together_choose_both(ran, tmp_path):
    assert main(["bench", "block", "--quick", "--series", "put,get", "--out", str(tmp_path)]) == 0
    assert ran == [("block", 2 * len(results.module("block").QUICK["sizes"]))]


@pytest.mark.parametrize("name", TESTS)
def test_what_quick_leaves_is_part_of_all(name):
    test = results.module(name)
    full, quick = (
        {(p.series, p.x) for p in points} for points in (test.points(), test.points(**test.QUICK))
    )
    assert quick and quick <= full


# Before and after -------------------------------------------------------------------------------


@pytest.mark.fault
@pytest.mark.parametrize("command", ["stride", "element", "all"])
def test_what_is_not_built_is_said_before_anything_is_measured(
    ran, tmp_path, monkeypatch, capsys, command
):
    monkeypatch.setattr(litepcie, "_binary", lambda: tmp_path / "nothing")
    assert main(["bench", command, "--out", str(tmp_path)]) == 1
    assert ran == [] and "make reference" in capsys.readouterr().err


@pytest.mark.fault
def test_a_folder_that_cannot_be_written_is_said_before_anything_is_measured(ran, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below", "/proc/dibber"):
        assert main(["bench", "latency", "--out", str(out)]) == 1
        assert ran == [] and f"results cannot be written to {out}" in capsys.readouterr().err


@pytest.mark.fault
def test_what_was_measured_before_a_failure_is_kept(monkeypatch, tmp_path, capsys):
    def run(*_):
        error = CommandError("card 0: it hangs", "look at it")
        error.measured = [{"series": "put", "x": 1, "elapsed_ps": [5, None]}]
        raise error

    monkeypatch.setattr(session, "run", run)
    assert main(["bench", "latency", "--out", str(tmp_path)]) == 1
    kept = tmp_path / "latency-gen2x4.partial.json"
    assert str(kept) in capsys.readouterr().err
    assert json.loads(kept.read_text())["measured"] == [
        {"series": "put", "x": 1, "elapsed_ps": [5, None]}
    ]
