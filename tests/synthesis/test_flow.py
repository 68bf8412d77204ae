"""What hw/synthesis reads out of Verilog and of the tools' reports. No tool runs here."""

# SPDX-License-Identifier: BSD-2-Clause

import json

import flow
import pytest

VERILOG = """
module block (
    input  wire          sys_clk,
    input  wire          sys_rst,
    input  wire   [63:0] sink_dat,
    output reg     [7:0] source_dat,
    output wire          source_valid
);
endmodule
"""


def test_ports_are_read_with_direction_and_width():
    assert flow.ports(VERILOG, "block") == [
        ("input", 1, "sys_clk"),
        ("input", 1, "sys_rst"),
        ("input", 64, "sink_dat"),
        ("output", 8, "source_dat"),
        ("output", 1, "source_valid"),
    ]


def test_harness_gives_every_pin_but_the_clock_a_register_of_its_own():
    text = flow.harness("block", flow.ports(VERILOG, "block"))
    assert "reg [64:0] pin_in;" in text and "reg [8:0] pin_out0;" in text
    for connection in (
        ".sys_clk(sys_clk)",
        ".sys_rst(pin_in[0:0])",
        ".sink_dat(pin_in[64:1])",
        ".source_dat(out[7:0])",
        ".source_valid(out[8:8])",
    ):
        assert connection in text


def test_harness_folds_every_output_into_one_pin():
    text = flow.harness("block", flow.ports(VERILOG, "block"))
    for line in (
        "pin_out1[0] <= ^pin_out0[3:0];",
        "pin_out1[1] <= ^pin_out0[7:4];",
        "pin_out1[2] <= ^pin_out0[8:8];",
        "pin_out2[0] <= ^pin_out1[2:0];",
        "assign q = pin_out2[0];",
    ):
        assert line in text


# Resources ----------------------------------------------------------------------------------------


def test_cells_are_those_of_the_module_and_not_of_the_harness():
    statistics = {
        "modules": {
            r"\harness": {"num_cells_by_type": {"TRELLIS_FF": 9}},
            r"\block": {"num_cells_by_type": {"TRELLIS_FF": 2, "LUT4": 5}},
        }
    }
    assert flow.cells(statistics, "block") == {"TRELLIS_FF": 2, "LUT4": 5}
    with pytest.raises(KeyError):
        flow.cells(statistics, "other")


def test_carries_and_distributed_memory_count_as_the_luts_that_they_take():
    assert flow.resources_ecp5(
        {"LUT4": 100, "CCU2C": 10, "TRELLIS_DPR16X4": 2, "PFUMX": 7, "TRELLIS_FF": 30, "DP16KD": 3}
    ) == {"lut4": 132, "ff": 30, "dp16kd": 3, "mult18": 0}
    assert flow.resources_artix7(
        {
            "LUT2": 10,
            "LUT6": 5,
            "RAM32M": 2,
            "CARRY4": 4,
            "FDRE": 8,
            "FDSE": 1,
            "RAMB36E1": 2,
            "RAMB18E1": 3,
            "DSP48E1": 4,
        }
    ) == {"lut6": 23, "ff": 9, "ramb36": 3.5, "dsp48": 4}


# Paths --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell, name",
    [
        ("dut.walker_rest_TRELLIS_FF_Q_13", "walker_rest"),
        ("dut.fsm_state_TRELLIS_FF_Q", "fsm_state"),
        ("dut.slot_memory.0.3", "slot_memory"),
        ("dut.storage_1.0.15$DPRAM_COMB3", "storage_1"),
        ("pin_out_TRELLIS_FF_Q_7", "pin_out"),
    ],
)
def test_a_cell_is_called_by_the_register_that_it_holds(cell, name):
    assert flow.register(cell) == name


def hop(kind, delay, source, target):
    return {
        "type": kind,
        "delay": delay,
        "from": {"cell": source, "port": "Q"},
        "to": {"cell": target, "port": "D"},
    }


def path(clock, hops):
    return {"from": clock, "to": clock, "path": hops}


REPORT = {
    "fmax": {
        "clk": {"achieved": 117.0, "constraint": 125},
        "other": {"achieved": 90.5, "constraint": 125},
    },
    "critical_paths": [
        path(
            "posedge clk",
            [
                hop("clk-to-q", 0.5, "dut.a_TRELLIS_FF_Q", "dut.a_TRELLIS_FF_Q"),
                hop("routing", 1.0, "dut.a_TRELLIS_FF_Q", "dut.x_LUT4_Z"),
                hop("logic", 0.25, "dut.x_LUT4_Z", "dut.x_LUT4_Z"),
                hop("routing", 2.0, "dut.x_LUT4_Z", "dut.b_TRELLIS_FF_Q_1"),
                hop("setup", 0.0, "dut.b_TRELLIS_FF_Q_1", "dut.b_TRELLIS_FF_Q_1"),
            ],
        ),
        {
            "from": "<async>",
            "to": "posedge clk",
            "path": [hop("routing", 9.0, "load$tr_io", "pin_in_TRELLIS_FF_Q")],
        },
    ],
    "detailed_net_timings": [
        {
            "net": "n",
            "driver": "d",
            "endpoints": [
                {"cell": "dut.b_TRELLIS_FF_Q_1", "delay": [1.0, 3.75]},
                {"cell": "dut.b_TRELLIS_FF_Q", "delay": [1.0, 2.0]},
            ],
        },
        {
            "net": "m",
            "driver": "d",
            "endpoints": [{"cell": "dut.c_TRELLIS_FF_Q", "delay": [1.0, 5.5]}],
        },
    ],
}


def test_the_slowest_clock_counts():
    assert flow.fmax(REPORT) == 90.5


def test_without_routing_the_clocks_are_those_of_the_log(tmp_path, monkeypatch):
    def nextpnr(command, folder, log, watch):
        (folder / "report.json").write_text(
            json.dumps(
                {"fmax": {}, "critical_paths": [], "detailed_net_timings": [], "utilization": {}}
            )
        )
        (folder / log).write_text(
            "Info: Max frequency for clock '$glbnet$a': 52.65 MHz (FAIL at 100.00 MHz)\n"
            "Info: Max frequency for clock   '$glbnet$b': 61.40 MHz (FAIL at 100.00 MHz)\n"
        )

    monkeypatch.setattr(flow, "run", nextpnr)
    report = flow.place_ecp5(tmp_path, 100, route=False)
    assert flow.fmax(report) == 52.65 and flow.slowest_registers(report, 5) == []


def test_the_critical_path_is_one_from_register_to_register():
    assert flow.critical_path(REPORT) == {
        "from": "a",
        "to": "b",
        "ns": 3.75,
        "routing_ns": 3.0,
        "stages": 1,
    }


def test_the_slowest_registers_are_named_once_each():
    assert flow.slowest_registers(REPORT, 2) == [(5.5, "c"), (3.75, "b")]


# Kept results -------------------------------------------------------------------------------------


def test_what_was_measured_is_not_measured_again(tmp_path):
    runs = []

    def compute():
        runs.append(1)
        return {"mhz": 100}

    assert [flow.kept(tmp_path, "routed", compute) for _ in range(2)] == [{"mhz": 100}] * 2
    assert len(runs) == 1


def test_a_change_of_the_verilog_opens_a_new_workspace_and_ends_the_old_one(tmp_path, monkeypatch):
    monkeypatch.setattr(flow, "BUILD", tmp_path / "build")
    monkeypatch.setattr(flow, "versions", lambda: ["tools 1"])
    origin = flow.fresh(tmp_path / "origin")
    (origin / "block.v").write_text("one")
    first = flow.workspace("block", origin, ["block.v"])
    assert flow.workspace("block", origin, ["block.v"]) == first
    (origin / "block.v").write_text("two")
    second = flow.workspace("block", origin, ["block.v"])
    assert second != first and (second / "block.v").read_text() == "two" and not first.exists()
