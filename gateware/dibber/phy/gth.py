"""10GBASE-R on a GTH of Kintex UltraScale or Virtex UltraScale."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.genlib.cdc import MultiReg

from litex.gen import *

from liteiclink.serdes.gth3_ultrascale import GTH3, GTH3QuadPLL

from dibber.link.ethernet.base_r.gearbox import BLOCK_BITS, LANE_BITS, Gearbox
from dibber.phy.reference import QuadReference
from dibber.phy.words import Pads

LINERATE     = 10.3125e9  # IEEE 802.3-2018, 49.1.4.4: 10 Gb/s of blocks of 64 in 66 bits
NEAR_END_PMA = 0b010      # UG576: LOOPBACK

# UG576, TX_CLK25_DIV and RX_CLK25_DIV: the reference divided by this is 25 MHz or less.
CLK25_HZ = 25e6

class GTHReference(QuadReference):
    """QuadReference of an UltraScale: `platform`, `pads`, `freq` as there."""
    def __init__(self, platform, pads, freq):
        QuadReference.__init__(self, platform, pads, freq, "IBUFDS_GTE3", REFCLK_HROW_CK_SEL=0)

def lane_pins(prefix, bits):
    """Pins of a GTH for raw bits without 8b/10b, of each ten: eight of data, two of control.

    UG576, table "TX interface": of a lane's ten bits, the ninth is at CTRL0, the tenth at CTRL1. The
    lowest bit is first on the wire.

    Parameters
    ----------
    prefix : "i_TX" or "o_RX"
    bits   : Signal(40)
    """
    # Slices of `bits` itself: Migen would put a copy between a slice of a slice and an output.
    lanes = range(0, len(bits), 10)
    return {
        f"{prefix}DATA":  Cat(*[bits[n:n + 8] for n in lanes]),
        f"{prefix}CTRL0": Cat(*[bits[n + 8] for n in lanes]),
        f"{prefix}CTRL1": Cat(*[bits[n + 9] for n in lanes]),
    }

class GTHBlockPHY(LiteXModule):
    """The transceiver below a BaseRStation: docs/design/base-r.md

    LiteICLink's GTH3 has 8b/10b around its 40 bits. The bits of blocks go past it, from and to the
    pins of the transceiver.

    Parameters
    ----------
    platform     : gets constraints for both clocks of the transceiver
    pads         : of the connector: `tx_p`, `tx_n`, `rx_p`, `rx_n`
    reference    : GTHReference of the quad; 156.25 MHz, or another one of which a multiple is
                   10.3125 GHz
    sys_clk_freq : Hz; more than 156.41 MHz (see Gearbox)
    los          : Signal, in, or None: loss of signal at the module

    Attributes
    ----------
    block_tx : Endpoint(block_layout), in    domain sys
    block_rx : Endpoint(block_layout), out   domain sys; valid only
    slip     : Signal(), in    all blocks behind it begin a bit later
    signal   : Signal(), out   the receiver is ready, and there is no loss of signal
    loopback : Signal(), in    the transceiver receives its own output
    """
    def __init__(self, platform, pads, reference, sys_clk_freq, los=None):
        if sys_clk_freq < 1.001*LINERATE/BLOCK_BITS:
            raise ValueError(f"sys of {sys_clk_freq/1e6:g} MHz is too slow for 10GBASE-R")
        self.pll      = pll     = GTH3QuadPLL(reference.clk, reference.freq, LINERATE)
        self.serdes   = serdes  = GTH3(
            pll, *[Pads(pads, side) for side in ["tx", "rx"]], sys_clk_freq,
            data_width       = LANE_BITS,
            tx_buffer_enable = True,
            rx_buffer_enable = True,
            clock_aligner    = False)
        self.gearbox  = gearbox = Gearbox()
        self.block_tx = gearbox.block_tx
        self.block_rx = gearbox.block_rx
        self.slip     = gearbox.slip
        self.signal   = Signal()
        self.loopback = Signal()

        # # #

        clk25_div = -int(-reference.freq//CLK25_HZ)
        bits_rx   = Signal(LANE_BITS)
        serdes.gth_params.update(
            p_TX_CLK25_DIV = clk25_div,
            p_RX_CLK25_DIV = clk25_div,
            # Commas are of 8b/10b. Here they would move the place of words.
            i_RXCOMMADETEN     = 0,
            p_ALIGN_MCOMMA_DET = "FALSE",
            p_ALIGN_PCOMMA_DET = "FALSE",
            **lane_pins("i_TX", gearbox.bits_tx),
            **lane_pins("o_RX", bits_rx),
        )
        for domain in [serdes.cd_tx, serdes.cd_rx]:
            domain.clk.attr.add("keep")
            platform.add_period_constraint(domain.clk, 1e9*LANE_BITS/LINERATE)
        lost = Signal()
        if los is not None:
            self.specials += MultiReg(los, lost)
        self.comb += [
            serdes.rx_align.eq(0),
            self.signal.eq(serdes.rx_ready & (~lost | self.loopback)),
            serdes.loopback.eq(Mux(self.loopback, NEAR_END_PMA, 0)),
        ]
        self.sync.rx += gearbox.bits_rx.eq(bits_rx)
