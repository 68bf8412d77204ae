"""The simulator's memory over a long run: one card, and a pair, at rest.

    python tests/soak/resident.py --seconds 60 [--hour]

Each of two programs, the simulator of the cards and the one with a card in C++, runs for so many
seconds of wall time. With --hour the latter also runs for an hour of simulated time, at the slowest
clock that a profile may have; that takes some 30 minutes of CPU time for one card.

Exit code 1 when a program has grown.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from dibber_cli import paths
from dibber_cli.pipe import quiet

from tests.system.host_model.resident import resident
from tests.system.host_model.vfio_client import Client

ROOT = pathlib.Path(__file__).resolve().parents[2]

PROFILE = ROOT / "hw" / "sim" / "profiles" / "gen2x4.toml"
GROWTH = 256 << 10  # bytes
HOUR = 3600 * 10**12  # ps
# 9e9 cycles an hour in place of 4.5e11. A latency may not be below one clock.
SLOW = [
    "card.clock_mhz=2.5",
    "link.rate_gbps=0.1",
    "link.transmit_ns=2000",
    "pcie.posted_up_ns=2000",
    "pcie.posted_down_ns=2000",
    "pcie.read_latency_ns=4000",
    "pcie.credit_return_ns=2000",
]


def measure(program, cards, run, settings=()):
    """Bytes that `program` grows by in `run(client)`, which gets a client of card 0."""
    with tempfile.TemporaryDirectory(prefix="resident") as directory:
        options = [word for setting in settings for word in ("--set", setting)]
        process = subprocess.Popen(
            [
                program,
                "--profile",
                PROFILE,
                "--socket-dir",
                directory,
                "--participants",
                "1",
                "--cards",
                str(cards),
                *options,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            if process.stdout.readline() != "ready\n":
                raise RuntimeError(f"{program} did not start")
            client = Client(pathlib.Path(directory) / "card0.sock", timeout=24 * 3600)
            client.wait(deadline=10**9)
            before = resident(process)
            run(client)
            return resident(process) - before
        finally:
            process.kill()
            process.wait()


def rest(seconds):
    """A step that lets simulated time go on for so many seconds of wall time."""

    def run(client):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            client.wait(deadline=10**9)

    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--seconds", type=float, default=60, help="of wall time for each run (default 60)"
    )
    parser.add_argument("--hour", action="store_true", help="also an hour of simulated time")
    arguments = parser.parse_args()
    subprocess.run(
        [sys.executable, ROOT / "hw" / "sim" / "build.py", "--test"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    programs = [paths.BUILD / "sim" / "dibber-sim-128", paths.BUILD / "sim" / "dibber-sim-test"]
    grown = {
        f"{program.name}, {cards} card{'s' * (cards > 1)}": measure(
            program, cards, rest(arguments.seconds)
        )
        for program in programs
        for cards in (1, 2)
    }
    if arguments.hour:
        grown["dibber-sim-test, 1 card, an hour of simulated time"] = measure(
            programs[1], 1, lambda client: client.wait(deadline=HOUR), SLOW
        )
    print(json.dumps({"bytes_grown": grown}, indent=2))
    return int(any(bytes > GROWTH for bytes in grown.values()))


if __name__ == "__main__":
    sys.exit(quiet(main))
