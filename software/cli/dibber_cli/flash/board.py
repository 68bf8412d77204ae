"""The entry of hw/openocd/boards.toml for each board."""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import pathlib
import tomllib
from collections.abc import Collection
from typing import Any

from dibber_cli import paths
from dibber_cli.errors import CommandError

FOLDER = paths.ROOT / "hw" / "openocd"


@dataclasses.dataclass(frozen=True)
class Board:
    """A table of that file. `golden` and `user` are None if there is room for only one image, and
    `loader` is None if the flash cannot be written.
    """

    name: str
    family: str
    part: str
    loader: list[str] | None = None
    flash: int = 0
    golden: int | None = None
    user: int | None = None
    jedec: Collection[str] = ()

    @property
    def config(self) -> pathlib.Path:
        """OpenOCD's configuration."""
        return FOLDER / f"{self.name}.cfg"

    def room(self, golden: bool) -> tuple[int, int]:
        """(address, bytes) of the place of an image."""
        if self.golden is None or self.user is None:
            return 0, self.flash
        begin, other = (self.golden, self.user) if golden else (self.user, self.golden)
        # The last page of an ECP5's flash has the jump, and is erased with its sector.
        return begin, (
            other if other > begin else self.flash - (SECTOR if self.family == "ecp5" else 0)
        ) - begin


PAGE = 256  # bytes, of every serial flash
SECTOR = 256 * 1024  # bytes, of the S25FL256S: no other has larger ones


def names() -> list[str]:
    return sorted(_tables())


def find(name: str) -> Board:
    tables = _tables()
    if name not in tables:
        raise CommandError(f"there is no board '{name}'", f"there are: {', '.join(sorted(tables))}")
    return Board(name, **tables[name])


def of(board: str, variant: str | None = None) -> Board:
    """The board of a file in boards/, with its variant if it has any. The speed grade makes no
    difference here.
    """
    return find(f"{board}_{variant.rstrip('+')}" if variant else board)


def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads((FOLDER / "boards.toml").read_text(encoding="utf-8"))
