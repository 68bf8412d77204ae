# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""When the link is up."""

from migen import *

from litex.gen import *

from dibber.interface.description import LINK_STATE
from dibber.link.symbols import HEAR_BIT, SILENCE_WORDS

# Flow words that must come with one alignment before it is believed.
ALIGN_FLOW_WORDS = 4

class LinkTraining(LiteXModule):
    """DOWN until flow words come, ALIGN until the other end hears us too, then UP.

    Attributes
    ----------
    signal : Signal(), in     the transceiver sees a signal; without it the link is down
    heard  : Signal(), in     a flow word came
    flow   : Signal(8), in    with `heard`
    state  : Signal(4), out   enum link_state
    hunt   : Signal(), out    DOWN: look for commas
    hear   : Signal(), out    to be told to the other end
    up     : Signal(), out
    lost   : Signal(), out    one cycle when the state leaves UP
    """
    def __init__(self):
        self.signal = Signal()
        self.heard  = Signal()
        self.flow   = Signal(8)
        self.state  = state = Signal(4, reset=LINK_STATE.DOWN)
        self.hunt   = Signal()
        self.hear   = Signal()
        self.up     = Signal()
        self.lost   = Signal()

        # # #

        silence = Signal(max=SILENCE_WORDS)
        seen    = Signal(max=ALIGN_FLOW_WORDS)
        silent  = Signal()
        answer  = Signal()
        self.comb += [
            silent.eq(~self.signal | (silence == SILENCE_WORDS - 1)),
            answer.eq(self.flow[HEAR_BIT]),
            self.hunt.eq(state == LINK_STATE.DOWN),
            self.hear.eq(state != LINK_STATE.DOWN),
            self.up.eq(state == LINK_STATE.UP),
            self.lost.eq(self.up & (silent | (self.heard & ~answer))),
        ]
        self.sync += [
            silence.eq(silence + 1),
            If(self.heard | self.hunt, silence.eq(0)),
            Case(state, {
                LINK_STATE.DOWN: If(~self.signal,
                    seen.eq(0)
                ).Elif(self.heard,
                    seen.eq(seen + 1),
                    If(seen == ALIGN_FLOW_WORDS - 1, state.eq(LINK_STATE.ALIGN))
                ),
                LINK_STATE.ALIGN: If(self.heard & answer, state.eq(LINK_STATE.UP)),
                LINK_STATE.UP:    If(self.heard & ~answer, state.eq(LINK_STATE.ALIGN)),
            }),
            If(silent & ~self.hunt,
                state.eq(LINK_STATE.DOWN),
                seen.eq(0)
            ),
        ]
