#!/usr/bin/env python3
"""LambdaConcept ECPIX-5 with an 85F: the link on the SATA connector, the host on the USB serial
port.

    python boards/ecpix5.py --build [--design link | ring] [--load | --flash]

The transceiver's reference is the board's 100 MHz clock for SATA. The card takes 63 % of the part.
It and the link tester run at 64 MHz, and their link at 2.5 Gb/s. LED 0 is green while the link is
up, LED 1 while a signal is there, LED 2 when the clock is locked.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT/"gateware"), str(ROOT/"hw"/"synthesis")]

from litex.build.generic_platform import GenericPlatform, Pins, Subsignal

from litex_boards.platforms import lambdaconcept_ecpix5

from boards.description import Description
from boards.ecp5 import ECP5Board
from boards.target import main

BOARD = Description(
    name     = "ecpix5",
    title    = "LambdaConcept ECPIX-5",
    part     = "LFE5UM5G-85F-8",
    designs  = {
        "card" : "card on a UART, 64 bits; SATA connector, 2.5 Gb/s",
        "link" : "link alone, 2.5 Gb/s",
        "ring" : "node of a ring alone, 2.5 Gb/s"},
    verified = {
        "card" : "bitstream, timing met; in simulation",
        "link" : "bitstream, timing met; in simulation",
        "ring" : "in simulation"})

# IOs ----------------------------------------------------------------------------------------------

# The transceiver's pads must have no I/O standard, but the platform's `sata` has one.
_io = [
    ("link_refclk", 0, Subsignal("p", Pins("AF12")), Subsignal("n", Pins("AF13"))),
    ("link", 0,
        Subsignal("rx_p", Pins("AF15")), Subsignal("rx_n", Pins("AF16")),
        Subsignal("tx_p", Pins("AD16")), Subsignal("tx_n", Pins("AD17"))),
]

# Board --------------------------------------------------------------------------------------------

class Board(ECP5Board):
    def __init__(self, platform: GenericPlatform, design: Callable[..., Any], sys_clk_freq: float, linerate: float) -> None:
        ECP5Board.__init__(self, BOARD.name, platform, design, sys_clk_freq,
            link        = platform.request("link"),
            refclk      = platform.request("link_refclk"),
            refclk_freq = 100e6,
            linerate    = linerate,
            dual        = 1,
            channel     = 0,
            terminated  = True)

        # # #

        for n, lit in enumerate(self.lit):
            led = platform.request("rgb_led", n)
            self.comb += [led.r.eq(1), led.g.eq(~lit), led.b.eq(1)]

# Build --------------------------------------------------------------------------------------------

def platform() -> GenericPlatform:
    board = lambdaconcept_ecpix5.Platform(device="85F", toolchain="trellis")
    board.add_extension(_io)
    return board

if __name__ == "__main__":
    main("ecpix5", platform, Board, {"card": (64e6, 2.5e9), "link": (64e6, 2.5e9), "ring": (64e6, 2.5e9)})
