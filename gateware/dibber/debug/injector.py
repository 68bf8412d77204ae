"""Injection of instructions into the halted pipeline, by VexRiscv's debug bus.

The bus (DebugPlugin.scala) has two registers. Address 0: flags when read; when written, bits that
set and clear flags. Address 4: a written word is executed as an instruction by the halted pipeline.
Reading it gives the result of the last instruction, or after a break the address of the break.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

# Bus ----------------------------------------------------------------------------------------------

CONTROL, EXECUTE, BREAKPOINT = 0x00, 0x04, 0x40  # addresses; breakpoints are 4 bytes apart

# Flags of CONTROL when it is read (bit numbers), and when it is written (masks).
HALTED, BUSY, BROKE = 1, 2, 3
STEP, HALT, RESUME  = 1 << 4, 1 << 17, 1 << 25

def core_port():
    """VexRiscv's debug bus. `dat_r` belongs to the address of the previous cycle, with or without
    `valid`.
    """
    return Record([
        ("valid", 1, DIR_M_TO_S), ("ready", 1, DIR_S_TO_M), ("we", 1, DIR_M_TO_S),
        ("adr", 8, DIR_M_TO_S),
        ("dat_w", 32, DIR_M_TO_S), ("dat_r", 32, DIR_S_TO_M)])

# Instructions -------------------------------------------------------------------------------------

AUIPC_X0    = 0x0000_0017  # the result is the address of the next instruction; x0 discards it
FENCE_I     = 0x0000_100f
FLUSH_DATA  = 0x0000_500f  # VexRiscv's own: invalidates the data cache
JUMP_X1     = 1 << 15 | 0x67

def read_gpr(number):
    """addi x0, number, 0"""
    return Cat(C(0x13, 15), number, C(0, 12))

def read_csr(number):
    """csrrs x0, number, x0"""
    return Cat(C(0x2073, 20), number)

def write_csr(number):
    """csrrw x0, number, x1"""
    return Cat(C(1 << 15 | 0x1073, 20), number)

def load_high(number, value):
    """lui number, …: the upper part of `value`, before `load_low`.

    `load_low` is an XOR. An addition would need an adder here for the carry.
    """
    return Cat(C(0x37, 7), number, value[12:] ^ Replicate(value[11], 20))

def load_low(number, value):
    """xori number, number, …"""
    return Cat(C(0x13, 7), number, C(4, 3), number, value[:12])

# Injector -----------------------------------------------------------------------------------------

SETTLE = 7  # cycles until BUSY is valid for the last write; 3 would be enough

class Injector(LiteXModule):
    """Execute one instruction in the halted pipeline.

    Attributes
    ----------
    start  : Signal(), in        with `word`, both until `done`
    word   : Signal(32), in
    done   : Signal(), out       with `result`
    result : Signal(32), out     result of the instruction
    core   : core_port, out      while `start`

    Cycles: about 15; a fence.i about 1,050, because each line of the instruction cache is cleared.
    """
    def __init__(self):
        self.start  = Signal()
        self.word   = Signal(32)
        self.done   = Signal()
        self.result = Signal(32)
        self.core   = core = core_port()

        # # #

        count = Signal(max=SETTLE + 1)
        self.comb += [
            core.dat_w.eq(self.word),
            self.result.eq(core.dat_r),
        ]
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            If(self.start, NextState("EXECUTE"))
        )
        fsm.act("EXECUTE",
            core.valid.eq(1),
            core.we.eq(1),
            core.adr.eq(EXECUTE),
            NextValue(count, 0),
            If(core.ready, NextState("WAIT"))
        )
        fsm.act("WAIT",
            core.adr.eq(CONTROL),
            If(count != SETTLE,
                NextValue(count, count + 1)
            ).Elif(~core.dat_r[BUSY],
                NextState("READ")
            )
        )
        fsm.act("READ",
            core.adr.eq(EXECUTE),
            NextState("RESULT")
        )
        fsm.act("RESULT",
            self.done.eq(1),
            NextState("IDLE")
        )
