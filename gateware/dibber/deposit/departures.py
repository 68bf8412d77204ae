"""Tracks when everything that had entered an engine before a mark has left it."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import add

from migen import *

from litex.gen import *

# Departures ---------------------------------------------------------------------------------------

class Departures(LiteXModule):
    """`busy` until everything that had entered an engine before `mark` has left it (a drain
    barrier).

    The engine is first in, first out. A lookup may still find a region table entry during the
    cycles of its removal, so the mark takes effect 3 cycles later.

    Parameters
    ----------
    enters : Signal, 1 in each cycle in which something enters
    leaves : list of Signals, 1 in each cycle in which something leaves
    most   : largest number that can be inside at once

    Attributes
    ----------
    mark : Signal(), in     set the mark in this cycle
    busy : Signal(), out    something that entered before the mark is still inside
    """
    def __init__(self, enters, leaves, most):
        self.mark = Signal()
        self.busy = Signal()

        # # #

        count_inside = Signal(max=most + 1)
        marked_left  = Signal(max=most + 1)
        mark_delay   = Signal(3)
        leaving      = Signal(max=len(leaves) + 1)
        self.comb += [
            leaving.eq(reduce(add, leaves)),
            self.busy.eq((marked_left != 0) | (mark_delay != 0) | self.mark),
        ]
        self.sync += [
            mark_delay.eq(Cat(self.mark, mark_delay[:2])),
            count_inside.eq(count_inside + enters - leaving),
            If(mark_delay[2],
                marked_left.eq(count_inside + enters - leaving)
            ).Elif(marked_left >= leaving,
                marked_left.eq(marked_left - leaving)
            ).Else(
                marked_left.eq(0)
            ),
        ]
