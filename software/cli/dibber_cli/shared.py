# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""What a running control program tells about itself: struct mcp_shared in its memory."""

import struct

from dibber.interface.description import C, HANDLER, MCP_STATE, SHARED, TRAP

COUNTS = ("commands", "refused", "timeouts", "overruns", "interrupts", "strays")


def _member(card, name, size):
    """Bytes of a member of struct mcp_shared."""
    return card.read_firmware(C.SHARED_OFFSET + SHARED[name].offset, size)


def read(card):
    """Counts, the work of each handler that had any, and what stopped the program, as a dictionary; None when none runs."""
    state = card.read_register("MCP_STATE")
    if state in (MCP_STATE.RESET, MCP_STATE.BOOT):
        return None
    words = {name: struct.unpack("<I", _member(card, name, 4))[0] for name in COUNTS}
    table = _member(card, "handler", HANDLER.size*16)
    work  = {}
    for name in ("COMMAND", "SEND_DONE", "ACK", "ARRIVAL", "TIMER"):
        values = struct.unpack_from("<4I", table, HANDLER.size*getattr(MCP_STATE, name))
        if values[0]:
            work[name.lower()] = dict(zip(("calls", "cycles", "instructions", "longest"), values))
    trap = None
    if state == MCP_STATE.TRAP:
        trap = dict(zip(("cause", "pc", "value", "sp", "ra"), struct.unpack_from("<5I", _member(card, "trap", TRAP.size))))
    return {**words, "handlers": work, "trap": trap}


def rows(program):
    """For output.table()."""
    found = [(name, value) for name, value in program.items() if name in COUNTS]
    for name, work in program["handlers"].items():
        mean = work["cycles"]/work["calls"]
        found.append((f"handler {name}", f"{work['calls']} calls, {mean:.0f} cycles each, {work['longest']} at most"))
    if program["trap"]:
        found.append(("stopped by", ", ".join(f"{name} {value:#x}" for name, value in program["trap"].items())))
    return found
