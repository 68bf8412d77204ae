"""Errors of the command: the fault, and advice what to do next."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import sys
from collections.abc import Sequence


class CommandError(Exception):
    """Ends the command with exit code `code`; `advice` is a second line that says what to do."""

    def __init__(self, message: str, advice: str = "", code: int = 1) -> None:
        super().__init__(message)
        self.advice, self.code = advice, code


# Reports ------------------------------------------------------------------------------------------


def wants_json(words: Sequence[str]) -> bool:
    """Whether a command line has --json, or an abbreviation of it that argparse accepts."""
    return any(len(word) > 2 and "--json".startswith(word) for word in words)


def report(
    message: str, advice: str = "", name: str = "FAILED", code: int = 1, as_json: bool = False
) -> None:
    """Report on stderr that a command has failed: two lines of text, or one line with a JSON
    document.

    name : of libdibber's error, or FAILED, USAGE, OUTPUT, INTERRUPTED or SYSTEM
    """
    if as_json:
        print(
            json.dumps(
                {"error": {"name": name, "message": message, "advice": advice, "exit_code": code}}
            ),
            file=sys.stderr,
        )
    else:
        print(f"dibber: {message}" + (f"\n        {advice}" if advice else ""), file=sys.stderr)


def warn(message: str, as_json: bool = False) -> None:
    """Print a note on stderr that is no failure: a line of text, or a line with a JSON document."""
    print(json.dumps({"warning": message}) if as_json else f"dibber: {message}", file=sys.stderr)


# Kinds --------------------------------------------------------------------------------------------


class UsageError(CommandError):
    """A wrong command line: exit code 2."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message, advice, 2)


class ProfileError(CommandError):
    """A profile that does not exist or cannot be used."""


class SimulatorError(CommandError):
    """The simulator does not start or ended by itself."""


# Advice after a DibberError, by its name.
ADVICE = {
    "IDENTITY": "give the socket of a Dibber card ('dibber sim status' shows them), or the port "
    "that its UART is at",
    "VERSION": "gateware, control program and library must be built from one tree: run 'make "
    "build'",
    "FIRMWARE_FILE": "build the control program again: 'make firmware'",
    "FIRMWARE_START": "where it stopped: 'dibber fw trace URI', 'dibber fw coredump FILE URI'",
    "FLASH": "nothing more was written; over JTAG it may still go: 'dibber flash FILE'",
    "LOST": "the simulator's log may say why: 'dibber sim status' names it",
    "TIMEOUT": "is the cable connected, and the other card up? 'dibber info' shows the link",
}

# Advice by the library's message. It tells the kind of card (a simulator, a PCI device or a UART),
# and the process that has it.
SAID = {
    "no simulator at": "is the simulator running? 'dibber sim status' shows its sockets, 'dibber "
    "sim start' starts it",
    "no PCI device": "'lspci' shows the addresses of the devices (docs/bringup.md)",
    "not bound to": "docs/bringup.md says how vfio-pci gets the card",
    "no port": "is the board connected? 'ls /dev/ttyUSB*' shows its ports (docs/bringup.md)",
    "no serial port": "'ls /dev/ttyUSB*' shows the ports of a board that is connected "
    "(docs/bringup.md)",
    "nothing answers at": "is the board loaded with a design that has a UART? docs/bringup.md "
    "says how",
    "another program has": "end that program first; 'dibber info', 'monitor' and 'fw trace' look "
    "at a simulated card beside it",
    "another process has": "end that process first: of a card in the hands of VFIO one alone can "
    "look, too",
}


def advice_on(name: str, message: str) -> str:
    """Advice after a DibberError of this name and with this message, or ""."""
    return next((advice for said, advice in SAID.items() if said in message), ADVICE.get(name, ""))
