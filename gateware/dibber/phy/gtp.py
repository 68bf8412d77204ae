# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The link on a GTP of Artix-7, by LiteICLink, in the quad of the PCIe lanes."""

from migen import *
from migen.genlib.cdc import MultiReg

from litex.gen import *

from liteiclink.serdes.gtp_7series import GTP, GTPQuadPLL

from dibber.phy.words import Pads, SerialWords

NEAR_END_PMA = 0b010  # UG482, table 2-34: LOOPBACK
FROM_PINS    = 0b001  # UG482, table 2-8: PLL0REFCLKSEL, GTREFCLK0
FROM_FABRIC  = 0b111  # and GTGREFCLK1

# Shared Common ------------------------------------------------------------------------------------

class QuadPLL:
    """One PLL of a quad, as LiteICLink's GTP and LitePCIe's `use_external_qpll` take it."""
    def __init__(self, channel, config):
        self.channel = channel
        self.config  = config
        self.reset   = Signal()
        self.lock    = Signal()
        self.clk     = Signal()
        self.refclk  = Signal()

class SharedQuad(LiteXModule):
    """The one GTPE2_COMMON of a quad that PCIe and the link share: PLL0 is PCIe's, PLL1 the link's.

    The link's reference comes through the fabric, as the host may spread the spectrum of PCIe's. That is what LiteX does on the
    Acorn's base board; Xilinx advises against it for its jitter, and Vivado has to be told (REQP-49).

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

class GTPSerialPHY(LiteXModule):
    """A serial PHY of the core on one GTP, 20 bits a cycle, 8b/10b in fabric, symbols aligned by the GTP.

    Without a signal the receiver locks to noise. Where the module tells its loss, `los` does, LINK_STATUS says NO_SIGNAL; elsewhere it
    says that what comes is no code.

    Parameters
    ----------
    platform     : gets a constraint for both symbol clocks
    pads         : of the connector: `tx_p`, `tx_n`, `rx_p`, `rx_n`
    pll          : QuadPLL
    linerate     : bits a second; a word is 40
    sys_clk_freq : Hz; more than linerate/40
    rx_polarity  : 1 for a pair that the board inverts
    los          : Signal, in, or None: the module sees no light

    Attributes
    ----------
    sink     : Endpoint(serial_tx_layout), in
    source   : Endpoint(serial_rx_layout), out   valid only
    signal   : Signal, out                       the receiver is ready, and the module has not said that it sees nothing
    loopback : Signal, in                        the transceiver hears itself
    """
    def __init__(self, platform, pads, pll, linerate, sys_clk_freq, rx_polarity=0, los=None):
        self.serdes   = serdes = GTP(pll, *[Pads(pads, side) for side in ["tx", "rx"]], sys_clk_freq,
            data_width       = 20,
            tx_buffer_enable = True,
            rx_buffer_enable = True,
            clock_aligner    = False,
            rx_polarity      = rx_polarity)
        self.words    = words = SerialWords(platform, serdes, linerate, sys_clk_freq)
        self.sink     = words.sink
        self.source   = words.source
        self.signal   = Signal()
        self.loopback = Signal()

        # # #

        attach(self, los)


def attach(phy, los):
    """`signal` and `loopback` of a PHY on a GTP or GTX."""
    lost = Signal()
    if los is not None:
        phy.specials += MultiReg(los, lost)
    phy.comb += [
        phy.signal.eq(phy.serdes.rx_ready & (~lost | phy.loopback)),
        phy.serdes.loopback.eq(Mux(phy.loopback, NEAR_END_PMA, 0)),
    ]
