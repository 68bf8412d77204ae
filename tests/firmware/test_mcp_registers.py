"""Registers that the control program may read; the card cannot read some of them back."""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes
import re

from dibber.interface.description import MCP, C

from tests.firmware.mcp_native import FIRMWARE

SILENT = {r.name for r in MCP.registers if r.access in ("wk", "wo")}


def test_the_program_reads_no_register_that_answers_0():
    text = "".join(
        path.read_text()
        for path in [*FIRMWARE.rglob("*.c"), *FIRMWARE.rglob("*.h"), FIRMWARE / "start.S"]
    )
    read = set(re.findall(r"\bREG_READ(?:_AT)?\((\w+)", text)) - {"name"}
    read |= set(
        re.findall(
            r"\blw\s+\w+, REGISTER_(\w+)", text.replace("REGISTER_CYCLES", "REGISTER_CYCLES_LOW")
        )
    )
    assert {"EVENTS", "STATE", "CYCLES_LOW"} <= read <= {r.name for r in MCP.registers}
    assert not read & SILENT


def test_the_fake_answers_0_as_the_card_does(card):
    for register in MCP.registers:
        if register.name in SILENT or register.access == "rw":
            card[register.name] = 0x12345678
            read = card.library.fake_read(ctypes.c_uint32(C.MCP_REGISTER_BASE + register.offset))
            assert read == (0 if register.name in SILENT else 0x12345678), register.name
