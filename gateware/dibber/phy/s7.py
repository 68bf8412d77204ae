"""The link on a Xilinx 7-series transceiver, with LiteICLink: the common part of GTP and GTX."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.genlib.cdc import MultiReg

from litex.gen import *

from dibber.phy.words import Pads, SerialWords

NEAR_END_PMA = 0b010  # UG482, table 2-34: LOOPBACK; a GTX has the same

# 7-Series Serial PHY ------------------------------------------------------------------------------

class S7SerialPHY(LiteXModule):
    """A serial PHY on one GTP or GTX, 20 bits a cycle, 8b/10b in fabric, symbols aligned by the
    transceiver.

    Without a signal the receiver locks to noise. If the optical module reports the loss of signal
    (`los`), LINK_STATUS shows NO_SIGNAL; otherwise it shows that the received data are no valid
    code.

    Parameters
    ----------
    transceiver  : LiteICLink's GTP or GTX, which gets `options`
    platform     : gets constraints for both symbol clocks
    pads         : of the connector: `tx_p`, `tx_n`, `rx_p`, `rx_n`
    pll          : the transceiver's clock source
    linerate     : bits a second; a word has 40 bits on the line
    sys_clk_freq : Hz; more than linerate/40
    los          : Signal, in, or None: loss of signal at the module

    Attributes
    ----------
    sink     : Endpoint(serial_tx_layout), in
    source   : Endpoint(serial_rx_layout), out   valid only
    signal   : Signal, out                       the receiver is ready, and there is no loss of
               signal
    loopback : Signal, in                        the transceiver receives its own output
    """
    def __init__(
        self, transceiver, platform, pads, pll, linerate, sys_clk_freq, los=None, **options):
        self.serdes   = serdes = transceiver(
            pll, *[Pads(pads, side) for side in ["tx", "rx"]], sys_clk_freq,
            data_width       = 20,
            tx_buffer_enable = True,
            rx_buffer_enable = True,
            clock_aligner    = False,
            **options)
        self.words    = words = SerialWords(platform, serdes, linerate, sys_clk_freq)
        self.sink     = words.sink
        self.source   = words.source
        self.signal   = Signal()
        self.loopback = Signal()

        # # #

        lost = Signal()
        if los is not None:
            self.specials += MultiReg(los, lost)
        self.comb += [
            self.signal.eq(serdes.rx_ready & (~lost | self.loopback)),
            serdes.loopback.eq(Mux(self.loopback, NEAR_END_PMA, 0)),
        ]
