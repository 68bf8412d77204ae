"""The Linux driver for long: calls at random, processes killed at random moments, a tree over NFS.

    python tests/soak/driver.py --calls 100000 --kills 200 --seed 7

One guest in QEMU with two simulated cards runs all. Exit code 1 when a call failed in a way that
docs/driver.md does not have, when anything was left pinned, when a copied file has other bytes, or
when the kernel complained.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import pathlib
import sys
import tempfile

from dibber_cli import machine
from dibber_cli.pipe import quiet

from tests.system.qemu import driver_guest

HOURS = 12 * 3600
TREE_BYTES = 2 << 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=100_000, metavar="N", help="calls at random")
    parser.add_argument("--kills", type=int, default=200, metavar="N", help="processes killed")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of all choices")
    arguments = parser.parse_args()
    counts = {"fuzz": arguments.calls, "lives": arguments.kills, "nfs": TREE_BYTES}
    with tempfile.TemporaryDirectory(prefix="dibber-driver-") as folder:
        console = driver_guest.boot(
            pathlib.Path(folder), arguments.seed, tuple(counts), counts, timeout=HOURS
        )
    said = machine.said(console)
    for line in console.splitlines():
        if line.startswith(("fuzz ", "kills ", "nfs ", "measured nfs")):
            print(line)
    failed = any(said[name] for name in ("0_fuzz", "1_lives", "2_nfs", "pinned"))
    failed = failed or driver_guest.complaints(console)
    if failed:
        print(console)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(quiet(main))
