# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The command line of a board that Vivado builds: make the project, run it where Vivado is, load, flash."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

import bitstream
import flow

from boards.target import OPENOCD

OUT = flow.ROOT/"out"/"vivado"

# How openFPGALoader reaches the flash, for each variant of a board: cable, and the part, whose package chooses the bridge. The VC707's
# flash is parallel, which it does not write.
LOADER = {
    "acorn":    {"cle-101":  ["--cable", "ft232", "--fpga-part", "xc7a100tfgg484"],
                 "cle-215":  ["--cable", "ft232", "--fpga-part", "xc7a200tfbg484"],
                 "cle-215+": ["--cable", "ft232", "--fpga-part", "xc7a200tfbg484"]},
    "kc705":    {None: ["--cable", "digilent", "--fpga-part", "xc7k325tffg900"]},
    "stlv7325": {None: ["--cable", "ft4232", "--fpga-part", "xc7k325tffg676"]},
    "vc707":    {},
}

RUN = """#!/bin/sh
# From this project to a bitstream, with Vivado on the PATH; ends with 1 when a path missed its time.
set -eu
cd "$(dirname "$0")"
vivado -mode batch -notrace -source {top}.tcl
"""

# After routing: `write_bitstream` would write one that is too slow as well.
GATE = [
    "if {{[get_property SLACK [get_timing_paths -delay_type max]] < 0}} {{error \"setup: a path misses its time\"}}",
    "if {{[get_property SLACK [get_timing_paths -delay_type min]] < 0}} {{error \"hold: a path misses its time\"}}",
]

# Project ------------------------------------------------------------------------------------------

def generate(folder, top, platform, design):
    """Verilog, XDC, Tcl and `run.sh` of `design` in `folder`; names of the Verilog sources, and of memory contents."""
    platform.toolchain.bitstream_commands[:0] = GATE
    sources, data = bitstream.generate(folder, top, platform, design)
    tcl = folder/f"{top}.tcl"
    # Sources were copied here; the project may be taken to where Vivado is.
    text = tcl.read_text()
    for path, *_ in platform.sources:
        text = text.replace(f"{{{path}}}", f"{{{pathlib.Path(path).name}}}")
    tcl.write_text(text)
    (folder/f"build_{top}.sh").unlink()
    run = folder/"run.sh"
    run.write_text(RUN.format(top=top))
    run.chmod(0o755)
    return sources, data


def build(name, platform, design):
    """The project in out/vivado/name, and the bitstream where Vivado is installed; else the program ends."""
    folder = OUT/name
    generate(folder, f"dibber_{name}", platform, design)
    shown = folder.relative_to(flow.ROOT)
    if shutil.which("vivado") is None:
        sys.exit(f"{name}: the Vivado project is in {shown}; Vivado is not on the PATH. Where it is: {shown}/run.sh")
    subprocess.run([folder/"run.sh"], check=True)

# Command Line -------------------------------------------------------------------------------------

def files(name, suffix):
    """The bitstream of a design; the program ends when it was not made yet."""
    file = OUT/name/f"dibber_{name}.{suffix}"
    if not file.exists():
        sys.exit(f"{file.relative_to(flow.ROOT)} is not there: --build it with Vivado first")
    return file


def load(board, variant, name):
    """Into the FPGA, until the power goes."""
    bit = files(name, "bit")
    config = f"{board}_{variant.rstrip('+')}" if variant else board
    subprocess.run(["openocd", "-f", OPENOCD/f"{config}.cfg", "-c", f"init; check_part; pld load 0 {bit}; exit"], check=True)


def flash(board, variant, name):
    """Into the board's flash."""
    if variant not in LOADER[board]:
        sys.exit(f"{board}: openFPGALoader does not write this board's flash")
    subprocess.run(["openFPGALoader", *LOADER[board][variant], "--write-flash", "--verify", files(name, "bit")], check=True)


def main(board, platform, designs, sys_clk_freq, variants=(), builders={}):
    """`platform(variant)` gives the board's LiteX platform, `designs[name](platform, sys_clk_freq)` what goes on it.

    `builders` has the designs that Vivado does not build, and what does: see `build`.
    """
    parser = argparse.ArgumentParser(description=f"Bitstreams for {board.title}, by Vivado.")
    parser.add_argument("--design", choices=designs, default="card",
        help="; ".join(f"{name}: {what}" for name, what in board.designs.items()))
    if variants:
        parser.add_argument("--variant", choices=variants, default=variants[0], help="of the board (default %(default)s)")
    parser.add_argument("--sys-clk-freq", type=float, default=sys_clk_freq, help="Hz (default %(default)g)")
    parser.add_argument("--build", action="store_true", help="make the project in out/vivado/, and run it")
    parser.add_argument("--load",  action="store_true", help="load it into the FPGA with OpenOCD")
    parser.add_argument("--flash", action="store_true", help="write it to the board's flash with openFPGALoader")
    args = parser.parse_args()
    if not (args.build or args.load or args.flash):
        parser.error("nothing to do: --build, --load or --flash")
    variant = getattr(args, "variant", None)
    name    = "_".join(filter(None, [board.name, variant and variant.replace("+", "p").replace("-", ""),
                                     None if args.design == "card" else args.design]))
    if args.build:
        made = platform(variant) if variants else platform()
        builders.get(args.design, build)(name, made, designs[args.design](made, args.sys_clk_freq))
    if args.load:
        load(board.name, variant, name)
    if args.flash:
        flash(board.name, variant, name)
