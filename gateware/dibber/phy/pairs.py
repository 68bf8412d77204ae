"""Between the link's words of four symbols and a transceiver that takes two a cycle."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import serial_rx_layout, serial_tx_layout
from dibber.link.symbols import FIRST_IS_K, FLOW_FILL, K_COMMA

# A word that no receiver believes: no flow word, for its second and third symbol are no
# complements.
FILL = K_COMMA | FLOW_FILL << 8 | FLOW_FILL << 16 | FLOW_FILL << 24

STRIKES = 3  # commas beside the place that we hold, without one at it, before it is given up

# Layout -------------------------------------------------------------------------------------------

def pair_layout():
    """Two symbols, the first one on the wire in the low bits. `error`: it is no valid code."""
    return [("data", 16), ("k", 2), ("error", 2)]

# Transmit -----------------------------------------------------------------------------------------

class WordsToPairs(LiteXModule):
    """Send each word as two pairs, and FILL when there is none.

    The link always has a word; FILL goes out after reset, until the first has crossed from its
    clock.

    Attributes
    ----------
    sink : Endpoint(serial_tx_layout), in   taken every second cycle
    pair : Record(pair_layout), out         a new one each cycle; `error` is not used

    Cycles: 1.
    """
    def __init__(self):
        self.sink = sink = stream.Endpoint(serial_tx_layout())
        self.pair = pair = Record(pair_layout())

        # # #

        second = Signal()
        word   = Signal(32)
        k      = Signal(4)
        rest   = Record([("data", 16), ("k", 2)])
        self.comb += [
            sink.ready.eq(~second),
            word.eq(Mux(sink.valid, sink.data, FILL)),
            k.eq(Mux(sink.valid, sink.k, FIRST_IS_K)),
        ]
        self.sync += [
            second.eq(~second),
            If(second,
                pair.data.eq(rest.data),
                pair.k.eq(rest.k),
            ).Else(
                Cat(pair.data, rest.data).eq(word),
                Cat(pair.k, rest.k).eq(k),
            ),
        ]

# Receive ------------------------------------------------------------------------------------------

class PairsToWords(LiteXModule):
    """Find where words begin, and put them together.

    The transceiver aligns to symbols; which of four places a word begins at is seen at K28.5, which
    is the first symbol of a word and stands nowhere else. A wrong symbol may look like one, so the
    place is given up only after STRIKES commas elsewhere without one where it should be.

    Attributes
    ----------
    pair   : Record(pair_layout), in          a new one each cycle
    source : Endpoint(serial_rx_layout), out  every second cycle, valid only. `disparity_error` is
             0: the decoder checks codes, not the running disparity; a wrong one that is a code is
             found by the CRCs

    Cycles: 3 from a word's last pair.
    """
    def __init__(self):
        self.pair   = pair   = Record(pair_layout())
        self.source = source = stream.Endpoint(serial_rx_layout())

        # # #

        # The last two pairs, and which of their symbols is the comma.
        now, before = Record(pair_layout()), Record(pair_layout())
        comma       = Signal(2)
        self.sync += [
            now.eq(pair),
            before.eq(now),
            [comma[n].eq(pair.k[n] & ~pair.error[n] & (pair.data[8*n:8*n + 8] == K_COMMA)) for n in range(2)],
        ]

        # Place: whether words begin with the upper symbol of a pair, and in which cycle they do.
        upper   = Signal()
        begins  = Signal()  # `now` holds the first symbol of a word
        strikes = Signal(max=STRIKES + 1)
        held    = Signal()  # a comma at the place that we hold
        other   = Signal()  # and one elsewhere
        move    = Signal()
        self.comb += [
            held.eq(begins & Mux(upper, comma[1], comma[0])),
            other.eq((comma != 0) & ~held),
            move.eq(other & (strikes == STRIKES)),
        ]
        self.sync += [
            begins.eq(~begins),
            If(held | move,
                strikes.eq(0)
            ).Elif(other,
                strikes.eq(strikes + 1)
            ),
            If(move,
                upper.eq(comma[1]),
                begins.eq(0),
            ),
        ]

        # Pairs of words: of one pair, or of the upper symbol of the one before and the lower of
        # this one.
        half = Record(pair_layout())
        lead = Signal()  # `half` is the first of a word
        low  = Record(pair_layout())
        self.comb += [
            If(upper,
                half.data.eq(Cat(before.data[8:], now.data[:8])),
                half.k.eq(Cat(before.k[1], now.k[0])),
                half.error.eq(Cat(before.error[1], now.error[0])),
            ).Else(
                half.eq(now),
            ),
            lead.eq(begins ^ upper),
        ]
        self.sync += [
            source.valid.eq(~lead),
            If(lead,
                low.eq(half)
            ).Else(
                source.data.eq(Cat(low.data, half.data)),
                source.k.eq(Cat(low.k, half.k)),
                source.code_error.eq(Cat(low.error, half.error)),
            ),
        ]
