"""The image that was loaded into a card last, for a reset: a copy, which does not depend on the
file.
"""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from dibber_cli import files, paths
from dibber_cli.errors import CommandError

ELF = b"\x7fELF"
SHOWN = "build/firmware/mcp.dibfw"  # the image of this tree, in messages


def _name(uri: str) -> str:
    return paths.kept_of(uri, "image", "dibfw")


def remember(uri: str, file: str | os.PathLike[str]) -> None:
    """Remember that `file` runs on the card now."""
    with paths.RunFolder(create=True) as folder:
        folder.write(_name(uri), files.read(file))


def check(file: str | os.PathLike[str]) -> None:
    """Raise CommandError, which says what to load, if `file` does not exist, is no file, or is the
    ELF beside an image.
    """
    path = Path(file)
    if not path.exists():
        raise CommandError(f"there is no file {file}", f"'make firmware' makes {SHOWN}")
    if path.is_dir():
        raise CommandError(f"{file} is a folder", f"name the image in it: {SHOWN}, say")
    with files.opened(file) as content:
        is_elf = content.read(len(ELF)) == ELF
    if is_elf:
        found = next(
            (
                image
                for image in (path.with_suffix(".dibfw"), path.parent.parent / "mcp.dibfw")
                if image.exists()
            ),
            SHOWN,
        )
        raise CommandError(
            f"{file} is an ELF file, for a debugger; a card takes an image", f"load {found}"
        )


@contextlib.contextmanager
def last(uri: str) -> Iterator[tuple[Path, Path]]:
    """The image that `dibber fw load` loaded last, else this tree's own: (path to load, name to
    show).

    The path leads to the opened and checked file, even if its name changes.
    """
    with contextlib.ExitStack() as opened:
        try:
            folder = opened.enter_context(paths.RunFolder())
            file = opened.enter_context(folder.open(_name(uri)))
            found = Path(f"/proc/{os.getpid()}/fd/{file.fileno()}"), folder.path / _name(uri)
        except FileNotFoundError:
            if not paths.FIRMWARE.exists():
                raise CommandError(
                    f"nothing is known that {uri} could be loaded with",
                    "give an image: --image FILE",
                ) from None
            found = paths.FIRMWARE, paths.FIRMWARE
        yield found
