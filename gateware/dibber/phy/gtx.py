"""The link on a GTX of Kintex-7 or Virtex-7, with its own PLL."""

# SPDX-License-Identifier: BSD-2-Clause

from liteiclink.serdes.gtx_7series import GTX, GTXChannelPLL

from dibber.phy.reference import QuadReference
from dibber.phy.s7 import S7SerialPHY

# GTX Reference ------------------------------------------------------------------------------------

class GTXReference(QuadReference):
    """QuadReference of a 7 series: `platform`, `pads`, `freq` as there."""
    def __init__(self, platform, pads, freq):
        QuadReference.__init__(self, platform, pads, freq, "IBUFDS_GTE2")

# GTX Serial PHY -----------------------------------------------------------------------------------

class GTXSerialPHY(S7SerialPHY):
    """S7SerialPHY on one GTX.

    Parameters
    ----------
    reference : GTXReference that reaches the quad
    platform, pads, linerate, sys_clk_freq, los : see S7SerialPHY
    """
    def __init__(self, platform, pads, reference, linerate, sys_clk_freq, los=None):
        self.pll = GTXChannelPLL(reference.clk, reference.freq, linerate)
        S7SerialPHY.__init__(self, GTX, platform, pads, self.pll, linerate, sys_clk_freq, los)
