"""Output of a benchmark: files that are the same in each run, tables, charts."""

# SPDX-License-Identifier: BSD-2-Clause

import importlib
import json

import pytest
from dibber_cli.bench import TESTS, calibrate, chart, litepcie, report, session
from dibber_cli.bench.views import Panel, Table
from dibber_cli.main import main

pytestmark = pytest.mark.fault

SERIES = ("put-dst-strided", "put-src-strided", "local-copy", "litepcie-descriptors")
TABLES = [Table("stride", list(SERIES))]
PANELS = [
    Panel(
        "64 KiB a transfer, profile gen2x4",
        list(SERIES),
        "stride (elements of 8 bytes)",
        history=True,
    )
]


def point(series, x):
    row = {
        "series": series,
        "x": x,
        "x_unit": "elements",
        "value": 400.0 + x,
        "unit": "MB/s",
        "bound": 494.2,
        "bound_by": "link" if x < 64 else "pcie_up",
        "limit": 480.0,
        "limited_by": "scatter",
        "cycles": 100,
        "cpu_percent": 0.1,
    }
    if series == "local-copy":
        row.update(value=5000.0 * x, bound=None, limit=None, limited_by=None)
    if series == "put-src-strided":
        row.update(limit=None, limited_by="latency")
    if series == "litepcie-descriptors":
        row.update(
            value=None,
            bound=None,
            limit=None,
            limited_by=None,
            cpu_percent=None,
            not_possible="it hangs",
        )
    return row


@pytest.fixture
def result():
    return {
        "test": "stride",
        "profile": "gen2x4",
        "seed": 1,
        "command": "c",
        "versions": {},
        "time_base": "simulated",
        "bytes_compared": 10,
        "guard_bytes_compared": 5,
        "bytes_wrong": 0,
        "wall_seconds": 1.0,
        "points": [point(s, x) for s in SERIES for x in (1, 2, 64)],
        "findings": ["N½ of put: 99 bytes"],
        "notes": ["all is computed"],
    }


def test_each_benchmark_is_a_module_with_what_a_run_needs():
    for name in TESTS:
        test = importlib.import_module(f"dibber_cli.bench.{name}")
        assert test.NAME == name and all(
            callable(getattr(test, f)) for f in ("points", "evaluate", "tables", "panels")
        )


def test_a_report_is_four_files_that_do_not_change_from_run_to_run(result, tmp_path):
    first, second = (report.write(result, PANELS, tmp_path / folder) for folder in "ab")
    assert [f.name for f in first] == [
        f"stride-gen2x4.{kind}" for kind in ("json", "csv", "png", "svg")
    ]
    assert json.loads(first[0].read_text()) == result
    lines = first[1].read_text().splitlines()
    assert (
        lines[0] == "series,x,x_unit,value,unit,bound,bound_by,limit,limited_by,cycles,cpu_percent,"
        "not_possible"
    )
    assert lines[1] == "put-dst-strided,1,elements,401.0,MB/s,494.2,link,480.0,scatter,100,0.1,"
    assert lines[-1].endswith(",it hangs")
    for one, other in zip(first, second):
        assert one.read_bytes() == other.read_bytes()


def test_the_chart_has_units_the_bound_with_its_cause_1998_and_what_is_off_the_scale(
    result, tmp_path
):
    chart.draw(result, PANELS, [tmp_path / "c.svg"])
    text = (tmp_path / "c.svg").read_text()
    for words in (
        "MB/s",
        "elements",
        "bound: link, PCIe up",
        "126 MB/s",
        "gen2x4",
        "simulated",
        "local-copy: 5000 … 320000 MB/s",
        "litepcie-descriptors: not possible",
    ):
        assert words in text


def test_what_was_not_measured_is_not_in_the_legend(result, tmp_path):
    chart.draw(
        result,
        [Panel("64 KiB", ["put-dst-strided", "get-dst-strided"], "stride")],
        [tmp_path / "c.svg"],
    )
    text = (tmp_path / "c.svg").read_text()
    assert "put-dst-strided" in text and "get-dst-strided" not in text


def test_shapes_have_names_on_their_axis(result, tmp_path):
    for p in result["points"]:
        p["x"] = f"shape {p['x']}"
    chart.draw(result, PANELS, [tmp_path / "c.svg"])
    assert "shape 64" in (tmp_path / "c.svg").read_text()


def test_the_table_has_value_bound_share_limit_and_cpu_side_by_side(result, capsys):
    report.show(result, TABLES)
    lines = capsys.readouterr().out.splitlines()
    assert lines[4].split() == [
        "1",
        "401.0",
        "494.2",
        "81",
        "480.0",
        "scatter",
        "0.1",
        "401.0",
        "494.2",
        "81",
        "latency",
        "0.1",
    ]
    # Two series fill the 100 columns; the other two stand below.
    below = next(n for n, line in enumerate(lines[5:], 5) if line.startswith("stride"))
    assert lines[below + 2].split() == [
        "1",
        "5000.0",
        "–",
        "–",
        "–",
        "0.1",
        "–",
        "–",
        "–",
        "–",
        "–",
    ]
    assert max(map(len, lines[2 : below + 5])) <= 100


def test_a_time_is_shown_in_microseconds_and_the_bound_is_below_it(result, capsys, tmp_path):
    for p in result["points"]:
        p.update(unit="us", value=2.0, bound=0.7, limit=None, limited_by="control program")
    report.show(result, [Table("percentile", ["put-dst-strided"])])
    out = capsys.readouterr().out
    assert "microseconds in simulated time" in out
    assert out.splitlines()[4].split() == ["1", "2.000", "0.700", "35", "control", "program", "0.1"]
    chart.draw(result, [Panel("8 bytes", ["put-dst-strided"], "percentile")], [tmp_path / "c.svg"])
    assert "latency (us, simulated time)" in (tmp_path / "c.svg").read_text()


def test_what_was_found_and_what_is_not_possible_is_said(result, capsys):
    report.show(result, TABLES)
    out = capsys.readouterr().out
    for line in (
        "N½ of put: 99 bytes",
        "all is computed",
        "litepcie-descriptors at 1, 2, 64: not possible: it hangs",
        "10 payload and 5 guard bytes compared, 0 wrong; 1.0 s",
    ):
        assert line in out


@pytest.mark.parametrize("wrong, code", [(0, 0), (3, 1)])
def test_the_command_writes_prints_and_ends_with_1_when_bytes_are_wrong(
    result, monkeypatch, tmp_path, capsys, wrong, code
):
    monkeypatch.setattr(
        session,
        "run",
        lambda test, profile, seed, command, *_: {
            **result,
            "test": test.NAME,
            "command": command,
            "bytes_wrong": wrong,
        },
    )
    # Nothing is measured here, so the peer need not be built.
    monkeypatch.setattr(litepcie, "_binary", lambda: tmp_path)
    assert main(["bench", "stride", "--seed", "7", "--out", str(tmp_path)]) == code
    out, err = capsys.readouterr()
    assert "put-dst-strided" in out and ("3 bytes are wrong" in err) == bool(wrong)
    assert json.loads((tmp_path / "stride-gen2x4.json").read_text())["command"] == (
        "dibber bench stride --profile gen2x4 --seed 7"
    )


def test_calibrate_prints_its_constants_beside_the_profiles(monkeypatch, capsys):
    monkeypatch.setattr(
        calibrate,
        "measure",
        lambda mib: {
            (size, stride, kind): 0.5 * stride
            for size in (1, 8, 64)
            for stride in (1, 2, 16, 64)
            for kind in calibrate.KINDS
        },
    )
    assert main(["bench", "calibrate"]) == 0
    lines = {
        line.split()[0]: line.split()[1:]
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("copy_")
    }
    assert lines["copy_element_ns"] == ["0.50", "0.30"] and lines["copy_line_ns"] == [
        "2.00",
        "2.20",
    ]
