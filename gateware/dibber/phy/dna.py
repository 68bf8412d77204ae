"""The number that each UltraScale part has of its own."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.genlib.cdc import MultiReg

from litex.gen import *

DNA_BITS = 96  # UG570, chapter 7

class NumberReader(LiteXModule):
    """Shift a part's number out of its port, once after the reset.

    Attributes
    ----------
    clock, read, shift : Signal(), out   pins of DNA_PORTE2, which looks at them at rising edges
    bit    : Signal(), in       its DOUT
    number : Signal(96), out    bit 0 came first
    done   : Signal(), out      the number is there

    Cycles: 772 from the reset to `done`: `clock` has an eighth of the frequency of `sys`. So `bit`
    may come through a synchroniser.
    """
    def __init__(self):
        self.clock  = Signal()
        self.read   = Signal()
        self.shift  = Signal()
        self.bit    = Signal()
        self.number = number = Signal(DNA_BITS)
        self.done   = Signal()

        # # #

        count  = Signal(max=DNA_BITS + 1)  # bits that are there
        loaded = Signal()
        phase  = Signal(3)
        self.comb += [
            self.clock.eq(phase[2]),
            self.read.eq(~loaded),
            self.shift.eq(loaded),
            self.done.eq(count == DNA_BITS),
        ]
        self.sync += If(~self.done,
            phase.eq(phase + 1),
            # A cycle before the next rising edge, the bit of the last one is there.
            If(phase == 3,
                loaded.eq(1),
                If(loaded,
                    count.eq(count + 1),
                    number.eq(Cat(number[1:], self.bit)),
                ),
            ),
        )

class PartNumber(NumberReader):
    """NumberReader at the port of the part."""
    def __init__(self):
        NumberReader.__init__(self)
        bit = Signal()
        self.specials += MultiReg(bit, self.bit)
        self.specials += Instance("DNA_PORTE2",
            i_CLK   = self.clock,
            i_READ  = self.read,
            i_SHIFT = self.shift,
            i_DIN   = 0,
            o_DOUT  = bit)
