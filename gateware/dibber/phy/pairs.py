"""Conversion between the link's words of four symbols and transceivers with two a cycle."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import serial_rx_layout, serial_tx_layout
from dibber.link.symbols import FIRST_IS_K, FLOW_FILL, K_COMMA

# A word that no receiver accepts: its second and third symbols are no complements, as those of a
# flow word are.
FILL = K_COMMA | FLOW_FILL << 8 | FLOW_FILL << 16 | FLOW_FILL << 24

STRIKES = 3  # commas at other positions, without one at ours, before the alignment changes

# Layout -------------------------------------------------------------------------------------------

def pair_layout():
    """Two symbols; the first one on the wire is in the low bits. `error`: the symbol is no valid
    code.
    """
    return [("data", 16), ("k", 2), ("error", 2)]

# Transmit -----------------------------------------------------------------------------------------

class WordsToPairs(LiteXModule):
    """Send each word as two pairs, and FILL if there is no word.

    The link always has a word. FILL is sent after a reset, until the first word has crossed from
    the link's clock.

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
    """Find the start of words, and assemble them.

    The transceiver aligns symbols. A word starts at one of four symbol positions; K28.5 shows which
    one, because it is only used as the first symbol of a word. A wrong symbol may look like K28.5.
    So the alignment changes only after STRIKES commas at other positions, without one at the
    expected position.

    Attributes
    ----------
    pair   : Record(pair_layout), in          a new one each cycle
    source : Endpoint(serial_rx_layout), out  every second cycle, valid only. `disparity_error` is
             0: the decoder checks codes, but not the running disparity. A wrong symbol that is a
             valid code is found by the CRCs

    Cycles: 3 from a word's last pair.
    """
    def __init__(self):
        self.pair   = pair   = Record(pair_layout())
        self.source = source = stream.Endpoint(serial_rx_layout())

        # # #

        # The last two pairs, and which symbol of `now` is a comma.
        now, before = Record(pair_layout()), Record(pair_layout())
        comma       = Signal(2)
        self.sync += [
            now.eq(pair),
            before.eq(now),
            [
                comma[n].eq(pair.k[n] & ~pair.error[n] & (pair.data[8*n:8*n + 8] == K_COMMA))
                for n in range(2)],
        ]

        # Alignment: whether words start with the upper symbol of a pair, and in which cycle.
        starts_upper    = Signal()
        begins          = Signal()  # `now` holds the first symbol of a word
        strikes         = Signal(max=STRIKES + 1)
        comma_in_place  = Signal()
        comma_elsewhere = Signal()
        move            = Signal()
        self.comb += [
            comma_in_place.eq(begins & Mux(starts_upper, comma[1], comma[0])),
            comma_elsewhere.eq((comma != 0) & ~comma_in_place),
            move.eq(comma_elsewhere & (strikes == STRIKES)),
        ]
        self.sync += [
            begins.eq(~begins),
            If(comma_in_place | move,
                strikes.eq(0)
            ).Elif(comma_elsewhere,
                strikes.eq(strikes + 1)
            ),
            If(move,
                starts_upper.eq(comma[1]),
                begins.eq(0),
            ),
        ]

        # Halves of words: one pair, or the upper symbol of the previous pair and the lower symbol
        # of this one.
        half       = Record(pair_layout())
        first_half = Signal()  # `half` is the first half of a word
        low        = Record(pair_layout())
        self.comb += [
            If(starts_upper,
                half.data.eq(Cat(before.data[8:], now.data[:8])),
                half.k.eq(Cat(before.k[1], now.k[0])),
                half.error.eq(Cat(before.error[1], now.error[0])),
            ).Else(
                half.eq(now),
            ),
            first_half.eq(begins ^ starts_upper),
        ]
        self.sync += [
            source.valid.eq(~first_half),
            If(first_half,
                low.eq(half)
            ).Else(
                source.data.eq(Cat(low.data, half.data)),
                source.k.eq(Cat(low.k, half.k)),
                source.code_error.eq(Cat(low.error, half.error)),
            ),
        ]
