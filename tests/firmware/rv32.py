"""RV32IM in plain Python: enough to run the control program's image and count its instructions.

RISC-V Unprivileged ISA 20191213 (chapters 2, 7, 24) and Privileged ISA 20211203 (machine mode's
trap CSRs). One instruction a `step`; illegal instructions and misaligned accesses trap, as on
VexRiscv `full`.
"""

# SPDX-License-Identifier: BSD-2-Clause

MASK = 0xFFFFFFFF
CSRS = {
    0x300: "mstatus",
    0x304: "mie",
    0x305: "mtvec",
    0x340: "mscratch",
    0x341: "mepc",
    0x342: "mcause",
    0x343: "mtval",
}

FENCE_I = 0x100F

ILLEGAL, MISALIGNED_LOAD, MISALIGNED_STORE = 2, 4, 6
TIMER = 1 << 31 | 7

# Privileged ISA 3.1.6 and 3.1.9.
MSTATUS_MIE, MSTATUS_MPIE, MSTATUS_MPP = 1 << 3, 1 << 7, 3 << 11
MIE_TIMER = 1 << 7


def signed(value, bits=32):
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


class Trap(Exception):
    """(cause, value)"""


class Processor:
    """A hart with `memory` (bytearray) at 0; other addresses go to `load(address)`, `store(address,
    value)`.

    Attributes
    ----------
    x           : list of 32 registers
    pc          : program counter
    instret     : instructions retired
    timer       : the timer requests an interrupt
    fences      : number of executed fence.i; there is no cache here
    """

    def __init__(self, memory, load, store):
        self.memory, self.bus_load, self.bus_store = memory, load, store
        self.x, self.pc, self.instret, self.timer = [0] * 32, 0, 0, False
        self.fences = 0
        self.csr = dict.fromkeys(CSRS.values(), 0)

    def load(self, address, size):
        if address % size:
            raise Trap(MISALIGNED_LOAD, address)
        if address < len(self.memory):
            return int.from_bytes(self.memory[address : address + size], "little")
        assert size == 4, f"load of {size} bytes from 0x{address:08x}"
        return self.bus_load(address)

    def store(self, address, size, value):
        if address % size:
            raise Trap(MISALIGNED_STORE, address)
        if address < len(self.memory):
            self.memory[address : address + size] = (value & ((1 << 8 * size) - 1)).to_bytes(
                size, "little"
            )
        else:
            assert size == 4, f"store of {size} bytes to 0x{address:08x}"
            self.bus_store(address, value)

    def step(self):
        """Execute one instruction, or take its trap."""
        try:
            if self.timer and self.csr["mstatus"] & MSTATUS_MIE and self.csr["mie"] & MIE_TIMER:
                raise Trap(TIMER, 0)
            self.execute(self.load(self.pc, 4))
            self.instret += 1
        except Trap as trap:
            self.csr["mcause"], self.csr["mtval"] = trap.args
            self.csr["mepc"], self.pc = self.pc, self.csr["mtvec"]
            enabled = self.csr["mstatus"] & MSTATUS_MIE
            self.csr["mstatus"] = MSTATUS_MPP | (MSTATUS_MPIE if enabled else 0)

    def execute(self, word):
        opcode, rd, funct3 = word & 0x7F, word >> 7 & 31, word >> 12 & 7
        a, b = self.x[word >> 15 & 31], self.x[word >> 20 & 31]
        i = signed(word >> 20, 12)
        result = None
        pc = self.pc + 4
        if opcode == 0x13 or opcode == 0x33 and word >> 25 in (0, 0x20):
            other = b if opcode == 0x33 else i & MASK
            odd = word >> 30 & 1
            if funct3 in (1, 5) and word >> 25 not in ((0, 0x20) if funct3 == 5 else (0,)):
                raise Trap(ILLEGAL, word)
            result = (
                lambda: a - other if opcode == 0x33 and odd else a + other,
                lambda: a << (other & 31),
                lambda: signed(a) < signed(other),
                lambda: a < other,
                lambda: a ^ other,
                lambda: (signed(a) if odd else a) >> (other & 31),
                lambda: a | other,
                lambda: a & other,
            )[funct3]()
        elif opcode == 0x33 and word >> 25 == 1:
            result = self.multiply(funct3, a, b)
        elif opcode == 0x03 and funct3 in (0, 1, 2, 4, 5):
            size = 1 << (funct3 & 3)
            result = self.load((a + i) & MASK, size)
            result = result if funct3 & 4 else signed(result, 8 * size)
        elif opcode == 0x23 and funct3 < 3:
            offset = signed(word >> 25 << 5 | rd, 12)
            self.store((a + offset) & MASK, 1 << funct3, b)
        elif opcode == 0x63 and funct3 not in (2, 3):
            taken = (a == b, None, None, None, signed(a) < signed(b), None, a < b)[funct3 & 6] ^ (
                funct3 & 1
            )
            if taken:
                offset = (
                    (word >> 31 << 12)
                    | (word >> 7 & 1) << 11
                    | (word >> 25 & 63) << 5
                    | (word >> 8 & 15) << 1
                )
                pc = self.pc + signed(offset, 13)
        elif opcode == 0x37:
            result = word & 0xFFFFF000
        elif opcode == 0x17:
            result = self.pc + (word & 0xFFFFF000)
        elif opcode == 0x6F:
            offset = (
                (word >> 31 << 20)
                | (word >> 12 & 255) << 12
                | (word >> 20 & 1) << 11
                | (word >> 21 & 1023) << 1
            )
            result, pc = pc, self.pc + signed(offset, 21)
        elif opcode == 0x67 and not funct3:
            result, pc = pc, (a + i) & ~1
        elif word == FENCE_I:
            self.fences += 1
        elif opcode == 0x73 and funct3 & 3:
            source = word >> 15 & 31
            result = self.csr_access(
                word >> 20, funct3 & 3, source if funct3 & 4 else a, bool(source)
            )
        else:
            raise Trap(ILLEGAL, word)
        if result is not None and rd:
            self.x[rd] = result & MASK
        self.pc = pc & MASK

    def multiply(self, funct3, a, b):
        match funct3:
            case 0:
                return a * b
            case 1:
                return signed(a) * signed(b) >> 32
            case 2:
                return signed(a) * b >> 32
            case 3:
                return a * b >> 32
        # Division by zero: 7.2, table 7.1. Only the unsigned forms are in the image.
        if funct3 not in (5, 7):
            raise Trap(ILLEGAL, funct3)
        if not b:
            return MASK if funct3 == 5 else a
        return a // b if funct3 == 5 else a % b

    def csr_access(self, number, how, value, named):
        """The CSR's old value; `how` is 1 to write `value`, 2 to set and 3 to clear its ones, which
        it does if the source is `named`.

        Cycles are counted as instructions.
        """
        if number in (0xB00, 0xB02):
            return self.instret
        if number not in CSRS:
            raise Trap(ILLEGAL, number)
        old = self.csr[CSRS[number]]
        if how == 1 or named:
            self.csr[CSRS[number]] = (value, old | value, old & ~value)[how - 1]
        return old
