"""Random transfers between two simulated cards, compared with a model byte by byte: the soak of
dibber_cli/soak, for hours.

    python tests/soak/transfers.py --count 20000 --seed 1 --profile gen2x4

Exit code 1 if there was any fault. The report then names the round, and `--rounds 17:18` runs this
round alone.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import sys
import time

from dibber_cli.pipe import quiet
from dibber_cli.soak.run import Soak

REPORTS = 10  # sentences about faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20_000, help="transfers (default 20,000)")
    parser.add_argument("--seed", type=int, default=1, help="of every random choice (default 1)")
    parser.add_argument("--profile", default="gen2x4", help="of hw/sim/profiles (default gen2x4)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="TABLE.KEY=VALUE", help="change the profile"
    )
    parser.add_argument("--ber", type=float, default=0.0, help="bit error rate of the cable")
    parser.add_argument("--rounds", metavar="A:B", help="only these rounds, from A to before B")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    arguments = parser.parse_args()

    options = [word for change in arguments.set for word in ("--set", change)]
    if arguments.ber:
        options += ["--ber", str(arguments.ber)]
    started = time.monotonic()
    shown = lambda text: print(
        f"\r{text}, {time.monotonic() - started:.0f} s ", end="", file=sys.stderr, flush=True
    )
    rounds = tuple(map(int, arguments.rounds.split(":"))) if arguments.rounds else None
    soak = Soak(arguments.count, arguments.seed, arguments.profile, options, rounds, shown).run()
    print(file=sys.stderr)

    report = soak.report()
    if arguments.json:
        print(json.dumps(report, indent=2))
    else:
        for key, value in report.items():
            if key not in ("operations", "trouble"):
                print(f"{key.replace('_', ' '):16}{value}")
        print(
            f"{'operations':16}"
            f"{', '.join(f'{n} {kind}' for kind, n in report['operations'].items())}"
        )
        for text in report["trouble"][:REPORTS]:
            print(text)
    return 1 if report["trouble"] else 0


if __name__ == "__main__":
    sys.exit(quiet(main))
