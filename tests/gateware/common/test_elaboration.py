"""Designs that are elaborated quickly have the Verilog that Migen and LiteX give by themselves."""

# SPDX-License-Identifier: BSD-2-Clause

import subprocess
import sys

from tests.gateware.mcp.card import ROOT

# A process of its own: names depend on what was elaborated before in the same one.
PROGRAM = """
import sys
sys.path[:0] = [{root!r}, {root!r} + "/gateware"]
from dibber.common import elaboration
from litex.gen.fhdl import verilog
from migen import Array, Case, Cat, ClockDomain, If, Module, Signal

from dibber.link.port import LinkPort
from dibber.packet.layer import PacketLayer

if {quickly}:
    elaboration.elaborate_quickly()

class Statements(Module):
    # What LiteX tells apart: assignments of a part, of two signals, by two statements, to an array.
    def __init__(self):
        self.a, self.b, self.n = Signal(8), Signal(8), Signal(2)
        part, twice, low, high = Signal(8), Signal(8), Signal(3), Signal(5)
        array = Array(Signal(8, name="array" + str(n)) for n in range(3))
        self.comb += [part[2:4].eq(self.n), Cat(low, high).eq(self.a + self.b), twice.eq(self.a),
                      If(self.n == 2, twice.eq(part)), array[self.n].eq(twice),
                      Case(self.n, {{1: self.b.eq(low), "default": self.b.eq(array[1])}})]

class Top(Module):
    def __init__(self):
        self.clock_domains.cd_sys = ClockDomain()
        self.submodules.layer = PacketLayer(64)
        self.submodules += [LinkPort() for _ in range(2)]
        self.submodules += [Statements() for _ in range(3)]

top = Top()
clock = {{top.cd_sys.clk, top.cd_sys.rst}}
sys.stdout.write(verilog.convert(top, clock, name="top", regular_comb=False).main_source)
"""


def lines(quickly):
    """Of the Verilog, without LiteX's comments, which have the time of day."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM.format(root=str(ROOT), quickly=quickly)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if not line.lstrip().startswith("//")]


def test_names_and_statements_are_those_of_migen_and_litex_themselves():
    quick, slow = lines(True), lines(False)
    assert len(slow) > 5000
    assert quick == slow
