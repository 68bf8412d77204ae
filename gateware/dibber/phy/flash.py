"""Pins of the configuration flash. Its clock pin is only reachable through a vendor primitive."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.genlib.cdc import MultiReg

from litex.gen import *

from dibber.host.flash import flash_pads


class FlashPHY(LiteXModule):
    """Drive the pads of the flash, except the clock.

    The flash answers after a falling clock edge. The answer is sampled at the rising edge, two
    cycles of `sys` later. At 8 MHz and a `sys` of 64 MHz this leaves 31 ns for the flash and the
    wires.

    Parameters
    ----------
    pads : `cs_n`, `mosi`, `miso`; also `wp` and `hold`, if present, which stay high

    Attributes
    ----------
    pads : flash_pads(), in
    """
    def __init__(self, pads):
        self.pads = flash_pads()

        # # #

        self.comb += [
            pads.cs_n.eq(self.pads.cs_n),
            pads.mosi.eq(self.pads.mosi),
            *[getattr(pads, name).eq(1) for name in ["wp", "hold"] if hasattr(pads, name)],
        ]
        self.specials += MultiReg(pads.miso, self.pads.miso)


class ECP5FlashPHY(FlashPHY):
    """USRMCLK drives MCLK (Lattice FPGA-TN-02039)."""
    def __init__(self, pads):
        FlashPHY.__init__(self, pads)
        self.specials += Instance("USRMCLK", i_USRMCLKI=self.pads.clk, i_USRMCLKTS=0)


class S7FlashPHY(FlashPHY):
    """STARTUPE2 drives CCLK; it may swallow the first three clocks after configuration (UG470,
    chapter 5).
    """
    def __init__(self, pads):
        FlashPHY.__init__(self, pads)
        self.specials += Instance("STARTUPE2",
            i_CLK       = 0,
            i_GSR       = 0,
            i_GTS       = 0,
            i_KEYCLEARB = 0,
            i_PACK      = 0,
            i_USRCCLKO  = self.pads.clk,
            i_USRCCLKTS = 0,
            i_USRDONEO  = 1,
            i_USRDONETS = 1)
