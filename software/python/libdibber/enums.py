"""Rights, flags, opcodes and statuses of the interface description as Python's enumerations.

    endpoint.register(memory, Right.LOCAL_READ | Right.REMOTE_READ)
    Status(completion.status) is Status.REMOTE_BOUNDS

`help(libdibber.Status)` explains each of them. C has them as enum dibber_right, dibber_flag,
dibber_opcode and dibber_status.
"""

# SPDX-License-Identifier: BSD-2-Clause

import enum
from typing import Any

from dibber.interface import description


def _made(kind: Any, name: str, described: Any) -> Any:
    """A Python enumeration with the names, values and meanings of one of the description."""
    made = kind(name, [(member, value) for member, value, _ in described.values], module=__name__)
    lines = "\n".join(f"{member:21}: {text}" for member, _, text in described.values)
    made.__doc__ = f"{described.doc[0].upper()}{described.doc[1:]}.\n\n{lines}\n"
    return made


Right = _made(enum.IntFlag, "Right", description.RIGHT)
Flag = _made(enum.IntFlag, "Flag", description.FLAG)
Opcode = _made(enum.IntEnum, "Opcode", description.OPCODE)
Status = _made(enum.IntEnum, "Status", description.STATUS)


def status_name(status: int) -> str:
    """The name of a status; its number in hexadecimal when it has none."""
    return description.STATUS.name_of(status)
