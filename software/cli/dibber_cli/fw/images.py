# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Which image a card was given last, so that a reset can give it again: a copy, whatever becomes of the file."""

import contextlib
import hashlib
import os

from pathlib import Path

from dibber_cli import paths
from dibber_cli.errors import CommandError


def _name(uri):
    return f"image-{hashlib.sha256(uri.encode()).hexdigest()[:16]}.dibfw"


def remember(uri, file):
    """`file` runs on the card now."""
    with paths.RunFolder(create=True) as folder:
        folder.write(_name(uri), Path(file).read_bytes())


@contextlib.contextmanager
def last(uri):
    """What `dibber fw load` gave the card last, else this tree's own: (path to load, name to show).

    The path leads to the file that was opened and checked, whatever becomes of its name.
    """
    with contextlib.ExitStack() as opened:
        try:
            folder = opened.enter_context(paths.RunFolder())
            file   = opened.enter_context(folder.open(_name(uri)))
            found  = Path(f"/proc/{os.getpid()}/fd/{file.fileno()}"), folder.path/_name(uri)
        except FileNotFoundError:
            if not paths.FIRMWARE.exists():
                raise CommandError(f"nothing is known that {uri} could be loaded with", "give an image: --image FILE") from None
            found = paths.FIRMWARE, paths.FIRMWARE
        yield found
