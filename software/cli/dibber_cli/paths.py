"""Paths of the parts of this tree."""

# SPDX-License-Identifier: BSD-2-Clause

import hashlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from dibber.interface.sizes import PLACE

from dibber_cli.errors import CommandError

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build" / PLACE
PROFILES = ROOT / "hw" / "sim" / "profiles"
FIRMWARE = BUILD / "firmware" / "mcp.dibfw"


# Bytes of the simulated cards' SRAM for the control program: boards/sim.py.
SIMULATED_SRAM = 128 * 1024


def elf(sram_bytes: int = SIMULATED_SRAM) -> Path:
    """The control program's ELF, with its symbols, for cards with so much SRAM."""
    return FIRMWARE.parent / f"{sram_bytes >> 10}k" / "mcp.elf"


def simulator(profile: Any) -> Path:
    """The simulator for a profile: hw/sim/build.py makes one for each data width, clock, MTU,
    number of peers, width of BULK's words and fabric, and with a remote window.
    """
    clock = "" if profile.clock_hz == 125e6 else f"-{profile.clock_hz / 1e6:g}"
    ethernet = f"-mtu{profile.mtu}" if profile.mtu else ""
    ethernet += f"-peers{profile.peers}" if profile.peers > 1 else ""
    ethernet += "" if profile.bulk_width == 32 else f"-bulk{profile.bulk_width}"
    fabric = "" if profile.fabric == "direct" else f"-{profile.fabric}"
    window = "-window" if getattr(profile, "window", False) else ""
    return BUILD / "sim" / f"dibber-sim-{profile.data_width}{clock}{ethernet}{fabric}{window}"


# The run folder -----------------------------------------------------------------------------------


def run_directory() -> Path:
    """The folder of sockets, log and process number of the simulator that `dibber sim start` runs.
    Its path is short, because a socket's path has a limit.

    Its name can be predicted. So its files are only read and written through a RunFolder.
    """
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(base) / f"dibber-{os.getuid()}"


def _check_base(base: Path, name: str) -> None:
    """The parent of the run folder. No other user may move the run folder away from it."""
    try:
        found = os.stat(base)
    except OSError as error:
        raise CommandError(
            f"{name} is {base}: {error.strerror}", f"give {name} a folder of your own, or unset it"
        ) from None
    if not stat.S_ISDIR(found.st_mode):
        raise CommandError(
            f"{name} is {base}, which is not a folder",
            f"give {name} a folder of your own, or unset it",
        )
    if (
        found.st_uid not in (os.getuid(), 0)
        or found.st_mode & 0o022
        and not found.st_mode & stat.S_ISVTX
    ):
        raise CommandError(
            f"{name} is {base}, which belongs to another user or may be changed by one",
            f"give {name} a folder of your own, or unset it",
        )


def kept_of(uri: str, kind: str, ending: str) -> str:
    """The name of a file of the run folder: what is kept of the card `uri`."""
    return f"{kind}-{hashlib.sha256(os.fsencode(uri)).hexdigest()[:16]}.{ending}"


class RunFolder:
    """The run folder, opened after a check that only this user can use it. May be used in a `with`
    statement.

    create : make the folder if it does not exist

    Raises FileNotFoundError if it does not exist. Raises CommandError, which names it, if it is a
    symbolic link, no folder, another user's, or open to others. Files are opened relative to the
    descriptor of the checked folder. Symbolic links and all but plain files are refused.
    """

    def __init__(self, create: bool = False) -> None:
        self.path = run_directory()
        name = (
            "XDG_RUNTIME_DIR"
            if os.environ.get("XDG_RUNTIME_DIR")
            else "the folder for temporary files"
        )
        _check_base(self.path.parent, name)
        if create:
            try:
                os.mkdir(self.path, 0o700)
            except FileExistsError:
                pass
            except OSError as error:
                raise CommandError(
                    f"{name}: {self.path} cannot be made: {error.strerror}"
                ) from None
        try:
            self._folder = os.open(
                self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            )
        except FileNotFoundError:
            raise
        except OSError as error:
            raise CommandError(
                f"{self.path} is not a folder of yours ({error.strerror})", self._advice()
            ) from None
        found = os.fstat(self._folder)
        wrong = (
            "belongs to another user"
            if found.st_uid != os.getuid()
            else f"is open to other users (mode {stat.S_IMODE(found.st_mode):04o}; 0700 is needed)"
            if stat.S_IMODE(found.st_mode) & 0o077
            else ""
        )
        if wrong:
            self.close()
            raise CommandError(f"{self.path} {wrong}", self._advice())

    def _advice(self) -> str:
        return (
            "who made it could read and change what you simulate: remove it, or set "
            "XDG_RUNTIME_DIR to a folder of your own"
        )

    def close(self) -> None:
        os.close(self._folder)

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, name: str, mode: str = "rb") -> Any:
        """A plain file of the folder: "rb" to read it; "w+b" to write and read a new one that
        replaces the old one.
        """
        flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        if mode == "w+b":
            # A new file: no other process has it open, and it is no link to another place.
            self.unlink(name)
            return os.fdopen(
                os.open(
                    name, flags | os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self._folder
                ),
                mode,
            )
        try:
            file = os.open(name, flags | os.O_RDONLY, dir_fd=self._folder)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise CommandError(f"{self.path / name}: {error.strerror}") from None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise CommandError(f"{self.path / name} is not a plain file")
        return os.fdopen(file, mode)

    def read(self, name: str) -> bytes:
        """The bytes of a file. Raises FileNotFoundError."""
        with self.open(name) as file:
            return file.read()

    def write(self, name: str, data: bytes) -> None:
        """Make a file of these bytes; it replaces the old one."""
        with self.open(name, "w+b") as file:
            file.write(data)

    def unlink(self, name: str) -> None:
        """Remove the file of this name; of a link, the link and not its target."""
        try:
            os.unlink(name, dir_fd=self._folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise CommandError(f"{self.path / name} cannot be removed: {error.strerror}") from None
