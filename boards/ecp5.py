"""Common parts of all ECP5 boards: clocks, a transceiver with its reference, a UART, and a design
between them.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Callable
from typing import Any

from migen import *
from migen.genlib.resetsync import AsyncResetSynchronizer

from litex.gen import *

from litex.build.generic_platform import GenericPlatform

from litex.soc.cores.clock import ECP5PLL

import bitstream

from boards.bridged import UARTPHY

from dibber.phy.ecp5 import ECP5SerialPHY
from dibber.phy.flash import ECP5FlashPHY
from dibber.phy.jtag import ECP5JTAG

# The recipe with the least wire and the highest speed for a whole card: docs/synthesis.md. Three of
# the 16 nets of the clocks' network are clocks. The router accepts a path that is late by some
# picoseconds, so the second speed ensures the first.
FULL = bitstream.Recipe(
    luts     = "-maxlut 4 -D 9000",
    nextpnr  = ("--placer", "static", "--router", "router2", "--router2-alt-weights"),
    settings = {"router2/bbMargin/x": "12", "router2/bbMargin/y": "12", "router2/histCongWeight": "0.3", "router2/currCongWeightMult": "0.06"},
    promoted = 10,
    rams     = True,
    spread   = 2_200,
    aims     = {"sys_clk": 85},
    speeds   = [{"sys_clk": 80}, {"sys_clk": 81}])

# CRG ----------------------------------------------------------------------------------------------

class CRG(LiteXModule):
    """`sys` from an oscillator of 100 MHz. Those of LiteX's boards have DRAM clocks that do not
    route without DRAM.
    """
    def __init__(self, clk100: Signal, rst_n: Signal, sys_clk_freq: float) -> None:
        self.cd_sys = ClockDomain()

        # # #

        # The timing report uses this name, so Yosys must keep it.
        self.cd_sys.clk.attr.add("keep")
        self.pll = pll = ECP5PLL()
        pll.register_clkin(clk100, 100e6)
        pll.create_clkout(self.cd_sys, sys_clk_freq, with_reset=False)
        self.specials += AsyncResetSynchronizer(self.cd_sys, ~pll.locked | ~rst_n)

# ECP5 Board ---------------------------------------------------------------------------------------

class ECP5Board(LiteXModule):
    """A design of boards/ on an ECP5 with an external reference for its transceiver.

    Parameters
    ----------
    name         : of the board
    platform     : LiteX platform; `clk100`, `rst_n`, `serial` and `spiflash` are taken from it
    design       : BridgedCard or LinkTester
    sys_clk_freq : Hz
    link, refclk : pads: see ECP5SerialPHY, and `p`, `n`
    refclk_freq, linerate, dual, channel : see ECP5SerialPHY
    terminated   : whether the board terminates the reference itself

    Attributes
    ----------
    clocks : dict of the name of each clock -> Hz that it must meet
    recipe : bitstream.Recipe of the design
    lit    : list of Signal(), out   for three LEDs: link up, signal seen, clock locked
    """
    def __init__(self, name: str, platform: GenericPlatform, design: Callable[..., Any], sys_clk_freq: float, link: Record,
        refclk: Record, refclk_freq: float, linerate: float, dual: int, channel: int, terminated: bool) -> None:
        self.crg = CRG(platform.request("clk100"), platform.request("rst_n"), sys_clk_freq)
        self.reference = Signal()
        self.extref    = Instance("EXTREFB",
            p_REFCK_PWDNB = "0b1",
            p_REFCK_RTERM = "0b0" if terminated else "0b1",
            i_REFCLKP     = refclk.p,
            i_REFCLKN     = refclk.n,
            o_REFCLKO     = self.reference)
        self.extref.attr.add(("LOC", f"EXTREF{dual}"))
        self.serial = ECP5SerialPHY(platform, link, self.reference, refclk_freq, linerate, sys_clk_freq, dual, channel)
        self.uart   = UARTPHY(platform.request("serial"), sys_clk_freq)
        self.flash  = ECP5FlashPHY(platform.request("spiflash"))
        self.design = design(platform, self.uart, self.serial, sys_clk_freq, name, self.flash.pads)
        if hasattr(self.design, "scan"):  # the link tester has no processor to debug
            self.jtag = ECP5JTAG()
            self.comb += self.jtag.scan.connect(self.design.scan)
        self.recipe = FULL if hasattr(self.design, "scan") else bitstream.Recipe()
        self.clocks = {"sys_clk": sys_clk_freq, "tx_clk": linerate/20, "rx_clk": linerate/20}
        self.lit    = [self.design.link_up, self.serial.signal, self.crg.pll.locked]
