"""A stopped control program as an ELF core file, for gdb."""

# SPDX-License-Identifier: BSD-2-Clause

import struct
from collections.abc import Mapping
from typing import Any

from dibber_cli.fw import trap as traps

# System V ABI, Elf32_Ehdr and Elf32_Phdr; elf.h.
EHDR, PHDR = "<16s2H5I6H", "<8I"
ET_CORE, EM_RISCV, PT_LOAD, PT_NOTE, NT_PRSTATUS = 4, 243, 1, 4, 1
READ_WRITE_EXECUTE = 7

# struct elf_prstatus of 32-bit RISC-V Linux. gdb accepts it from a bare machine too. Fields without
# a name are 0.
PRSTATUS_SIZE, PR_CURSIG, PR_PID, PR_REG = 204, 12, 24, 72


def prstatus(trap: Mapping[str, Any]) -> bytes:
    """The registers; pc stands in the place of x0."""
    status = bytearray(PRSTATUS_SIZE)
    struct.pack_into("<H", status, PR_CURSIG, traps.cause_of(trap)[1])
    struct.pack_into("<I", status, PR_PID, 1)
    struct.pack_into("<32I", status, PR_REG, trap["pc"], *trap["x"][1:])
    return bytes(status)


def core(sram: bytes, trap: Mapping[str, Any] | None) -> bytes:
    """The file's bytes. `sram` from address 0; `trap` is struct mcp_trap, or None: no registers
    then.
    """
    notes = b""
    if trap is not None:
        status = prstatus(trap)
        notes = struct.pack("<3I8s", len(b"CORE\0"), len(status), NT_PRSTATUS, b"CORE") + status
    begin = struct.calcsize(EHDR) + 2 * struct.calcsize(PHDR)
    memory = begin + len(notes)
    ident = b"\x7fELF" + bytes([1, 1, 1])  # 32 bits, little-endian, version 1
    header = struct.pack(
        EHDR,
        ident,
        ET_CORE,
        EM_RISCV,
        1,
        0,
        struct.calcsize(EHDR),
        0,
        0,
        struct.calcsize(EHDR),
        struct.calcsize(PHDR),
        2,
        0,
        0,
        0,
    )
    return b"".join(
        [
            header,
            struct.pack(PHDR, PT_NOTE, begin, 0, 0, len(notes), 0, 0, 4),
            struct.pack(PHDR, PT_LOAD, memory, 0, 0, len(sram), len(sram), READ_WRITE_EXECUTE, 4),
            notes,
            sram,
        ]
    )
