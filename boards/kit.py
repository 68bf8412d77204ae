"""Common parts of Xilinx' kits KC705 and VC707: all but the FPGA and the pins of the SFP cage.

The link has 2.5 Gb/s from the 125 MHz of the SGMII oscillator, which reaches the cage's quad. LEDs
0 to 2 are lit while the link is up, a signal is there, PCIe is up.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Callable
from typing import Any

from litex.build.generic_platform import GenericPlatform, Pins, Subsignal

from boards.xilinx import PCIeBoard

from dibber.core import DibberCore
from dibber.phy.gtx import GTXReference, GTXSerialPHY

# IOs ----------------------------------------------------------------------------------------------

def sfp_pads(rx_p: str, rx_n: str, tx_p: str, tx_n: str) -> list:
    """The SFP's pads in one group, which the platforms lack."""
    return [("link", 0,
        Subsignal("rx_p", Pins(rx_p)), Subsignal("rx_n", Pins(rx_n)),
        Subsignal("tx_p", Pins(tx_p)), Subsignal("tx_n", Pins(tx_n)))]

# Board --------------------------------------------------------------------------------------------

class Card(PCIeBoard):
    """PCIe x4, and a link on the SFP cage."""
    def __init__(self, platform: GenericPlatform, sys_clk_freq: float, core: Callable[..., Any] = DibberCore,
        linerate: float = 2.5e9) -> None:
        PCIeBoard.__init__(self, platform.name.removeprefix("xilinx_"), platform, "pcie_x4", 128, sys_clk_freq)
        self.reference = GTXReference(platform, platform.request("sgmii_clock"), 125e6)
        self.phy = GTXSerialPHY(platform, platform.request("link"), self.reference, linerate,
            sys_clk_freq, los=platform.request("sfp_rx_los"))
        self.add_core(self.phy, core)

        # # #

        self.comb += platform.request("sfp_tx_disable_n").eq(1)
        self.comb += [platform.request("user_led", n).eq(lit) for n, lit in enumerate(self.lit)]
