"""The hart as a debug module wants it, made of VexRiscv's debug bus."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.debug.csrs import CAUSE, TDATA1, TDATA2, DebugCSRs
from dibber.debug.injector import (AUIPC_X0, BREAKPOINT, BROKE, BUSY, CONTROL, EXECUTE, FENCE_I, FLUSH_DATA, HALT, HALTED, JUMP_X1, RESUME,
    SETTLE, STEP, Injector, core_port, load_high, load_low, read_csr, read_gpr, write_csr)

# Hart Control -------------------------------------------------------------------------------------

NOWHERE = 0x4000_0000  # added to the address of an instruction: there is no memory

class HartControl(LiteXModule):
    """Halts, resumes and steps the processor, and reads and writes its registers while it is
    halted.

    When memory was written behind its caches, the hart forgets them before it resumes. A load that
    misses in the data cache is fetched again by VexRiscv, and a step ends before that; so a step
    that came nowhere is done once more.

    VexRiscv with a debug bus either halts at an ebreak or takes it for a nop. So it halts, and when
    no debugger wants to know, the hart goes on at the same address of `NOWHERE`, where it finds an
    illegal instruction and traps.

    Attributes
    ----------
    core    : core_port, out
    reset   : Signal(), in      the processor is held in reset; with `halt` it will not execute its
              first instruction
    active  : Signal(), in      there is a debugger
    halt    : Signal(), in      level
    resume  : Signal(), in      one cycle, while `halted`
    written : Signal(), in      memory was written
    halted  : Signal(), out
    resumed : Signal(), out     one cycle
    command : Record, in        `valid` until `done`, while `halted`: access the register `regno`
              (table 3.3)
    done    : Signal(), out     with `failed`: there is no such register
    result  : Signal(32), out   what was read, from `done` on

    Cycles of a command: 5 for a debug register, 20 to read one, 40 to write a GPR, 120 to write a
    CSR.
    """
    def __init__(self):
        self.core    = core = core_port()
        self.reset   = Signal()
        self.active  = Signal()
        self.halt    = Signal()
        self.resume  = Signal()
        self.written = Signal()
        self.halted  = Signal()
        self.resumed = Signal()
        self.command = command = Record([("valid", 1), ("write", 1), ("regno", 16), ("data", 32)])
        self.done    = Signal()
        self.failed  = Signal()
        self.result  = Signal(32)

        # # #

        self.csrs     = csrs     = DebugCSRs()
        self.injector = injector = ResetInserter()(Injector())
        self.comb += [
            injector.reset.eq(self.reset),
            csrs.number.eq(command.regno),
            csrs.dat_w.eq(command.data),
            csrs.clear.eq(~self.active),
        ]

        # Bus --------------------------------------------------------------------------------------

        ours  = core_port()
        flags = core.dat_r
        self.comb += [
            If(injector.start,
                injector.core.connect(core, omit={"ready", "dat_r"}),
            ).Else(
                ours.connect(core, omit={"ready", "dat_r"}),
            ),
            injector.core.ready.eq(core.ready),
            injector.core.dat_r.eq(core.dat_r),
        ]

        # States -----------------------------------------------------------------------------------

        value, saved = Signal(32), Signal(32)
        target       = Signal(5)
        leaving      = Signal()  # the registers are loaded to resume
        uses_x1      = Signal()  # x1 holds an operand, and what it was is in `saved`
        stepping     = Signal()
        again        = Signal()  # this step is the second
        fresh        = Signal()  # the hart halted before its first instruction
        stale        = Signal()  # the caches may be
        broke        = Signal()
        count        = Signal(max=SETTLE + 1)
        number       = command.regno[:12]
        gpr          = command.regno[:5]

        self.fsm = fsm = ResetInserter()(FSM(reset_state="RESET"))
        self.comb += fsm.reset.eq(self.reset)
        self.sync += If(self.written, stale.eq(1)).Elif(fsm.ongoing("FLUSH-DATA"), stale.eq(0))

        def control(bits):
            """Write CONTROL."""
            return [
                ours.valid.eq(1),
                ours.we.eq(1),
                ours.adr.eq(CONTROL),
                ours.dat_w.eq(bits),
            ]

        def inject(state, word, *then):
            """In `state` execute `word`, then do the rest."""
            fsm.act(state,
                injector.start.eq(1),
                injector.word.eq(word),
                If(injector.done, *then)
            )

        # Running ----------------------------------------------------------------------------------

        fsm.act("RESET",
            *control(Mux(self.halt, HALT, RESUME)),
            NextValue(fresh, self.halt),
            NextState("RUNNING")
        )
        fsm.act("RUNNING",
            NextValue(count, 0),
            If(flags[HALTED],
                NextState("HALTING")
            ).Elif(self.halt,
                *control(HALT | Mux(stepping, STEP, 0))
            )
        )
        fsm.act("HALTING",
            NextValue(broke, flags[BROKE]),
            If(count != SETTLE,
                NextValue(count, count + 1)
            ).Elif(~flags[BUSY],
                ours.adr.eq(EXECUTE),
                NextState("BREAK")
            )
        )
        fsm.act("BREAK",
            NextValue(fresh, 0),
            NextValue(csrs.pc, Mux(fresh, 0, core.dat_r)),
            NextState("PC"),
            If(broke | fresh, NextState("STEPPED"))
        )
        inject("PC", AUIPC_X0, NextValue(csrs.pc, injector.result), NextState("STEPPED"))
        fsm.act("STEPPED",
            NextState("ENTER"),
            If(broke & ~(self.active & (csrs.ebreak | csrs.hit)),
                NextValue(csrs.pc, csrs.pc | NOWHERE),
                NextState("TRAP")
            ).Elif(stepping & ~broke & ~again & (csrs.pc == csrs.dpc),
                NextValue(again, 1),
                NextState("JUMP")
            )
        )
        fsm.act("TRAP",
            csrs.enter.eq(1),
            NextState("JUMP")
        )
        self.comb += csrs.cause.eq(Mux(broke, Mux(csrs.hit, CAUSE.TRIGGER, CAUSE.EBREAK),
            Mux(stepping & ~self.halt, CAUSE.STEP, CAUSE.REQUEST)))
        fsm.act("ENTER",
            csrs.enter.eq(1),
            NextValue(self.halted, 1),
            NextState("HALTED")
        )

        # Halted -----------------------------------------------------------------------------------

        fsm.act("HALTED",
            NextValue(leaving, 0),
            NextValue(uses_x1, 0),
            NextValue(again, 0),
            NextValue(value, command.data),
            NextValue(target, gpr),
            If(self.resume,
                NextState("JUMP"),
                If(stale, NextState("FLUSH-DATA"))
            ).Elif(command.valid,
                NextState("DECODE")
            )
        )
        fsm.act("DECODE",
            NextState("UNKNOWN"),
            If(command.regno[5:] == 0x1000 >> 5,
                NextState("READ-GPR"),
                If(command.write, NextState("HIGH"))
            ).Elif(command.regno[12:] == 0,
                If(csrs.ours,
                    csrs.we.eq(command.write),
                    NextValue(self.result, csrs.dat_r),
                    NextState("DONE"),
                    If(command.write & ((number == TDATA1) | (number == TDATA2)), NextState("BREAKPOINT"))
                ).Elif(csrs.theirs,
                    NextState("READ-CSR"),
                    If(command.write,
                        NextValue(uses_x1, 1),
                        NextState("SAVE"),
                        If(number[10:] == 0b11, NextState("UNKNOWN"))
                    )
                )
            )
        )
        inject("READ-GPR", read_gpr(gpr),    NextValue(self.result, injector.result), NextState("DONE"))
        inject("READ-CSR", read_csr(number), NextValue(self.result, injector.result), NextState("DONE"))
        fsm.act("BREAKPOINT",
            ours.valid.eq(1),
            ours.we.eq(1),
            ours.adr.eq(BREAKPOINT | csrs.selected << 2),
            ours.dat_w.eq(Array(csrs.breakpoints)[csrs.selected]),
            NextState("DONE")
        )
        fsm.act("DONE",
            self.done.eq(1),
            NextState("HALTED")
        )
        fsm.act("UNKNOWN",
            self.done.eq(1),
            self.failed.eq(1),
            NextState("HALTED")
        )

        # Loading a register -----------------------------------------------------------------------

        inject("SAVE", read_gpr(C(1, 5)),
            NextValue(saved, injector.result),
            NextValue(target, 1),
            NextState("HIGH"))
        inject("HIGH", load_high(target, value), NextState("LOW"))
        inject("LOW",  load_low(target, value),
            If(uses_x1,
                NextState("USE")
            ).Elif(leaving,
                NextState("LEAVE")
            ).Else(
                NextState("DONE")
            ))
        inject("USE", Mux(leaving, JUMP_X1, write_csr(number)),
            NextValue(uses_x1, 0),
            NextValue(value, saved),
            NextState("HIGH"))

        # Resuming ---------------------------------------------------------------------------------

        inject("FLUSH-DATA", FLUSH_DATA, NextState("FLUSH-INSTRUCTIONS"))
        inject("FLUSH-INSTRUCTIONS", FENCE_I, NextState("JUMP"))
        fsm.act("JUMP",
            NextValue(leaving, 1),
            NextValue(uses_x1, 1),
            NextValue(value, csrs.dpc),
            NextState("SAVE")
        )
        fsm.act("LEAVE",
            *control(RESUME | Mux(csrs.step, STEP, 0)),
            NextValue(stepping, csrs.step),
            NextValue(self.halted, 0),
            self.resumed.eq(1),
            NextState("RUNNING")
        )
