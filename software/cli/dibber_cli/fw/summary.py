"""A control program's work since its start, in a few lines: for `dibber info`."""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Mapping
from typing import Any

from dibber.interface.description import MCP_STATE
from libdibber import Card

from dibber_cli.fw import trap
from dibber_cli.fw.shared import Shared
from dibber_cli.fw.top import HANDLERS

COUNTS = ("commands", "refused", "timeouts", "strays", "claims")


def read(card: Card) -> dict[str, Any] | None:
    """Counts, the size of its image (None: unknown), the work of each handler that had any, and the
    reason of a stop, as a dictionary; None if no program runs.
    """
    state = card.read_register("MCP_STATE")
    if state in (MCP_STATE.RESET, MCP_STATE.BOOT):
        return None
    shared = Shared(card.read_firmware, card.sram_bytes)
    handlers = shared.member("handler")
    work = {name.lower(): handlers[getattr(MCP_STATE, name)] for name in HANDLERS}
    found = trap.diagnose(card)
    image = shared.member("image_bytes") if shared.is_known() else None
    return {
        **{name: shared.member(name) for name in COUNTS},
        "image_bytes": image,
        "handlers": {name: done for name, done in work.items() if done["calls"]},
        "stopped": found["sentence"] if found["stopped"] else None,
    }


def rows(program: Mapping[str, Any]) -> list:
    """For output.table()."""
    found = [(name, program[name]) for name in COUNTS]
    for name, work in program["handlers"].items():
        mean = work["cycles"] / work["calls"]
        found.append(
            (
                f"handler {name}",
                f"{work['calls']} calls, {mean:.0f} cycles each, {work['longest']} at most",
            )
        )
    if program["stopped"]:
        found.append(("state", program["stopped"]))
    return found
