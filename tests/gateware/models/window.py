"""The remote window in plain Python: pages, what is stored, what must arrive, and its endpoint."""

# SPDX-License-Identifier: BSD-2-Clause

from dataclasses import dataclass

from dibber.interface.description import ATOMIC, COMMAND, INLINE, OPCODE, WALK, C

LINE = 64
CONTROL = C.APERTURE_BYTES - C.APERTURE_PAGE  # address of the control page

# Pages --------------------------------------------------------------------------------------------


@dataclass
class Page:
    """An entry of the page table."""

    node: int
    key: int
    offset: int
    load: bool = True
    store: bool = True
    atomic: bool = False
    addend: int = 1
    owner: int = 0


def place(pages, address):
    """(page, offset in its region) of an address of the aperture; None without a mapping."""
    page = pages.get(address // C.APERTURE_PAGE)
    if page is None or page.offset + C.APERTURE_PAGE > 1 << 48:
        return None
    return page, page.offset + address % C.APERTURE_PAGE


# Stores -------------------------------------------------------------------------------------------


def tag(where, count):
    """The value of the store number `count` to a byte. It tells the byte and the store, for 256
    stores.
    """
    node, key, offset = where
    return (offset * 167 + (offset >> 8) * 59 + key * 31 + node * 7 + count) & 0xFF


class Stores:
    """What programs stored, byte by byte, and what has arrived of it.

    Stores to one byte may merge, so that only the last one arrives, but they never change places.
    So the stores that arrive at a byte are some of those made, in that order, with the last one,
    and each at most once. No other byte changes.
    """

    def __init__(self, pages):
        self.pages = pages
        self.stored = {}  # (node, key, offset) -> stores that were made
        self.arrived = {}  # -> number of the last one that arrived, from 1 on

    def store(self, address, enables):
        """Bytes for a store from `address` on; `enables` has a bool for each of them."""
        data = []
        for offset, enable in enumerate(enables):
            found = place(self.pages, address + offset)
            if not enable or found is None or not found[0].store:
                data.append(0xEE)
                continue
            where = (found[0].node, found[0].key, found[1])
            self.stored[where] = count = self.stored.get(where, 0) + 1
            assert count < 256
            data.append(tag(where, count))
        return bytes(data)

    def put(self, put):
        """A put arrives. AssertionError if a byte of it was not stored, or arrived before."""
        for offset, byte in enumerate(put.data):
            where = (put.node, put.key, put.offset + offset)
            assert where in self.stored, f"{where}: nobody stored this byte"
            count = (byte - tag(where, 0)) & 0xFF
            before = self.arrived.get(where, 0)
            assert before < count <= self.stored[where], f"{where}: store {count} after {before}"
            self.arrived[where] = count

    def made(self):
        """The stores that were made up to now, for `all_arrived`."""
        return dict(self.stored)

    def all_arrived(self, made):
        return all(self.arrived.get(where, 0) >= count for where, count in made.items())


# Commands -----------------------------------------------------------------------------------------


def field(slot, struct, name, offset=0, size=None):
    member = struct[name]
    start = member.offset + offset
    return int.from_bytes(slot[start : start + (size or member.size)], "little")


@dataclass
class Command:
    """A slot of the window's endpoint, as the card reads it."""

    opcode: int
    node: int
    length: int
    cookie: int
    key: int
    offset: int
    data: bytes = b""
    local_key: int = 0
    local_offset: int = 0
    addend: int = 0


def command(slot):
    """The command in the 128 bytes of a slot. AssertionError if the fast path would not take it."""
    opcode = field(slot, COMMAND, "opcode")
    head = [field(slot, COMMAND, name) for name in ("node", "length", "cookie")]
    assert field(slot, COMMAND, "flags") == field(slot, COMMAND, "levels") == 0
    length = head[1]
    key, offset = field(slot, INLINE, "key"), field(slot, INLINE, "offset")
    if opcode == OPCODE.PUT_INLINE:
        assert 1 <= length <= C.INLINE_BYTES
        data = slot[INLINE["data"].offset :][:length]
        return Command(opcode, *head, key, offset, data)
    if opcode == OPCODE.GET:
        source = COMMAND["source"].offset
        walk = [
            int.from_bytes(slot[source + WALK[name].offset :][: WALK[name].size], "little")
            for name in ("key", "block", "offset")
        ]
        assert field(slot, INLINE, "block") == walk[1] == length
        return Command(opcode, *head, walk[0], walk[2], local_key=key, local_offset=offset)
    assert opcode == OPCODE.FETCH_ADD and length in (4, 8)
    return Command(opcode, *head, key, offset, addend=field(slot, ATOMIC, "operand"))
