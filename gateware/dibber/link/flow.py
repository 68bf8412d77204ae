# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""When the flow state is to be told."""

from migen import *

from litex.gen import *

from dibber.link.symbols import (FLOW_PAIRS, FLOW_PERIOD_WORDS, FLOW_REPEATS, FLOW_REPEAT_WORDS)

class FlowSchedule(LiteXModule):
    """A flow word is due when the state changed, soon again, and at least once in FLOW_PERIOD_WORDS.

    Attributes
    ----------
    flow   : Signal(8), in   the state
    step   : Signal(), in    a word leaves
    sent   : Signal(), in    with `step`: it says `flow`
    filled : Signal(), in    with `step`: it says `told` again
    due    : Signal(), out   the next word has to say `flow`
    told   : Signal(8), out  what the last one said

    Cycles: 1 from a change to `due`.
    """
    def __init__(self):
        self.flow   = Signal(8)
        self.step   = Signal()
        self.sent   = Signal()
        self.filled = Signal()
        self.due    = Signal()
        self.told   = Signal(8)

        # # #

        # `due` is a register, and a pong may go first: so it is asked for two words before the limit.
        last    = FLOW_PERIOD_WORDS - 3
        age     = Signal(max=FLOW_PERIOD_WORDS)  # words since the last flow word
        soon    = Signal(max=FLOW_REPEATS + 1)   # quick repeats still to come
        periods = Signal(max=FLOW_PAIRS)
        changed = Signal()
        old     = Signal()
        pair    = Signal()
        self.comb += [
            changed.eq(self.flow != self.told),
            old.eq(age >= last),
            pair.eq(old & (periods == FLOW_PAIRS - 1)),
        ]
        self.sync += [
            If(changed | old | ((soon != 0) & (age >= FLOW_REPEAT_WORDS - 2)), self.due.eq(1)),
            If(self.step,
                age.eq(age + 1),
                If(self.sent | self.filled,
                    age.eq(0),
                    If(soon != 0, soon.eq(soon - 1)),
                ),
                If(self.sent,
                    self.told.eq(self.flow),
                    self.due.eq(pair),
                    If(old, periods.eq(periods + 1)),
                    If(changed, soon.eq(FLOW_REPEATS)),
                ),
            ),
        ]
