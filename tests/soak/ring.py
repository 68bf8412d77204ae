#!/usr/bin/env python3
"""Random rings of bare nodes with stalls, code errors and cut cables; each packet must be accepted
once, in order and unchanged, or be reported.

    python tests/soak/ring.py [--runs N] [--seed S] [--batch B]
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import random
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

from batches import Soak  # noqa: E402
from dibber_cli.pipe import quiet  # noqa: E402
from gateware.fabric import ring_bench  # noqa: E402

FAULTS = ("twice", "disordered", "changed")


def kind_of(options):
    """The hardest fault of a run."""
    return next((name for name in ("cuts", "errors", "stall") if options[name]), "none")


def batch(seed, number, runs):
    program = ring_bench.build()
    for run in range(runs):
        options = ring_bench.faulty(random.Random(f"{seed}/{number}/{run}"))
        result = ring_bench.run(program, **options)
        faults = [f"{result[name]} {name}: {options}" for name in FAULTS if result[name]]
        if result["failed"] and not faults:
            faults = [f"{result['missing']} missing, {result['reported']} reported: {options}"]
        yield kind_of(options), faults


def main():
    soak = Soak(__doc__.split("\n")[0], 50, ("none", "stall", "errors", "cuts"))
    for _ in soak.runs(batch):
        pass
    columns = ("runs", "failed")
    return soak.report(
        ["hardest fault", *columns],
        lambda kind, counts: (kind, *(counts[name] for name in columns)),
        "each packet was accepted once, in order and unchanged, or was reported",
    )


if __name__ == "__main__":
    sys.exit(quiet(main))
