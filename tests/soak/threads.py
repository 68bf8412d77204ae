"""All endpoints of two simulated cards at once, each driven by its own thread, every byte compared:
see threads.c.

    python tests/soak/threads.py --seconds 300 --seed 1 [--sanitizer thread]

Exit code 1 if a byte was wrong, a call failed, or a sanitizer reported an error.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from dibber_cli import paths, profile
from dibber_cli.pipe import quiet
from dibber_cli.simulator import Pair

from tests.fuzz import sanitized

SOURCE = Path(__file__).resolve().with_suffix(".c")
LIMIT = 300  # seconds that a batch and the end may take


def run(seconds, seed=1, sanitizer="", profile_name="gen2x4"):
    """One batch at least, and more for so many seconds of wall time. Returns a report; `trouble`
    has the faults.
    """
    program = sanitized.build(
        [SOURCE], paths.BUILD / f"threads{sanitizer and '-' + sanitizer}", sanitizer
    )
    with Pair(profile.load(profile_name), seed=seed) as pair:
        begun = time.monotonic()
        done = subprocess.run(
            [program, paths.FIRMWARE, *pair.uris, str(seed), str(seconds)],
            capture_output=True,
            text=True,
            timeout=seconds + LIMIT,
        )
        took = time.monotonic() - begun
    counts = dict(zip(("rounds", "bytes", "notices", "bytes_wrong"), map(int, done.stdout.split())))
    return {
        "seconds": round(took, 1),
        "seed": seed,
        "profile": profile_name,
        "sanitizer": sanitizer,
        **counts,
        "exit_code": done.returncode,
        "trouble": done.stderr,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=300, help="of wall time (default 300)")
    parser.add_argument("--seed", type=int, default=1, help="of every random choice (default 1)")
    parser.add_argument("--profile", default="gen2x4", help="of hw/sim/profiles (default gen2x4)")
    parser.add_argument(
        "--sanitizer",
        choices=["thread", "address"],
        default="",
        help="build library and program with it",
    )
    arguments = parser.parse_args()
    report = run(arguments.seconds, arguments.seed, arguments.sanitizer, arguments.profile)
    print(json.dumps(report, indent=2))
    return int(report["exit_code"] != 0)


if __name__ == "__main__":
    sys.exit(quiet(main))
