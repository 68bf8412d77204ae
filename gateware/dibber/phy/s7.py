"""The link on a transceiver of Xilinx' 7 series, by LiteICLink: what GTP and GTX have in common."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.genlib.cdc import MultiReg

from litex.gen import *

from dibber.phy.words import Pads, SerialWords

NEAR_END_PMA = 0b010  # UG482, table 2-34: LOOPBACK; a GTX has the same

# 7-Series Serial PHY ------------------------------------------------------------------------------

class S7SerialPHY(LiteXModule):
    """A serial PHY of the core on one GTP or GTX, 20 bits a cycle, 8b/10b in fabric, symbols
    aligned by the transceiver.

    Without a signal the receiver locks to noise. Where the module tells its loss, `los` does,
    LINK_STATUS says NO_SIGNAL; elsewhere it says that what comes is no code.

    Parameters
    ----------
    transceiver  : LiteICLink's GTP or GTX; `options` are for it alone
    platform     : gets a constraint for both symbol clocks
    pads         : of the connector: `tx_p`, `tx_n`, `rx_p`, `rx_n`
    pll          : what the transceiver takes its clock from
    linerate     : bits a second; a word is 40
    sys_clk_freq : Hz; more than linerate/40
    los          : Signal, in, or None: the module sees no light

    Attributes
    ----------
    sink     : Endpoint(serial_tx_layout), in
    source   : Endpoint(serial_rx_layout), out   valid only
    signal   : Signal, out                       the receiver is ready, and the module has not said
               that it sees nothing
    loopback : Signal, in                        the transceiver hears itself
    """
    def __init__(self, transceiver, platform, pads, pll, linerate, sys_clk_freq, los=None, **options):
        self.serdes   = serdes = transceiver(pll, *[Pads(pads, side) for side in ["tx", "rx"]], sys_clk_freq,
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
