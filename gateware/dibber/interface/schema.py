"""The classes of the interface description: fields, registers, structures, enumerations.

Nothing here depends on Dibber; `description.py` has its contents. Offsets are computed only here,
so no offset is ever typed twice.
"""

# SPDX-License-Identifier: BSD-2-Clause

from dataclasses import dataclass, field
import json
import zlib


class InterfaceError(Exception):
    """The description contradicts itself (overlap, misalignment, wrong size)."""


@dataclass(frozen=True)
class Field:
    """Bits of a register: `bits` wide, placed upwards from bit 0 in order of appearance."""
    name : str
    bits : int
    doc  : str
    lsb  : int = -1


@dataclass(frozen=True)
class Register:
    """One 32-bit register, or `count` of them in a row.

    access:

    ro  : driven by the gateware
    rw  : written by the bus and read back
    wk  : written by the bus and kept; reads return 0
    wo  : a write makes a one-cycle strobe with the written value; reads return 0
    w1c : the gateware sets bits, and a write of ones clears them
    """
    name   : str
    access : str
    doc    : str
    fields : tuple = ()
    count  : int   = 1
    reset  : int   = 0
    offset : int   = -1


@dataclass(frozen=True)
class Bank:
    """Registers with a common base. `registers` get their offsets in order, 4 bytes each."""
    name      : str
    doc       : str
    registers : tuple

    def __getitem__(self, name):
        for r in self.registers:
            if r.name == name:
                return r
        raise InterfaceError(f"no register {name} in bank {self.name}")

    @property
    def size(self):
        last = self.registers[-1]
        return last.offset + 4*last.count


@dataclass(frozen=True)
class Member:
    """One member of a structure. kind: u8 u16 u32 u64 s64, or the name of another structure."""
    name   : str
    kind   : str
    doc    : str
    count  : int = 1
    offset : int = -1
    size   : int = -1


@dataclass(frozen=True)
class Struct:
    """A structure in memory or in a packet: little-endian, naturally aligned, exactly `size` bytes.
    """
    name    : str
    size    : int
    doc     : str
    members : tuple

    def __getitem__(self, name):
        for m in self.members:
            if m.name == name:
                return m
        raise InterfaceError(f"no member {name} in {self.name}")


@dataclass(frozen=True)
class Enum:
    """Named values; all users give them `bits` bits."""
    name   : str
    bits   : int
    doc    : str
    values : tuple  # of (name, value, doc)

    def __getattr__(self, name):
        for n, v, _ in self.__dict__["values"]:
            if n == name:
                return v
        raise AttributeError(name)

    def name_of(self, value):
        """The name of `value`, or its number in hexadecimal if it has no name."""
        for n, v, _ in self.values:
            if v == value:
                return n
        return f"0x{value:x}"


SCALARS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "s64": 8}


def bank(name, doc, *registers):
    """A Bank with the offsets and field positions filled in."""
    placed, offset, seen = [], 0, set()
    for r in registers:
        if r.name in seen:
            raise InterfaceError(f"{name}: register {r.name} appears twice")
        if r.access not in ("ro", "rw", "wk", "wo", "w1c"):
            raise InterfaceError(f"{name}.{r.name}: access {r.access}")
        seen.add(r.name)
        lsb, fields = 0, []
        for f in r.fields:
            fields.append(Field(f.name, f.bits, f.doc, lsb))
            lsb += f.bits
        if lsb > 32:
            raise InterfaceError(f"{name}.{r.name}: {lsb} bits of fields")
        placed.append(Register(r.name, r.access, r.doc, tuple(fields), r.count, r.reset, offset))
        offset += 4*r.count
    return Bank(name, doc, tuple(placed))


def struct(name, size, doc, *members, known=()):
    """A Struct with its offsets; `known` are the structures that members may be."""
    sizes  = dict(SCALARS)
    sizes.update({s.name: s.size for s in known})
    offset, placed = 0, []
    for m in members:
        unit  = sizes[m.kind]
        align = unit if m.kind in SCALARS else 4
        if offset % align:
            raise InterfaceError(f"{name}.{m.name} at {offset} is not aligned to {align}")
        placed.append(Member(m.name, m.kind, m.doc, m.count, offset, unit*m.count))
        offset += unit*m.count
    if offset != size:
        raise InterfaceError(f"{name} is {offset} bytes, described as {size}")
    return Struct(name, size, doc, tuple(placed))


def enum(name, bits, doc, *values):
    """An Enum; values are (name, doc) counted from 0, or (name, value, doc)."""
    out, following = [], 0
    for v in values:
        n, number, d = v if len(v) == 3 else (v[0], following, v[1])
        if number >= 1 << bits:
            raise InterfaceError(f"{name}.{n} = {number} does not fit {bits} bits")
        out.append((n, number, d))
        following = number + 1
    return Enum(name, bits, doc, tuple(out))


@dataclass(frozen=True)
class Interface:
    """Everything that both sides of an interface must agree on."""
    version   : tuple           # (major, minor)
    constants : tuple           # of (name, value, doc)
    enums     : tuple
    structs   : tuple
    banks     : tuple
    by_name   : dict = field(default_factory=dict, compare=False)

    def canonical(self):
        """The layout as JSON, without texts; the hash is computed from it."""
        return json.dumps({
            "version"   : self.version,
            "constants" : [(n, v) for n, v, _ in self.constants],
            "enums"     : [(e.name, e.bits, [(n, v) for n, v, _ in e.values]) for e in self.enums],
            "structs"   : [
                (s.name, s.size, [(m.name, m.kind, m.count, m.offset) for m in s.members])
                for s in self.structs],
            "banks"     : [(b.name, [(r.name, r.access, r.offset, r.count, r.reset,
                                      [(f.name, f.bits, f.lsb) for f in r.fields])
                                     for r in b.registers]) for b in self.banks],
        }, separators=(",", ":"))

    @property
    def version_word(self):
        return self.version[0] << 16 | self.version[1]

    @property
    def hash(self):
        """CRC-32 (IEEE 802.3) of the canonical description: any change of layout changes it."""
        return zlib.crc32(self.canonical().encode())
