"""start.S alone, in front of an empty program: the data that it leaves after a stop."""

# SPDX-License-Identifier: BSD-2-Clause

import random
import struct
import subprocess
import sys

import pytest
from dibber.interface.description import MCP, MCP_STATE, SHARED, TRAP, C

from tests.firmware.mcp_native import FIRMWARE, ROOT
from tests.firmware.rv32 import (
    ILLEGAL,
    MISALIGNED_STORE,
    MSTATUS_MPIE,
    MSTATUS_MPP,
    TIMER,
    Processor,
)

SRAM = 0x10000
PLACE = SRAM - C.SHARED_FROM_END  # of struct mcp_shared
OUT = ROOT / "build" / "firmware" / f"{SRAM >> 10}k"
ARCH = ["-march=rv32im_zicsr", "-mabi=ilp32"]
PROGRAM = """
#include "dibber_interface.h"
struct dibber_mcp_shared mcp_shared __attribute__((section(".shared")));
void main(void) { for (;;) ; }
"""
STOP = 0x4000  # where tests put instructions


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trap")

    def run(*command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    run("make", "-C", FIRMWARE, f"PYTHON={sys.executable}", OUT / "start.o", OUT / "mcp.lds")
    (folder / "program.c").write_text(PROGRAM)
    run(
        "riscv64-unknown-elf-gcc",
        *ARCH,
        "-O2",
        "-ffreestanding",
        "-nostdlib",
        "-static",
        "-I",
        ROOT / "build" / "generated",
        "-Wl,--no-warn-rwx-segments",
        "-Wl,-T",
        OUT / "mcp.lds",
        "-o",
        folder / "program.elf",
        OUT / "start.o",
        folder / "program.c",
    )
    run(
        "riscv64-unknown-elf-objcopy",
        "-O",
        "binary",
        "-j",
        ".text",
        folder / "program.elf",
        folder / "program.bin",
    )
    return (folder / "program.bin").read_bytes()


class Machine:
    """The image, started, with registers that only note what is written."""

    def __init__(self, image):
        self.memory = bytearray(b"\xa5" * SRAM)
        self.memory[: len(image)] = image
        self.image_bytes = len(image)
        self.registers = {}
        self.cpu = Processor(self.memory, self.load, self.store)
        self.run(2 * SHARED.size)  # beyond its boot, which clears memory

    def load(self, address):
        assert address == C.MCP_REGISTER_BASE + MCP["CYCLES_LOW"].offset
        return 0x12345678

    def store(self, address, value):
        self.registers[address - C.MCP_REGISTER_BASE] = value

    def run(self, instructions):
        for _ in range(instructions):
            self.cpu.step()

    def place(self, *words):
        """Go on with these instructions; all registers hold rubbish. Returns the registers."""
        self.memory[STOP : STOP + 4 * len(words)] = struct.pack(f"<{len(words)}I", *words)
        rubbish = random.Random(1)
        self.cpu.pc, self.cpu.x = STOP, [0] + [rubbish.getrandbits(32) for _ in range(31)]
        return list(self.cpu.x)

    def stopped(self):
        """What is left in mcp_shared.trap, by name."""
        at = PLACE + SHARED["trap"].offset
        values = {
            m.name: struct.unpack_from(f"<{m.count}I", self.memory, at + m.offset)
            for m in TRAP.members
        }
        return {name: value if len(value) > 1 else value[0] for name, value in values.items()}


@pytest.fixture
def machine(image):
    return Machine(image)


def test_the_shared_structure_begins_empty(machine):
    """But for the size of the image."""
    shared = machine.memory[PLACE : PLACE + SHARED.size]
    at = SHARED["image_bytes"].offset
    assert int.from_bytes(shared[at : at + 4], "little") == machine.image_bytes
    shared[at : at + 4] = bytes(4)
    assert not any(shared)


@pytest.mark.parametrize(
    "word, cause, value",
    [
        (0x00000000, ILLEGAL, 0),
        (0xFFFFFFFF, ILLEGAL, 0xFFFFFFFF),
        (0x00102123, MISALIGNED_STORE, 2),
    ],
)  # sw ra, 2(zero)
def test_an_exception_leaves_all_registers_whatever_they_hold(machine, word, cause, value):
    x = machine.place(word)
    machine.run(100)
    assert machine.stopped() == dict(
        cause=cause,
        pc=STOP,
        value=value,
        status=MSTATUS_MPP | MSTATUS_MPIE,
        x=tuple(x),
        cycles=0x12345678,
        reserved=(0, 0, 0),
    )
    assert machine.registers == {MCP["STATE"].offset: MCP_STATE.TRAP, MCP["WATCHDOG"].offset: 1}


def test_the_watchdog_finds_an_endless_loop(machine):
    x = machine.place(0x0000006F)  # j .
    machine.run(50)
    assert machine.registers == {} and machine.cpu.pc == STOP
    machine.cpu.timer = True
    machine.run(100)
    found = machine.stopped()
    assert (found["cause"], found["pc"], found["x"]) == (TIMER, STOP, tuple(x))
    assert machine.registers[MCP["STATE"].offset] == MCP_STATE.TRAP


def test_what_comes_after_does_not_spoil_what_was_left(machine):
    """The handler has stopped the processor: no interrupt ends that."""
    machine.place(0)
    machine.run(100)
    found, pc = machine.stopped(), machine.cpu.pc
    machine.cpu.timer = True
    machine.run(100)
    assert machine.stopped() == found and machine.cpu.pc == pc
