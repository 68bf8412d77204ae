#!/usr/bin/env python3
"""STLV7325, version 2: PCIe x4, and the link on SFP A, or a pair of rings on SFP A and B.

    python boards/stlv7325.py --build [--design pair] [--load | --flash]

`card` has the link on SFP A. `pair` is a node of a pair of rings: the cable NEXT is at SFP A, and
PREVIOUS at SFP B. A link has 2.5 Gb/s from the board's 156.25 MHz, through the neighbouring quad.
LEDs 0 to 2 are lit while the link is up, a signal is there, PCIe is up.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT/"gateware"), str(ROOT/"hw"/"synthesis")]

from litex.build.generic_platform import GenericPlatform, Pins, Subsignal
from litex.gen import LiteXModule

from litex_boards.platforms import sitlinv_stlv7325_v2

from boards.description import Description
from boards.vivado import main
from boards.xilinx import PCIeBoard

from dibber.core import DibberCore
from dibber.fabric.ring.pair import RingPairPort
from dibber.phy.gtx import GTXReference, GTXSerialPHY

BOARD = Description(
    name     = "stlv7325",
    title    = "STLV7325 v2",
    part     = "XC7K325T-2",
    designs  = {
        "card" : "PCIe Gen2 x4, 128 bits; SFP A, 2.5 Gb/s",
        "pair" : "PCIe Gen2 x4, 128 bits; pair of rings on SFP A and B, 2.5 Gb/s each"},
    verified = {
        "card" : "Vivado project; lint; Yosys with the core, fits; clock crossings",
        "pair" : "Vivado project; Yosys without the core; clock crossings"})

# IOs ----------------------------------------------------------------------------------------------

# Pads of transceivers must have no I/O standard, but the platform's `clk156` has one.
_io = [
    ("link_refclk", 0, Subsignal("p", Pins("D6")), Subsignal("n", Pins("D5"))),
    ("link", 0,  # SFP A
        Subsignal("rx_p", Pins("J4")), Subsignal("rx_n", Pins("J3")),
        Subsignal("tx_p", Pins("H2")), Subsignal("tx_n", Pins("H1"))),
    ("link", 1,  # SFP B
        Subsignal("rx_p", Pins("L4")), Subsignal("rx_n", Pins("L3")),
        Subsignal("tx_p", Pins("K2")), Subsignal("tx_n", Pins("K1"))),
]

# Boards -------------------------------------------------------------------------------------------

class Shell(PCIeBoard):
    """PCIe x4, and a PHY for each of the first `links` SFP cages."""
    def __init__(self, platform: GenericPlatform, sys_clk_freq: float, linerate: float, links: int) -> None:
        PCIeBoard.__init__(self, BOARD.name, platform, "pcie_x4", 128, sys_clk_freq)
        self.reference = GTXReference(platform, platform.request("link_refclk"), 156.25e6)
        self.phys: list[LiteXModule] = []
        for n in range(links):
            phy = GTXSerialPHY(platform, platform.request("link", n), self.reference, linerate, sys_clk_freq)
            self.add_module(f"phy{n}", phy)
            self.phys.append(phy)

    def light(self) -> None:
        self.comb += [self.platform.request("user_led_n", n).eq(~lit) for n, lit in enumerate(self.lit)]


class Card(Shell):
    """The link on SFP A."""
    def __init__(self, platform: GenericPlatform, sys_clk_freq: float, core: Callable[..., Any] = DibberCore,
        linerate: float = 2.5e9) -> None:
        Shell.__init__(self, platform, sys_clk_freq, linerate, links=1)
        self.add_core(self.phys[0], core)
        self.light()


class Pair(Shell):
    """A pair of rings: NEXT on SFP A, PREVIOUS on SFP B."""
    def __init__(self, platform: GenericPlatform, sys_clk_freq: float, core: Callable[..., Any] = DibberCore,
        linerate: float = 2.5e9) -> None:
        Shell.__init__(self, platform, sys_clk_freq, linerate, links=2)
        self.add_core(self.phys, core, port=RingPairPort())
        self.light()

# Build --------------------------------------------------------------------------------------------

def platform() -> GenericPlatform:
    board = sitlinv_stlv7325_v2.Platform()
    board.add_extension(_io)
    return board

if __name__ == "__main__":
    main(BOARD, platform, {"card": Card, "pair": Pair}, sys_clk_freq=100e6)
