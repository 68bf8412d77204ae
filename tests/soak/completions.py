#!/usr/bin/env python3
"""Random good and bad completions for each reader of host memory, at both widths, on the compiled
block models.

    python tests/soak/completions.py [--count N] [--seed S] [--reader NAME] [--width W]

Ends with an error in three cases: a byte was wrong with status OK; an operation failed although all
its completions were good; a counter did not agree with the sent completions.
docs/design/failures.md has the rules.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import time

from tests.gateware.models.unruly import READERS


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--count",
        type=int,
        default=100_000,
        help="completions for each reader at each width (default 100,000)",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--reader", choices=READERS, action="append", help="only this one; may be given again"
    )
    parser.add_argument(
        "--width", type=int, choices=(64, 128, 256), action="append", help="only this one, in bits"
    )
    args = parser.parse_args()
    for name in args.reader or READERS:
        for width in args.width or (64, 128, 256):
            start = time.monotonic()
            test, ended = READERS[name](width, args.count, args.seed)
            faults = sum(test.host.hits.values())
            print(
                f"{name:8} {width:3} bits: {test.host.taken:,} completions, {faults:,} of them "
                f"bad; {ended['good']:,} good and "
                f"{ended['failed']:,} failed; no wrong byte ({time.monotonic() - start:.0f} s)",
                flush=True,
            )


if __name__ == "__main__":
    main()
