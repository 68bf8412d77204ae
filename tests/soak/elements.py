"""On a cable without errors no word is sent twice: element sizes by strides, on every machine,
alone and with eight users.

    python tests/soak/elements.py --machines gen1x1 "gen2x1 short" --length 65536
    python tests/soak/elements.py --sample 40 --seed 7

Each case is compared byte by byte, and the number of sent payload words with the payload. All
completions must come from the fast path, and each transfer must reach 90 % of its limit: the bound
(dibber_cli/bench/bound.py), or what walkers and tags of the card allow. Otherwise the exit code is
1. The smallest share of each element size is shown. A machine whose simulator is not built is
refused: `make simulator PROFILE=gen1x1`.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import sys

from dibber_cli.pipe import quiet

from tests.system.pair_elements import MACHINES, Case, grid, open_pair, run, sample

# Cases in which words were sent twice once: alone, on gen1x1.
FOUND = (Case(2, 26_776, -66), Case(1, 8000, 1000), Case(1, 60_000, 7), Case(1, 8000, 0, 7))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--machines",
        nargs="+",
        default=list(MACHINES),
        choices=list(MACHINES),
        metavar="MACHINE",
        help=f"of {', '.join(MACHINES)} (default all)",
    )
    parser.add_argument(
        "--length",
        type=int,
        default=12_288,
        help="bytes that all users of a case move together, at most",
    )
    parser.add_argument("--most", type=int, default=8192, help="elements, likewise")
    parser.add_argument(
        "--users",
        type=int,
        nargs="+",
        default=[1, 8],
        help="endpoints that transfer at once (default 1 8)",
    )
    parser.add_argument(
        "--sample", type=int, default=0, help="so many cases for each machine, in place of all"
    )
    parser.add_argument(
        "--found", action="store_true", help="the cases that were found first, in place of the grid"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="of the sample and of the simulator (default 1)"
    )
    arguments = parser.parse_args()

    how = dict(length=arguments.length, most=arguments.most, users=arguments.users)
    wrong = 0
    for machine in arguments.machines:
        cases = (
            FOUND
            if arguments.found
            else sample(arguments.seed, arguments.sample, **how)
            if arguments.sample
            else grid(**how)
        )
        least = {}
        with open_pair(machine, arguments.seed) as pair:
            for case in cases:
                outcome = run(pair, case)
                trouble = outcome.trouble(machine)
                share = outcome.share(machine)
                wrong += bool(trouble)
                least[case.size] = min(
                    least.get(case.size, (9, None)),
                    (share, case.source, case.target, case.users, case.way),
                )
                print(
                    f"{machine:13}{case.users} x {case.count:6} x {case.size:2} {case.way} "
                    f"{case.source:6} -> {case.target:6}  "
                    f"{outcome.sent:7} words  {100 * share:5.1f} %  {'; '.join(trouble)}",
                    flush=True,
                )
        for size, (share, source, target, users, way) in sorted(least.items()):
            print(
                f"{machine:13}{size:2} bytes: at least {100 * share:.1f} % of the limit ({users} "
                f"users, {way}, {source} -> {target})"
            )
    print(f"{wrong} cases are not as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(quiet(main))
