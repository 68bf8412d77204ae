"""The program that checks the PCIe boards: its kept files, output and exit code. The tools answer
at once here.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json

import flow
import pytest
import xilinx

CLOCKED = {
    "modules": {
        "dibber_kc705": {
            "netnames": {
                "sys_clk": {"bits": [2], "attributes": {}},
                "d": {"bits": [3], "attributes": {}},
                "q": {"bits": [4], "attributes": {}},
            },
            "cells": {
                "ff": {
                    "type": "FDRE",
                    "attributes": {},
                    "parameters": {},
                    "port_directions": {"C": "input", "D": "input", "Q": "output"},
                    "connections": {"C": [2], "D": [4], "Q": [4]},
                }
            },
        }
    }
}


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Tools whose answers the test sets; `runs` is what was started."""

    class Tools:
        runs = []
        count = {"FDRE": 1, "LUT6": 30_000, "pcie_s7": 1}
        said = []
        logs = {}  # of the core and of the board: what Yosys said of latches
        large = ""  # memories of flip-flops

        def written(self, name, *files):
            folder = tmp_path / "generated" / name
            folder.mkdir(parents=True, exist_ok=True)
            for file in files:
                (folder / file).write_text("module")
            (folder / "dibber_kc705.xdc").write_text(
                "create_clock -name sys_clk -period 10 [get_nets sys_clk]\n"
            )
            return folder, list(files[:1]), []

        def generate(self, name, shell=False):
            return self.written("shell" if shell else "whole", "dibber_kc705.v", "pcie_s7.v")

        def generate_core(self, bits, fabric):
            assert (bits, fabric) == (128, "direct")
            return self.written("core", "dibber_core.v", "dibber_core_box.v")

        def lint(self, folder, name, sources, lanes, bits):
            self.runs.append("verilator")
            return self.said

        def synthesize(self, folder, name, sources, stub="", join=""):
            self.runs.append(f"yosys {name}")
            if name == "dibber_kc705":
                assert (
                    stub == "read_verilog -lib -DLANES=4 -DWIDTH=128 pcie_s7.v; read_verilog -lib "
                    "dibber_core_box.v;"
                )
                assert (folder / "core.json").read_text() == json.dumps(
                    CLOCKED
                ) and "read_json core.json" in join
            (folder / "netlist.json").write_text(json.dumps(CLOCKED))
            (folder / "drivers.log").write_text("")
            (folder / "latches.log").write_text(self.logs.get(name, ""))
            (folder / "memories.log").write_text(self.large)
            return self.count

    tools = Tools()
    tools.runs = []
    monkeypatch.setattr(flow, "BUILD", tmp_path / "build")
    monkeypatch.setattr(flow, "versions", lambda: ["tools 1"])
    monkeypatch.setattr(xilinx, "ROOT", tmp_path)
    monkeypatch.setattr(xilinx, "generate", tools.generate)
    monkeypatch.setattr(xilinx, "generate_core", tools.generate_core)
    # What is done is read from the source, which these stand-ins have as well.
    monkeypatch.setattr(xilinx, "lint", tools.lint)
    monkeypatch.setattr(xilinx, "synthesize", tools.synthesize)
    monkeypatch.setattr(xilinx.os, "nice", lambda by: None)
    return tools


def run(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["xilinx.py", *arguments])
    xilinx.main()


def test_shares_and_crossings_are_written_and_nothing_is_run_twice(
    tools, monkeypatch, tmp_path, capsys
):
    for _ in range(2):
        run(monkeypatch, "kc705")
    assert tools.runs == ["yosys dibber_core", "verilator", "yosys dibber_kc705"]
    result = json.loads((tmp_path / "out" / "synthesis-boards.json").read_text())
    found = result["designs"]["kc705"]
    assert found["pcie_block"] == {"lut6": 939, "ff": 1847, "ramb36": 8, "dsp48": 0}
    assert (
        found["percent"]["XC7K325T"]["lut6"] == 15.2
        and found["crossings"] == ["clock sys_clk"]
        and found["problems"] == []
    )
    assert found["hard_blocks"] == {"pcie_s7": 1}
    assert [(row["id"], row["value"], row["pass"]) for row in result["figures"]] == [
        ("synthesis-kc705-xc7k325t", 15.2, True)
    ]
    shown, said = capsys.readouterr()
    assert "XC7K325T   lut6 15.2 %" in shown and "the core lut6 30000" in shown
    assert [
        said.count(f"{step}\n")
        for step in ("board-core-128: Yosys", "kc705: Verilator", "board-kc705: Yosys")
    ] == [1, 1, 1]
    assert said.count("as it was kept") == 3


def test_what_was_interrupted_goes_on_with_the_run_that_it_was_in(tools, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(xilinx, "lint", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(monkeypatch, "kc705")
    assert tools.runs == ["yosys dibber_core"]
    # `lint` is part of what is hashed for Verilator alone.
    run(monkeypatch, "kc705")
    assert tools.runs == ["yosys dibber_core", "verilator", "yosys dibber_kc705"]


def test_it_is_said_again_what_is_done_and_how_far_yosys_is(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(xilinx, "BEAT", 0.01)
    said = ""
    with xilinx.told("core: Yosys", tmp_path):
        for file in (None, "latches.log", "memories.log"):
            if file:
                (tmp_path / file).write_text("")
            before = said.count("\n")
            while said.count("\n") < before + 3:
                said += capsys.readouterr().err
    words = [line.split(" s  ")[1] for line in said.splitlines()]
    assert list(dict.fromkeys(words)) == [
        "core: Yosys",
        "core: Yosys: memories",
        "core: Yosys: logic",
    ]
    assert all(line.startswith("synthesis ") and " s  " in line for line in said.splitlines())


@pytest.mark.parametrize(
    "change, complaint",
    [
        (
            {"count": {"FDRE": 1, "LUT6": 203_801}},
            "kc705: 204740 lut6 on an XC7K325T, which has 203800",
        ),
        ({"count": {"FDRE": 1, "LDCE": 1}}, "kc705: latch LDCE"),
        ({"count": {"FDRE": 1, "odd": 1}}, "kc705: black box odd"),
        ({"said": ["%Warning-LATCH: x"]}, "kc705: %Warning-LATCH: x"),
        ({"logs": {"dibber_core": "latched"}}, "kc705: latch latched"),
        ({"large": "dibber_core/storage"}, "kc705: memory of flip-flops dibber_core/storage"),
    ],
)
def test_what_is_wrong_ends_it_with_1(tools, change, complaint, monkeypatch):
    for name, value in change.items():
        setattr(tools, name, value)
    with pytest.raises(SystemExit, match=complaint):
        run(monkeypatch, "kc705")


def test_a_design_that_there_is_not_is_refused(tools, monkeypatch):
    with pytest.raises(SystemExit):
        run(monkeypatch, "kc706")
    assert tools.runs == []


# Projects -----------------------------------------------------------------------------------------


def test_a_shell_is_the_same_whatever_was_made_before_it(monkeypatch, tmp_path):
    """What is kept goes by its text."""
    monkeypatch.setattr(flow, "BUILD", tmp_path)

    def text(name):
        folder, _, _ = xilinx.generate(name, shell=True)
        return [(folder / f"dibber_{name}.{suffix}").read_text() for suffix in ("v", "xdc")]

    first = text("kc705")
    text("acorn")
    assert text("kc705") == first


# Kept figures -------------------------------------------------------------------------------------


def test_the_pcie_block_is_estimated_from_one_that_vivado_made():
    assert xilinx.pcie_block(1, 64) == {"lut6": 322, "ff": 656, "ramb36": 8, "dsp48": 0}


def test_figures_are_kept_on_demand_and_those_of_other_designs_stay(tools, monkeypatch, tmp_path):
    marks = xilinx.BEGIN + "old\n" + xilinx.END
    monkeypatch.setattr(xilinx, "KEPT", tmp_path / "boards.json")
    monkeypatch.setattr(xilinx, "DOCS", tmp_path / "synthesis.md")
    none = dict.fromkeys(("lut6", "ff", "ramb36", "dsp48"), 0)
    (tmp_path / "boards.json").write_text(
        json.dumps({"vc707": {"used": none, "core": none, "pcie_block": none}})
    )
    (tmp_path / "synthesis.md").write_text(f"before\n{marks}after\n")
    run(monkeypatch, "kc705")
    assert marks in (tmp_path / "synthesis.md").read_text()
    run(monkeypatch, "kc705", "--write")
    text = (tmp_path / "synthesis.md").read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert (
        "| `kc705` | XC7K325T | 30,939, 15.2 % | 1,848, 0.5 % | 8, 1.8 % | 0, 0.0 % |" in text
        and "| `vc707` | XC7VX485T | 0, 0.0 %" in text
    )
    assert list(json.loads((tmp_path / "boards.json").read_text())) == ["kc705", "vc707"]


def test_the_docs_have_the_figures_that_are_kept():
    kept = json.loads(xilinx.KEPT.read_text())
    text = xilinx.DOCS.read_text()
    assert (
        list(kept) == [name for name in xilinx.DESIGNS if name in kept]
        and xilinx.replaced(text, kept) == text
    )
    used = {
        kind: number + kept["acorn"]["pcie_block"][kind]
        for kind, number in kept["acorn"]["used"].items()
    }
    share = xilinx.shares(used, ["XC7A100T"])["XC7A100T"]["lut6"]
    assert (
        f"{share} % of the LUT6 of an XC7A100T" in (xilinx.ROOT / "docs" / "status.md").read_text()
    )
