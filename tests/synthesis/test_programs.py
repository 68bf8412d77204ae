"""The measuring programs, with tools that answer at once: their output and failures."""

# SPDX-License-Identifier: BSD-2-Clause

import json

import ecp5
import engines
import flow
import pytest

CELLS = {"LUT4": 10, "TRELLIS_FF": 4}
BLOCK_VERILOG = """
module card (
    input wire sys_clk,
    input wire d,
    output reg q
);
endmodule
"""


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Tools whose clock and sizes the test sets; `runs` is what was started."""

    class Tools:
        mhz, luts, runs = 120.0, 1000, []

        def report(self):
            hop = lambda kind, delay: {
                "type": kind,
                "delay": delay,
                "from": {"cell": "dut.a_TRELLIS_FF_Q"},
                "to": {"cell": "dut.b_TRELLIS_FF_Q"},
            }
            return {
                "fmax": {"clk": {"achieved": self.mhz}},
                "utilization": {"TRELLIS_FF": {"used": 4}},
                "critical_paths": [
                    {"from": "clk", "to": "clk", "path": [hop("logic", 0.25), hop("routing", 0.5)]}
                ],
                "detailed_net_timings": [
                    {"endpoints": [{"cell": "dut.b_TRELLIS_FF_Q", "delay": [0.5, 0.75]}]}
                ],
            }

    tools = Tools()
    tools.runs = []

    def does(name, answer):
        def run(*args):
            tools.runs.append(name)
            return answer()

        return run

    def verilog(*args):
        """A core of two pins in the place of the real one."""
        folder = flow.fresh(tmp_path / "verilog")
        (folder / "card.v").write_text(BLOCK_VERILOG)
        (folder / "harness.v").write_text(flow.harness("card", flow.ports(BLOCK_VERILOG, "card")))
        return folder, ["card.v"], []

    monkeypatch.setattr(flow, "ROOT", tmp_path)
    monkeypatch.setattr(flow, "BUILD", tmp_path / "build")
    monkeypatch.setattr(flow, "versions", lambda: ["tools 1"])
    monkeypatch.setattr(flow, "synthesize_ecp5", does("yosys ecp5", lambda: CELLS))
    monkeypatch.setattr(
        flow, "synthesize_artix7", does("yosys artix7", lambda: {"LUT6": tools.luts, "FDRE": 4})
    )
    monkeypatch.setattr(flow, "place_ecp5", does("nextpnr", tools.report))
    monkeypatch.setattr(flow, "recipes", lambda: [])
    monkeypatch.setattr(engines, "RESULT", tmp_path / "out" / "synthesis.json")
    monkeypatch.setattr(ecp5, "generate", verilog)
    return tools


def call(program, monkeypatch, *arguments):
    """The status that the program ends with."""
    monkeypatch.setattr("sys.argv", ["program", *arguments])
    try:
        program.main()
    except SystemExit as end:
        return end.code
    return 0


def test_a_block_has_a_figure_and_a_second_run_starts_no_tool(tools, monkeypatch, tmp_path):
    assert call(engines, monkeypatch, "--only", "regions") == 0
    assert tools.runs == ["yosys ecp5", "yosys artix7", "nextpnr"]
    result = json.loads((tmp_path / "out" / "synthesis.json").read_text())
    assert (
        result["blocks"][0]["ecp5"]["lut4"] == 10 and result["blocks"][0]["artix7"]["lut6"] == 1000
    )
    assert [(row["id"], row["value"], row["pass"]) for row in result["figures"]] == [
        ("synthesis-regions-64", 120.0, True)
    ]
    assert call(engines, monkeypatch, "--only", "regions") == 0
    assert len(tools.runs) == 3


def test_sizes_alone_need_no_nextpnr_and_other_rows_stay(tools, monkeypatch, tmp_path):
    assert call(engines, monkeypatch, "--only", "slots") == 0
    assert call(engines, monkeypatch, "--only", "regions", "--no-route") == 0
    result = json.loads((tmp_path / "out" / "synthesis.json").read_text())
    assert [row["block"] for row in result["blocks"]] == ["slots", "regions"]
    assert [row["id"] for row in result["figures"]] == ["synthesis-slots-64"]
    assert tools.runs.count("nextpnr") == 1


def test_a_slow_block_fails(tools, monkeypatch):
    tools.mhz = engines.TARGET_MHZ - 1
    assert call(engines, monkeypatch, "--only", "regions") == 1


@pytest.mark.parametrize("mhz, status", [(ecp5.TARGET_MHZ, 0), (ecp5.TARGET_MHZ - 1, 1)])
def test_the_core_fails_below_its_goal(mhz, status, tools, monkeypatch, tmp_path):
    tools.mhz = mhz
    assert call(ecp5, monkeypatch) == status
    result = json.loads((tmp_path / "out" / "synthesis-ecp5-64.json").read_text())
    assert result["figures"][0]["pass"] == (status == 0)
    assert result["slowest_registers"] == [[0.75, "b"]]


def test_an_estimate_after_placement_meets_no_goal(tools, monkeypatch, tmp_path):
    placed = tools.report
    monkeypatch.setattr(
        flow,
        "place_ecp5",
        lambda *args: {**placed(), "critical_paths": [], "detailed_net_timings": []},
    )
    call(ecp5, monkeypatch, "--no-route")
    figure = json.loads((tmp_path / "out" / "synthesis-ecp5-64.json").read_text())["figures"][0]
    assert not figure["pass"] and "estimated" in figure["unit"]


def test_other_options_are_measured_anew(tools, monkeypatch):
    call(ecp5, monkeypatch)
    call(ecp5, monkeypatch, "--nextpnr=--router router2")
    assert tools.runs == ["yosys ecp5", "nextpnr", "nextpnr"]
    call(ecp5, monkeypatch, "--yosys=-nowidelut")
    assert tools.runs[3:] == ["yosys ecp5", "nextpnr"]


def test_the_clock_is_shown_after_placement_and_after_routing(capsys):
    watch = flow.progress()
    watch(
        "Info: Max frequency for clock '$glbnet$sys_clk$TRELLIS_IO_IN': 61.40 MHz (FAIL at 100.00 "
        "MHz)\n"
    )
    watch("Info: HeAP Placer Time: 210.27s\n")
    watch(
        "Warning: Max frequency for clock '$glbnet$sys_clk$TRELLIS_IO_IN': 58.00 MHz (FAIL at "
        "100.00 MHz)\n"
    )
    shown = capsys.readouterr().err
    assert "61.40 MHz after placement" in shown and "58.00 MHz after routing" in shown
