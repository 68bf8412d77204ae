# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The link on a GTX of Kintex-7, by LiteICLink, with a PLL of its own."""

from migen import *

from litex.gen import *

from liteiclink.serdes.gtx_7series import GTX, GTXChannelPLL

from dibber.phy.gtp import attach
from dibber.phy.words import Pads, SerialWords

# GTX Serial PHY -----------------------------------------------------------------------------------

class GTXSerialPHY(LiteXModule):
    """A serial PHY of the core on one GTX; all else as GTPSerialPHY.

    Parameters
    ----------
    refclk       : pads `p`, `n` of a reference that reaches the quad
    refclk_freq  : Hz
    platform, pads, linerate, sys_clk_freq, los : see GTPSerialPHY

    Attributes
    ----------
    sink, source, signal, loopback : see GTPSerialPHY
    """
    def __init__(self, platform, pads, refclk, refclk_freq, linerate, sys_clk_freq, los=None):
        reference     = Signal()
        self.pll      = pll = GTXChannelPLL(reference, refclk_freq, linerate)
        self.serdes   = serdes = GTX(pll, *[Pads(pads, side) for side in ["tx", "rx"]], sys_clk_freq,
            data_width       = 20,
            tx_buffer_enable = True,
            rx_buffer_enable = True,
            clock_aligner    = False)
        self.words    = words = SerialWords(platform, serdes, linerate, sys_clk_freq)
        self.sink     = words.sink
        self.source   = words.source
        self.signal   = Signal()
        self.loopback = Signal()

        # # #

        self.specials += Instance("IBUFDS_GTE2", i_CEB=0, i_I=refclk.p, i_IB=refclk.n, o_O=reference)
        platform.add_period_constraint(refclk.p, 1e9/refclk_freq)
        attach(self, los)
