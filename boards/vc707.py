#!/usr/bin/env python3
"""Xilinx VC707: PCIe x4, and the link on the SFP cage: see kit.py.

    python boards/vc707.py --build [--load | --flash]
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT/"gateware"), str(ROOT/"hw"/"synthesis")]

from litex.build.generic_platform import GenericPlatform

from litex_boards.platforms import xilinx_vc707

from boards.description import Description
from boards.kit import Card, sfp_pads
from boards.vivado import main

BOARD = Description(
    name     = "vc707",
    title    = "Xilinx VC707",
    part     = "XC7VX485T-2",
    designs  = {"card": "PCIe Gen2 x4, 128 bits; SFP, 2.5 Gb/s"},
    verified = {"card": "Vivado project; lint; Yosys with the core, fits; clock crossings"})

# Build --------------------------------------------------------------------------------------------

def platform() -> GenericPlatform:
    board = xilinx_vc707.Platform()
    board.add_extension(sfp_pads(rx_p="AL6", rx_n="AL5", tx_p="AM4", tx_n="AM3"))
    return board

if __name__ == "__main__":
    main(BOARD, platform, {"card": Card}, sys_clk_freq=100e6)
