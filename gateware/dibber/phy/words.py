"""The link's words on any LiteICLink transceiver that takes two symbols a cycle."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import serial_rx_layout, serial_tx_layout
from dibber.phy.pairs import PairsToWords, WordsToPairs

# Serial Words -------------------------------------------------------------------------------------

class SerialWords(LiteXModule):
    """Conversion between `sys` and a transceiver's clocks, and between words and pairs.

    The receiver's clock is recovered; the transmitter's clock comes from the reference. In words,
    both are slower than `sys`, so words cross in small FIFOs that never fill. No word is dropped or
    inserted to match two clocks.

    Parameters
    ----------
    platform     : gets constraints for both symbol clocks; they are asynchronous to `sys`, where
                   the toolchain can be told so
    serdes       : LiteICLink transceiver with 20 bits a cycle, and with clock domains `tx` and `rx`
                   of the surrounding module
    linerate     : bits a second; a word has 40 bits on the line
    sys_clk_freq : Hz; more than linerate/40

    Attributes
    ----------
    sink   : Endpoint(serial_tx_layout), in
    source : Endpoint(serial_rx_layout), out   valid only
    """
    def __init__(self, platform, serdes, linerate, sys_clk_freq):
        if sys_clk_freq < 1.01*linerate/40:
            raise ValueError(
                f"sys of {sys_clk_freq/1e6:g} MHz is too slow for {linerate/1e9:g} Gb/s")

        # # #

        serdes.add_stream_endpoints()
        for domain, freq in [
                (serdes.cd_tx, serdes.tx_clk_freq), (serdes.cd_rx, serdes.rx_clk_freq)]:
            domain.clk.attr.add("keep")
            platform.add_period_constraint(domain.clk, 1e9/freq)

        # Both sides of a FIFO are reset together, because the transceiver alone may be reset when
        # its signal is lost.
        self.tx_cdc   = tx_cdc   = stream.ClockDomainCrossing(
            serial_tx_layout(), "sys", "tx", 8, with_common_rst=True)
        self.rx_cdc   = rx_cdc   = stream.ClockDomainCrossing(
            serial_rx_layout(), "rx", "sys", 8, with_common_rst=True)
        self.tx_pairs = tx_pairs = ClockDomainsRenamer("tx")(WordsToPairs())
        self.rx_words = rx_words = ClockDomainsRenamer("rx")(PairsToWords())
        self.sink     = tx_cdc.sink
        self.source   = rx_cdc.source
        self.comb += [
            tx_cdc.source.connect(tx_pairs.sink),
            serdes.sink.data.eq(tx_pairs.pair.data),
            serdes.sink.ctrl.eq(tx_pairs.pair.k),
            rx_words.pair.data.eq(serdes.source.data),
            rx_words.pair.k.eq(serdes.source.ctrl),
            rx_words.pair.error.eq(Cat(*[decoder.invalid for decoder in serdes.decoders])),
            rx_words.source.connect(rx_cdc.sink),
            self.source.ready.eq(1),
        ]

# Pads ---------------------------------------------------------------------------------------------

class Pads:
    """One direction of a connector with `tx_p`, `tx_n`, `rx_p`, `rx_n`, as LiteICLink needs it."""
    def __init__(self, pads, side):
        self.p = getattr(pads, f"{side}_p")
        self.n = getattr(pads, f"{side}_n")
