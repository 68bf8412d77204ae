"""The link on a GTP of Artix-7, in the same quad as the PCIe lanes."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from liteiclink.serdes.gtp_7series import GTP, GTPQuadPLL

from dibber.phy.s7 import S7SerialPHY

FROM_PINS   = 0b001  # UG482, table 2-8: PLL0REFCLKSEL, GTREFCLK0
FROM_FABRIC = 0b111  # UG482, table 2-8: GTGREFCLK1

# Shared Common ------------------------------------------------------------------------------------

class QuadPLL:
    """One PLL of a quad, in the form that LiteICLink's GTP and LitePCIe's `use_external_qpll` need.
    """
    def __init__(self, channel, config):
        self.channel = channel
        self.config  = config
        self.reset   = Signal()
        self.lock    = Signal()
        self.clk     = Signal()
        self.refclk  = Signal()

class SharedQuad(LiteXModule):
    """The one GTPE2_COMMON of a quad that PCIe and the link share: PLL0 for PCIe, PLL1 for the
    link.

    The link's reference comes through the fabric, because the host may use a spread spectrum on the
    reference of PCIe. LiteX does the same on the Acorn's base board. Xilinx advises against it
    because of its jitter, and Vivado must be told (REQP-49).

    Parameters
    ----------
    pcie_refclk : Signal, 100 MHz from the pins of the quad
    refclk      : Signal, the link's reference
    refclk_freq : Hz
    linerate    : bits a second

    Attributes
    ----------
    pcie, link : QuadPLL
    """
    def __init__(self, pcie_refclk, refclk, refclk_freq, linerate):
        self.pcie = pcie = QuadPLL(0, GTPQuadPLL.compute_config(100e6, 5e9))
        self.link = link = QuadPLL(1, GTPQuadPLL.compute_config(refclk_freq, linerate))

        # # #

        parameters = {}
        for pll, source in [(pcie, FROM_PINS), (link, FROM_FABRIC)]:
            name        = f"PLL{pll.channel}"
            parameters |= {
                f"p_{name}_FBDIV"      : pll.config["n2"],
                f"p_{name}_FBDIV_45"   : pll.config["n1"],
                f"p_{name}_REFCLK_DIV" : pll.config["m"],
                f"i_{name}LOCKEN"      : 1,
                f"i_{name}PD"          : 0,
                f"i_{name}REFCLKSEL"   : Constant(source, 3),
                f"i_{name}RESET"       : pll.reset,
                f"o_{name}LOCK"        : pll.lock,
                f"o_{name}OUTCLK"      : pll.clk,
                f"o_{name}OUTREFCLK"   : pll.refclk,
            }
        self.specials += Instance("GTPE2_COMMON",
            i_GTREFCLK0    = pcie_refclk,
            i_GTGREFCLK1   = refclk,
            i_BGBYPASSB    = 1,
            i_BGMONITORENB = 1,
            i_BGPDB        = 1,
            i_BGRCALOVRD   = Constant(0b11111, 5),
            i_RCALENB      = 1,
            **parameters)

# GTP Serial PHY -----------------------------------------------------------------------------------

class GTPSerialPHY(S7SerialPHY):
    """S7SerialPHY on one GTP.

    Parameters
    ----------
    pll         : QuadPLL
    rx_polarity : 1 for a pair that the board inverts
    platform, pads, linerate, sys_clk_freq, los : see S7SerialPHY
    """
    def __init__(self, platform, pads, pll, linerate, sys_clk_freq, rx_polarity=0, los=None):
        S7SerialPHY.__init__(
            self, GTP, platform, pads, pll, linerate, sys_clk_freq, los, rx_polarity=rx_polarity)
