"""The link on a GTX of Kintex-7 or Virtex-7, with its own PLL."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from liteiclink.serdes.gtx_7series import GTX, GTXChannelPLL

from dibber.phy.s7 import S7SerialPHY

# GTX Reference ------------------------------------------------------------------------------------

class GTXReference(LiteXModule):
    """The reference clock of a quad, from its pins. Several PHYs of the quad may share it.

    Parameters
    ----------
    platform : gets the constraint
    pads     : `p`, `n`
    freq     : Hz

    Attributes
    ----------
    clk  : Signal, out
    freq : Hz
    """
    def __init__(self, platform, pads, freq):
        self.clk  = reference = Signal()
        self.freq = freq

        # # #

        self.specials += Instance(
            "IBUFDS_GTE2", i_CEB=0, i_I=pads.p, i_IB=pads.n, o_O=reference)
        platform.add_period_constraint(pads.p, 1e9/freq)

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
