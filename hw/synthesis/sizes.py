"""Where a netlist's cells go: its size by block.

    python hw/synthesis/sizes.py build/synthesis/core-64/*/netlist.json [--top dibber_card] [--depth
    1] python hw/synthesis/sizes.py build/synthesis/board-core-128/*/netlist.json --top dibber_core

The netlist is one of ecp5.py, or of xilinx.py. A cell belongs to the block that its name begins
with: Yosys calls cells by the signals that they drive, and LiteX calls signals by the modules that
they are in, from the outside inwards, joined by `_`. `--depth` is how many parts of the name tell
blocks apart. A memory has no such name; it belongs to whoever gives its addresses, as the Verilog
beside the netlist says. Cells of 7 series have no names: such a cell is called by the signal that
it drives, or like a cell that reads it. What is called by no block (a signal of the top module)
stands under its own name.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import collections
import json
import pathlib
import re
import sys

import flow

from dibber_cli.pipe import quiet

SMALLEST = 50  # LUTs and FF of a row; smaller blocks are added up

# Of each family: what counts its cells, cells that are LUTs as memory, headings of the columns.
ECP5 = (
    flow.resources_ecp5,
    {"TRELLIS_DPR16X4": flow.LUTS_ECP5["TRELLIS_DPR16X4"]},
    ("LUT4", "FF", "DP16KD", "MULT"),
)
XILINX = (
    flow.resources_artix7,
    {cell: luts for cell, luts in flow.LUTS_ARTIX7.items() if cell.startswith(("RAM", "SRL"))},
    ("LUT6", "FF", "BRAM36", "DSP48"),
)

# Names --------------------------------------------------------------------------------------------


def memories(verilog):
    """{memory: a signal that addresses it} of a module as LiteX writes it."""
    names = re.findall(r"^reg \[\d+:0\] (\w+)\[0:\d+\];", verilog, re.M)
    found = {}
    for name in names:
        addresses = re.findall(rf"\b{name}\[(\w+)\]", verilog)
        found[name] = next((address for address in addresses if not address.startswith(name)), name)
    return found


def pins(cell, output):
    """Bits at the outputs of a cell, or at its inputs."""
    return [
        bit
        for port, bits in cell["connections"].items()
        if (cell["port_directions"][port] == "output") == output
        for bit in bits
    ]


def names(module):
    """{cell: its name, or what it is called by}."""
    cells = module["cells"]
    signals = {
        bit: name
        for name, net in sorted(module["netnames"].items(), key=lambda item: -len(item[0]))
        if not net.get("hide_name")
        for bit in net["bits"]
    }  # the shortest name of each
    drivers = {bit: name for name, cell in cells.items() for bit in pins(cell, output=True)}
    found = {}
    for name, cell in cells.items():
        driven = [signals[bit] for bit in pins(cell, output=True) if bit in signals]
        if not name.startswith("$") or driven:
            found[name] = driven[0] if name.startswith("$") else name
    # From what has a name back to what feeds it, nearest first.
    queue = collections.deque(found)
    while queue:
        reader = queue.popleft()
        for name in dict.fromkeys(
            drivers[bit] for bit in pins(cells[reader], output=False) if bit in drivers
        ):
            if name not in found:
                found[name] = found[reader]
                queue.append(name)
    return {name: found.get(name, "unnamed") for name in cells}


def block(name, homes, depth):
    """The block of a cell that is called so."""
    name = flow.register(name).split(".")[0]
    # Outputs of a memory's ports are called after it.
    memory = re.match(r"(\w+?)(?:_(?:dat|adr)\d*)?$", name)
    name = homes.get(name) or homes.get(memory and memory[1]) or name
    return "_".join(name.split("_")[:depth])


# Program ------------------------------------------------------------------------------------------


def count(module, homes, depth):
    """{block: {cell type: number}}."""
    blocks = collections.defaultdict(collections.Counter)
    for cell, name in names(module).items():
        blocks[block(name, homes, depth)][module["cells"][cell]["type"]] += 1
    return blocks


def table(blocks):
    """Lines, the largest block first."""
    total = sum(blocks.values(), collections.Counter())
    resources, memories, heads = ECP5 if "TRELLIS_FF" in total else XILINX
    rows = {name: list(resources(cells).values()) for name, cells in blocks.items()}
    small = [
        name
        for name, (luts, ffs, brams, _) in rows.items()
        if luts < SMALLEST and ffs < SMALLEST and not brams
    ]
    rest = sum((blocks[name] for name in small), collections.Counter())
    rows = [
        (name, blocks[name])
        for name in sorted(rows, key=lambda name: -rows[name][0])
        if name not in small
    ]
    yield f"{'block':40}{heads[0]:>8}{'in carry':>9}{'in RAM':>8}{heads[1]:>8}{heads[2]:>8}{heads[3]:>6}"
    for name, cells in [*rows, (f"{len(small)} others", rest), ("all", total)]:
        luts, ffs, brams, mults = resources(cells).values()
        ram = sum(luts * cells[cell] for cell, luts in memories.items())
        yield f"{name:40}{luts:8}{flow.LUTS_ECP5['CCU2C'] * cells['CCU2C']:9}{ram:8}{ffs:8}{brams:8g}{mults:6}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "netlist",
        type=pathlib.Path,
        help="netlist.json of Yosys; NAME.v of the module lies beside it",
    )
    parser.add_argument("--top", default="dibber_card", help="the module (default: dibber_card)")
    parser.add_argument(
        "--depth", type=int, default=1, help="parts of a name that tell blocks apart (default 1)"
    )
    args = parser.parse_args()
    with open(args.netlist) as file:
        module = json.load(file)["modules"][args.top]
    homes = memories(args.netlist.with_name(f"{args.top}.v").read_text())
    print(*table(count(module, homes, args.depth)), sep="\n")


if __name__ == "__main__":
    sys.exit(quiet(main))
