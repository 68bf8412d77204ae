"""What a side of the soak test is told: commands, and the events that it must see."""

# SPDX-License-Identifier: BSD-2-Clause

from dataclasses import dataclass, field

from dibber.interface.description import STATUS


@dataclass
class Command:
    """A command of an endpoint, and how it must end.

    Attributes
    ----------
    endpoint : of the side whose command it is
    kind     : "put", "get", "inline", "atomic", "nop", "empty put" …: a transfer of nothing
    source, target : (key, block, offset, levels, list) as Walk takes them; an atomic and an inline
                     put have a target alone
    data     : inline: the bytes
    atomic   : (opcode, size, operand, compare, mask)
    options  : of the endpoint's method
    status   : enum status
    length   : in the completion
    value    : in the completion; None: not looked at
    written  : (node, Shape) of what it may write; for reports
    digest   : get: (Shape, CRC) that must be in memory at its completion
    mistake  : what is wrong with it, or ""
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
    value: int = 0
    written: tuple = ()
    digest: tuple = ()
    mistake: str = ""

    @property
    def lists(self):
        """On which of its sides it has an index list."""
        return tuple(
            side
            for side in ("source", "target")
            if len(getattr(self, side)) > 4 and getattr(self, side)[4]
        )


@dataclass(frozen=True)
class Notice:
    """What an event must tell; `digest` is (Shape, CRC) of what it announces, () if that is written
    again later.
    """

    endpoint: int
    length: int
    key: int
    digest: tuple
