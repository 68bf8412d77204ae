"""Counting pulses that can come together."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

class Pulses(LiteXModule):
    """Turn events of up to several at a time into as many one-cycle pulses.

    A counter takes one pulse a cycle; events that come together are owed and paid in the cycles
    after. They come late in their cycle, and are added up in the next.

    Parameters
    ----------
    *amounts : Signals or expressions, each the number of events in this cycle
    bits     : width of what can be owed; the events must be fewer than the cycles in the long run

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
