"""Schedule of flow words: when the flow state (STOP bits) must be sent."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.link.symbols import (FLOW_PAIRS, FLOW_PERIOD_WORDS, FLOW_REPEATS, FLOW_REPEAT_WORDS)

class FlowSchedule(LiteXModule):
    """Request a flow word when the state changes, soon again, and at least every FLOW_PERIOD_WORDS.

    After FLOW_PAIRS flow words that were single, the next one is sent twice without a word between.
    So each FLOW_PAIRS*FLOW_PERIOD_WORDS + 1 words hold such a pair. A receiver with a slower clock
    can leave out one word of it, whatever else is sent.

    Attributes
    ----------
    flow   : Signal(8), in   the state
    step   : Signal(), in    a word leaves
    sent   : Signal(), in    with `step`: this word is a flow word with `flow`
    filled : Signal(), in    with `step`: this word is a flow word with `told`, as a filler
    due    : Signal(), out   the next word must be a flow word with `flow`
    twin   : Signal(), out   with `due`: no other word may precede it
    told   : Signal(8), out  the state in the last flow word

    Cycles: 1 from a change to `due`.
    """
    def __init__(self):
        self.flow   = Signal(8)
        self.step   = Signal()
        self.sent   = Signal()
        self.filled = Signal()
        self.due    = Signal()
        self.twin   = Signal()
        self.told   = Signal(8)

        # # #

        # `due` is a register, and a pong may precede the flow word. So `due` is set two words
        # before the limit.
        max_age       = FLOW_PERIOD_WORDS - 3
        age           = Signal(max=FLOW_PERIOD_WORDS)  # words since the last flow word
        repeats_left  = Signal(max=FLOW_REPEATS + 1)   # quick repeats still to be sent
        singles       = Signal(max=FLOW_PAIRS)         # flow words since the last pair
        last_was_flow = Signal()                       # the last word was a flow word
        changed       = Signal()
        age_limit     = Signal()
        pair          = Signal()
        self.comb += [
            changed.eq(self.flow != self.told),
            age_limit.eq(age >= max_age),
            pair.eq(~last_was_flow & (singles == FLOW_PAIRS - 1)),
        ]
        self.sync += [
            If(changed | age_limit | ((repeats_left != 0) & (age >= FLOW_REPEAT_WORDS - 2)),
                self.due.eq(1)
            ),
            If(self.step,
                age.eq(age + 1),
                last_was_flow.eq(0),
                If(self.sent,
                    self.told.eq(self.flow),
                    self.due.eq(0),
                    self.twin.eq(0),
                ),
                If(self.sent | self.filled,
                    age.eq(0),
                    last_was_flow.eq(1),
                    singles.eq(singles + 1),
                    If(last_was_flow | pair, singles.eq(0)),
                    If(pair,
                        self.due.eq(1),
                        self.twin.eq(1)
                    ),
                    If(repeats_left != 0, repeats_left.eq(repeats_left - 1)),
                ),
                If(self.sent & changed, repeats_left.eq(FLOW_REPEATS)),
            ),
        ]
