# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Where a netlist's cells go: its size by block.

    python hw/synthesis/sizes.py build/synthesis/core-64/*/netlist.json [--top dibber_card] [--depth 1]

A cell belongs to the block that its name begins with: Yosys calls cells by the signals that they drive, and LiteX calls
signals by the modules that they are in, from the outside inwards, joined by `_`. `--depth` is how many parts of the
name tell blocks apart. A memory has no such name; it belongs to whoever gives its addresses, as the Verilog beside the netlist says.
What is called by no block (a signal of the top module, an unnamed one) stands under its own name.
"""

import argparse
import collections
import json
import pathlib
import re

import flow

SMALLEST = 50  # LUT4 and FF of a row; smaller blocks are added up

# Names --------------------------------------------------------------------------------------------

def memories(verilog):
    """{memory: a signal that addresses it} of a module as LiteX writes it."""
    names = re.findall(r"^reg \[\d+:0\] (\w+)\[0:\d+\];", verilog, re.M)
    found = {}
    for name in names:
        addresses = re.findall(rf"\b{name}\[(\w+)\]", verilog)
        found[name] = next((address for address in addresses if not address.startswith(name)), name)
    return found


def block(cell, homes, depth):
    """The block of a cell."""
    name = flow.register(cell).split(".")[0]
    # Outputs of a memory's ports are called after it.
    memory = re.match(r"(\w+?)(?:_(?:dat|adr)\d*)?$", name)
    name   = homes.get(name) or homes.get(memory and memory[1]) or name
    return "_".join(name.split("_")[:depth])

# Program ------------------------------------------------------------------------------------------

def count(module, homes, depth):
    """{block: {cell type: number}}."""
    blocks = collections.defaultdict(collections.Counter)
    for name, cell in module["cells"].items():
        blocks[block(name, homes, depth)][cell["type"]] += 1
    return blocks


def table(blocks):
    """Lines, the largest block first."""
    rows  = {name: flow.resources_ecp5(cells) for name, cells in blocks.items()}
    small = [name for name, row in rows.items() if row["lut4"] < SMALLEST and row["ff"] < SMALLEST and not row["dp16kd"]]
    rest  = sum((blocks[name] for name in small), collections.Counter())
    total = sum(blocks.values(), collections.Counter())
    rows  = [(name, blocks[name]) for name in sorted(rows, key=lambda name: -rows[name]["lut4"]) if name not in small]
    yield f"{'block':40}{'LUT4':>8}{'in carry':>9}{'in RAM':>8}{'FF':>8}{'DP16KD':>8}{'MULT':>6}"
    for name, cells in [*rows, (f"{len(small)} others", rest), ("all", total)]:
        row = flow.resources_ecp5(cells)
        yield (f"{name:40}{row['lut4']:8}{flow.LUTS_ECP5['CCU2C']*cells['CCU2C']:9}"
               f"{flow.LUTS_ECP5['TRELLIS_DPR16X4']*cells['TRELLIS_DPR16X4']:8}{row['ff']:8}{row['dp16kd']:8}{row['mult18']:6}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("netlist", type=pathlib.Path, help="netlist.json of Yosys; NAME.v of the module lies beside it")
    parser.add_argument("--top", default="dibber_card", help="the module (default: dibber_card)")
    parser.add_argument("--depth", type=int, default=1, help="parts of a name that tell blocks apart (default 1)")
    args = parser.parse_args()
    with open(args.netlist) as file:
        module = json.load(file)["modules"][args.top]
    homes = memories(args.netlist.with_name(f"{args.top}.v").read_text())
    print(*table(count(module, homes, args.depth)), sep="\n")


if __name__ == "__main__":
    main()
