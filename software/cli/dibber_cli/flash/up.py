"""Writes a bitstream to the flash of a running card, through the card: over PCIe or UART."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import libdibber
from dibber.interface.description import HOST
from libdibber.binding import FlashInfo

from dibber_cli import errors, files, output
from dibber_cli.errors import CommandError
from dibber_cli.flash import images
from dibber_cli.flash.board import PAGE, Board

SECTOR = 64 * 1024  # bytes that the library erases together
CHUNK = 16 * PAGE  # bytes for each step of the bar
STARTS = "when the board's power was off and on again"
PRESENT = 1 << next(f.lsb for f in HOST["FEATURES"].fields if f.name == "flash")

Part = tuple[int, bytes]  # address in the flash, and what goes there

# Checks -------------------------------------------------------------------------------------------


def check(card: libdibber.Card, board: Board, file: Path) -> FlashInfo:
    """The flash's properties. Raises CommandError if this bitstream must not go into that card."""
    if not card.info()["features"] & PRESENT:
        raise CommandError("this card has no access to its flash", "over JTAG: 'dibber flash FILE'")
    name = card.board()
    if name != board.name:
        raise CommandError(
            f"{file.name} is for {board.name}, the card is "
            + (f"on {name}" if name else "on a board that it does not name")
        )
    info = card.flash_info()
    jedec = f"{info.jedec:06x}"
    if board.jedec and jedec not in board.jedec:
        raise CommandError(
            f"the flash has identity {jedec}, that of {board.name} is {' or '.join(board.jedec)}",
            "another flash? Then add it in hw/openocd/boards.toml",
        )
    if info.bytes < board.flash:
        raise CommandError(
            f"the flash has {info.bytes} bytes, {board.name} should have {board.flash}"
        )
    return info


# Writing ------------------------------------------------------------------------------------------


def sectors(address: int, length: int) -> tuple[int, int]:
    """(first byte, bytes) of the sectors that a range touches."""
    begin = address // SECTOR * SECTOR
    return begin, -(-(address + length) // SECTOR) * SECTOR - begin


def pieces(address: int, content: bytes) -> Iterator[Part]:
    """(address, bytes) in the order of writing. The first page, by which the FPGA recognizes an
    image, is the last. So an interrupted write leaves no image, and the FPGA goes on to the other
    one.
    """
    for at in range(PAGE, len(content), CHUNK):
        yield address + at, content[at : at + CHUNK]
    yield address, content[:PAGE]


def write(card: libdibber.Card, parts: Sequence[Part], progress: output.Progress) -> None:
    """Erase, write and read back each of `parts`, (address, bytes). No other part can be changed
    meanwhile.
    """
    for address, content in parts:
        begin, length = sectors(address, len(content))
        card.flash_allow(begin, length)
        for at in range(begin, begin + length, SECTOR):
            card.flash_erase(at, SECTOR)
            progress.step(f"erased to {at + SECTOR:#x}")
        for at, data in pieces(address, content):
            card.flash_write(at, data)
            compare(at, data, card.flash_read(at, len(data)))
            progress.step(f"written to {at + len(data):#x}")
        card.flash_allow(0, 0)


def compare(address: int, wanted: bytes, found: bytes) -> None:
    if found != wanted:
        at = next(n for n in range(len(wanted)) if found[n] != wanted[n])
        raise CommandError(
            f"at {address + at:#x} the flash has {found[at]:#04x}, {wanted[at]:#04x} was written",
            "run it again; if that does not help, over JTAG: 'dibber flash FILE'",
        )


def steps(parts: Sequence[Part]) -> int:
    return sum(
        sectors(address, len(content))[1] // SECTOR + sum(1 for _ in pieces(address, content))
        for address, content in parts
    )


# Command ------------------------------------------------------------------------------------------


def flash(arguments: argparse.Namespace, board: Board, file: Path) -> int:
    if arguments.load:
        raise CommandError("a card that is up cannot load itself", "without a URI: over JTAG")
    content = files.read(file)
    plan = images.plan(board, content, arguments.golden)
    content = images.bits(content)
    parts = [(address, content if part is None else part) for address, part in plan]
    which = "golden" if arguments.golden else "user"
    address = parts[0][0]
    if arguments.show:
        for at, data in parts:
            begin, length = sectors(at, len(data))
            print(
                f"erase {begin:#x} to {begin + length:#x}; write {len(data)} bytes at {at:#x}, "
                f"its first page last; read back"
            )
        return 0
    if board.golden is None:
        errors.warn(
            f"{board.name} has one image: when this is cut short, JTAG alone helps", arguments.json
        )
    began = time.monotonic()
    with libdibber.Card(arguments.uri, observe=True) as card:
        info = check(card, board, file)
        progress = output.Progress(steps(parts), shown=not arguments.json)
        try:
            write(card, parts, progress)
        finally:
            progress.clear()
    if arguments.json:
        print(
            json.dumps(
                {
                    "uri": arguments.uri,
                    "board": board.name,
                    "file": str(file),
                    "image": which,
                    "address": address,
                    "bytes": len(content),
                    "flash": {"jedec": f"{info.jedec:06x}", "bytes": info.bytes},
                    "seconds": round(time.monotonic() - began, 3),
                    "starts": STARTS,
                },
                indent=2,
            )
        )
    else:
        print(
            f"{board.name}: {file.name} is the {which} image at {address:#x}: {len(content)} "
            f"bytes written and read back"
        )
        print(f"It starts {STARTS}.")
    return 0
