"""Reasons why a control program has stopped."""

# SPDX-License-Identifier: BSD-2-Clause

import signal
from collections.abc import Mapping
from typing import Any

from dibber.interface.description import MCP_STATE
from libdibber import Card

from dibber_cli.fw.shared import Shared, has_stopped

WATCHDOG = 0x80000007  # machine timer interrupt

# RISC-V Privileged ISA 20211203, table 3.6; and a debugger's name for each.
CAUSES = {
    0: ("a jump to an address that is no multiple of 4", signal.SIGBUS),
    1: ("a fetch from where nothing is", signal.SIGSEGV),
    2: ("an illegal instruction", signal.SIGILL),
    3: ("a breakpoint", signal.SIGTRAP),
    4: ("a misaligned load", signal.SIGBUS),
    5: ("a load from where nothing is", signal.SIGSEGV),
    6: ("a misaligned store", signal.SIGBUS),
    7: ("a store to where nothing is", signal.SIGSEGV),
    11: ("an environment call", signal.SIGSYS),
    WATCHDOG: ("the watchdog, for its event loop did not turn", signal.SIGALRM),
}

# Those that have an instruction or address in mtval.
WITH_VALUE = {
    0: "address",
    1: "address",
    2: "instruction",
    4: "address",
    5: "address",
    6: "address",
    7: "address",
}


def cause_of(trap: Mapping[str, int]) -> tuple[str, int]:
    """(words, signal) for struct mcp_trap as a dictionary."""
    return CAUSES.get(trap["cause"], (f"cause {trap['cause']:#x}", signal.SIGABRT))


def read(shared: Shared) -> dict[str, Any] | None:
    """struct mcp_trap as a dictionary, or None: the program's start clears it."""
    trap = shared.member("trap")
    # In a trap handler mstatus.MPP is never 0 here, because there is only machine mode.
    return trap if trap["status"] else None


def sentence(state: int, trap: Mapping[str, Any] | None) -> str:
    """State of a control program, as text. `state` as enum mcp_state."""
    if trap is not None:
        value = (
            f" ({WITH_VALUE[trap['cause']]} {trap['value']:#x})"
            if trap["cause"] in WITH_VALUE
            else ""
        )
        return (
            f"stopped by {cause_of(trap)[0]}{value}, pc {trap['pc']:#x}, ra {trap['x'][1]:#x}, "
            f"sp {trap['x'][2]:#x}"
        )
    if state == MCP_STATE.BUS_MASTER:
        return (
            "halted, because the host has not let the card reach its memory (PCI Command, Bus "
            "Master Enable)"
        )
    if has_stopped(state):
        return "stopped by the watchdog: it hung, and did not even come to its trap handler"
    if state == MCP_STATE.RESET:
        return "halted by a host, and left no trap"
    return f"running, its state is {MCP_STATE.name_of(state)}"


def diagnose(card: Card) -> dict[str, Any]:
    """State, whether it has stopped by itself, trap and sentence of a card's control program as a
    dictionary.

    A card is reset for each program that opens it to drive it, and a card behind VFIO for any
    program. The trap is still there afterwards.
    """
    state = card.read_register("MCP_STATE")
    shared = Shared(card.read_firmware, card.sram_bytes)
    trap = None
    if has_stopped(state) or (state == MCP_STATE.RESET and shared.is_known()):
        trap = read(shared)
    return {
        "state": MCP_STATE.name_of(state),
        "stopped": has_stopped(state) or trap is not None,
        "trap": trap,
        "sentence": sentence(state, trap),
    }
