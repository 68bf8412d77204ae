#!/usr/bin/env python3
"""List every clock crossing of a 7-series netlist, and end with 1 where one has no synchroniser or
no constraint. Transceivers and the PCIe block may be those of UltraScale.

    python hw/synthesis/crossings.py NETLIST.json CONSTRAINTS.xdc TOP

The netlist is that of Yosys, flat (xilinx.py makes it); the constraints are LiteX's. A crossing is
data that one clock gives and another takes, register to register. It has to be one of these:

    MultiReg               one register, or one pin, straight into the first of two that hold
                           nothing else; several bits only where they are a Gray count, or STATIC
                           says why that does no harm
    AsyncResetSynchronizer into the asynchronous set of LiteX's pair of registers
    AsyncFIFO              out of a LUT memory that the taking clock addresses, with MultiRegs of
                           Gray counts both ways
    BSCANE2                one register straight into TDO, which a debugger's TCK takes long after
                           it changed
    WAIVED                 what is none of these and is known

and a line of the XDC has to keep the tools from timing it. Each clock that times a register or a
hard block has to have a period, by `create_clock` on its net or on one that it is made of. Clocks
of one origin are timed against each other, and are no crossing.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import collections
import json
import pathlib
import re
import sys

from dibber_cli.pipe import quiet

from netlist import FLIPFLOPS, LUT_MEMORIES, Netlist
from dibber.common.elaboration import elaborate_quickly

# What LiteX writes for its synchronisers on Xilinx parts.
MULTIREG_LINE = r"^set_false_path .*-through \[get_nets .*mr_ff == TRUE"
RESET_LINE = r"^set_false_path .*-to \[get_pins .*ars_ff1 == TRUE"

# What boards/xilinx.py writes for the debugger's port.
JTAG_LINE = r"^set_false_path .*-through \[get_pins .*REF_NAME == BSCANE2"

GRAY = r"graycounter\d+_q(\[\d+\])?$"

# MultiRegs of several bits that are no Gray count: where they come from -> why.
STATIC = {
    r"^pcie_s7\.cfg_(dcommand|command|\w+_number)$": "the host writes them before it lets the card do anything",
    r"^pcie_s7\.pipe_pclk_sel_out$": "one bit a lane, and the clock changes only when all agree",
    r"^pcie_s7\.pl_": "only shown",
    r"^pcie_us\.cfg_max_": "the host writes them before it lets the card do anything",
}

# Registers that take another clock's data bare -> why.
WAIVED = {
    r"rx_reset_deglitched$": "LiteICLink: the receiver's reset; what it holds goes through an AsyncResetSynchronizer, "
    "and a wrong cycle of it is a longer reset",
}

# References of the vendor's blocks: what they make of them is timed by them.
REFERENCES = {
    "pcie_s7": ["sys_clk"],
    "pcie_us": ["sys_clk", "sys_clk_gt"],
    "GTXE2_CHANNEL": ["GTREFCLK0"],
    "GTHE3_COMMON": ["GTREFCLK00", "GTREFCLK01"],
    "GTPE2_COMMON": ["GTREFCLK0", "GTREFCLK1", "GTGREFCLK0", "GTGREFCLK1"],
}

# Clocks that the vendor's IP constrains by an XDC of its own.
OWN_CONSTRAINT = ("pcie_s7.pipe_txoutclk_out", "pcie_us.user_clk")

Crossing = collections.namedtuple("Crossing", "kind name source taker given problem")

# Constraints --------------------------------------------------------------------------------------


class Constraints:
    """An XDC as LiteX writes it: `clocks`, names with a period; `groups`, pairs of names;
    `multireg`, `reset`, `jtag`: whether the line is there.
    """

    def __init__(self, text):
        self.clocks = set(
            re.findall(r"^create_clock .*\[get_(?:nets|ports) \{?(\w+)\}?\]", text, re.M)
        )
        self.groups = re.findall(
            r"^set_clock_groups .*-of \[get_\w+ (\w+)\].*-of \[get_\w+ (\w+)\].*-asynchronous",
            text,
            re.M,
        )
        self.multireg = bool(re.search(MULTIREG_LINE, text, re.M))
        self.reset = bool(re.search(RESET_LINE, text, re.M))
        self.jtag = bool(re.search(JTAG_LINE, text, re.M))


# Check --------------------------------------------------------------------------------------------


class Check:
    """Crossings and clocks of `netlist` against `constraints`."""

    def __init__(self, netlist, constraints):
        self.netlist = netlist
        self.constraints = constraints
        self.gray = set()  # (giving domain, taking domain) with a MultiReg of a Gray count
        self.clock_nets = {}  # domain -> how its clock is called

    def pin_name(self, source):
        """What gives: a register by its net, a LUT memory by its name, a pin of a hard block as
        `block.pin`.
        """
        netlist = self.netlist
        if source.cell and netlist.kind(source.cell) in LUT_MEMORIES:
            return re.sub(r"\.\d+\.\d+$", "", source.cell)
        if source.cell and netlist.kind(source.cell) not in FLIPFLOPS:
            return f"{netlist.kind(source.cell)}.{source.port}"
        return netlist.name(source.bit)

    def is_gray(self, source):
        """Is it a bit of a Gray count? The highest one is the binary count's as well."""
        return any(re.search(GRAY, name) for name in self.netlist.names.get(source.bit, ()))

    def clock_name(self, domain):
        return (
            "asynchronous"
            if domain is None
            else self.clock_nets.get(domain, self.netlist.name(domain))
        )

    def grouped(self, one, other):
        """Is there a set_clock_groups line for two domains, or for clocks that they are made of?"""
        netlist = self.netlist

        def above(domain):
            return {netlist.domain(bit) for path in netlist.ancestors(domain) for bit in path}

        for pair in self.constraints.groups:
            if all(name in netlist.bits for name in pair):
                a, b = (netlist.domain(netlist.bits[name][0]) for name in pair)
                if (a in above(one) and b in above(other)) or (
                    b in above(one) and a in above(other)
                ):
                    return True
        return False

    # Clocks ---------------------------------------------------------------------------------------

    def clocks(self):
        """{domain: whether it has a period} of all that time a register, and of the references of
        hard blocks.
        """
        netlist, found = self.netlist, {}
        for cell in netlist.cells:
            kind = netlist.kind(cell)
            pins = REFERENCES.get(kind, ())
            if kind in (*FLIPFLOPS, *LUT_MEMORIES, "RAMB18E1", "RAMB36E1", "DSP48E1"):
                pins = ("C", "WCLK", "CLK", "CLKARDCLK", "CLKBWRCLK")
            for bit in filter(None, (netlist.pin(cell, pin) for pin in pins)):
                domain = netlist.domain(bit)
                if domain not in found:
                    names = [
                        name
                        for name in netlist.names[bit] + netlist.names[domain]
                        if re.search("clk", name)
                    ]
                    self.clock_nets[domain] = min(names, key=len, default=netlist.name(domain))
                    found[domain] = all(
                        self.constrained([bit, *path]) for path in netlist.ancestors(domain)
                    )
        return found

    def constrained(self, path):
        names = {name for bit in path for name in self.netlist.names[bit]}
        return (
            bool(names & self.constraints.clocks)
            or self.netlist.name(path[-1]) in self.constraints.clocks
            or (
                path[-1] in self.netlist.driver
                and f"{self.netlist.kind(self.netlist.driver[path[-1]][0])}.{self.netlist.driver[path[-1]][1]}"
                in OWN_CONSTRAINT
            )
        )

    # Crossings ------------------------------------------------------------------------------------

    def crossings(self):
        """[Crossing], in the order of the netlist; one for each pin that takes."""
        found, buses = [], collections.defaultdict(list)
        for cell, port, bit, domain in self.netlist.sinks():
            foreign = [
                other
                for other in self.netlist.domains(bit)
                if other != domain and not self.related(other, domain)
            ]
            if foreign:
                sources = [
                    source for source in self.netlist.sources(bit) if source.domain in foreign
                ]
                found.append(self.judge(cell, port, bit, domain, sources))
                if found[-1].kind == "MultiReg":
                    buses[re.sub(r"\[\d+\]$", "", found[-1].name)].append(
                        (len(found) - 1, sources[0])
                    )
        for members in buses.values():
            if len(members) > 1:
                for n, source in members:
                    found[n] = self.judge_bus(found[n], source)
        scanned = [
            self.judge_tdo(cell)
            for cell in self.netlist.cells
            if self.netlist.kind(cell) == "BSCANE2"
        ]
        return [*map(self.judge_fifo, found), *scanned]

    def related(self, one, other):
        return None not in (one, other) and self.netlist.origins(one) == self.netlist.origins(other)

    def judge(self, cell, port, bit, domain, sources):
        netlist, given = self.netlist, tuple(sorted({source.domain for source in sources}, key=str))
        q = netlist.pin(cell, "Q")
        name = netlist.name(q) if q is not None else f"{netlist.kind(cell)} {cell}.{port}"
        source = self.pin_name(sources[0]) + (
            f" and {len(sources) - 1} more" if len(sources) > 1 else ""
        )
        grouped = all(other is not None and self.grouped(other, domain) for other in given)

        def crossing(kind, problem=""):
            return Crossing(kind, name, source, domain, given, problem)

        if port == "PRE" and netlist.cells[cell]["attributes"].keys() & {"ars_ff1", "ars_ff2"}:
            return crossing(
                "AsyncResetSynchronizer",
                "" if self.constraints.reset or grouped else "no line of the XDC for resets",
            )
        if port == "D" and "mr_ff" in netlist.marks[q]:
            if len(sources) > 1 or not self.straight(bit, sources[0].bit):
                return crossing("MultiReg", "logic in front of it")
            if [
                netlist.kind(c) in FLIPFLOPS and p == "D" and netlist.clock(c, p) == domain
                for c, p in netlist.reads[q]
            ] != [True]:
                return crossing("MultiReg", "its first register is read by more than its second")
            if self.is_gray(sources[0]):
                self.gray.add((given[0], domain))
            return crossing(
                "MultiReg",
                "" if self.constraints.multireg or grouped else "no line of the XDC for MultiRegs",
            )
        if port == "D" and all(
            source.cell and netlist.kind(source.cell) in LUT_MEMORIES for source in sources
        ):
            address = {
                other
                for memory in sources
                for b in netlist.through(memory.cell, memory.port)[0]
                if not isinstance(b, str)
                for other in netlist.domains(b)
            }
            if address != {domain}:
                return crossing("AsyncFIFO", "another clock addresses its memory")
            return crossing("AsyncFIFO", "" if grouped else "no set_clock_groups for its clocks")
        if port == "D" and any(re.search(pattern, name) for pattern in WAIVED):
            return crossing("WAIVED", "" if grouped else "no set_clock_groups for its clocks")
        return crossing("none", f"{port} takes it bare")

    def judge_tdo(self, cell):
        """What leaves by a JTAG port, whose clock is none of the design's. Of one register it is
        known when it changes.
        """
        bit = self.netlist.pin(cell, "TDO")
        sources = [] if bit is None else self.netlist.sources(bit)
        problem = "" if self.constraints.jtag else "no line of the XDC for BSCANE2"
        if [
            source.cell
            and self.netlist.kind(source.cell) in FLIPFLOPS
            and self.straight(bit, source.bit)
            for source in sources
        ] != [True]:
            problem = "no register straight into TDO"
        return Crossing(
            "BSCANE2",
            f"{cell}.TDO",
            ", ".join(map(self.pin_name, sources)),
            None,
            tuple(s.domain for s in sources),
            problem,
        )

    def straight(self, bit, source):
        """Is a bit a register's output, or its inverse? Logic of one input does not glitch."""
        while bit != source and bit in self.netlist.driver:
            before, _ = self.netlist.through(*self.netlist.driver[bit])
            before = [b for b in before if not isinstance(b, str)]
            if len(before) != 1:
                return False
            bit = before[0]
        return bit == source

    def judge_bus(self, crossing, source):
        name = self.pin_name(source)
        if (
            crossing.problem
            or self.is_gray(source)
            or any(re.search(pattern, name) for pattern in STATIC)
        ):
            return crossing
        return crossing._replace(problem="several bits that are no Gray count")

    def judge_fifo(self, crossing):
        if crossing.kind == "AsyncFIFO" and not crossing.problem:
            other = crossing.given[0]
            if not {(other, crossing.taker), (crossing.taker, other)} <= self.gray:
                return crossing._replace(problem="no Gray counts both ways")
        return crossing


# Report -------------------------------------------------------------------------------------------


def report(netlist, constraints):
    """What there is, as lines; what is wrong, as lines."""
    check = Check(netlist, constraints)
    clocks = check.clocks()
    rows = check.crossings()
    problems = [
        f"clock {check.clock_name(domain)} has no period"
        for domain, good in clocks.items()
        if not good
    ]
    problems += [
        f"{row.name}: {row.problem}; {row.source} of {', '.join(check.clock_name(d) for d in row.given)} "
        f"to {check.clock_name(row.taker)} ({row.kind})"
        for row in rows
        if row.problem
    ]
    lines = [f"clock {check.clock_name(domain)}" for domain in clocks]
    counts = collections.Counter(
        (
            row.kind,
            ", ".join(check.clock_name(d) for d in row.given),
            check.clock_name(row.taker),
            re.sub(r"\[\d+\]$", "", row.source),
        )
        for row in rows
    )
    lines += [
        f"{kind:23}{given} to {taker}: {source}" + (f", {number} bits" if number > 1 else "")
        for (kind, given, taker, source), number in sorted(counts.items())
    ]
    return lines, problems


def main():
    elaborate_quickly()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("netlist", type=pathlib.Path)
    parser.add_argument("constraints", type=pathlib.Path)
    parser.add_argument("top")
    args = parser.parse_args()
    lines, problems = report(
        Netlist(json.loads(args.netlist.read_text()), args.top),
        Constraints(args.constraints.read_text()),
    )
    print("\n".join(lines))
    if problems:
        sys.exit("\n".join(f"crossings: {problem}" for problem in problems))


if __name__ == "__main__":
    sys.exit(quiet(main))
