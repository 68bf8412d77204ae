"""Debug CSRs of the hart (dcsr, dpc, triggers), and the list of VexRiscv `full`'s other CSRs."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

# Numbers ------------------------------------------------------------------------------------------

TSELECT, TDATA1, TDATA2 = 0x7a0, 0x7a1, 0x7a2  # 5.2
DCSR, DPC               = 0x7b0, 0x7b1         # 4.8

# CSRs of the processor; access to any other number is an exception. The last two are VexRiscv's
# interrupt mask and pending bits.
HART_CSRS = [
    0x300, 0x301, 0x304, 0x305, 0x340, 0x341, 0x342, 0x343, 0x344,
    0xb00, 0xb02, 0xb80, 0xb82, 0xc00, 0xc02, 0xc80, 0xc82,
    0xf11, 0xf12, 0xf13, 0xf14,
    0xbc0, 0xfc0]

BREAKPOINTS = 2

class CAUSE:
    """Why the hart halted: dcsr.cause."""
    EBREAK, TRIGGER, REQUEST, STEP = 1, 2, 3, 4

# Debug CSRs ---------------------------------------------------------------------------------------

class DebugCSRs(LiteXModule):
    """dcsr, dpc, and two triggers, which match only the address of an instruction.

    Attributes
    ----------
    number, dat_w : Signal(12), Signal(32), in
    we            : Signal(), in      write `number`; bits that cannot be written are ignored (WARL)
    dat_r         : Signal(32), out   in the cycle after `number`
    ours, theirs  : Signal(), out     `number` is one of these CSRs, or one of the hart's; in the
                    cycle after `number`
    enter         : Signal(), in      the hart has halted at `pc` for `cause`
    pc, cause     : Signal(32), Signal(3), in
    clear         : Signal(), in      dcsr takes its reset value
    dpc           : Signal(32), out
    step, ebreak  : Signal(), out     dcsr.step, dcsr.ebreakm
    hit           : Signal(), out     a trigger matches `pc`
    selected      : Signal(1), out    tselect
    breakpoints   : list of Signal(32), out   address of each; bit 0: enabled
    """
    def __init__(self):
        self.number   = Signal(12)
        self.dat_w    = Signal(32)
        self.we       = Signal()
        self.dat_r    = Signal(32)
        self.ours     = Signal()
        self.theirs   = Signal()
        self.enter    = Signal()
        self.pc       = Signal(32)
        self.cause    = Signal(3)
        self.clear    = Signal()
        self.dpc      = Signal(32)
        self.step     = Signal()
        self.ebreak   = Signal()
        self.hit      = Signal()
        self.selected = Signal(max=BREAKPOINTS)
        self.breakpoints = [Signal(32, name=f"breakpoint{n}") for n in range(BREAKPOINTS)]

        # # #

        # dcsr: version 0.13 of the specification in 31:28, cause in 8:6, machine mode in 1:0.
        cause = Signal(3)
        dcsr  = Cat(C(3, 2), self.step, C(0, 3), cause, C(0, 6), self.ebreak, C(0, 12), C(4, 4))

        # mcontrol (5.2.9): type 2; only debug mode may write it (27); action 1 (15:12), enter debug
        # mode; in machine mode (6), at execution (2).
        breakpoint_ = Array(self.breakpoints)[self.selected]
        mcontrol    = Cat(
            C(0, 2), breakpoint_[0], C(0, 3), C(1, 1), C(0, 5), C(1, 4), C(0, 11), C(1, 1), C(2, 4))
        registers = {
            TSELECT: self.selected,
            TDATA1:  mcontrol,
            TDATA2:  Cat(C(0, 1), breakpoint_[1:]),
            DCSR:    dcsr,
            DPC:     self.dpc,
        }
        self.sync += [
            self.ours.eq(0),
            Case(
                self.number,
                {
                    number: [self.ours.eq(1), self.dat_r.eq(value)]
                    for number, value in registers.items()}),
            self.theirs.eq(0),
            Case(self.number, {number: self.theirs.eq(1) for number in HART_CSRS}),
            If(self.we, Case(self.number, {
                TSELECT: If(self.dat_w < BREAKPOINTS, self.selected.eq(self.dat_w)),
                TDATA1:  Case(self.selected, {n: point[0].eq(self.dat_w[2])
                    for n, point in enumerate(self.breakpoints)}),
                TDATA2:  Case(self.selected, {n: point[1:].eq(self.dat_w[1:])
                    for n, point in enumerate(self.breakpoints)}),
                DCSR:    [self.step.eq(self.dat_w[2]), self.ebreak.eq(self.dat_w[15])],
                DPC:     self.dpc.eq(self.dat_w),
            })),
            If(self.enter,
                self.dpc.eq(self.pc),
                cause.eq(self.cause),
            ),
            If(self.clear,
                self.step.eq(0),
                self.ebreak.eq(0),
            )
        ]
        self.comb += self.hit.eq(
            Cat(*[point[0] & (point[1:] == self.pc[1:]) for point in self.breakpoints]) != 0)
