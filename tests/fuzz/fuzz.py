"""Fuzz the parsers of foreign input, with random input under sanitizers.

    python tests/fuzz/fuzz.py vfio-user --runs 100000 --seed 1      # what a simulator sends to the
    library
    python tests/fuzz/fuzz.py uart      --runs 10000  --seed 1      # what comes from a serial port
    python tests/fuzz/fuzz.py firmware  --runs 100000 --seed 1      # commands and packets, to the
    control program

Exit code 1 if a sanitizer reported an error, a call did not return, or a check failed. The report
names the run, and `--first N --runs 1` repeats it.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import fcntl
import os
import subprocess
import sys
from pathlib import Path

from dibber_cli.pipe import quiet

from tests.fuzz import sanitized

FOLDER = Path(__file__).resolve().parent
BUILD = sanitized.ROOT / "build"

# Targets ------------------------------------------------------------------------------------------


def build_card(name):
    """A faulty card, and a program that uses it."""
    return sanitized.build(
        [FOLDER / f"{name.replace('-', '_')}.c", FOLDER / "program.c", FOLDER / "main.c"],
        BUILD / f"fuzz-{name}",
    )


def build_firmware():
    """The control program and the register fake of its tests; its data lies in sections of their
    own, to be cleared for each input.
    """
    firmware, fakes, out = (
        sanitized.ROOT / "firmware",
        sanitized.ROOT / "tests" / "firmware",
        BUILD / "fuzz-firmware",
    )
    flags = [
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-DMCP_NATIVE",
        *sanitized.FLAGS["address"],
        f"-I{firmware}",
        f"-I{fakes}",
        f"-I{out}",
    ]
    machine = [s for s in sorted(firmware.rglob("*.c")) if s.name != "asm_offsets.c"]
    others = [
        *sorted(fakes.glob("*.c")),
        FOLDER / "firmware.c",
        FOLDER / "firmware_engines.c",
        FOLDER / "main.c",
    ]
    headers = [h for folder in (firmware, fakes, FOLDER) for h in folder.rglob("*.h")]
    program = out / "fuzz"
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "lock", "w") as lock:  # tests may run side by side
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run([sys.executable, "-P", "-m", "dibber.interface.generate", out], check=True)
        (out / "identity.h").write_text("#define MCP_IDENTITY 1u\n")
        newest = max(
            p.stat().st_mtime for p in [*machine, *others, *headers, out / "dibber_interface.h"]
        )
        if program.exists() and program.stat().st_mtime > newest:
            return program
        for source in machine:
            subprocess.run(
                ["gcc", *flags, "-c", "-o", out / f"{source.stem}.o", source], check=True
            )
            subprocess.run(
                [
                    "objcopy",
                    "--rename-section=.bss=mcp_data",
                    "--rename-section=.shared=mcp_kept",
                    out / f"{source.stem}.o",
                ],
                check=True,
            )
        subprocess.run(
            [
                "gcc",
                *flags,
                "-Wl,--wrap=fake_write",
                "-o",
                program,
                *others,
                *(out / f"{s.stem}.o" for s in machine),
            ],
            check=True,
        )
    return program


TARGETS = {
    "vfio-user": lambda: build_card("vfio-user"),
    "uart": lambda: build_card("uart"),
    "firmware": build_firmware,
}

# Run ----------------------------------------------------------------------------------------------


def run(target, seed, runs, first=0):
    """Returns (exit code, output, {progress of the program: number of runs})."""
    # A run that a sanitizer ends prints its number (main.c).
    options = {
        "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:abort_on_error=1",
    }
    done = subprocess.run(
        [TARGETS[target](), str(seed), str(runs), str(first)],
        capture_output=True,
        text=True,
        env={**os.environ, **options},
    )
    return (
        done.returncode,
        done.stderr,
        {name: int(n) for name, n in map(str.split, done.stdout.splitlines())},
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=TARGETS, help="what is fuzzed")
    parser.add_argument("--runs", type=int, default=100_000, help="inputs (default 100,000)")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs (default 1)")
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first input (default 0)"
    )
    arguments = parser.parse_args()
    code, said, reached = run(arguments.target, arguments.seed, arguments.runs, arguments.first)
    print(said, end="", file=sys.stderr)
    print(", ".join(f"{count} {name}" for name, count in reached.items()))
    return int(code != 0)


if __name__ == "__main__":
    sys.exit(quiet(main))
