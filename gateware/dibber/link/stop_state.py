"""When the flow state is to be told."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.link.symbols import (FLOW_PAIRS, FLOW_PERIOD_WORDS, FLOW_REPEATS, FLOW_REPEAT_WORDS)

class FlowSchedule(LiteXModule):
    """A flow word is due when the state changed, soon again, and at least once in
    FLOW_PERIOD_WORDS.

    After FLOW_PAIRS of them with other words around each, the last gets a twin: so there are two
    together in any FLOW_PAIRS*FLOW_PERIOD_WORDS + 1 words, for a receiver that has to leave out
    one, whatever is sent.

    Attributes
    ----------
    flow   : Signal(8), in   the state
    step   : Signal(), in    a word leaves
    sent   : Signal(), in    with `step`: it says `flow`
    filled : Signal(), in    with `step`: it says `told` again
    due    : Signal(), out   the next word has to say `flow`
    twin   : Signal(), out   with `due`: and nothing may go before it
    told   : Signal(8), out  what the last one said

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

        # `due` is a register, and a pong may go first: so it is asked for two words before the
        # limit.
        last    = FLOW_PERIOD_WORDS - 3
        age     = Signal(max=FLOW_PERIOD_WORDS)  # words since the last flow word
        soon    = Signal(max=FLOW_REPEATS + 1)   # quick repeats still to come
        alone   = Signal(max=FLOW_PAIRS)         # flow words since two that stood together
        flowed  = Signal()                       # the last word was one
        changed = Signal()
        old     = Signal()
        pair    = Signal()
        self.comb += [
            changed.eq(self.flow != self.told),
            old.eq(age >= last),
            pair.eq(~flowed & (alone == FLOW_PAIRS - 1)),
        ]
        self.sync += [
            If(changed | old | ((soon != 0) & (age >= FLOW_REPEAT_WORDS - 2)), self.due.eq(1)),
            If(self.step,
                age.eq(age + 1),
                flowed.eq(0),
                If(self.sent,
                    self.told.eq(self.flow),
                    self.due.eq(0),
                    self.twin.eq(0),
                ),
                If(self.sent | self.filled,
                    age.eq(0),
                    flowed.eq(1),
                    alone.eq(alone + 1),
                    If(flowed | pair, alone.eq(0)),
                    If(pair,
                        self.due.eq(1),
                        self.twin.eq(1)
                    ),
                    If(soon != 0, soon.eq(soon - 1)),
                ),
                If(self.sent & changed, soon.eq(FLOW_REPEATS)),
            ),
        ]
