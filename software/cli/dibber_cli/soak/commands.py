"""Input of one side of the soak test: commands, and the events that it must see."""

# SPDX-License-Identifier: BSD-2-Clause

from dataclasses import dataclass, field

from dibber.interface.description import STATUS
from libdibber import List

# Key, block, offset, levels and list, as libdibber.Walk takes them.
Walk = tuple[int, int, int, tuple[tuple[int, int], ...], List | None]


@dataclass
class Command:
    """A command of an endpoint, and how it must end.

    Attributes
    ----------
    endpoint : of the side whose command it is
    kind     : "put", "get", "inline", "atomic", "nop", "empty put" …: a transfer of no bytes
    source, target : (key, block, offset, levels, list) as Walk takes them; an atomic and an inline
                     put have only a target
    data     : inline: the bytes
    atomic   : (opcode, size, operand, compare, mask)
    options  : of the endpoint's method
    status   : enum status
    length   : in the completion
    value    : in the completion; None: not checked
    written  : (node, Shape) that it may write; for reports
    digest   : get: (Shape, CRC) that must be in memory at its completion
    mistake  : its mistake as text, or ""
    """

    endpoint: int
    kind: str
    source: tuple = ()
    target: tuple = ()
    data: bytes = b""
    atomic: tuple = ()
    options: dict = field(default_factory=dict)
    status: int = STATUS.OK
    length: int = 0
    value: int | None = 0
    written: tuple = ()
    digest: tuple = ()
    mistake: str = ""

    @property
    def lists(self) -> tuple[str, ...]:
        """The sides that have an index list."""
        return tuple(
            side
            for side in ("source", "target")
            if len(getattr(self, side)) > 4 and getattr(self, side)[4]
        )


@dataclass(frozen=True)
class Notice:
    """An expected event; `digest` is (Shape, CRC) of the announced bytes, () if they are written
    again later.
    """

    endpoint: int
    length: int
    key: int
    digest: tuple
