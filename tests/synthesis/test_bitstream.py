"""A bitstream is packed when every clock met its time, and not otherwise. The tools answer at once
here.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json

import bitstream
import flow
import pytest

WANTED = {"sys_clk": 80e6, "tx_clk": 125e6}
NETS = {"sys_clk": 2, "crg_clkout0": 2, "tx_clk": 3, "serdes_txoutclk": 3, "clk100": 4}


def fmax(**clocks):
    """A report of clock net -> (achieved, constraint), in MHz."""
    return {
        "fmax": {
            name: {"achieved": achieved, "constraint": constraint}
            for name, (achieved, constraint) in clocks.items()
        }
    }


def met(report):
    return {row["clock"]: row["met"] for row in bitstream.clocks(report, NETS, WANTED)}


def test_a_clock_is_known_by_any_name_of_its_net():
    rows = bitstream.clocks(
        fmax(**{"$glbnet$crg_clkout0": (85.04, 80), "serdes_txoutclk": (160, 125)}), NETS, WANTED
    )
    assert rows == [
        {"clock": "sys_clk", "mhz": 85.0, "needed_mhz": 80.0, "met": True},
        {"clock": "tx_clk", "mhz": 160, "needed_mhz": 125.0, "met": True},
    ]


def test_a_clock_that_is_too_slow_is_missed():
    assert met(fmax(sys_clk=(79.9, 80), tx_clk=(160, 125))) == {"sys_clk": False, "tx_clk": True}


def test_a_clock_that_nextpnr_was_not_told_of_is_missed_however_fast():
    assert met(fmax(sys_clk=(85, 80), tx_clk=(160, 12))) == {"sys_clk": True, "tx_clk": False}


def test_a_clock_that_is_not_in_the_report_and_one_that_nobody_wanted_are_missed():
    assert met(fmax(sys_clk=(85, 80))) == {"sys_clk": True, "tx_clk": False}
    assert met(fmax(sys_clk=(85, 80), tx_clk=(160, 125), clk100=(500, 12))) == {
        "sys_clk": True,
        "tx_clk": True,
        "clk100": False,
    }


# Build --------------------------------------------------------------------------------------------


class Board:
    device, clocks, recipe = "a part", WANTED, bitstream.Recipe()


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Tools whose report the test sets; `runs` is what was started."""

    class Tools:
        runs = []
        report = fmax(sys_clk=(85, 80), tx_clk=(160, 125))

        def synthesize(self, folder, top, sources, luts):
            self.runs.append("yosys")
            return {"cells": {"lut4": 10}, "took": {"minutes": 2}}

        def place(self, folder, top, platform, wanted, seed, recipe):
            self.runs.append("nextpnr")
            return {
                "clocks": bitstream.clocks(self.report, NETS, wanted),
                "resources": {"ff": {"used": 4, "available": 8}},
                "critical_path": {"from": "a", "to": "b", "ns": 1, "stages": 1},
                "took": {"minutes": 9, "peak_mb": 1},
            }

        def pack(self, folder, top, seed):
            self.runs.append("ecppack")
            for suffix in ("bit", "svf"):
                (folder / f"{top}-{seed}.{suffix}").write_text(suffix)
            return {"took": {"minutes": 1}}

    def generate(folder, top, platform, card):
        flow.fresh(folder)
        for name in (f"{top}.v", f"{top}.lpf"):
            (folder / name).write_text("")
        return [f"{top}.v"], []

    tools = Tools()
    tools.runs = []
    monkeypatch.setattr(flow, "ROOT", tmp_path)
    monkeypatch.setattr(flow, "BUILD", tmp_path / "build")
    monkeypatch.setattr(flow, "versions", lambda: ["tools 1"])
    monkeypatch.setattr(flow, "recipes", lambda: [])
    monkeypatch.setattr(bitstream, "OUT", tmp_path / "out")
    monkeypatch.setattr(bitstream, "generate", generate)
    for name in ("synthesize", "place", "pack"):
        monkeypatch.setattr(bitstream, name, getattr(tools, name))
    return tools


def test_a_bitstream_has_its_manifest_and_interface_files_and_is_not_made_again(tools, tmp_path):
    for _ in range(2):
        bitstream.build("board", Board, Board, seeds=[3])
    assert tools.runs == ["yosys", "nextpnr", "ecppack"]
    out = tmp_path / "out" / "board"
    manifest = json.loads((out / "manifest.json").read_text())
    assert {path.name for path in out.iterdir()} == {
        "dibber_board.bit",
        "dibber_board.svf",
        "manifest.json",
        "dibber_interface.h",
        "interface.md",
    }
    assert manifest["seed"] == 3 and manifest["took"]["yosys"] == {"minutes": 2}
    assert set(manifest["files"]) == {"dibber_board.bit", "dibber_board.svf"}


def test_a_design_that_missed_a_clock_is_not_packed_and_an_older_bitstream_does_not_stay(
    tools, tmp_path
):
    bitstream.build("board", Board, Board, seeds=[1])
    tools.report = fmax(sys_clk=(79, 80), tx_clk=(160, 125))
    with pytest.raises(SystemExit, match="sys_clk"):
        bitstream.build("board", Board, Board, seeds=[2])
    assert tools.runs.count("ecppack") == 1
    assert list((tmp_path / "out" / "board").iterdir()) == []


def test_of_several_seeds_the_best_is_packed_and_the_worst_of_each_clock_is_told(
    tools, tmp_path, monkeypatch
):
    reports = {
        1: fmax(sys_clk=(90, 80), tx_clk=(126, 125)),
        2: fmax(sys_clk=(79, 80), tx_clk=(300, 125)),
        3: fmax(sys_clk=(88, 80), tx_clk=(150, 125)),
    }
    place = bitstream.place

    def placed(folder, top, platform, wanted, seed, recipe):
        tools.report = reports[seed]
        return place(folder, top, platform, wanted, seed, recipe)

    monkeypatch.setattr(bitstream, "place", placed)
    said = []
    found = bitstream.build("board", Board, Board, seeds=[1, 2, 3], say=said.append)
    assert (
        found["worst"] == {"sys_clk": 79, "tx_clk": 126}
        and found["packed"] == 3
        and list(found["seeds"]) == [1, 2, 3]
    )
    assert [line.split() for line in said[-5:]] == [
        ["seed", "sys_clk", "tx_clk"],
        ["1", "90.0", "126.0"],
        ["2", "79.0", "300.0"],
        ["3", "88.0", "150.0"],
        ["worst", "79.0", "126.0"],
    ]
    assert (
        tools.runs.count("ecppack") == 1
        and json.loads((tmp_path / "out" / "board" / "manifest.json").read_text())["seed"] == 3
    )


# Gate ---------------------------------------------------------------------------------------------


def test_figures_may_move_within_the_margins_and_no_further():
    kept = {"mhz": {"sys_clk": 100.0, "tx_clk": 200.0}, "used": {"ff": 1000, "lut4": 2000}}
    placed = lambda sys, tx, ff, lut: {
        "clocks": [
            {"clock": "sys_clk", "mhz": sys, "needed_mhz": 80},
            {"clock": "tx_clk", "mhz": tx, "needed_mhz": 75},
        ],
        "resources": {"ff": {"used": ff}, "lut4": {"used": lut}, "dcu": {"used": 1}},
    }
    slow, large = 1 - bitstream.SLOWER, 1 + bitstream.LARGER
    assert bitstream.behind(placed(100 * slow, 150 * slow, 1000 * large, 2000 * large), kept) == []
    assert bitstream.behind(
        placed(100 * slow - 0.1, 150 * slow - 0.1, 1000, 2001 * large), kept
    ) == ["sys_clk 84.9 MHz, was 100.0", "tx_clk 127.4 MHz, was 200.0", "lut4 2101.05, was 2000"]


def test_a_bitstream_behind_the_kept_figures_is_not_published(tools, tmp_path, monkeypatch):
    kept = tmp_path / "kept.json"
    kept.write_text(
        json.dumps({"board": {"mhz": {"sys_clk": 110, "tx_clk": 160}, "used": {"ff": 4}}})
    )
    monkeypatch.setattr(bitstream, "KEPT", kept)
    with pytest.raises(SystemExit, match="sys_clk 85 MHz, was 110"):
        bitstream.build("board", Board, Board, seeds=[1], gate=True)
    assert list((tmp_path / "out" / "board").iterdir()) == []
    kept.write_text(
        json.dumps({"board": {"mhz": {"sys_clk": 90, "tx_clk": 160}, "used": {"ff": 4}}})
    )
    bitstream.build("board", Board, Board, seeds=[1], gate=True)
    assert (tmp_path / "out" / "board" / "dibber_board.bit").exists()


def test_a_board_without_kept_figures_is_not_gated_and_nothing_is_built(
    tools, tmp_path, monkeypatch
):
    kept = tmp_path / "kept.json"
    kept.write_text(json.dumps({"other": {}}))
    monkeypatch.setattr(bitstream, "KEPT", kept)
    with pytest.raises(
        SystemExit, match="kept.json keeps no figures of board; it has those of other"
    ):
        bitstream.build("board", Board, Board, seeds=[1], gate=True)
    assert tools.runs == []
