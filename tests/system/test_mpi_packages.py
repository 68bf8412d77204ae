"""Benchmarks of Debian's packages, unmodified, under `dibber mpirun`."""

# SPDX-License-Identifier: BSD-2-Clause

import re
import subprocess
import sys

# NetPIPE's line: number, bytes, repetitions, rate, microseconds of half a round trip.
LINE = re.compile(r"\s*\d+:\s+(\d+) bytes\s+\d+ times -->\s+([\d.]+) Mbps in\s+([\d.]+) usec")


def test_netpipe_measures_simulated_time(tmp_path, figure):
    done = subprocess.run(
        [sys.executable, "-P", "-m", "dibber_cli", "mpirun", "-n", "2", "NPopenmpi"]
        + ["-l", "8", "-u", "8192", "-n", "2", "-p", "0", "-o", tmp_path / "out"],
        timeout=300,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = {int(a): (float(b), float(c)) for a, b, c in LINE.findall(done.stderr)}
    assert {8, 1024, 8192} <= set(found), done.stderr
    assert figure(
        "netpipe-gen2x4-half-round-trip", found[8][1], "µs", at_most=2.0, profile="gen2x4"
    )
    for length, (megabits, microseconds) in found.items():
        assert 1 < microseconds < 100
        assert abs(megabits * microseconds - length * 8 / 1.048576) < 0.01 * length * 8 + 1
