"""Room around LUTs where the router finds too few wires.

nextpnr's static placer spreads cells evenly, by their number and not by their wires. Where a part
of the design has more wires than its place has, such as the choice of what a bank of registers
answers, router 2 goes round in circles. So it is tried for some passes, and each of those LUTs
around which most wires are wanted twice gets a companion, which holds a place free: another LUT
that reads what it drives, and so is put beside it. That is inflation of cells (Brenner and Rohe,
"An Effective Congestion-Driven Placement Framework", IEEE TCAD 22(4), 2003).
"""

# SPDX-License-Identifier: BSD-2-Clause

import collections
import csv

import design

REACH = 5  # tiles on each side of a LUT whose heat counts

COMPANION = "companion"

# Heat ---------------------------------------------------------------------------------------------


def heat(folder, prefix, passes):
    """{(x, y): wires that were wanted twice} of the router's heat maps of these passes, whose rows
    are x and whose columns are y.
    """
    found = collections.Counter()
    for number in passes:
        with open(folder / f"{prefix}_congestion_by_coordinate_{number}.csv") as f:
            for x, row in enumerate(csv.reader(f)):
                for y, value in enumerate(row):
                    if value.strip():
                        found[x, y] += float(value)
    return +found


def around(found):
    """{(x, y): sum of what was found within REACH tiles}."""
    total = collections.Counter()
    for (x, y), value in found.items():
        for dx in range(-REACH, REACH + 1):
            for dy in range(-REACH, REACH + 1):
                total[x + dx, y + dy] += value
    return total


def places(module):
    """{LUT: (x, y)} of `module`, that of the JSON that nextpnr writes of a netlist that is placed."""
    return {
        name: design.tile(cell)
        for name, cell in module["cells"].items()
        if cell["type"] == "TRELLIS_COMB"
    }


# Companions ---------------------------------------------------------------------------------------


def hottest(where, luts, found, most):
    """Those `most` of `luts` that have most heat around them, and none without; `where` is {LUT:
    (x, y)}.
    """
    total = around(found)
    return sorted(
        (name for name in luts if name in where and total[where[name]] > 0),
        key=lambda name: (-total[where[name]], name),
    )[:most]


def accompany(module, luts):
    """Add a companion to each of `luts` of `module`, that of Yosys' JSON."""
    for bit, name in enumerate(luts, start=design.first_free_bit(module)):
        module["cells"][f"{COMPANION}:{name}"] = {
            "hide_name": 0,
            "type": "LUT4",
            "attributes": {},
            "parameters": {"INIT": 8 * "10"},
            "port_directions": {**dict.fromkeys("ABCD", "input"), "Z": "output"},
            "connections": {
                "A": module["cells"][name]["connections"]["Z"],
                **dict.fromkeys("BCD", ["0"]),
                "Z": [bit],
            },
        }
        module["netnames"][f"{COMPANION}:{name}"] = {
            "hide_name": 0,
            "bits": [bit],
            "attributes": {},
        }


def leave(module):
    """Take the companions out of `module`, that of the JSON that nextpnr writes: their places stay
    free.
    """
    for kind in "cells", "netnames":
        for name in [name for name in module[kind] if name.startswith(f"{COMPANION}:")]:
            del module[kind][name]
