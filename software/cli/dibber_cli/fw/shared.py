"""struct mcp_shared: a control program's data about itself, while it runs and after its end."""

# SPDX-License-Identifier: BSD-2-Clause

import struct
from collections.abc import Callable
from typing import Any

from dibber.interface.description import INTERFACE, MCP_STATE, SHARED, STRUCTS, C
from dibber.interface.schema import Member
from libdibber import Card

from dibber_cli.errors import CommandError

SCALARS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "s64": "q"}
LAYOUTS = {layout.name: layout for layout in STRUCTS}


def decode(layout: Any, data: bytes) -> dict[str, Any]:
    """A structure of the interface description as a dictionary; arrays are lists."""
    return {m.name: _member(m, data[m.offset : m.offset + m.size]) for m in layout.members}


def _member(member: Member, data: bytes) -> Any:
    size = member.size // member.count
    if member.kind in SCALARS:
        values = list(struct.unpack(f"<{member.count}{SCALARS[member.kind]}", data))
    else:
        values = [
            decode(LAYOUTS[member.kind], data[n * size : (n + 1) * size])
            for n in range(member.count)
        ]
    return values if member.count > 1 else values[0]


def has_stopped(state: int) -> bool:
    """Whether a control program has stopped by itself. `state` as enum mcp_state."""
    return state in (MCP_STATE.TRAP, MCP_STATE.WATCHDOG, MCP_STATE.BUS_MASTER)


class Shared:
    """The structure, read a member at a time.

    read       : function of offset and length, to bytes of the control program's memory
    sram_bytes : of that memory; the structure is at its end
    """

    def __init__(self, read: Callable[[int, int], bytes], sram_bytes: int) -> None:
        self._read = read
        self._place = sram_bytes - C.SHARED_FROM_END

    @classmethod
    def of(cls, card: Card) -> "Shared":
        """The structure of a card. Raises CommandError if no program has written it. A program that
        stopped early may not have written it.
        """
        shared = cls(card.read_firmware, card.sram_bytes)
        if not has_stopped(card.read_register("MCP_STATE")) and not shared.is_known():
            raise CommandError(
                "no control program of this interface has begun in this card since it was powered "
                "up",
                "load one: 'dibber fw load build/firmware/mcp.dibfw URI'",
            )
        return shared

    def is_known(self) -> bool:
        """Whether a program of this interface has begun. It may have ended long ago, because the
        memory outlives a reset of the card.
        """
        return (self.member("version"), self.member("hash")) == (
            INTERFACE.version_word,
            INTERFACE.hash,
        )

    def member(self, name: str) -> Any:
        return _member(SHARED[name], self._bytes(SHARED[name].offset, SHARED[name].size))

    def elements(self, name: str, first: int, count: int) -> list:
        """Some elements of an array."""
        member = SHARED[name]
        size = member.size // member.count
        data = self._bytes(member.offset + first * size, count * size)
        return [decode(LAYOUTS[member.kind], data[n * size : (n + 1) * size]) for n in range(count)]

    def _bytes(self, offset: int, length: int) -> bytes:
        return self._read(self._place + offset, length)
