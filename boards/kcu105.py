#!/usr/bin/env python3
"""Xilinx KCU105: PCIe x4, and a port over Ethernet on the first SFP+ cage, 10GBASE-R.

    python boards/kcu105.py --build [--load]

The cage's reference is the board's 156.25 MHz, through the neighbouring quad. The station's address
is made of the part's own number. LEDs 0 to 2 are lit while the link is up, a signal is there, PCIe
is up.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT/"gateware"), str(ROOT/"hw"/"synthesis")]

from migen import Cat, ClockDomain, Constant

from litex.build.generic_platform import GenericPlatform, Pins, Subsignal
from litex.gen import LiteXModule
from litex.soc.cores.clock import USMMCM

from litex_boards.platforms import xilinx_kcu105

from boards.description import Description
from boards.vivado import main
from boards.xilinx import PCIeBoard

from dibber.core import DibberCore
from dibber.link.ethernet.base_r.station import BaseRStation
from dibber.link.ethernet.mac import attach_mac
from dibber.link.ethernet.port import EthernetPort
from dibber.phy.dna import PartNumber
from dibber.phy.gth import GTHBlockPHY, GTHReference
from dibber.phy.ultrascale.pcie import USPCIePHY

BOARD = Description(
    name     = "kcu105",
    title    = "Xilinx KCU105",
    part     = "XCKU040-2",
    designs  = {"card": "PCIe Gen2 x4, 128 bits; SFP+ 0, Ethernet, 10GBASE-R, MTU 9000"},
    verified = {"card": "Vivado project; Yosys without the core; clock crossings"})

# IOs ----------------------------------------------------------------------------------------------

_io = [("link", 0,
    Subsignal("tx_p", Pins("U4")), Subsignal("tx_n", Pins("U3")),
    Subsignal("rx_p", Pins("T2")), Subsignal("rx_n", Pins("T1")))]

# Board --------------------------------------------------------------------------------------------

class CRG(LiteXModule):
    """`sys` from the board's oscillator of 125 MHz."""
    def __init__(self, platform: GenericPlatform, sys_clk_freq: float, reference_freq: float | None = None) -> None:
        assert reference_freq is None
        self.cd_sys = ClockDomain()
        self.pll    = pll = USMMCM(speedgrade=-2)
        pll.register_clkin(platform.request("clk125"), 125e6)
        pll.create_clkout(self.cd_sys, sys_clk_freq)


class Card(PCIeBoard):
    """PCIe x4, and 10GBASE-R on the first cage."""
    flash_phy = None  # its clock would need STARTUPE3

    def __init__(self, platform: GenericPlatform, sys_clk_freq: float, core: Callable[..., Any] = DibberCore) -> None:
        PCIeBoard.__init__(self, BOARD.name, platform, "pcie_x4", 128, sys_clk_freq, pcie_phy=USPCIePHY, crg=CRG)
        self.reference = GTHReference(platform, platform.request("si570_refclk"), 156.25e6)
        self.phy       = phy     = GTHBlockPHY(platform, platform.request("link"), self.reference, sys_clk_freq)
        self.station   = station = BaseRStation()
        self.part      = PartNumber()
        port           = EthernetPort(mtu=9000, bulk_width=64)
        self.add_core(None, core, port=port, phys=[phy])

        # # #

        # IEEE 802-2014, 8.2: the first byte says that the address is a local one of one station.
        first = Constant(0x02, 8)
        self.comb += [
            *attach_mac(port, station),
            station.address.eq(Cat(first, self.part.number[:40])),
            station.block_tx.connect(phy.block_tx),
            phy.block_rx.connect(station.block_rx, omit={"ready"}),
            phy.slip.eq(station.slip),
            platform.request("sfp_tx_disable_n").eq(1),
            *[platform.request("user_led", n).eq(lit) for n, lit in enumerate(self.lit)],
        ]

# Build --------------------------------------------------------------------------------------------

def platform() -> GenericPlatform:
    board = xilinx_kcu105.Platform()
    board.add_extension(_io)
    return board

if __name__ == "__main__":
    main(BOARD, platform, {"card": Card}, sys_clk_freq=160e6)
