#!/usr/bin/env python3
"""Random rings and pairs of rings of bare nodes with stalls, code errors and cut cables.

Each packet must be accepted once, in order and unchanged, or be reported. The first batch also has
pairs that are cut under full load and healed.

    python tests/soak/ring.py [--runs N] [--seed S] [--batch B]
"""

# SPDX-License-Identifier: BSD-2-Clause

import random
import sys

from dibber_cli.pipe import quiet

from tests.gateware.fabric import ring_bench
from tests.soak.batches import Soak

FAULTS = ("twice", "disordered", "changed")


# One run in so many is a pair of rings.
PAIR_RUNS = 4


def kind_of(options, name):
    """The hardest fault of a run."""
    fault = next((name for name in ("cuts", "errors", "stall") if options[name]), "none")
    return f"{name}, {fault}"


def random_run(program, run, options, name):
    result = run(program, **options)
    faults = [f"{result[fault]} {fault}: {options}" for fault in FAULTS if result[fault]]
    if result["failed"] and not faults:
        faults = [f"{result['missing']} missing, {result['reported']} reported: {options}"]
    return kind_of(options, name), faults


def cut_run(program, options):
    faults = ring_bench.cut_faults(options, ring_bench.run_pair(program, **options))
    return "pair, full load", [f"{fault}: {options}" for fault in faults]


def batch(seed, number, runs):
    ring, pair = ring_bench.build(), ring_bench.build("ring_pair")
    points = [] if number else ring_bench.CUTS[:runs]
    for options in points:
        yield cut_run(pair, options)
    for run in range(len(points), runs):
        choose = random.Random(f"{seed}/{number}/{run}")
        if run % PAIR_RUNS:
            yield random_run(ring, ring_bench.run, ring_bench.faulty(choose), "ring")
        else:
            yield random_run(pair, ring_bench.run_pair, ring_bench.faulty_pair(choose), "pair")


def main():
    soak = Soak(__doc__.split("\n")[0], 50)
    for _ in soak.runs(batch):
        pass
    columns = ("runs", "failed")
    return soak.report(
        ["rings and hardest fault", *columns],
        lambda kind, counts: (kind, *(counts[name] for name in columns)),
        "each packet was accepted once, in order and unchanged, or was reported",
    )


if __name__ == "__main__":
    sys.exit(quiet(main))
