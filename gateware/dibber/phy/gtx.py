"""The link on a GTX of Kintex-7 or Virtex-7, with its own PLL."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from liteiclink.serdes.gtx_7series import GTX, GTXChannelPLL

from dibber.phy.s7 import S7SerialPHY

# GTX Serial PHY -----------------------------------------------------------------------------------

class GTXSerialPHY(S7SerialPHY):
    """S7SerialPHY on one GTX.

    Parameters
    ----------
    refclk      : pads `p`, `n` of a reference that reaches the quad
    refclk_freq : Hz
    platform, pads, linerate, sys_clk_freq, los : see S7SerialPHY
    """
    def __init__(self, platform, pads, refclk, refclk_freq, linerate, sys_clk_freq, los=None):
        reference = Signal()
        self.pll  = GTXChannelPLL(reference, refclk_freq, linerate)
        S7SerialPHY.__init__(self, GTX, platform, pads, self.pll, linerate, sys_clk_freq, los)

        # # #

        self.specials += Instance(
            "IBUFDS_GTE2", i_CEB=0, i_I=refclk.p, i_IB=refclk.n, o_O=reference)
        platform.add_period_constraint(refclk.p, 1e9/refclk_freq)
