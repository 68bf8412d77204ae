"""The link on a transceiver of Lattice's ECP5, with LiteICLink."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from liteiclink.serdes.serdes_ecp5 import SerDesECP5, SerDesECP5PLL

from dibber.phy.words import Pads, SerialWords

# ECP5 Serial PHY ----------------------------------------------------------------------------------

class ECP5SerialPHY(LiteXModule):
    """A serial PHY on one channel of a DCU, 20 bits a cycle, with 8b/10b in fabric.

    LiteICLink's reset sequence releases both directions when the receiver has locked. No loopback
    of it is known to work, so this PHY has none.

    Parameters
    ----------
    platform     : gets constraints for both symbol clocks
    pads         : of the connector: `tx_p`, `tx_n`, `rx_p`, `rx_n`
    refclk       : Signal, the transceiver's reference clock
    refclk_freq  : Hz
    linerate     : bits a second, refclk_freq*{8, 10, 16, 20, 25}/2ⁿ; a word has 40 bits on the line
    sys_clk_freq : Hz; more than linerate/40
    dual         : 0 or 1, the DCU
    channel      : 0 or 1, the channel of the DCU

    Attributes
    ----------
    sink   : Endpoint(serial_tx_layout), in
    source : Endpoint(serial_rx_layout), out   valid only
    signal : Signal, out                       the receiver detects a signal and has locked to it
    """
    def __init__(self, platform, pads, refclk, refclk_freq, linerate, sys_clk_freq, dual, channel):
        self.pll    = pll    = SerDesECP5PLL(refclk, refclk_freq, linerate)
        self.serdes = serdes = SerDesECP5(
            pll, *[Pads(pads, side) for side in ["tx", "rx"]], dual, channel)
        self.words  = words  = SerialWords(platform, serdes, linerate, sys_clk_freq)
        self.sink   = words.sink
        self.source = words.source
        self.signal = Signal()

        # # #

        self.comb += self.signal.eq(serdes.rx_ready & ~serdes.rx_idle)
