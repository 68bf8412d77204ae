"""C programs with the library of this tree, both built with one of the compiler's sanitizers."""

# SPDX-License-Identifier: BSD-2-Clause

import fcntl
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIB = ROOT / "software" / "lib"
FLAGS = {
    "": ["-O2", "-g"],
    "thread": ["-O1", "-g", "-fsanitize=thread"],
    "address": ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
}


def build(sources, program, sanitizer="address", options=()):
    """Compile `sources` to the file `program`, with the static library, which is built first if it
    is not up to date.
    """
    folder = ROOT / "build" / (f"lib-{sanitizer}" if sanitizer else "lib-plain")
    flags = FLAGS[sanitizer]
    library = folder / "libdibber.a"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:  # tests may run side by side
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(
            [
                "make",
                "-s",
                "-C",
                LIB,
                f"BUILD={folder}",
                f"CFLAGS={' '.join(flags)}",
                f"PYTHON={sys.executable}",
                library,
            ],
            check=True,
        )
        subprocess.run(
            [
                "cc",
                "-std=gnu11",
                "-Wall",
                "-Wextra",
                "-Werror",
                *flags,
                f"-I{LIB}/include",
                f"-I{LIB}/src",
                f"-I{ROOT}/build/generated",
                *options,
                "-o",
                program,
                *sources,
                library,
                "-pthread",
            ],
            check=True,
        )
    return program
