"""Control of the hart (halt, resume, step, registers) through VexRiscv's debug bus."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.debug.csrs import CAUSE, TDATA1, TDATA2, DebugCSRs
from dibber.debug.injector import (AUIPC_X0, BREAKPOINT, BROKE, BUSY, CONTROL, EXECUTE, FENCE_I, FLUSH_DATA, HALT, HALTED, JUMP_X1, RESUME,
    SETTLE, STEP, Injector, core_port, load_high, load_low, read_csr, read_gpr, write_csr)

# Hart Control -------------------------------------------------------------------------------------

NOWHERE = 0x4000_0000  # added to an instruction's address: an address without memory

class HartControl(LiteXModule):
    """Halt, resume and step the processor; read and write its registers while it is halted.

    If memory was written by the debugger, the caches are flushed before the hart resumes. After a
    miss in the data cache VexRiscv fetches the load again, and a step may end before this. So a
    step after which the PC is unchanged is done once more.

    With a debug bus, VexRiscv either halts at an ebreak or treats it as a nop. Here it halts. If no
    debugger wants the ebreak, the hart continues at the same address plus `NOWHERE`, where it takes
    an exception, as it would at an ebreak.

    Attributes
    ----------
    core    : core_port, out
    reset   : Signal(), in      the processor is held in reset; with `halt` it will not execute its
              first instruction
    active  : Signal(), in      a debugger is connected
    halt    : Signal(), in      level
    resume  : Signal(), in      one cycle, while `halted`
    written : Signal(), in      memory was written by the debugger
    halted  : Signal(), out
    resumed : Signal(), out     one cycle
    command : Record, in        `valid` until `done`, while `halted`: access the register `regno`
              (table 3.3)
    done    : Signal(), out
    failed  : Signal(), out     with `done`: there is no such register
    result  : Signal(32), out   the value that was read, from `done` on

    Cycles of a command: 5 for a debug register, 20 to read another one, 40 to write a GPR, 120 to
    write a CSR.
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

        own_port = core_port()
        flags    = core.dat_r
        self.comb += [
            If(injector.start,
                injector.core.connect(core, omit={"ready", "dat_r"}),
            ).Else(
                own_port.connect(core, omit={"ready", "dat_r"}),
            ),
            injector.core.ready.eq(core.ready),
            injector.core.dat_r.eq(core.dat_r),
        ]

        # States -----------------------------------------------------------------------------------

        value, saved  = Signal(32), Signal(32)
        target        = Signal(5)
        leaving       = Signal()  # registers are loaded for a resume
        uses_x1       = Signal()  # x1 holds an operand; its own value is in `saved`
        stepping      = Signal()
        second_try    = Signal()  # this step is executed for the second time
        at_reset      = Signal()  # the hart halted before its first instruction
        caches_stale  = Signal()  # memory was written since the last flush
        at_breakpoint = Signal()  # it halted at an ebreak or a trigger
        count         = Signal(max=SETTLE + 1)
        number        = command.regno[:12]
        gpr           = command.regno[:5]

        self.fsm = fsm = ResetInserter()(FSM(reset_state="RESET"))
        self.comb += fsm.reset.eq(self.reset)
        self.sync += If(self.written, caches_stale.eq(1)).Elif(fsm.ongoing("FLUSH-DATA"),
            caches_stale.eq(0)
        )

        def control(bits):
            """Write `bits` to CONTROL."""
            return [
                own_port.valid.eq(1),
                own_port.we.eq(1),
                own_port.adr.eq(CONTROL),
                own_port.dat_w.eq(bits),
            ]

        def inject(state, word, *then):
            """In `state` execute the instruction `word`; then run the statements `then`."""
            fsm.act(state,
                injector.start.eq(1),
                injector.word.eq(word),
                If(injector.done, *then)
            )

        # Running ----------------------------------------------------------------------------------

        fsm.act("RESET",
            *control(Mux(self.halt, HALT, RESUME)),
            NextValue(at_reset, self.halt),
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
            NextValue(at_breakpoint, flags[BROKE]),
            If(count != SETTLE,
                NextValue(count, count + 1)
            ).Elif(~flags[BUSY],
                own_port.adr.eq(EXECUTE),
                NextState("BREAK")
            )
        )
        fsm.act("BREAK",
            NextValue(at_reset, 0),
            NextValue(csrs.pc, Mux(at_reset, 0, core.dat_r)),
            NextState("PC"),
            If(at_breakpoint | at_reset, NextState("STEPPED"))
        )
        inject("PC", AUIPC_X0, NextValue(csrs.pc, injector.result), NextState("STEPPED"))
        fsm.act("STEPPED",
            NextState("ENTER"),
            If(at_breakpoint & ~(self.active & (csrs.ebreak | csrs.hit)),
                NextValue(csrs.pc, csrs.pc | NOWHERE),
                NextState("TRAP")
            ).Elif(stepping & ~at_breakpoint & ~second_try & (csrs.pc == csrs.dpc),
                NextValue(second_try, 1),
                NextState("JUMP")
            )
        )
        fsm.act("TRAP",
            csrs.enter.eq(1),
            NextState("JUMP")
        )
        self.comb += csrs.cause.eq(Mux(at_breakpoint, Mux(csrs.hit, CAUSE.TRIGGER, CAUSE.EBREAK),
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
            NextValue(second_try, 0),
            NextValue(value, command.data),
            NextValue(target, gpr),
            If(self.resume,
                NextState("JUMP"),
                If(caches_stale, NextState("FLUSH-DATA"))
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
                    If(command.write & ((number == TDATA1) | (number == TDATA2)),
                        NextState("BREAKPOINT")
                    )
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
        inject(
            "READ-GPR", read_gpr(gpr), NextValue(self.result, injector.result), NextState("DONE"))
        inject(
            "READ-CSR", read_csr(number), NextValue(self.result, injector.result),
            NextState("DONE"))
        fsm.act("BREAKPOINT",
            own_port.valid.eq(1),
            own_port.we.eq(1),
            own_port.adr.eq(BREAKPOINT | csrs.selected << 2),
            own_port.dat_w.eq(Array(csrs.breakpoints)[csrs.selected]),
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
