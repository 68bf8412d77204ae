"""Checks of arguments, before anything is sent.

ctypes silently cuts an integer that is too wide for its C type. So each integer goes
through `whole()` with its range. Memory goes through `contiguous()` or `writeable()`, which give
the bytes of the object.
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import operator
import os
import re
from typing import Any, SupportsIndex

from dibber.interface.description import COMMAND, HOST, RIGHT, WALK, C

from libdibber.late import np

# Types of arguments. An object with the buffer protocol has no type before Python 3.12.
Memory = Any
Name = str | bytes | os.PathLike

_BITS = {"u8": 8, "u16": 16, "u32": 32, "u64": 64}


def _width(layout: Any, member: str) -> int:
    """Highest value of a member of a structure of the interface description."""
    return (1 << _BITS[layout[member].kind]) - 1


U32, U64 = (1 << 32) - 1, (1 << 64) - 1

WRITE_RIGHTS = RIGHT.LOCAL_WRITE | RIGHT.REMOTE_WRITE

# The range of each integer argument, by its name in errors: the values that fit into the field that
# carries it. If the field is a member of a structure of the interface description, its width comes
# from there. The others have the widths of dibber/dibber.h. The library refuses a value that fits
# and makes no sense, such as an endpoint that the card does not have: DibberError with ARGUMENT.
RANGES = {
    # Where a transfer goes (struct dib_delivery).
    "node": (0, _width(COMMAND, "node")),
    "endpoint": (0, _width(COMMAND, "endpoint")),
    "notice": (0, _width(COMMAND, "notice")),
    "tag": (0, U64),
    # What it moves.
    "key": (0, _width(WALK, "key")),
    "source_key": (0, _width(WALK, "key")),
    "target_key": (0, _width(WALK, "key")),
    "list key": (0, _width(WALK, "key")),
    "offset": (0, _width(WALK, "offset")),
    "source_offset": (0, _width(WALK, "offset")),
    "target_offset": (0, _width(WALK, "offset")),
    "list offset": (0, _width(WALK, "offset")),
    "length": (0, _width(COMMAND, "length")),
    "block": (0, _width(WALK, "block")),
    "count": (0, _width(WALK, "count")),
    "list count": (0, _width(WALK, "count")),
    "stride": (-(1 << 63), (1 << 63) - 1),
    # Atomics.
    "opcode": (0, _width(COMMAND, "opcode")),
    "size": (0, U32),
    # Memory.
    "alloc length": (1, (1 << 48) - 1),
    "rights": (0, U32),
    "shift": (0, U32),
    "first": (0, U32),
    "region length": (0, U64),
    "page": (0, U64),
    # Cards and endpoints.
    "iova_base": (0, U64),
    "number": (0, U32),
    "cq_entries": (0, U32),
    "eq_entries": (0, U32),
    "limit": (1, C.QUEUE_MAX_ENTRIES),
    "timeout_ns": (0, U64),
    "value": (0, U32),
    "firmware offset": (0, U32),
    "firmware length": (0, C.BAR0_SIZE),
    # Flash.
    "address": (0, U32),
    "flash length": (0, U32),
    # Network.
    "route": (0, U32),
    "question": (0, U32),
    "back": (0, U32),
    "timeout": (0, U32),
    "attempts": (0, U32),
    "place": (0, U32),
    "map node": (0, U32),
    # Remote windows.
    "window length": (0, U64),
    "window offset": (0, U64),
    "add": (-(1 << 15), (1 << 15) - 1),
    # Mailboxes.
    "peers": (0, U32),
    "slots": (0, U32),
    "slot_bytes": (0, U32),
    "max_length": (0, U32),
    "peer": (0, U32),
    "news": (0, U32),
}


# Numbers ------------------------------------------------------------------------------------------


def whole(
    name: str,
    value: SupportsIndex,
    low: int | None = None,
    high: int | None = None,
    kind: str | None = None,
) -> int:
    """`value` as a Python integer of its range.

    kind      : the row of RANGES when it is not called `name` there
    low, high : the range, in place of RANGES

    NumPy's integers are integers; bools, floats and strings are not. Raises TypeError for other
    types and ValueError for an integer outside its range. Both name the argument, the value and the
    range.
    """
    if low is None or high is None:
        low, high = RANGES[kind or name]
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} = {value!r} is not an integer of {low} … {high}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} = {value!r} is not an integer of {low} … {high}") from None
    if not low <= number <= high:
        raise ValueError(f"{name} = {number} is outside {low} … {high}")
    return number


def switch(name: str, value: bool) -> bool:
    """True or False. Raises TypeError for anything else, because 2 would set another flag."""
    if isinstance(value, (bool, np.bool_)) or type(value) is int and value in (0, 1):
        return bool(value)
    raise TypeError(f"{name} = {value!r} is neither True nor False")


def register(bank: Any, name: str, index: SupportsIndex = 0) -> int:
    """Offset of a register by its name. Raises ValueError for an unknown name."""
    found = next((r for r in bank.registers if r.name == name), None)
    if found is None:
        raise ValueError(f"no register {name!r} in bank {bank.name}")
    return found.offset + 4 * whole("index", index, 0, found.count - 1)


def host_register(name: str, index: SupportsIndex = 0) -> int:
    """Offset of a register of bank `host`."""
    return register(HOST, name, index)


def path(name: str, value: Name) -> bytes:
    """A file's name or a URI as bytes for C. Raises ValueError for a zero byte, because C
    would cut the name there.
    """
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise ValueError(f"{name} = {value!r} has a zero byte in it")
    return encoded


# Memory -------------------------------------------------------------------------------------------


def _has_objects(view: memoryview) -> bool:
    """Whether items of a memoryview are Python objects: code O of PEP 3118. Names of members stand
    between colons.
    """
    return "O" in re.sub(r":[^:]*:", "", view.format or "")


def _array_bytes(name: str, array: np.ndarray) -> np.ndarray:
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array: give its data or its filled()")
    array = np.asarray(array)
    if array.dtype.hasobject:
        raise TypeError(
            f"{name} has Python objects in it (dtype {array.dtype}): their addresses mean nothing "
            f"elsewhere"
        )
    if not array.flags.c_contiguous:
        raise ValueError(
            f"{name} is not contiguous: strides {array.strides} for shape {array.shape} of "
            f"{array.itemsize} bytes each"
        )
    if array.nbytes == 0:
        return np.empty(0, dtype=np.uint8)
    return array.reshape(-1).view(np.uint8)


def contiguous(name: str, data: Memory) -> np.ndarray:
    """The bytes of an object in the order of its memory, as a NumPy array of bytes that shares this
    memory.

    data : object with the buffer protocol: bytes, bytearray, memoryview, array.array, mmap,
           ctypes, NumPy of any shape

    The result keeps a buffer export, so that a bytearray, an array.array or an mmap cannot be
    resized or closed while the result lives. Raises TypeError for an object without bytes or with
    Python objects in it, and ValueError if its bytes are not contiguous in C order.
    """
    if isinstance(data, np.ndarray):
        return _array_bytes(name, data)
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(f"{name} has no bytes: {type(data).__name__} has no buffer") from None
    if _has_objects(view):
        raise TypeError(
            f"{name} has Python objects in it (format {view.format!r}): their addresses mean "
            f"nothing elsewhere"
        )
    if not view.c_contiguous:
        raise ValueError(
            f"{name} is not contiguous: strides {view.strides} for shape {view.shape} of "
            f"{view.itemsize} bytes each"
        )
    if view.nbytes == 0:
        return np.empty(0, dtype=np.uint8)
    return np.frombuffer(view, dtype=np.uint8)


def writeable(name: str, data: Memory, advice: str = "") -> np.ndarray:
    """As contiguous(), for memory that may be changed. Raises ValueError when it is read-only;
    `advice` ends the sentence.
    """
    found = contiguous(name, data)
    if len(found) and not found.flags.writeable:
        raise ValueError(f"{name} is read-only" + advice)
    return found


def some_bytes(name: str, array: np.ndarray) -> None:
    """Raise ValueError for a NumPy array without bytes: a transfer has at least one."""
    if array.nbytes == 0:
        raise ValueError(
            f"{name} has no bytes (shape {array.shape}, {array.itemsize} bytes each): a transfer "
            f"has at least one byte"
        )


def address(array: np.ndarray) -> int:
    """Where an array begins."""
    return array.__array_interface__["data"][0]
