"""A cable of a pair of rings: whether both its lanes work, and the fold beside it."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import serial_rx_layout, serial_tx_layout
from dibber.link.link_receiver import WordDecoder
from dibber.link.symbols import FIRST_IS_K, K_COMMA, SILENCE_WORDS, flow_word
from dibber.link.training import ALIGN_FLOW_WORDS

# Bit of an idle's flags on the cable of a pair: this end hears the other.
HEARD_BIT = 5

# Cycles without a whole cable and without a ring before the fold; cycles of a whole cable before
# the fold opens.
FOLD_CYCLES = 4096

# Cycles for which the receiver of the fold is down after each change. In this time each word of the
# old ring has come to it: 16 nodes with 100 m of cable between two are 1300 cycles.
HOLD_CYCLES = 2048

class RingCable(LiteXModule):
    """Join two nodes of a card to a cable, or to each other.

    A cable is whole if this end hears idles, and these say that the other end hears this one. So
    both ends know it when a lane is dead.

    Parameters
    ----------
    fold_cycles, hold_cycles : as FOLD_CYCLES and HOLD_CYCLES

    Attributes
    ----------
    serial_tx   : Endpoint(serial_tx_layout), out   the cable
    serial_rx   : Endpoint(serial_rx_layout), in
    signal      : Signal(), in
    node_tx     : Endpoint(serial_tx_layout), in    the node that sends to this cable
    node_rx     : Endpoint(serial_rx_layout), out   the node that receives from it
    node_signal : Signal(), out
    any_up      : Signal(), in     a node of this card is UP
    other_alive : Signal(), in     of the card's other cable
    other_folded : Signal(), in
    alive       : Signal(), out    idles are heard
    whole       : Signal(), out
    folded      : Signal(), out
    turns       : Signal(), out    pulse: the fold is made or opened

    Cycles: 0.
    """
    def __init__(self, fold_cycles=FOLD_CYCLES, hold_cycles=HOLD_CYCLES):
        self.serial_tx    = tx      = stream.Endpoint(serial_tx_layout())
        self.serial_rx    = rx      = stream.Endpoint(serial_rx_layout())
        self.signal       = Signal()
        self.node_tx      = node_tx = stream.Endpoint(serial_tx_layout())
        self.node_rx      = node_rx = stream.Endpoint(serial_rx_layout())
        self.node_signal  = Signal()
        self.any_up       = Signal()
        self.other_alive  = Signal()
        self.other_folded = Signal()
        self.alive        = alive  = Signal()
        self.whole        = Signal()
        self.folded       = folded = Signal()
        self.turns        = turns  = Signal()

        # # #

        # What Comes -------------------------------------------------------------------------------
        self.decoder = decoder = WordDecoder(2, tagged=True)
        idles   = Signal(max=ALIGN_FLOW_WORDS)
        silence = Signal(max=SILENCE_WORDS)
        heard   = Signal()  # the other end hears this one
        self.comb += [
            *[getattr(decoder.sink, name).eq(getattr(rx, name))
                for name in ("valid", "data", "k", "code_error", "disparity_error")],
            decoder.hunt.eq(~alive),
            self.whole.eq(alive & heard),
            rx.ready.eq(1),
        ]
        self.sync += [
            silence.eq(silence + 1),
            If(decoder.is_flow,
                silence.eq(0),
                heard.eq(decoder.data[8 + HEARD_BIT]),
                If(~alive,
                    idles.eq(idles + 1),
                    alive.eq(idles == ALIGN_FLOW_WORDS - 1)
                ),
            ),
            If(~self.signal | (silence == SILENCE_WORDS - 1),
                silence.eq(0),
                idles.eq(0),
                alive.eq(0),
                heard.eq(0)
            ),
        ]

        # Fold -------------------------------------------------------------------------------------
        wants = Signal()
        timer = Signal(max=fold_cycles)
        hold  = Signal(max=hold_cycles)
        self.comb += [
            wants.eq(Mux(folded,
                self.whole,
                ~self.whole & ~self.any_up & self.other_alive & ~self.other_folded)),
            turns.eq(wants & (timer == fold_cycles - 1)),
        ]
        self.sync += [
            timer.eq(Mux(wants & ~turns, timer + 1, 0)),
            If(hold != 0, hold.eq(hold - 1)),
            If(turns,
                folded.eq(~folded),
                hold.eq(hold_cycles - 1)
            ),
        ]

        # Words ------------------------------------------------------------------------------------
        is_idle = Signal()
        flags   = Signal(8)
        self.comb += [
            flags[HEARD_BIT].eq(alive),
            is_idle.eq(node_tx.k[0] & (node_tx.data[:8] == K_COMMA)),
            self.node_signal.eq((folded | self.signal) & (hold == 0) & ~turns),
            If(folded,
                tx.valid.eq(1),
                tx.data.eq(flow_word(flags)),
                tx.k.eq(FIRST_IS_K),
                node_tx.ready.eq(1),
                node_rx.valid.eq(node_tx.valid),
                node_rx.data.eq(node_tx.data),
                node_rx.k.eq(node_tx.k)
            ).Else(
                tx.valid.eq(node_tx.valid),
                tx.data.eq(node_tx.data),
                tx.k.eq(node_tx.k),
                # The flags of an idle, and their complement.
                If(is_idle,
                    tx.data[8 + HEARD_BIT].eq(alive),
                    tx.data[16 + HEARD_BIT].eq(~alive)
                ),
                node_tx.ready.eq(tx.ready),
                rx.connect(node_rx, omit={"ready"})
            ),
        ]
