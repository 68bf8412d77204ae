"""How fast the simulator is: cycles of each card a second of wall time, harness and host model
included.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import subprocess

from dibber_cli import paths
from dibber_cli.bench import session, stride
from dibber_cli.errors import CommandError

STRIDES = (2, 8, 32)
# below build/sim: the bare model, run for some seconds; prints JSON
REFERENCE = "reference-speed"


def of_stride(profile, seed):
    """Cycles a second and card during the stride benchmark with both sides strided."""
    points = stride.points(("put-both-strided",), STRIDES)
    _, _, stats = session.measure(profile, seed, points)
    return json.loads(stats)["cycles_per_second_per_card"]


def of_reference(profile):
    """Cycles a second of a bare VexRiscv + LitePCIe model of the profile's data width; None when it
    is not built.
    """
    binary = paths.BUILD / "sim" / f"{REFERENCE}-{profile.data_width}"
    if not binary.exists():
        return None
    result = subprocess.run([str(binary)], capture_output=True, encoding="utf-8", errors="replace")
    if result.returncode:
        raise CommandError(f"{binary}: {result.stderr.strip()}")
    return json.loads(result.stdout)["cycles_per_second"]
