"""Common parts of the soak tests of faults: batches of runs, each with its own simulator process.
Runs are counted by kind, and can be repeated alone.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import collections
import json
import sys
import time

from dibber_cli import output


class Soak:
    """Runs in batches until there were enough.

    description : of the command line
    size        : runs of a batch
    kinds       : those that have a row in any case
    options     : more of the command line, {name: what add_argument() takes}
    """

    def __init__(self, description, size, kinds=(), options=None):
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--runs", type=int, default=1000)
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--batch", type=int, help="this one alone")
        parser.add_argument(
            "--size", type=int, default=size, help=f"runs of a batch (default {size})"
        )
        parser.add_argument("--json", action="store_true")
        for name, what in (options or {}).items():
            parser.add_argument(name, **what)
        self.arguments = parser.parse_args()
        self.kinds = collections.defaultdict(
            collections.Counter, {kind: collections.Counter() for kind in kinds}
        )
        self.failures = []
        self.done = 0
        self.begin = time.monotonic()

    def runs(self, batch):
        """batch(seed, number, runs) yields (kind, faults, whatever else) for each run; yields what
        is else, and counts the rest.

        The receiver may add its own rows to `kinds`.
        """
        arguments = self.arguments
        progress = output.Progress(arguments.runs, not arguments.json)
        number = arguments.batch or 0
        while self.done < arguments.runs:
            for n, (kind, faults, *more) in enumerate(
                batch(arguments.seed, number, min(arguments.size, arguments.runs - self.done))
            ):
                self.done += 1
                self.kinds[kind].update(runs=1, failed=int(bool(faults)))
                self.failures += [
                    {"batch": number, "run": n, "kind": kind, "fault": fault} for fault in faults
                ]
                yield kind, *more
                progress.step(f"batch {number}, {kind}")
            if not arguments.json and not sys.stderr.isatty():
                print(
                    f"batch {number}: {self.done} of {arguments.runs} runs, {len(self.failures)} "
                    f"faults",
                    file=sys.stderr,
                    flush=True,
                )
            number += 1
            if arguments.batch is not None:
                break
        progress.clear()

    def report(self, headings, row, good, about="", **more):
        """Print a table with row(kind, counts) for each kind, and the sentence `good` or the
        faults; return the exit code.
        """
        result = {
            "runs": self.done,
            "seed": self.arguments.seed,
            "kinds": self.kinds,
            **more,
            "failures": self.failures,
            "pass": not self.failures,
            "wall_seconds": round(time.monotonic() - self.begin, 1),
        }
        if self.arguments.json:
            print(json.dumps(result, indent=2))
            return 0 if result["pass"] else 1
        output.table(headings, [row(kind, counts) for kind, counts in self.kinds.items()])
        for failure in self.failures:
            print("batch {batch}, run {run}, {kind}: {fault}".format(**failure))
        print(
            f"{self.done} runs, seed {self.arguments.seed}{about}: "
            + (f"{len(self.failures)} faults" if self.failures else good)
        )
        return 0 if result["pass"] else 1
