"""What makes the keys and contexts of one life of a process, program or card differ from those of
the next.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

# Key Count ----------------------------------------------------------------------------------------

class KeyCount(LiteXModule):
    """Counts the region keys that were given, and the generations of contexts. Only power clears
    it.

    A region key is a number of 32 bits. Keys are given in ascending order, modulo 2**32, from the
    number that `draw` brings. A key is fresh if it lies among the `left` numbers from `next` on.
    Entering a region takes its key and all numbers before that key. So no key is given twice,
    whatever resets the card, its control program or the process that drives it.

    The FPGA has no source of randomness, so the host draws the first number. Only the first draw
    after power-on counts. Before that draw the count begins at 0.

    No signal here is reset: they have their initial values when the FPGA is configured.

    Attributes
    ----------
    draw       : Record, in        `strobe` for one cycle: the host has drawn `value`
    key        : Signal(32), in    the key of the next region
    enter      : Signal(), in      one cycle: a region with `key` is entered in the table; it must
                 be dropped if the key is not fresh
    fresh      : Signal(), out     `key` was never given
    next       : Signal(32), out   the first number that was never given
    left       : Signal(32), out   how many numbers from `next` on can be given. The last of all
                 2**32 numbers never is
    advance    : Signal(), in      one cycle: the next generation begins
    generation : Signal(6), out    of contexts

    Cycles: `fresh` follows `key`, `draw` and `enter` after 2.
    """
    def __init__(self):
        self.draw       = draw = Record([("strobe", 1), ("value", 32)])
        self.key        = key  = Signal(32)
        self.enter      = Signal()
        self.fresh      = Signal(reset_less=True)
        self.next       = Signal(32, reset_less=True)
        self.left       = Signal(32, reset=2**32 - 1, reset_less=True)
        self.advance    = Signal()
        self.generation = Signal(6, reset_less=True)

        # # #

        drawn    = Signal(reset_less=True)
        distance = Signal(32, reset_less=True)  # from `next` to `key`
        self.sync += [
            distance.eq(key - self.next),
            self.fresh.eq(distance < self.left),
            If(self.enter & self.fresh,
                self.next.eq(key + 1),
                self.left.eq(self.left - distance - 1)
            ),
            If(self.advance, self.generation.eq(self.generation + 1)),
            If(draw.strobe & ~drawn,
                drawn.eq(1),
                self.next.eq(draw.value),
                self.left.eq(self.left.reset),
                self.generation.eq(self.generation ^ draw.value[-len(self.generation):])
            ),
        ]
