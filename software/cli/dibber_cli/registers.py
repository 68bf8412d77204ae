"""`dibber reg`: a card's registers by the names that the interface description gives them."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import libdibber
from dibber.interface.description import (
    DOORBELL,
    HOST,
    INTERFACE,
    LINK_STATE,
    MCP_STATE,
)
from dibber.interface.schema import Bank, Field, Register
from libdibber import DibberError

from dibber_cli import numbers, output
from dibber_cli.errors import CommandError, UsageError
from dibber_cli.intermixed import Command, Commands

NAME = re.compile(r"(?P<name>\w+)(\[(?P<index>\d+)\])?(\.(?P<field>\w+))?\Z", re.ASCII)

# Registers and fields that hold a value of an enumeration.
ENUMERATIONS = {("MCP_STATE", None): MCP_STATE, ("LINK_STATUS", "state"): LINK_STATE}


# Names --------------------------------------------------------------------------------------------


class Place:
    """A register, or a field of one, as the command line names it: NAME, NAME[2], NAME.field.

    Attributes
    ----------
    register : of the interface description
    index    : which one of several registers in a row
    field    : of the interface description, or None for the whole register
    """

    def __init__(self, bank: Bank, word: str) -> None:
        found = NAME.match(word)
        name = found["name"].upper() if found else ""
        register = next((r for r in bank.registers if r.name == name), None)
        if found is None or register is None:
            raise UsageError(
                f"bank {bank.name} has no register {word!r}{_alike(bank, name)}",
                "'dibber reg list' prints all names",
            )
        self.register: Register = register
        self.index = int(found["index"] or 0)
        if self.index >= self.register.count:
            raise UsageError(f"{name} has {self.register.count} registers, counted from 0")
        self.field = None
        if found["field"]:
            self.field = next(
                (f for f in self.register.fields if f.name == found["field"].lower()), None
            )
            if self.field is None:
                names = ", ".join(f.name for f in self.register.fields) or "none"
                raise UsageError(f"{name} has no field {found['field']!r}; its fields: {names}")

    @property
    def name(self) -> str:
        index = f"[{self.index}]" if self.register.count > 1 else ""
        return self.register.name + index + (f".{self.field.name}" if self.field else "")

    @property
    def bits(self) -> int:
        return self.field.bits if self.field else 32

    def of(self, word: int) -> int:
        """The value at this place in the register's 32 bits."""
        return field_of(word, self.field) if self.field else word

    def into(self, word: int, value: int) -> int:
        """The register's 32 bits with `value` at this place."""
        if not self.field:
            return value
        mask = ((1 << self.field.bits) - 1) << self.field.lsb
        return word & ~mask | value << self.field.lsb


def _alike(bank: Bank, name: str) -> str:
    """A hint: names that have the wanted one in them."""
    names = [r.name for r in bank.registers if name and name in r.name][:5]
    return f"; it has {', '.join(names)}" if names else ""


def field_of(word: int, field: Field) -> int:
    return word >> field.lsb & (1 << field.bits) - 1


def value(word: str) -> int:
    """A type for argparse: a value of a register, decimal, 0x… or 0b…."""
    try:
        found = int(word, 0)
    except ValueError:
        found = -1
    if not 0 <= found < 1 << 32:
        raise argparse.ArgumentTypeError(f"{word!r} is not a whole number of 0 … 2³²-1")
    return found


# Values -------------------------------------------------------------------------------------------


def _meaning(name: str, field: str | None, found: int) -> str:
    """ "3 (UP)" where an enumeration names the value, else the value."""
    known = ENUMERATIONS.get((name, field))
    return f"{found} ({known.name_of(found)})" if known else f"{found}"


def sentence(place: Place, word: int) -> str:
    """What a register's fields hold, in a line."""
    register = place.register
    if place.field:
        return _meaning(register.name, place.field.name, place.of(word))
    if register.fields:
        return ", ".join(
            f"{f.name} {_meaning(register.name, f.name, field_of(word, f))}"
            for f in register.fields
        )
    return _meaning(register.name, None, word)


def document(place: Place, word: int) -> dict[str, Any]:
    """A register's value for programs."""
    found = {"name": place.name, "offset": place.register.offset + 4 * place.index}
    found["value"] = place.of(word)
    if not place.field and place.register.fields:
        found["fields"] = {f.name: field_of(word, f) for f in place.register.fields}
    return found


def _read(card: libdibber.Card, place: Place, endpoint: int | None) -> int:
    if endpoint is not None:
        return card.read_doorbell(endpoint, place.register.name)
    return card.read_register(place.register.name, place.index)


def _bank(endpoint: int | None) -> Bank:
    return HOST if endpoint is None else DOORBELL


def _show(places: Sequence[Place], words: Sequence[int], as_json: bool) -> None:
    if as_json:
        print(json.dumps([document(place, word) for place, word in zip(places, words)], indent=2))
        return
    output.table(
        ["register", "offset", "value", "meaning"],
        [
            (
                place.name,
                f"{place.register.offset + 4 * place.index:#06x}",
                f"{place.of(word):#x}",
                sentence(place, word),
            )
            for place, word in zip(places, words)
        ],
    )


# Commands -----------------------------------------------------------------------------------------


def read(arguments: argparse.Namespace) -> int:
    bank = _bank(arguments.endpoint)
    places = [Place(bank, name) for name in arguments.names]
    for place in places:
        if place.register.access in ("wo", "wk"):
            raise UsageError(f"{place.name} can only be written: its reads return 0")
    with libdibber.Card(arguments.uri, observe=True) as card:
        words = [_read(card, place, arguments.endpoint) for place in places]
    _show(places, words, arguments.json)
    return 0


def dump(arguments: argparse.Namespace) -> int:
    """All registers that can be read."""
    bank = _bank(arguments.endpoint)
    places = [
        Place(bank, f"{register.name}[{n}]")
        for register in bank.registers
        if register.access not in ("wo", "wk")
        for n in range(register.count)
    ]
    with libdibber.Card(arguments.uri, observe=True) as card:
        words = [_read(card, place, arguments.endpoint) for place in places]
    _show(places, words, arguments.json)
    return 0


def write(arguments: argparse.Namespace) -> int:
    """Write a register. Writing a field keeps its neighbours, if the register reads back."""
    place = Place(HOST, arguments.name)
    access = place.register.access
    if access == "ro":
        raise UsageError(f"{place.name} can only be read")
    if place.index:
        raise CommandError(f"{place.name}: only the first register of a row can be written")
    if arguments.value >> place.bits:
        raise UsageError(f"{place.name} has {place.bits} bits; {arguments.value:#x} has more")
    with libdibber.Card(arguments.uri, observe=True) as card:
        keeps = place.field and access == "rw"
        before = card.read_register(place.register.name) if keeps else 0
        try:
            card.write_register(place.register.name, place.into(before, arguments.value))
        except DibberError as error:
            raise CommandError(f"{place.name} was not written: {error}") from None
        after = card.read_register(place.register.name) if access == "rw" else None
    if arguments.json:
        print(
            json.dumps(
                {
                    "name": place.name,
                    "written": arguments.value,
                    "read_back": None if after is None else place.of(after),
                }
            )
        )
    elif after is None:
        print(f"{place.name}: {arguments.value:#x} was written; it cannot be read back")
    else:
        print(f"{place.name}: {arguments.value:#x} was written, {place.of(after):#x} was read back")
    return 0


def show_names(arguments: argparse.Namespace) -> int:
    """The registers of the interface description; no card is asked."""
    bank = _bank(0 if arguments.doorbell else None)
    if arguments.json:
        print(
            json.dumps(
                [
                    {
                        "name": r.name,
                        "offset": r.offset,
                        "count": r.count,
                        "access": r.access,
                        "fields": [f.name for f in r.fields],
                        "text": r.doc,
                    }
                    for r in bank.registers
                ],
                indent=2,
            )
        )
        return 0
    major, minor = INTERFACE.version
    print(f"bank {bank.name}, interface {major}.{minor}, hash {INTERFACE.hash:08x}")
    output.table(
        ["register", "offset", "access", "fields"],
        [
            (
                r.name + (f"[{r.count}]" if r.count > 1 else ""),
                f"{r.offset:#06x}",
                r.access,
                " ".join(f.name for f in r.fields),
            )
            for r in bank.registers
        ],
    )
    return 0


def add_to(
    sub: Commands, group: Callable[[Commands, str, str], Commands], command: Command
) -> None:
    """Add `reg` to the command line; `group` and `command` are those of dibber_cli.main."""
    reg = group(sub, "reg", "Read and write a card's registers by name.")
    p = command(
        reg,
        "read",
        read,
        "Read registers, or fields of them.",
        [
            "dibber reg read URI CLOCK_HZ LINK_STATUS.state",
            "dibber reg read URI --endpoint 2 COMMAND_HEAD",
        ],
    )
    p.add_argument("uri", metavar="URI", type=numbers.uri, help=output.URI)
    p.add_argument("names", metavar="NAME", nargs="+", help="NAME, NAME[2] or NAME.field")
    _add_endpoint(p)
    p = command(
        reg,
        "write",
        write,
        "Write a register, or one field of it. Some registers stop a card that others use.",
        ["dibber reg write URI SCRATCH 0x1234"],
    )
    p.add_argument("uri", metavar="URI", type=numbers.uri, help=output.URI)
    p.add_argument("name", metavar="NAME", help="NAME or NAME.field")
    p.add_argument("value", metavar="VALUE", type=value, help="a number: 12, 0xc or 0b1100")
    p = command(
        reg,
        "dump",
        dump,
        "Read all registers that can be read.",
        ["dibber reg dump --json URI > before.json"],
    )
    p.add_argument("uri", metavar="URI", type=numbers.uri, help=output.URI)
    _add_endpoint(p)
    p = command(
        reg,
        "list",
        show_names,
        "Print the names of all registers, without a card.",
        ["dibber reg list --doorbell"],
    )
    p.add_argument("--doorbell", action="store_true", help="those of an endpoint's doorbell page")


def _add_endpoint(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--endpoint",
        type=numbers.whole(0, 255),
        default=None,
        metavar="N",
        help="registers of this endpoint's doorbell page, in place of the card's",
    )
