"""All code has a place in the instruction cache."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import subprocess

from tests.gateware.debug.debugger import ACTIVE, DMCONTROL, Debugger

HERE = pathlib.Path(__file__).resolve().parent
T0, T2 = 5, 7


def test_code_4_kib_apart_stays_in_the_instruction_cache(bench, tmp_path):
    elf = tmp_path / "far.elf"
    subprocess.run(
        [
            "riscv64-unknown-elf-gcc",
            "-march=rv32im_zicsr",
            "-mabi=ilp32",
            "-nostdlib",
            "-Wl,-Ttext=0,-estart",
            "-o",
            elf,
            HERE / "far.S",
        ],
        check=True,
    )
    subprocess.run(
        ["riscv64-unknown-elf-objcopy", "-O", "binary", elf, elf.with_suffix(".bin")], check=True
    )
    image = elf.with_suffix(".bin").read_bytes()
    debugger = Debugger(bench)
    try:
        for n in range(0, len(image), 4):
            debugger.ask("w", n, int.from_bytes(image[n : n + 4], "little"))
        debugger.ask("h", 0)
        debugger.ask("n", 4000)
        debugger.write(DMCONTROL, ACTIVE)
        debugger.halt()
        assert debugger.gpr(T0) == 0, "it came to its end"
        assert debugger.gpr(T2) < 20, "two misses would be 40 cycles"
    finally:
        debugger.close()
