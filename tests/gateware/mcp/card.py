"""The Verilog of the card as a program: built, and spoken to through its PCIe port."""

# SPDX-License-Identifier: BSD-2-Clause

import importlib.util
import pathlib
import shutil
import subprocess
import sys

from dibber.interface.description import C, DOORBELL, HOST, MCP
from dibber.interface.generate import c_header

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = ROOT / "build" / "tests" / "card"

# What Migen's and VexRiscv's Verilog is known to be warned for, and what it is right to do.
WAIVED = ["WIDTH", "CASEINCOMPLETE", "COMBDLY", "ALWNEVER", "CMPCONST"]
VERILOG = [*[f"-Wno-{name}" for name in WAIVED], "--top-module", "dibber_card"]


# See probe.c.
PEEK, POKE = 0x4B454550, 0x454B4F50
ANSWERS = 0x100000

# Cycles until a program has begun: the instruction cache is emptied first, a line of 32 bytes a
# cycle.
STARTED = 4000

# Of the simulator, by data width.
PROFILES = {64: "gen2x1", 128: "gen2x4"}


def run(*command, **options):
    result = subprocess.run(
        [str(word) for word in command], text=True, capture_output=True, **options
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def generate(folder, data_width):
    """A process of its own: Migen's names depend on what was elaborated before in the same one."""
    run(sys.executable, ROOT / "boards" / "sim.py", "--data-width", data_width, "--output", folder)


def simulator():
    """hw/sim/build.py, whose steps are done once for these tests and for the simulator."""
    spec = importlib.util.spec_from_file_location(
        "simulator_build", ROOT / "hw" / "sim" / "build.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def verilog(data_width):
    """The folder of a card's Verilog in the simulator's build; written again only when the gateware
    changed.
    """
    steps = simulator()
    folder = steps.BUILD / f"card{data_width}"
    with steps.alone_in(folder):
        steps.gateware(folder, steps.card_of(PROFILES[data_width]))
    return folder


def verilated(folder, top, listing, bench, optimise="-O0", included=()):
    """The path of a program from Verilator's C++ for a design and from a bench. It is built again
    only when these, or their includes, changed.
    """
    program = folder / "obj" / f"V{top}"
    inputs = [listing, bench, *listing.parent.glob("*.v"), *included]
    with simulator().alone_in(folder):
        if not program.exists() or any(
            path.stat().st_mtime > program.stat().st_mtime for path in inputs
        ):
            shutil.rmtree(folder / "obj", ignore_errors=True)
            run(
                "verilator-cli",
                "--cc",
                "--exe",
                "-O3",
                "--x-assign",
                "fast",
                "--Mdir",
                folder / "obj",
                *[f"-Wno-{name}" for name in WAIVED],
                "--top-module",
                top,
                "-f",
                listing,
                bench,
            )
            root = run("verilator-cli", "--getenv", "VERILATOR_ROOT").strip()
            sources = sorted((folder / "obj").glob("*.cpp"))
            where = (folder / "obj", f"{root}/include", f"{root}/include/vltstd")
            include = [word for place in where for word in ("-I", place)]
            # Few translation units: what all include is most of what there is to compile. Code that
            # runs once is not worth more of the compiler's time.
            once = [source for source in sources if source.stem.endswith("Slow")]
            often = [source for source in sources if source not in once]
            parts = [("once.cc", once, "-O0"), ("often.cc", often, optimise)]
            if optimise == "-O0":
                parts = [("whole.cc", sources, "-O0")]
            objects = []
            for name, files, level in parts:
                unit = folder / "obj" / name
                unit.write_text("".join(f'#include "{source.name}"\n' for source in files))
                objects.append(unit.with_suffix(".o"))
                run("g++", "-std=gnu++20", level, *include, "-c", "-o", objects[-1], unit)
            run(
                *["g++", "-std=gnu++20", optimise, *include, "-o", program, *objects, bench],
                *[f"{root}/include/{name}.cpp" for name in ["verilated", "verilated_threads"]],
                *["-pthread", "-latomic"],
            )
    return program


def build():
    """The path of a bench program for a 64-bit card. The 128-bit card is the one that the system
    tests run.
    """
    return verilated(BUILD / "64", "dibber_card", verilog(64) / "dibber_card.f", HERE / "card.cc")


def compile_probe(folder, source="probe.c"):
    """The words of a program for tests, compiled in `folder`."""
    (folder / "dibber_interface.h").write_text(c_header())
    run(
        "riscv64-unknown-elf-gcc",
        "-march=rv32im_zicsr",
        "-mabi=ilp32",
        "-Os",
        "-ffreestanding",
        "-nostdlib",
        "-Wl,--section-start=.start=0,-Ttext=0x40",
        "-I",
        folder,
        "-o",
        folder / "probe.elf",
        HERE / source,
    )
    run("riscv64-unknown-elf-objcopy", "-O", "binary", folder / "probe.elf", folder / "probe.bin")
    image = (folder / "probe.bin").read_bytes()
    return [
        int.from_bytes(image[n : n + 4].ljust(4, b"\0"), "little") for n in range(0, len(image), 4)
    ]


class Session:
    """Commands for the bench, in order, and a name for each answer."""

    def __init__(self):
        self.commands, self.names = [], []
        self.orders = 0  # commands of endpoint 0 so far

    def write(self, address, value):
        self.commands.append(f"w {address:x} {value:x}")

    def read(self, name, address):
        self.commands.append(f"r {address:x}")
        self.names.append(name)

    def memory(self, name, address):
        self.commands.append(f"m {address:x}")
        self.names.append(name)

    def set_memory(self, address, value):
        self.commands.append(f"s {address:x} {value:x}")

    def order(self, *words):
        """A command of endpoint 0 to the probe; returns the address of its answer."""
        address = ANSWERS + C.QUEUE_ENTRY_BYTES * self.orders
        at = slot(0, self.orders % C.SLOTS)
        self.orders += 1
        for n, word in enumerate([words[0], 0, address, 0, *words[1:]]):
            self.write(at + 4 * n, word)
        self.write(doorbell(0, "COMMAND_PRODUCER"), self.orders)
        self.wait(300)
        return address

    def poke(self, address, value):
        """Let the control program store a word."""
        self.order(POKE, address, value)

    def peek(self, name, address):
        """Let the control program load a word."""
        self.memory(name, self.order(PEEK, address))

    def wait(self, cycles):
        self.commands.append(f"n {cycles:x}")

    def start(self, program):
        for n, word in enumerate(program):
            self.write(C.FIRMWARE_BASE + 4 * n, word)
        self.write(register("MCP_CONTROL"), 1)
        self.wait(STARTED)

    def run(self, card):
        answers = run(card, input="\n".join(self.commands) + "\n", timeout=600).split()
        return {
            name: answer if answer == "timeout" else int(answer, 16)
            for name, answer in zip(self.names, answers, strict=True)
        }


def mcp_register(name, index=0):
    """Where the control program has it."""
    return C.MCP_REGISTER_BASE + MCP[name].offset + 4 * index


def mcp_slot(number_of_set, number):
    return C.MCP_SLOT_BASE + (number_of_set * C.SLOTS + number) * C.SLOT_BYTES


def register(name):
    return C.HOST_BASE + HOST[name].offset


def doorbell(endpoint, name):
    return (
        C.ENDPOINT_BASE + endpoint * C.ENDPOINT_STRIDE + C.DOORBELL_OFFSET + DOORBELL[name].offset
    )


def slot(endpoint, number):
    return C.ENDPOINT_BASE + endpoint * C.ENDPOINT_STRIDE + C.SLOT_OFFSET + number * C.SLOT_BYTES
