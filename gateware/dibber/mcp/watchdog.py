"""Watchdog: halts a control program that hangs."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

# Watchdog -----------------------------------------------------------------------------------------

class Watchdog(LiteXModule):
    """Counts down from the value of register WATCHDOG. At zero it interrupts the control program;
    after the same time again it halts the program (it bites).

    The interrupt comes between any two instructions, also in an endless loop, so that the trap
    handler can save the program counter. A program that does not reach its trap handler is halted
    all the same. When the trap handler has saved everything, it sets the watchdog to a cycle or
    two. So a stopped program never keeps the engines. The watchdog does not count while a debugger
    holds the program.

    Attributes
    ----------
    hold      : Signal(), in
    kick      : Signal(), in       register WATCHDOG was written: start again from `cycles`; 0 stops
                the watchdog
    cycles    : Signal(32), in
    interrupt : Signal(), out      to the processor, until the next kick
    bite      : Signal(), out      halt the control program; until the next kick, or reset

    Cycles without `hold`: `cycles` + 1 from `kick` to `interrupt`, from there `cycles` to `bite`.
    """
    def __init__(self):
        self.hold      = Signal()
        self.kick      = Signal()
        self.cycles    = Signal(32)
        self.interrupt = Signal()
        self.bite      = Signal()

        # # #

        period  = Signal(32)
        left    = Signal(32)
        running = Signal()
        self.sync += [
            If(~self.hold, left.eq(left - 1)),
            If(running & (left == 1) & ~self.hold,
                left.eq(period),
                self.interrupt.eq(1),
                self.bite.eq(self.interrupt),
                running.eq(~self.interrupt)
            ),
            If(self.kick,
                period.eq(self.cycles),
                left.eq(self.cycles),
                running.eq(self.cycles != 0),
                self.interrupt.eq(0),
                self.bite.eq(0)
            )
        ]
