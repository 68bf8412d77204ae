#!/usr/bin/env python3
"""SQRL Acorn CLE-101, CLE-215 and CLE-215+, of which LiteFury and NiteFury are the first two: PCIe,
and a link on a base board.

    python boards/acorn.py --build [--variant cle-215+ | cle-215 | cle-101] [--design link | open]
    [--load | --flash]

The M.2 connector has all four transceivers. `card` gives them to PCIe x4: that build has no link,
and `dibber info` reports it. `link` is a card on PCIe x1 with a link of 2.5 Gb/s on SFP 0 of
LiteX's Acorn base board mini. `open` is a card on PCIe Gen1 x1 without a link, for the CLE-101,
made by openXC7 in place of Vivado: see openxc7.py. LEDs 0 to 2 are lit while the link is up, a
signal is there, PCIe is up.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT/"gateware"), str(ROOT/"hw"/"synthesis")]

from litex.build.generic_platform import GenericPlatform, IOStandard, Misc, Pins, Subsignal

from litex_boards.platforms import sqrl_acorn

from boards import openxc7
from boards.description import Description
from boards.vivado import main
from boards.xilinx import PCIeBoard

from dibber.core import DibberCore
from dibber.phy.absent import AbsentSerialPHY
from dibber.phy.gtp import GTPSerialPHY, SharedQuad

BOARD = Description(
    name     = "acorn",
    title    = "SQRL Acorn CLE-101 (LiteFury), CLE-215 (NiteFury), CLE-215+",
    part     = "XC7A100T-2, XC7A200T-3",
    designs  = {
        "card" : "PCIe Gen2 x4, 128 bits; no link",
        "link" : "PCIe Gen2 x1, 64 bits; SFP of the base board, 2.5 Gb/s",
        "open" : "PCIe Gen1 x1, 64 bits, by openXC7 (CLE-101); no link"},
    verified = {
        "card" : "Vivado project; lint; Yosys with the core, fits both parts; clock crossings",
        "link" : "Vivado project; lint; Yosys with the core, fits both parts; clock crossings",
        "open" : "project; Yosys without the core; unconfirmed"})

# IOs ----------------------------------------------------------------------------------------------

# The platform's flash, in one group. `pcie_x1` and `link`: the lanes of the M.2 connector as
# LiteX's base board mini uses them.
_io = [
    ("spiflash", 0,
        Subsignal("cs_n", Pins("T19")),
        Subsignal("mosi", Pins("P22")), Subsignal("miso", Pins("R22")),
        Subsignal("wp",   Pins("P21")), Subsignal("hold", Pins("R21")),
        IOStandard("LVCMOS33")),
    ("pcie_x1", 0,
        Subsignal("rst_n", Pins("J1"), IOStandard("LVCMOS33"), Misc("PULLUP=TRUE")),
        Subsignal("clk_p", Pins("F6")), Subsignal("clk_n", Pins("E6")),
        Subsignal("rx_p",  Pins("D9")), Subsignal("rx_n",  Pins("C9")),
        Subsignal("tx_p",  Pins("D7")), Subsignal("tx_n",  Pins("C7"))),
    ("pcie_lane0", 0,
        Subsignal("rst_n", Pins("J1"), IOStandard("LVCMOS33"), Misc("PULLUP=TRUE")),
        Subsignal("clk_p", Pins("F6")),  Subsignal("clk_n", Pins("E6")),
        Subsignal("rx_p",  Pins("B10")), Subsignal("rx_n",  Pins("A10")),
        Subsignal("tx_p",  Pins("B6")),  Subsignal("tx_n",  Pins("A6"))),
    ("link", 0,
        Subsignal("rx_p", Pins("D11")), Subsignal("rx_n", Pins("C11")),
        Subsignal("tx_p", Pins("D5")),  Subsignal("tx_n", Pins("C5"))),
]

LANE = "GTPE2_CHANNEL_X0Y7"  # of pcie_x1; the IP would choose another one
CELL = "[get_cells -hierarchical -filter {{NAME=~pcie_s7/*gtp_channel.gtpe2_channel_i}}]"

# Boards -------------------------------------------------------------------------------------------

def variant_of(platform: GenericPlatform) -> str:
    """The board's name in hw/openocd/boards.toml."""
    return "acorn_cle-101" if platform.device.startswith("xc7a100t") else "acorn_cle-215"


class Card(PCIeBoard):
    """PCIe x4; no transceiver is left."""
    def __init__(self, platform: GenericPlatform, sys_clk_freq: float, core: Callable[..., Any] = DibberCore) -> None:
        PCIeBoard.__init__(self, variant_of(platform), platform, "pcie_x4", 128, sys_clk_freq)
        self.absent = AbsentSerialPHY()
        self.add_core(self.absent, core)

        # # #

        self.comb += platform.request("pcie_clkreq_n").eq(0)
        self.comb += [platform.request("user_led", n).eq(lit) for n, lit in enumerate(self.lit)]


class Link(PCIeBoard):
    """PCIe x1 and a link in one quad."""
    def __init__(self, platform: GenericPlatform, sys_clk_freq: float, core: Callable[..., Any] = DibberCore,
        linerate: float = 2.5e9) -> None:
        PCIeBoard.__init__(self, variant_of(platform), platform, "pcie_x1", 64, sys_clk_freq, reference_freq=125e6)
        self.quad = quad = SharedQuad(self.pcie.pcie_refclk, self.crg.cd_reference.clk, 125e6, linerate)
        self.pcie.use_external_qpll(quad.pcie)
        self.phy  = GTPSerialPHY(platform, platform.request("link"), quad.link, linerate, sys_clk_freq, rx_polarity=1)
        self.add_core(self.phy, core)

        # # #

        self.comb += [platform.request("user_led", n).eq(lit) for n, lit in enumerate(self.lit)]
        platform.toolchain.pre_placement_commands += [f"reset_property LOC {CELL}", f"set_property LOC {LANE} {CELL}"]
        # The reference comes through the fabric: see SharedQuad.
        platform.add_platform_command("set_property SEVERITY {{Warning}} [get_drc_checks REQP-49]")

class Open(PCIeBoard):
    """PCIe x1 without Vivado's block."""
    def __init__(self, platform: GenericPlatform, sys_clk_freq: float, core: Callable[..., Any] = DibberCore) -> None:
        PCIeBoard.__init__(self, variant_of(platform), platform, "pcie_lane0", 64, sys_clk_freq, pcie_phy=openxc7.OpenPCIePHY)
        self.absent = AbsentSerialPHY()
        self.add_core(self.absent, core)

        # # #

        self.comb += platform.request("pcie_clkreq_n").eq(0)
        self.comb += [platform.request("user_led", n).eq(lit) for n, lit in enumerate(self.lit)]

# Build --------------------------------------------------------------------------------------------

def platform(variant: str = "cle-215+") -> GenericPlatform:
    board = sqrl_acorn.Platform(variant=variant)
    board.add_extension(_io)
    return board

if __name__ == "__main__":
    main(BOARD, platform, {"card": Card, "link": Link, "open": Open}, sys_clk_freq=100e6,
        variants=["cle-215+", "cle-215", "cle-101"], builders={"open": openxc7})
