"""`dibber fw debug`: gdb at the control program of a simulated card, by OpenOCD."""

# SPDX-License-Identifier: BSD-2-Clause

import os
import shlex
from pathlib import Path

from dibber_cli import paths
from dibber_cli.errors import CommandError

OPENOCD = paths.ROOT / "hw" / "openocd"


def gdb_command(elf, socket, log="/dev/null"):
    """The words of a command line: gdb with `elf`, and an OpenOCD of its own at the JTAG pins
    behind `socket`.
    """
    openocd = [
        "openocd",
        "-c",
        f"set SOCKET {socket}; gdb_port pipe; tcl_port disabled; telnet_port disabled; log_output "
        f"{log}",
        "-f",
        str(OPENOCD / "sim.cfg"),
    ]
    # For Linux, which gdb would assume, it steps by breakpoints instead of asking for a step.
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


def fw_debug(arguments):
    """Becomes gdb."""
    socket = Path(arguments.uri.removeprefix("sim:")).with_suffix(".jtag")
    elf = paths.elf()
    if not socket.exists():
        raise CommandError(
            f"{arguments.uri} has no JTAG socket {socket}",
            "start its simulator with --jtag; a board is reached by hw/openocd/BOARD.cfg",
        )
    command = gdb_command(elf, socket)
    if arguments.show:
        print(shlex.join(command))
        return 0
    os.chdir(paths.ROOT)  # where the ELF's names of sources begin
    try:
        os.execvp(command[0], command)
    except FileNotFoundError:
        raise CommandError(f"{command[0]} is not installed") from None
