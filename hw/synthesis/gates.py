#!/usr/bin/env python3
"""The core's netlist of ECP5 cells as a list of gates, which hw/sim/gates simulates.

    python hw/synthesis/gates.py                 the core at 64 bits: build/synthesis/core-64.gates
    python hw/synthesis/gates.py NETLIST.json TOP GATES

The netlist is the one that ecp5.py places: what it kept is used, else Yosys runs, some minutes.
Each cell becomes what Yosys' cells_sim_ecp5.v says of it: a LUT stays one, the multiplexers behind
LUTs and the halves of a carry cell are LUTs as well. A cell or a mode that is not written here, as
nothing uses it, raises Unsupported: a flip-flop with an asynchronous reset, a second clock, a block
RAM with contents, with ports of two widths, or with a reset.

The list is text, a line each, pins are numbers of nets, 0 and 1 are these constants:

    nets N                                          nets are numbered below N
    input NAME net…, output NAME net…               ports, bit 0 first
    lut TABLE z a b c d                             z is bit {d, c, b, a} of TABLE, which is
                                                    hexadecimal
    ff VALUE q d enable reset                       VALUE is what it starts with, and takes where
                                                    reset is 1
    ram16 q[4] we ad_w[4] di[4] ad_r[4]             TRELLIS_DPR16X4
    block WIDTH OLD_A OLD_B ports A, B: ce we ad[14] di[18] q[18]   DP16KD; OLD: a port that writes
    also reads, what was there
    mult signed_a signed_b a[18] b[18] q[36]        MULT18X18D

All that has a clock has the same one, which is not in the list.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import pathlib
import sys
from dibber.common.elaboration import elaborate_quickly


class Unsupported(Exception):
    """A cell, or a mode of one, that is not written here."""


MUX = 0xCACA  # c ? b : a


class Cell:
    """Pins as numbers of nets, what is not connected or undefined being 0; parameters."""

    def __init__(self, name, cell):
        self.name = name
        self.kind = cell["type"]
        self.parameters = cell["parameters"]
        self.wires = {
            pin: [bit if isinstance(bit, int) else int(bit == "1") for bit in bits]
            for pin, bits in cell["connections"].items()
        }

    def __getitem__(self, pin):
        return self.wires.get(pin, [0])[0]

    def bus(self, name, bits):
        """Pins `name`0, `name`1, …, or the bits of the pin `name`."""
        return self.wires[name] if name in self.wires else [self[f"{name}{n}"] for n in range(bits)]

    def number(self, name):
        return int(self.parameters.get(name, "0").replace("x", "0"), 2)

    def word(self, name, *allowed):
        """A parameter that is a word; the first allowed one is its default. Yosys puts a space
        behind one that could be a number.
        """
        found = self.parameters.get(name, allowed[0]).rstrip()
        if found not in allowed:
            raise self.unsupported(f"{name} {found}")
        return found

    def zero(self, *pins):
        for pin in pins:
            if self[pin]:
                raise self.unsupported(f"{pin} in use")

    def unsupported(self, what):
        return Unsupported(f"{self.name}: {self.kind} with {what}")


class Gates:
    """
    Parameters
    ----------
    module : of Yosys' JSON, flat

    Attributes
    ----------
    lines : of the list
    """

    def __init__(self, module):
        self.nets = 2 + max(
            bit
            for cell in module["cells"].values()
            for bits in cell["connections"].values()
            for bit in bits
            if isinstance(bit, int)
        )
        self.inverses = {}
        self.clock = None
        self.lines = []
        cells = [
            Cell(name, cell)
            for name, cell in module["cells"].items()
            if cell["type"] != "$scopeinfo"
        ]
        for cell in cells:
            if not hasattr(self, cell.kind.lower()):
                raise Unsupported(f"{cell.name}: a cell {cell.kind}")
            getattr(self, cell.kind.lower())(cell)
        for name, port in module["ports"].items():
            if self.clock not in port["bits"]:
                self.line(
                    port["direction"],
                    name,
                    *[bit if isinstance(bit, int) else int(bit == "1") for bit in port["bits"]],
                )
        self.lines.insert(0, f"nets {self.nets}")

    def line(self, *words):
        self.lines.append(" ".join(map(str, words)))

    def net(self):
        """A new one."""
        self.nets += 1
        return self.nets - 1

    def outputs(self, nets):
        """Outputs that lead nowhere have a net, too."""
        return [net if net > 1 else self.net() for net in nets]

    def lut(self, table, inputs, z=None):
        z = self.net() if z is None else z
        self.line("lut", f"{table:04x}", z, *inputs, *[0] * (4 - len(inputs)))
        return z

    def inverse(self, net):
        if net not in self.inverses:
            self.inverses[net] = self.lut(0x5555, [net])
        return self.inverses[net]

    def clocked(self, cell, pin):
        if self.clock not in (None, cell[pin]):
            raise cell.unsupported("a second clock")
        self.clock = cell[pin]

    # Cells ----------------------------------------------------------------------------------------

    def lut4(self, cell):
        self.lut(cell.number("INIT"), [cell[pin] for pin in "ABCD"], *self.outputs([cell["Z"]]))

    def pfumx(self, cell):
        self.lut(MUX, [cell["BLUT"], cell["ALUT"], cell["C0"]], *self.outputs([cell["Z"]]))

    def l6mux21(self, cell):
        self.lut(MUX, [cell["D0"], cell["D1"], cell["SD"]], *self.outputs([cell["Z"]]))

    def ccu2c(self, cell):
        carry = cell["CIN"]
        for half in "01":
            pins = [cell[f"{pin}{half}"] for pin in "ABCD"]
            table = cell.number(f"INIT{half}")
            both = self.lut(table, pins)
            # no carry comes in, and the pair of inputs gives none
            apart = cell.word(f"INJECT1_{half}", "YES", "NO") == "YES"
            self.lut(0xAAAA if apart else 0x6666, [both, carry], *self.outputs([cell[f"S{half}"]]))
            # {pair of inputs, carry, both}: the carry where both are set, else what the LUT2 of A
            # and B says.
            pair = self.lut(0 if apart else 0x1111 * (table & 15), pins[:2])
            carry = self.lut(
                0xD8D8,
                [both, carry, pair],
                cell["COUT"] if half == "1" and cell["COUT"] > 1 else None,
            )

    def trellis_ff(self, cell):
        self.clocked(cell, "CLK")
        cell.word("CLKMUX", "CLK")
        cell.word("LSRMODE", "LSR")
        if cell["LSR"]:
            cell.word("SRMODE", "LSR_OVER_CE")
        enable = {
            "1": lambda: 1,
            "CE": lambda: cell["CE"],
            "INV": lambda: self.inverse(cell["CE"]),
        }[cell.word("CEMUX", "1", "CE", "INV")]()
        cell.word("LSRMUX", "LSR")
        self.line(
            "ff",
            int(cell.word("REGSET", "RESET", "SET") == "SET"),
            *self.outputs([cell["Q"]]),
            cell["DI"],
            enable,
            cell["LSR"],
        )

    def trellis_dpr16x4(self, cell):
        self.clocked(cell, "WCK")
        cell.word("WCKMUX", "WCK")
        cell.word("WREMUX", "WRE")
        if cell.number("INITVAL"):
            raise cell.unsupported("contents")
        self.line(
            "ram16",
            *self.outputs(cell.bus("DO", 4)),
            cell["WRE"],
            *cell.bus("WAD", 4),
            *cell.bus("DI", 4),
            *cell.bus("RAD", 4),
        )

    def dp16kd(self, cell):
        width = cell.number("DATA_WIDTH_A")
        if cell.number("DATA_WIDTH_B") != width:
            raise cell.unsupported("two widths")
        if any(cell.number(name) for name in cell.parameters if name.startswith("INITVAL")):
            raise cell.unsupported("contents")
        old, ports = [], []
        for port in "AB":
            self.clocked(cell, f"CLK{port}")
            cell.zero(*[f"CS{port}{n}" for n in range(3)], f"RST{port}")
            cell.word(f"CLK{port}MUX", f"CLK{port}")
            cell.word(f"REGMODE_{port}", "NOREG")
            cell.word(f"CSDECODE_{port}", "0b000")
            old.append(
                int(
                    cell.word(f"WRITEMODE_{port}", "NORMAL", "READBEFOREWRITE") == "READBEFOREWRITE"
                )
            )
            ports += [
                cell[f"CE{port}"],
                cell[f"WE{port}"],
                *cell.bus(f"AD{port}", 14),
                *cell.bus(f"DI{port}", 18),
                *self.outputs(cell.bus(f"DO{port}", 18)),
            ]
        if width == 36:
            cell.zero("WEB")
        self.line("block", width, *old, *ports)

    def mult18x18d(self, cell):
        cell.zero(
            "SOURCEA", "SOURCEB", *[f"{pin}{n}" for pin in ("CLK", "CE", "RST") for n in range(4)]
        )
        self.line(
            "mult",
            cell["SIGNEDA"],
            cell["SIGNEDB"],
            *cell.bus("A", 18),
            *cell.bus("B", 18),
            *self.outputs(cell.bus("P", 36)),
        )


# Files --------------------------------------------------------------------------------------------


def write(netlist, top, gates):
    """The list of the module `top` of a netlist, both being files."""
    gates.write_text("\n".join(Gates(json.loads(netlist.read_text())["modules"][top]).lines) + "\n")


def core():
    """The list of the core at 64 bits."""
    import ecp5
    import flow

    verilog, sources, data = ecp5.generate(64)
    folder = flow.workspace("core-64", verilog, [*sources, *data, "harness.v"])
    print("synthesis: Yosys, some minutes", file=sys.stderr, flush=True)
    flow.kept(folder, "cells-ecp5", lambda: flow.synthesize_ecp5(folder, ecp5.TOP, sources))
    gates = flow.BUILD / "core-64.gates"
    write(folder / "netlist.json", ecp5.TOP, gates)
    return gates


def main():
    elaborate_quickly()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("netlist", nargs="?", type=pathlib.Path)
    parser.add_argument("top", nargs="?")
    parser.add_argument("gates", nargs="?", type=pathlib.Path)
    args = parser.parse_args()
    if args.netlist is None:
        print(core())
    elif args.gates is None:
        parser.error("NETLIST.json needs TOP and GATES")
    else:
        write(args.netlist, args.top, args.gates)


if __name__ == "__main__":
    main()
