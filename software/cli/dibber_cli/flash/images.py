"""Two images in one flash: how to recognize a golden one, and the jump from one to the other."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber_cli.errors import CommandError
from dibber_cli.flash.board import PAGE, Board

# ECP5 ---------------------------------------------------------------------------------------------

# Lattice TN1216; the bytes are those of Project Trellis' ecpmulti.
PREAMBLE = bytes.fromhex("ffffbdb3")
CONTROL = 0x22  # LSC_PROG_CNTRL0
JUMP = 0x7E
READ_SLOWLY = 0x03  # a command that every flash knows


def jump(address: int) -> bytes:
    """The page at the end of an ECP5's flash: a jump to that address."""
    page = b"\xff" * 16 + PREAMBLE + b"\xff" * 4 + bytes([CONTROL, *bytes(7)])
    page += bytes([JUMP, 0, 0, 0, READ_SLOWLY]) + address.to_bytes(3, "big") + b"\xff" * 18
    return page.ljust(PAGE, b"\xff")


def jumps_to(page: bytes) -> int | None:
    """The address in such a page, or None."""
    at = page.find(bytes([JUMP, 0, 0, 0, READ_SLOWLY]), page.find(PREAMBLE))
    return int.from_bytes(page[at + 5 : at + 8], "big") if PREAMBLE in page and at >= 0 else None


# 7 series -----------------------------------------------------------------------------------------

# UG470, tables 5-20 to 5-25: configuration packets.
SYNC = bytes.fromhex("aa995566")
CMD, WBSTAR = 0b00100, 0b10000
IPROG = 0b01111
TYPE_1, WRITE = 0b001, 0b10


def goes_on_at(content: bytes) -> int | None:
    """The address to which a bitstream of a 7-series part jumps (WBSTAR, then IPROG), or None."""
    at, address = content.find(SYNC) + len(SYNC), None
    if at < len(SYNC):
        raise CommandError("this is no bitstream of a 7-series part: it has no sync word")
    while at + 4 <= len(content):
        head = int.from_bytes(content[at : at + 4], "big")
        if head >> 29 != TYPE_1:
            return None  # the frames begin, or the end
        register, count = head >> 13 & 0x3FFF, head & 0x7FF
        data = int.from_bytes(content[at + 4 : at + 8], "big")
        if head >> 27 & 3 == WRITE and count == 1:
            if register == WBSTAR:
                address = data & 0x1FFFFFFF
            if register == CMD and data == IPROG:
                return address
        at += 4 + 4 * count
    return None


# Vivado writes before the bits: a head, then fields of a letter and two bytes of length. `e` has
# four, and the bits follow.
HEAD = bytes.fromhex("00090ff00ff00ff00ff0000001")


def bits(content: bytes) -> bytes:
    """The bytes of a file for the FPGA's flash. An ECP5 takes a .bit file unchanged; for a 7-series
    part the head is left out.
    """
    if not content.startswith(HEAD):
        return content
    at = len(HEAD)
    while content[at : at + 1] in (b"a", b"b", b"c", b"d"):
        at += 3 + int.from_bytes(content[at + 1 : at + 3], "big")
    length = int.from_bytes(content[at + 1 : at + 5], "big")
    found = content[at + 5 : at + 5 + length]
    if content[at : at + 1] != b"e" or len(found) != length:
        raise CommandError("this .bit file ends too early, or has other fields than Vivado's")
    return found


# What goes where ----------------------------------------------------------------------------------


def plan(board: Board, content: bytes, golden: bool) -> list[tuple[int, bytes | None]]:
    """[(address, bytes or None)] to write for an image; None stands for the image itself.

    Raises CommandError if the image does not fit, or is not of the kind for this place.
    """
    if golden and board.golden is None:
        raise CommandError(
            f"{board.name}: the flash has room for one image, there is no golden one"
        )
    address, room = board.room(golden)
    if len(content) > room:
        raise CommandError(
            f"{len(content)} bytes do not fit into the {room} at {address:#x}",
            "smaller: compressed, or the link alone (DESIGN=link)",
        )
    parts: list[tuple[int, bytes | None]] = [(address, None)]
    if board.family == "ecp5":
        if PREAMBLE not in content[:1024]:
            raise CommandError("this is no bitstream of an ECP5: it has no preamble")
        if golden and board.golden is not None:
            parts.append((board.flash - PAGE, jump(board.golden)))
    elif board.golden is not None:
        then = goes_on_at(content)
        if golden and then != board.user:
            raise CommandError(
                f"this is no golden image: it does not go on at {board.user:#x}",
                "it is the one that ends in _golden.bit",
            )
        if not golden and then is not None:
            raise CommandError(
                f"this image goes on at {then:#x}: it is a golden one",
                "give the other one, or --golden",
            )
    return parts
