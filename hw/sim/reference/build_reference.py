#!/usr/bin/env python3
"""Build the programs with LitePCIe's own DMA in place of the card; a second run does nothing.

    python hw/sim/reference/build_reference.py    build/sim/litepcie-rate,
                                                  build/sim/reference-speed-128

Tools and flags are those of hw/sim/build.py. The last lines printed are the paths of the programs.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from build import (
    BUILD,
    CXXFLAGS,
    Ninja,
    Stamp,
    alone_in,
    common,
    interface_header,
    model_objects,
    run,
    verilate,
    verilator,
)

HERE = pathlib.Path(__file__).resolve().parent

# Program: data width, options of litepcie_top.py, source file.
PROGRAMS = {
    "litepcie-rate": (64, (), "litepcie_rate.cc"),
    "reference-speed-128": (128, ("--cpu",), "reference_speed.cc"),
}


def gateware(directory, data_width, options):
    """Verilog of the reference; the list of its files is directory/litepcie_reference.f."""
    script = HERE / "litepcie_top.py"
    stamp = Stamp(directory / "gateware.stamp", [script], (data_width, options))
    if not stamp.current():
        directory.mkdir(parents=True, exist_ok=True)
        run([sys.executable, script, "--data-width", data_width, *options, "--output", directory])
        stamp.set()


def build(names, jobs):
    root = verilator()[1]
    directory = BUILD / "reference"
    with alone_in(directory):
        ninja = Ninja(
            directory / "build.ninja",
            [interface_header(), root / "include", root / "include" / "vltstd"],
        )
        shared = common(jobs)
        for name in names:
            width, options, source = PROGRAMS[name]
            model = directory / f"{width}"
            gateware(model, width, options)
            output, _ = verilate(model, "litepcie_reference")
            flags = f" -isystem {output} -isystem {model} -DLITEPCIE_DATA_WIDTH={width}"
            ninja.program(
                BUILD / name,
                [
                    *shared.library,
                    *shared.run_time,
                    *model_objects(ninja, output, model, flags),
                    *ninja.objects([HERE / "litepcie.cc", HERE / source], CXXFLAGS + flags, model),
                ],
            )
        ninja.build(jobs)


def main():
    parser = argparse.ArgumentParser(description="Build the programs of the LitePCIe reference.")
    parser.add_argument("program", nargs="*", help=f"which of {', '.join(PROGRAMS)}; none: all")
    parser.add_argument("--jobs", default="2", help="compilers at once")
    args = parser.parse_args()
    names = args.program or list(PROGRAMS)
    if unknown := set(names) - set(PROGRAMS):
        parser.error(f"there is no program {', '.join(sorted(unknown))}")
    build(names, args.jobs)
    for name in names:
        print(BUILD / name)


if __name__ == "__main__":
    main()
