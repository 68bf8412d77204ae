"""Where the time will go, seconds after Yosys: the longest paths of a netlist, before anything is
placed.

    python hw/synthesis/paths.py build/synthesis/core-64/*/netlist.json [--top dibber_card]
    [--number 25] [--trace]

Delays of cells are those of nextpnr's database for an ECP5-8, that of a net is guessed from how
many it feeds; nothing is placed. On the link tester and on a board with little but the root complex
it says 8.3 and 8.0 ns where nextpnr's routed paths had 7.3 to 7.8 and 6.9. A design that fills its
part has longer nets than it believes. So: which paths, not which clock.

One line for each name of a register that data reaches late: ns, register and pin, cells on the way,
where it began.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import collections
import json
import math
import sys

import flow

from dibber_cli.pipe import quiet

# Cells --------------------------------------------------------------------------------------------

# A path begins at the outputs of these and ends at their inputs; from clock to output, ns.
STARTS = {
    "TRELLIS_FF": 0.31,
    "DP16KD": 1.42,
    "MULT18X18D": 2.0,
    "EHXPLLL": 0,
    "DCUA": 0,
    "EXTREFB": 0,
}
# not timed: clocks, and resets, which are registers' own
CLOCKS = {"CLK", "CLKA", "CLKB", "WCK", "LSR"}
# their data inputs come from beside them, without a net
MUXES = {"PFUMX", "L6MUX21"}
RAM = "TRELLIS_DPR16X4"  # read through, written at the clock


def through(kind, pin, out):
    """ns from an input of a cell to an output."""
    if kind == "CCU2C":
        return (0.02 if out == "COUT" else 0.23) if pin == "CIN" else 0.28
    return 0.1 if kind in MUXES else 0.14


def net(kind, pin, fanout):
    """ns from a driver to an input of a cell."""
    if pin == "CIN" or (kind in MUXES and pin not in ("C0", "SD")):
        return 0
    return 0.4 + 0.1 * math.sqrt(min(fanout, 64))


def address(pin):
    """Of a LUT memory: whether a read goes through this pin."""
    return pin.startswith("RAD")


# Netlist ------------------------------------------------------------------------------------------


class Netlist:
    """A flat module of Yosys' JSON, and when its nets settle.

    Attributes
    ----------
    ends : {register: (ns, pin, bit)}, the last arrival at each name
    """

    def __init__(self, module):
        self.inputs = {}  # cell -> [(pin, bit)]
        self.kind = {}  # cell -> type
        self.driver = {}  # bit -> (cell, pin)
        self.fanout = collections.Counter()
        self.arrived = {}  # bit -> (ns, bit before, cells)
        for name, cell in module["cells"].items():
            self.kind[name] = cell["type"]
            self.inputs[name] = []
            for pin, bits in cell["connections"].items():
                for bit in bits:
                    if isinstance(bit, str):  # a constant
                        continue
                    if cell["port_directions"][pin] == "output":
                        self.driver[bit] = (name, pin)
                    else:
                        self.inputs[name].append((pin, bit))
                        self.fanout[bit] += 1
        self.ends = self.find_ends()

    def arrival(self, bit):
        """(ns, bit before on the latest way, cells passed) of a net."""
        if bit in self.arrived:
            return self.arrived[bit]
        name, out = self.driver.get(bit, (None, None))
        kind = self.kind.get(name)
        latest = (STARTS.get(kind, 0), None, 0)
        self.arrived[bit] = latest
        if kind not in STARTS and name is not None:
            for pin, before in self.inputs[name]:
                if kind == RAM and not address(pin):
                    continue
                ns, _, cells = self.arrival(before)
                ns += net(kind, pin, self.fanout[before]) + through(kind, pin, out)
                latest = max(latest, (ns, before, cells + 1), key=lambda way: way[0])
            self.arrived[bit] = latest
        return latest

    def find_ends(self):
        ends = {}
        for name, kind in self.kind.items():
            if kind not in STARTS and kind != RAM:
                continue
            register = flow.register(name)
            for pin, bit in self.inputs[name]:
                if pin in CLOCKS or (kind == RAM and address(pin)):
                    continue
                ns = self.arrival(bit)[0] + net(kind, pin, self.fanout[bit])
                if ns > ends.get(register, (0,))[0]:
                    ends[register] = (ns, pin, bit)
        return ends

    def way(self, bit):
        """[(ns, cell, fan-out)] from a path's first cell to the driver of `bit`."""
        way = []
        while bit is not None:
            ns, before, _ = self.arrival(bit)
            way.append((ns, self.driver.get(bit, ("a pin",))[0], self.fanout[bit]))
            bit = before
        return way[::-1]


# Program ------------------------------------------------------------------------------------------


def report(netlist, number, trace):
    """Lines of the `number` latest registers."""
    lines = []
    for register, (ns, pin, bit) in sorted(netlist.ends.items(), key=lambda end: -end[1][0])[
        :number
    ]:
        way = netlist.way(bit)
        lines.append(
            f"{ns:5.1f} ns  {register}.{pin}, {netlist.arrival(bit)[2]} cells from {flow.register(way[0][1])}"
        )
        if trace:
            lines += [f"    {at:5.1f}  feeds {fanout:4}  {cell}" for at, cell, fanout in way]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("netlist", help="netlist.json of Yosys")
    parser.add_argument("--top", help="the module to look at (default: the largest)")
    parser.add_argument("--number", type=int, default=25, help="registers to show (default 25)")
    parser.add_argument("--trace", action="store_true", help="show each path cell by cell")
    args = parser.parse_args()
    with open(args.netlist) as file:
        modules = json.load(file)["modules"]
    top = args.top or max(modules, key=lambda name: len(modules[name].get("cells", {})))
    sys.setrecursionlimit(20_000)  # a path is as deep as it has cells, a carry chain's included
    print(*report(Netlist(modules[top]), args.number, args.trace), sep="\n")


if __name__ == "__main__":
    sys.exit(quiet(main))
