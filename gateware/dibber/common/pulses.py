"""Counting pulses that can come together."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

class Pulses(LiteXModule):
    """Turns several events in one cycle into as many one-cycle pulses.

    A counter takes one pulse a cycle, so the pulses of events that come together follow one after
    the other. Events are late in their cycle, and are added up in the next one.

    Parameters
    ----------
    *amounts : Signals or expressions, each the number of events in this cycle
    bits     : width of the number of pulses that wait. In the long run there must be fewer events
               than cycles

    Attributes
    ----------
    pulse : Signal(), out  2 cycles after its event at the earliest
    """
    def __init__(self, *amounts, bits=3):
        self.pulse = Signal()

        # # #

        came = [Signal(value_bits_sign(amount)[0]) for amount in amounts]
        owed = Signal(bits)
        self.comb += self.pulse.eq(owed != 0)
        self.sync += [
            *[register.eq(amount) for register, amount in zip(came, amounts)],
            owed.eq(owed + sum(came[1:], came[0]) - self.pulse),
        ]
