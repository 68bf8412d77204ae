# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The command line of a board that Vivado builds: make the project, run it where Vivado is, load, flash."""

import argparse
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys

import bitstream
import flow

from dibber.interface.description import INTERFACE
from dibber_cli.flash import board as boards

from boards.target import add_delivery, deliver

OUT = flow.ROOT/"out"/"vivado"

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

# The first configuration that takes longer than this watchdog's time, or is damaged, is given up (UG470, chapter 7).
FALLBACK = [
    "set_property BITSTREAM.CONFIG.CONFIGFALLBACK ENABLE [current_design]",
    "set_property BITSTREAM.CONFIG.TIMER_CFG 0x0001fbd0 [current_design]",
]
GOLDEN = [
    "set_property BITSTREAM.CONFIG.NEXT_CONFIG_ADDR ADDRESS [current_design]",
    "write_bitstream -force {build_name}_golden.bit",
]

# Project ------------------------------------------------------------------------------------------

def ordered(constraints):
    """An XDC with its lines of asynchronous clocks in order: LiteX takes them from a set of objects, as these lie in memory."""
    lines  = constraints.splitlines(keepends=True)
    places = [n for n, line in enumerate(lines) if line.startswith("set_clock_groups ")]
    for n, line in zip(places, sorted(lines[n] for n in places)):
        lines[n] = line
    return "".join(lines)


def generate(folder, top, platform, design, user=None):
    """Verilog, XDC, Tcl and `run.sh` of `design` in `folder`; names of the Verilog sources, and of memory contents.

    With `user`, the address of a second image in the flash, the bitstream is one that gives way to the golden image when it
    fails, and there is a golden one that goes on at `user`.
    """
    platform.toolchain.bitstream_commands[:0] = GATE
    platform.toolchain.additional_commands = []    # litex_boards has layouts of its own
    if user is not None:
        platform.toolchain.bitstream_commands += FALLBACK
        platform.toolchain.additional_commands += [line.replace("ADDRESS", f"{user:#010x}") for line in GOLDEN]
    sources, data = bitstream.generate(folder, top, platform, design)
    constraints = folder/f"{top}.xdc"
    constraints.write_text(ordered(constraints.read_text()))
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


def publish(folder, platform):
    """The manifest of what `run.sh` made: it has made nothing when a path missed its time."""
    (folder/"manifest.json").write_text(json.dumps({
        "board": folder.name, "part": platform.device, "clocks": [], "timing": "gated by the project's Tcl",
        "interface": f"{INTERFACE.version_word >> 16}.{INTERFACE.version_word & 0xffff}", "interface_hash": f"{INTERFACE.hash:08x}",
        "files": {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.glob("*.bit"))},
    }, indent=2) + "\n")


def build(name, platform, design, user=None):
    """The project in out/vivado/name, and the bitstream where Vivado is installed; else the program ends. user : see generate"""
    folder = OUT/name
    generate(folder, f"dibber_{name}", platform, design, user)
    shown = folder.relative_to(flow.ROOT)
    if shutil.which("vivado") is None:
        sys.exit(f"{name}: the Vivado project is in {shown}; Vivado is not on the PATH. Where it is: {shown}/run.sh")
    subprocess.run([folder/"run.sh"], check=True)
    publish(folder, platform)

# Command Line -------------------------------------------------------------------------------------

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
    add_delivery(parser)
    args = parser.parse_args()
    if not (args.build or args.load or args.flash):
        parser.error("nothing to do: --build, --load or --flash")
    variant = getattr(args, "variant", None)
    name    = "_".join(filter(None, [board.name, variant and variant.replace("+", "p").replace("-", ""),
                                     None if args.design == "card" else args.design]))
    if args.build:
        made = platform(variant) if variants else platform()
        design = designs[args.design](made, args.sys_clk_freq)
        if args.design in builders:
            builders[args.design](name, made, design)
        else:
            build(name, made, design, boards.of(board.name, variant).user)
    file = OUT/name/f"dibber_{name}.bit"
    deliver(boards.of(board.name, variant), file, args, golden=file.with_name(f"{file.stem}_golden.bit"))
