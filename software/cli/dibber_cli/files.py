"""Files that a user names: read whole, up to a limit, and with a reason when that fails."""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

from dibber_cli.errors import CommandError

MOST_BYTES = 64 << 20  # of a file, if the caller gives no limit of its own


def _descriptor(path: str | os.PathLike[str], name: str) -> int:
    """A descriptor of the file `path`. Raises OSError, and CommandError for what is no file."""
    try:
        # The open of a pipe without a writer waits, unless O_NONBLOCK is set.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # a path with a character 0
        raise OSError(errno.EINVAL, str(error)) from None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise CommandError(f"{name}: it is not a file")


@contextlib.contextmanager
def opened(path: str | os.PathLike[str], what: str = "") -> Iterator[BinaryIO]:
    """The file `path`, to be read; `what` stands before its name in messages.

    Raises CommandError if the file cannot be read, or if it is a folder, a pipe or a device: a pipe
    without a writer would hold the command, and some devices never end.
    """
    name = f"{what} {path}".strip()
    try:
        with os.fdopen(_descriptor(path, name), "rb") as file:
            yield file
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}") from None


def read(path: str | os.PathLike[str], what: str = "", most: int = MOST_BYTES) -> bytes:
    """The content of the file `path`. Raises CommandError as opened() does, and for a file of more
    than `most` bytes.
    """
    with opened(path, what) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise CommandError(f"{what} {path}: more than {most >> 20} MiB".strip())
    return content
