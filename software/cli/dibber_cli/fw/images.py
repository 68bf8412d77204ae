# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Which image a card was given last, so that a reset can give it again: a copy, whatever becomes of the file."""

import hashlib
import shutil

from dibber_cli import paths
from dibber_cli.errors import CommandError


def _copy_of(uri):
    return paths.run_directory()/f"image-{hashlib.sha256(uri.encode()).hexdigest()[:16]}.dibfw"


def remember(uri, file):
    """`file` runs on the card now."""
    copy = _copy_of(uri)
    copy.parent.mkdir(mode=0o700, exist_ok=True)
    shutil.copyfile(file, copy)


def last(uri):
    """What `dibber fw load` gave the card last, else this tree's own."""
    for path in (_copy_of(uri), paths.FIRMWARE):
        if path.exists():
            return path
    raise CommandError(f"nothing is known that {uri} could be loaded with", "give an image: --image FILE")
