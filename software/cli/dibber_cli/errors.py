# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Errors of the command: what went wrong, and what to do next."""


class CommandError(Exception):
    """Ends the command with exit code `code`; `advice` is a second line that says what to do."""

    def __init__(self, message, advice="", code=1):
        super().__init__(message)
        self.advice, self.code = advice, code


class UsageError(CommandError):
    """A command line that makes no sense: exit code 2."""

    def __init__(self, message, advice=""):
        super().__init__(message, advice, 2)


class ProfileError(CommandError):
    """A profile that is not there or cannot be used."""


class SimulatorError(CommandError):
    """The simulator does not start or ended by itself."""


# What to do after a DibberError, by its name.
ADVICE = {
    "NOT_FOUND"      : "is the simulator running ('dibber sim status' shows its sockets, 'dibber sim start' starts it), or the board connected (docs/bringup.md)?",
    "IDENTITY"       : "give the socket of a Dibber card ('dibber sim status' shows them), or the port that its UART is at",
    "VERSION"        : "gateware, control program and library must be built from one tree: run 'make build'",
    "FIRMWARE_FILE"  : "build the control program again: 'make firmware'",
    "FIRMWARE_START" : "where it stopped: 'dibber fw trace URI', 'dibber fw coredump FILE URI'",
    "FLASH"          : "nothing more was written; over JTAG it may still go: 'dibber flash FILE'",
    "LOST"           : "has another program opened the card? Else see the simulator's log: 'dibber sim status' names it",
    "TIMEOUT"        : "is the cable connected, and the other card up? 'dibber info' shows the link",
}
