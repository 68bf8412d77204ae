"""Bonding over the network device for long: two cards a side, and a cable that is pulled.

    python tests/soak/bond.py --seed 7

One guest in QEMU with four simulated cards runs tests/system/qemu/driver_bond.c. Exit code 1 when a
stream did not come to its end, or when the kernel complained.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import pathlib
import sys
import tempfile

from dibber_cli import machine
from dibber_cli.pipe import quiet

from tests.system.qemu import driver_guest

HOUR = 3600


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of all choices")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dibber-bond-") as folder:
        console = driver_guest.boot(
            pathlib.Path(folder), arguments.seed, ("bond",), timeout=HOUR, cards=4
        )
    said = machine.said(console)
    for line in console.splitlines():
        if line.startswith(("bond ", "measured bond")):
            print(line)
    failed = said["0_bond"] or said["pinned"] or driver_guest.complaints(console)
    if failed:
        print(console)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(quiet(main))
