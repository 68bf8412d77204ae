# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Fuzz the library's vfio-user client: what a simulator sends is changed at random, under sanitizers.

    python tests/fuzz/fuzz.py --runs 100000 --seed 1

Exit code 1 when a sanitizer spoke, a call did not return or memory was written that was not registered; what it said
names the run, and `--first N --runs 1` does that one again.
"""

import argparse
import os
import subprocess
import sys

from pathlib import Path

import sanitized

FOLDER  = Path(__file__).resolve().parent
PROGRAM = sanitized.ROOT/"build"/"fuzz-vfio-user"


def run(seed, runs, first=0):
    """Returns (exit code, what it said, {how far the program came: in how many runs})."""
    sanitized.build([FOLDER/"vfio_user.c", FOLDER/"main.c"], PROGRAM)
    done  = subprocess.run([PROGRAM, str(seed), str(runs), str(first)], capture_output=True, text=True,
                           env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"})
    names = ("runs", "card", "endpoint", "region", "end")
    return done.returncode, done.stderr, dict(zip(names, map(int, done.stdout.split())))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100_000, help="inputs (default 100,000)")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs (default 1)")
    parser.add_argument("--first", type=int, default=0, help="number of the first input (default 0)")
    arguments = parser.parse_args()
    code, said, reached = run(arguments.seed, arguments.runs, arguments.first)
    print(said, end="", file=sys.stderr)
    print(", ".join(f"{count} {name}" for name, count in reached.items()))
    return int(code != 0)


if __name__ == "__main__":
    sys.exit(main())
