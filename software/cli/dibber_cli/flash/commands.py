"""`dibber flash`: write a bitstream with its manifest to a board, over JTAG or through a running
card.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
from pathlib import Path

from dibber_cli import numbers, output
from dibber_cli.errors import CommandError, UsageError
from dibber_cli.flash import board as boards
from dibber_cli.flash import manifest, tools, up
from dibber_cli.intermixed import Command, Commands

# The name of a board in a manifest, if it differs from OpenOCD's: designs and variants of boards/.
MANIFEST_NAMES = {"cle215p": "cle-215", "cle215": "cle-215", "cle101": "cle-101"}


def board_of(name: str) -> boards.Board:
    """The board that a manifest names: `ecpix5_link` is an ecpix5, `acorn_cle215p` an
    acorn_cle-215.
    """
    for old, new in MANIFEST_NAMES.items():
        name = name.replace(old, new)
    known = [board for board in boards.names() if name == board or name.startswith(board + "_")]
    if not known:
        raise CommandError(f"the manifest's board '{name}' is not known", "name one: --board")
    return boards.find(max(known, key=len))


def bitstream(path: Path, golden: bool) -> Path:
    """A bitstream, or the only one in a folder that is (or is not) a golden image. For an ECP5 any
    bitstream can be the golden image, and no name marks it.
    """
    if not path.is_dir():
        return path
    manifest.check_run(path)
    found = sorted(path.glob("*.bit"))
    named = [file for file in found if file.stem.endswith("_golden")]
    found = named if golden and named else [file for file in found if file not in named]
    if len(found) != 1:
        raise CommandError(f"{path} has {len(found)} bitstreams", "name the file")
    return found[0]


def flash(arguments: argparse.Namespace) -> int:
    file = bitstream(arguments.file, arguments.golden)
    board = (
        boards.find(arguments.board)
        if arguments.board
        else board_of(str(manifest.check(file, None).get("board")))
    )
    manifest.check(file, board)
    if arguments.uri:
        return up.flash(arguments, board, file)
    if arguments.json:
        raise UsageError("there is JSON of cards that are up alone", "give the card's URI")
    if arguments.load:
        image = file.with_suffix(".svf") if board.family == "ecp5" else file
        manifest.check(image, board)
        tools.load(board, image, arguments.show)
        return 0
    tools.flash(board, file, arguments.golden, arguments.show)
    if not arguments.show and board.golden is not None:
        print(
            f"{board.name}: {file.name} is the {'golden' if arguments.golden else 'user'} image "
            f"at {board.room(arguments.golden)[0]:#x}"
        )
    return 0


def add_to(sub: Commands, command: Command) -> None:
    """Add `flash` to the command line; `command` is that of dibber_cli.main."""
    p = command(
        sub,
        "flash",
        flash,
        "Write a bitstream to the flash of a board. This goes over JTAG (openFPGALoader), or, "
        "with a URI, through the board's "
        "own card. With --load, load it into the FPGA (OpenOCD). The golden image, to which a "
        "board falls back, is "
        "written only with --golden.",
        [
            "dibber flash out/bitstream/ecpix5",
            "dibber flash uart:/dev/ttyUSB1 out/bitstream/ecpix5",
            "dibber flash uart:/dev/ttyUSB1 --golden out/bitstream/ecpix5_link",
            "dibber flash --load --board ecpix5 FOLDER/dibber_ecpix5.bit",
        ],
    )
    p.add_argument(
        "uri",
        metavar="URI",
        nargs="?",
        type=numbers.uri,
        help=f"card that writes its own flash: {output.URI}",
    )
    p.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="bitstream, or its folder; manifest.json lies beside it",
    )
    p.add_argument(
        "--board", metavar="NAME", help=f"{', '.join(boards.names())} (default: the manifest's)"
    )
    which = p.add_mutually_exclusive_group()
    which.add_argument("--golden", action="store_true", help="the file is the golden image")
    which.add_argument(
        "--load", action="store_true", help="load it only into the FPGA, until the power is off"
    )
    p.add_argument("--show", action="store_true", help="print the commands; change nothing")
