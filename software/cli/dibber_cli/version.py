"""`dibber --version`: versions of the command, the library, the interface and the firmware."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import os
import struct
from collections.abc import Sequence

import libdibber
from dibber.interface.description import INTERFACE, C

from dibber_cli import paths

HEADER = struct.Struct("<9I28s")  # structure firmware_header, without its last padding


def firmware(path: str | os.PathLike[str] = paths.FIRMWARE) -> str:
    """What the control program's image `path` says of itself, in a line."""
    try:
        with open(path, "rb") as file:
            head = file.read(HEADER.size)
    except FileNotFoundError:
        return "not built (run 'make firmware')"
    except OSError as error:
        return f"{path}: {error.strerror}"
    if len(head) < HEADER.size or head[:4] != C.FIRMWARE_MAGIC.to_bytes(4, "little"):
        return f"{path} is no image"
    _, version, identity_hash, *_, identity, _, _, build = HEADER.unpack(head)
    name = build.rstrip(b"\0").decode("ascii", "replace")
    other = "" if identity_hash == INTERFACE.hash else ": ANOTHER INTERFACE, build it anew"
    return (
        f"build {name or 'not told'}, identity {identity:08x}, interface {version >> 16}."
        f"{version & 0xFFFF}, hash {identity_hash:08x}{other}"
    )


def text() -> str:
    """The lines that `dibber --version` prints."""
    major, minor = INTERFACE.version
    return "\n".join(
        (
            f"dibber     of the tree {paths.ROOT}",
            f"library    {libdibber.version()}",
            f"interface  {major}.{minor}, hash {INTERFACE.hash:08x}",
            f"firmware   {firmware()}",
        )
    )


class Show(argparse.Action):
    """Print the versions and end."""

    def __init__(self, option_strings: Sequence[str], dest: str, **_: object) -> None:
        super().__init__(
            option_strings, dest, nargs=0, default=argparse.SUPPRESS, help="print versions and end"
        )

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(text())
        parser.exit()
