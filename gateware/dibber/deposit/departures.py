"""When nothing is under way any more of what was granted until now."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import add

from migen import *

from litex.gen import *

# Departures ---------------------------------------------------------------------------------------

class Departures(LiteXModule):
    """Tells when all that had entered an engine before `mark` has left it.

    What enters first leaves first. A lookup may still find an entry of the region table in the
    cycles in which that is being taken out, so a mark counts 3 cycles later.

    Parameters
    ----------
    enters : Signal that is 1 for each cycle in which something enters
    leaves : list of Signals that are 1 for each cycle in which something leaves
    most   : that can be inside at once

    Attributes
    ----------
    mark : Signal(), in     from now on
    busy : Signal(), out    something is left of what was there
    """
    def __init__(self, enters, leaves, most):
        self.mark = Signal()
        self.busy = Signal()

        # # #

        inside = Signal(max=most + 1)
        left   = Signal(max=most + 1)
        later  = Signal(3)
        gone   = Signal(max=len(leaves) + 1)
        self.comb += [
            gone.eq(reduce(add, leaves)),
            self.busy.eq((left != 0) | (later != 0) | self.mark),
        ]
        self.sync += [
            later.eq(Cat(self.mark, later[:2])),
            inside.eq(inside + enters - gone),
            If(later[2],
                left.eq(inside + enters - gone)
            ).Elif(left >= gone,
                left.eq(left - gone)
            ).Else(
                left.eq(0)
            ),
        ]
