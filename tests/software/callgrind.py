"""Instructions by Valgrind's callgrind, of programs with the static library on the mock card."""

# SPDX-License-Identifier: BSD-2-Clause

import collections
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIB = ROOT / "build" / "lib"


def build(source, path):
    """A program of this folder with the static library, so calls do not pass the dynamic linker."""
    subprocess.run(
        [
            "cc",
            "-std=c11",
            "-O2",
            "-Wall",
            "-Werror",
            f"-I{ROOT}/software/lib/include",
            f"-I{ROOT}/build/generated",
            "-o",
            path,
            pathlib.Path(__file__).parent / source,
            LIB / "libdibber.a",
            "-pthread",
        ],
        check=True,
    )
    return path


def run(folder, command, collect=None):
    """Run a program. Returns its Profile, of function `collect` alone if that is given."""
    out = folder / "callgrind"
    # Without debug information from servers, because none is needed.
    done = subprocess.run(
        [
            "valgrind",
            "--tool=callgrind",
            "--compress-strings=no",
            "--compress-pos=no",
            f"--callgrind-out-file={out}",
            *([f"--toggle-collect={collect}"] if collect else []),
            *command,
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "DEBUGINFOD_URLS": ""},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return Profile(out.read_text())


class Profile:
    """Only the lines of calls in the format matter (Valgrind's manual, "Callgrind Format
    Specification"): caller, callee, number, and then, after its position, the cost of the calls.

    Attributes
    ----------
    total : instructions
    edges : {(caller, callee): (calls, instructions with all that the callee called)}
    """

    def __init__(self, text):
        self.edges, lines = collections.defaultdict(lambda: (0, 0)), iter(text.splitlines())
        for line in lines:
            if line.startswith("fn="):
                caller = line[3:]
            elif line.startswith("cfn="):
                callee = line[4:]
            elif line.startswith("calls="):
                calls, cost = self.edges[caller, callee]
                self.edges[caller, callee] = (
                    calls + int(line[6:].split()[0]),
                    cost + int(next(lines).split()[1]),
                )
            elif line.startswith(("totals:", "summary:")):
                self.total = int(line.split()[1])

    def inclusive(self, function):
        """(calls, instructions) of a function, from all callers."""
        found = [cost for (_, callee), cost in self.edges.items() if callee == function]
        return sum(calls for calls, _ in found), sum(cost for _, cost in found)
