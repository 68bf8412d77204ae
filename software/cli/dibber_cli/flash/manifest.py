"""The manifest beside a bitstream, and the checks against it."""

# SPDX-License-Identifier: BSD-2-Clause

import hashlib
import json
import pathlib
from typing import Any

from dibber_cli import files
from dibber_cli.errors import CommandError
from dibber_cli.flash.board import Board


def check_run(folder: pathlib.Path) -> None:
    """Raise CommandError if `folder` is a project of 'make bitstream' that was not run, and so has
    no bitstream yet.
    """
    if (folder / "run.sh").exists() and not (folder / "manifest.json").exists():
        raise CommandError(
            f"the project in {folder} was not run, or it failed: it has no bitstream",
            f"run {folder / 'run.sh'} where its tools are (Vivado or openXC7), and bring the "
            f"folder back",
        )


def check(file: pathlib.Path, board: Board | None) -> dict[str, Any]:
    """The manifest of a bitstream, as a dictionary. Raises CommandError if this bitstream must not
    go into that board.

    file  : Path of a bitstream; `manifest.json` lies beside it
    board : board.Board, or None: any
    """
    beside = file.parent / "manifest.json"
    check_run(file.parent)
    if not beside.exists():
        raise CommandError(
            f"{beside} is not there",
            "a bitstream of 'make bitstream' has one; what has none is not flashed",
        )
    try:
        manifest = json.loads(files.read(beside))
        part, hashes, clocks = manifest["part"], manifest["files"], manifest["clocks"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CommandError(f"{beside} is no manifest: {error!r}") from error
    if not file.exists():
        raise CommandError(
            f"{file} is not there", f"the manifest knows {', '.join(sorted(hashes))}"
        )
    if file.name not in hashes:
        raise CommandError(
            f"{file.name} is not in {beside}", f"it knows {', '.join(sorted(hashes))}"
        )
    if hashlib.sha256(files.read(file)).hexdigest() != hashes[file.name]:
        raise CommandError(
            f"{file} is not the one that its manifest was made for: the hash differs",
            "make it again, or copy both",
        )
    if missed := [clock["clock"] for clock in clocks if not clock["met"]]:
        raise CommandError(
            f"{file.name}: {', '.join(missed)} missed the time",
            "it may work, or not: it is not flashed",
        )
    if board and not part.lower().startswith(board.part.lower()):
        raise CommandError(f"{file.name} is for an {part}, {board.name} has an {board.part}")
    return manifest
