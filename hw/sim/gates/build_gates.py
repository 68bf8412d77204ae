#!/usr/bin/env python3
"""Build the simulator whose cards are netlists; a second run does nothing.

    python hw/sim/gates/build_gates.py [dibber-sim-gates] [gates-run]    in build/sim; none named:
    both

The netlist itself is read when they run: hw/synthesis/gates.py makes it. The last lines printed are
the paths of the programs.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from build import BUILD, CXXFLAGS, Ninja, alone_in, common, interface_header

HERE = pathlib.Path(__file__).resolve().parent


# source of each beside the gates
PROGRAMS = {"dibber-sim-gates": HERE / "card.cc", "gates-run": HERE / "run.cc"}


def build(names, jobs):
    directory = BUILD / "gates"
    with alone_in(directory):
        ninja = Ninja(directory / "build.ninja", [interface_header()])
        gates = ninja.objects([HERE / "gates.cc"], CXXFLAGS, directory)
        for name in names:
            objects = ninja.objects([PROGRAMS[name]], CXXFLAGS, directory)
            if name == "dibber-sim-gates":
                shared = common(jobs)
                objects += [*shared.library, *shared.main]
            ninja.program(BUILD / name, [*gates, *objects])
        ninja.build(jobs)


def main():
    parser = argparse.ArgumentParser(description="Build the simulator whose cards are netlists.")
    parser.add_argument("program", nargs="*", help=f"which of {', '.join(PROGRAMS)}; none: all")
    parser.add_argument("--jobs", default="2", help="compilers at once")
    args = parser.parse_args()
    names = args.program or list(PROGRAMS)
    if unknown := set(names) - PROGRAMS.keys():
        parser.error(f"there is no program {', '.join(sorted(unknown))}")
    build(names, args.jobs)
    print(*[BUILD / name for name in names], sep="\n")


if __name__ == "__main__":
    main()
