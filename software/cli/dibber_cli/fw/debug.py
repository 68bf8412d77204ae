"""`dibber fw debug`: gdb at the control program of a simulated card, through OpenOCD."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from dibber_cli import paths, profile
from dibber_cli.errors import CommandError, UsageError
from dibber_cli.fw.exercise import Exercise
from dibber_cli.link.tester import programmed
from dibber_cli.simulator import Pair

OPENOCD = paths.ROOT / "hw" / "openocd"


def gdb_command(elf: Path, socket: Path, log: str | Path = "/dev/null") -> list[str]:
    """The words of a command line: gdb with `elf`, and its own OpenOCD at the JTAG pins behind
    `socket`.
    """
    openocd = [
        "openocd",
        "-c",
        f"set SOCKET {socket}; gdb_port pipe; tcl_port disabled; telnet_port disabled; log_output "
        f"{log}",
        "-f",
        str(OPENOCD / "sim.cfg"),
    ]
    # gdb would assume Linux, where it steps by breakpoints instead of the target's step.
    return [
        "gdb-multiarch",
        "-q",
        "-nx",
        str(elf),
        "-ex",
        "set architecture riscv:rv32",
        "-ex",
        "set osabi none",
        "-ex",
        "set remotetimeout 60",
        "-ex",
        f"target extended-remote | {shlex.join(openocd)}",
    ]


def _check_places(elf: Path, places: Iterable[str]) -> None:
    """Raise CommandError for a place of --break that the control program does not have."""
    for place in places:
        asked = subprocess.run(
            ["gdb-multiarch", "-nx", "-batch", str(elf), "-ex", f"info line {place}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        if "starts at address" not in asked.stdout:
            raise CommandError(
                f"--break {place}: {' '.join(asked.stderr.split()) or 'no code is there'}"
            )


def _run_beside(command: Sequence[str]) -> int:
    """Run gdb until it ends. Ctrl-C goes only to gdb, which then stops the control program."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    process = subprocess.Popen(command, cwd=paths.ROOT)
    try:
        return process.wait()
    finally:
        process.terminate()
        process.wait()
        signal.signal(signal.SIGINT, before)


def _debug_a_pair(elf: Path, breaks: Sequence[str]) -> int:
    """gdb at card 0 of a pair whose control programs have work to do."""
    with Pair(profile.load("gen2x4"), participants=1, options=["--jtag"]) as pair:
        exercise = Exercise(pair.uris)
        try:
            exercise.ready.wait()
            if exercise.error is not None:
                raise exercise.error
            return _run_beside([*gdb_command(elf, pair.directory / "card0.jtag"), *breaks])
        finally:
            exercise.ending = True


def fw_debug(arguments: argparse.Namespace) -> int:
    """Becomes gdb; without a URI, starts a pair and runs gdb beside it."""
    elf = paths.elf()
    for tool in ("gdb-multiarch", "openocd"):
        if not shutil.which(tool):
            raise CommandError(f"{tool} is not installed")
    if not elf.exists():
        raise CommandError(f"{elf} is not built", "run 'make firmware'")
    _check_places(elf, arguments.places)
    breaks = [word for place in arguments.places for word in ("-ex", f"break {place}")]
    breaks += ["-ex", "continue"] if breaks else []
    if arguments.uri is None:
        if not breaks or arguments.show:
            raise UsageError("a URI is missing", "without one, give --break FUNCTION")
        return _debug_a_pair(elf, breaks)
    socket = Path(arguments.uri.removeprefix("sim:")).with_suffix(".jtag")
    if not socket.exists():
        raise CommandError(
            f"{arguments.uri} has no JTAG socket {socket}",
            "start its simulator with --jtag; a board is reached by hw/openocd/BOARD.cfg",
        )
    command = [*gdb_command(elf, socket), *breaks]
    if arguments.show:
        print(shlex.join(command))
        return 0
    if breaks:
        with programmed(arguments.uri) as card:
            card.write_register("FAST_PATH", 0)
    os.chdir(paths.ROOT)  # the ELF's names of sources are relative to it
    os.execvp(command[0], command)
