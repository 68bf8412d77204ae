# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import subprocess

import pytest

from tests.gateware.debug.debugger import Debugger, build

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def bench():
    """The path of the bench program."""
    return build()


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """(words, dict of symbol -> address) of program.S."""
    elf = tmp_path_factory.mktemp("program") / "program.elf"
    subprocess.run(
        [
            "riscv64-unknown-elf-gcc",
            "-march=rv32im_zicsr",
            "-mabi=ilp32",
            "-nostdlib",
            "-Wl,-Ttext=0,-estart",
            "-o",
            elf,
            HERE / "program.S",
        ],
        check=True,
    )
    subprocess.run(
        ["riscv64-unknown-elf-objcopy", "-O", "binary", elf, elf.with_suffix(".bin")], check=True
    )
    image = elf.with_suffix(".bin").read_bytes()
    symbols = subprocess.check_output(["riscv64-unknown-elf-nm", elf], text=True).split("\n")
    return (
        [int.from_bytes(image[n : n + 4], "little") for n in range(0, len(image), 4)],
        {line.split()[2]: int(line.split()[0], 16) for line in symbols if line},
    )


@pytest.fixture
def debugger(bench, program):
    """At a processor whose SRAM holds the program, and that is held in reset."""
    debugger = Debugger(bench)
    for n, word in enumerate(program[0]):
        debugger.ask("w", 4 * n, word)
    yield debugger
    debugger.close()


@pytest.fixture
def at(program):
    """Address of a symbol."""
    return program[1].__getitem__
