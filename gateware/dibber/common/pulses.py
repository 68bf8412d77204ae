"""Counter pulses for events that can coincide."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

class Pulses(LiteXModule):
    """Turn events, several of which may coincide, into as many one-cycle pulses, or into numbers of
    events up to `most` a cycle.

    A counter takes one pulse a cycle; coinciding events are counted here and paid in later cycles.
    The events come late in their cycle, so they are added in the next one.

    Parameters
    ----------
    *amounts : Signals or expressions, each the number of events in this cycle
    bits     : width of the number that can be outstanding; on average, events must be fewer than
               `most` in a cycle
    most     : events that are told in a cycle, at most

    Attributes
    ----------
    pulse : Signal(bits_for(most)), out  events, at the earliest 2 cycles after they happen
    """
    def __init__(self, *amounts, bits=3, most=1):
        self.pulse = Signal(max=most + 1)

        # # #

        registered = [Signal(value_bits_sign(amount)[0]) for amount in amounts]
        owed       = Signal(bits)
        self.comb += self.pulse.eq(owed != 0 if most == 1 else Mux(owed > most, most, owed))
        self.sync += [
            *[register.eq(amount) for register, amount in zip(registered, amounts)],
            owed.eq(owed + sum(registered[1:], registered[0]) - self.pulse),
        ]
