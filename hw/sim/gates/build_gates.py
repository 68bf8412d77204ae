#!/usr/bin/env python3
# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Build the simulator whose cards are netlists; a second run does nothing.

    python hw/sim/gates/build_gates.py [dibber-sim-gates] [gates-run]    in build/sim; none named: both

The netlist itself is read when they run: hw/synthesis/gates.py makes it. The last lines printed are the paths of the programs.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from build import BUILD, CXXFLAGS, SIM, Ninja, alone_in, interface_header, library

HERE = pathlib.Path(__file__).resolve().parent


def programs():
    """Sources of each, but for the gates."""
    return {"dibber-sim-gates": [*library(), SIM/"main.cc", HERE/"card.cc"], "gates-run": [HERE/"run.cc"]}


def build(names, jobs):
    directory = BUILD/"gates"
    with alone_in(directory):
        ninja = Ninja(directory/"build.ninja", [interface_header()])
        gates = ninja.objects([HERE/"gates.cc"], CXXFLAGS, directory)
        for name, sources in programs().items():
            ninja.program(BUILD/name, [*gates, *ninja.objects(sources, CXXFLAGS, directory)])
        ninja.build(jobs, [BUILD/name for name in names])


def main():
    parser = argparse.ArgumentParser(description="Build the simulator whose cards are netlists.")
    parser.add_argument("program", nargs="*", help=f"which of {', '.join(programs())}; none: all")
    parser.add_argument("--jobs", default="2", help="compilers at once")
    args  = parser.parse_args()
    names = args.program or list(programs())
    if unknown := set(names) - programs().keys():
        parser.error(f"there is no program {', '.join(sorted(unknown))}")
    build(names, args.jobs)
    print(*[BUILD/name for name in names], sep="\n")


if __name__ == "__main__":
    main()
