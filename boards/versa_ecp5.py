#!/usr/bin/env python3
"""Lattice ECP5-5G Versa: the link on the SMA connectors, the host on the USB serial port.

    python boards/versa_ecp5.py --build [--design ring] [--load | --flash]

The 45F has room for the link tester, but too few LUTs for a card. The transceiver's
reference is the board's 156.25 MHz; 2.5 Gb/s. LEDs 0 to 2 are lit while the link is up, a signal is
there, the clock is locked.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT/"gateware"), str(ROOT/"hw"/"synthesis")]

from litex.build.generic_platform import GenericPlatform, Pins, Subsignal

from litex_boards.platforms import lattice_versa_ecp5

from boards.description import Description
from boards.ecp5 import ECP5Board
from boards.target import main

BOARD = Description(
    name     = "versa_ecp5",
    title    = "Lattice ECP5-5G Versa",
    part     = "LFE5UM5G-45F-8",
    designs  = {
        "link" : "link alone on a UART; SMA connectors, 2.5 Gb/s",
        "ring" : "node of a ring alone on a UART; SMA connectors, 2.5 Gb/s"},
    verified = {
        "link" : "bitstream, timing met; in simulation",
        "ring" : "in simulation"})

# IOs ----------------------------------------------------------------------------------------------

# The platform's SMA pads, in one group.
_io = [
    ("link", 0,
        Subsignal("rx_p", Pins("Y7")), Subsignal("rx_n", Pins("Y8")),
        Subsignal("tx_p", Pins("W8")), Subsignal("tx_n", Pins("W9"))),
]

# Board --------------------------------------------------------------------------------------------

class Board(ECP5Board):
    def __init__(self, platform: GenericPlatform, design: Callable[..., Any], sys_clk_freq: float, linerate: float) -> None:
        ECP5Board.__init__(self, BOARD.name, platform, design, sys_clk_freq,
            link        = platform.request("link"),
            refclk      = platform.request("refclk", 1),
            refclk_freq = 156.25e6,
            linerate    = linerate,
            dual        = 0,
            channel     = 1,
            terminated  = False)

        # # #

        self.comb += [
            platform.request("refclk_en").eq(1),
            platform.request("refclk_rst_n").eq(1),
            *[platform.request("user_led", n).eq(~lit) for n, lit in enumerate(self.lit)],
        ]

# Build --------------------------------------------------------------------------------------------

def platform() -> GenericPlatform:
    board = lattice_versa_ecp5.Platform(device="LFE5UM5G", toolchain="trellis")
    board.add_extension(_io)
    return board

if __name__ == "__main__":
    main("versa_ecp5", platform, Board, {"link": (64e6, 2.5e9), "ring": (64e6, 2.5e9)})
