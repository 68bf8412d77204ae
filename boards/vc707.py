#!/usr/bin/env python3
# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Xilinx VC707: PCIe x4, and the link on the SFP cage.

    python boards/vc707.py --build [--load | --flash]

The link has 2.5 Gb/s by the 125 MHz of the SGMII oscillator, which reaches the same quad. LEDs 0 to 2 are lit while the link is
up, a signal is there, PCIe is up.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT/"gateware"), str(ROOT/"hw"/"synthesis")]

from litex.build.generic_platform import Pins, Subsignal

from litex_boards.platforms import xilinx_vc707

from boards.description import Description
from boards.vivado import main
from boards.xilinx import PCIeBoard

from dibber.core import DibberCore
from dibber.phy.gtx import GTXSerialPHY

BOARD = Description(
    name     = "vc707",
    title    = "Xilinx VC707",
    part     = "XC7VX485T-2",
    designs  = {"card": "PCIe Gen2 x4, 128 bits; SFP, 2.5 Gb/s"},
    verified = {"card": "Vivado project; lint; clock crossings, without the core"})

# IOs ----------------------------------------------------------------------------------------------

# The platform's SFP pads, in one group.
_io = [
    ("link", 0,
        Subsignal("rx_p", Pins("AL6")), Subsignal("rx_n", Pins("AL5")),
        Subsignal("tx_p", Pins("AM4")), Subsignal("tx_n", Pins("AM3"))),
]

# Board --------------------------------------------------------------------------------------------

class Card(PCIeBoard):
    def __init__(self, platform, sys_clk_freq, core=DibberCore, linerate=2.5e9):
        PCIeBoard.__init__(self, platform, "pcie_x4", 128, sys_clk_freq)
        self.phy = GTXSerialPHY(platform, platform.request("link"), platform.request("sgmii_clock"), 125e6, linerate,
            sys_clk_freq, los=platform.request("sfp_rx_los"))
        self.add_core(self.phy, core)

        # # #

        self.comb += platform.request("sfp_tx_disable_n").eq(1)
        self.comb += [platform.request("user_led", n).eq(lit) for n, lit in enumerate(self.lit)]

# Build --------------------------------------------------------------------------------------------

def platform():
    board = xilinx_vc707.Platform()
    board.add_extension(_io)
    return board

if __name__ == "__main__":
    main(BOARD, platform, {"card": Card}, sys_clk_freq=100e6)
