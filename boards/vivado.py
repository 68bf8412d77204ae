"""The command line of a board that Vivado builds: make the project, run it if Vivado is installed,
load, flash.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import bitstream
import flow

from dibber_cli.flash import board as boards

from boards.description import Description
from boards.target import add_delivery, deliver
from dibber.common.elaboration import elaborate_quickly

OUT = flow.ROOT/"out"/"vivado"

RUN = """#!/bin/sh
# From this project to a bitstream and its manifest, with Vivado and Python 3 on the PATH. When a path missed its time it ends with 1 and makes neither.
set -eu
cd "$(dirname "$0")"
for tool in vivado python3; do command -v $tool >/dev/null || {{ echo "run.sh: $tool is not on the PATH" >&2; exit 1; }}; done
rm -f manifest.json figures.txt *.bit
start=$(date +%s)
vivado -mode batch -notrace -source {top}.tcl
python3 manifest.py $(($(date +%s) - start))
"""

# For manifest.py. A path's share is the part of its allowed time that it takes. The largest share
# gives the highest possible clock.
FIGURES = r"""# A line in figures.txt for each figure of the routed design.
set figures [open figures.txt w]
puts $figures "tool\tVivado [version -short]"
foreach clock [get_clocks] {
    set share 0
    foreach type {max min} {
        set worst($type) none
        foreach path [get_timing_paths -quiet -delay_type $type -to $clock -max_paths 100] {
            set slack [get_property SLACK $path]
            # Nothing is asked of some paths.
            if {![string is double -strict $slack] || $slack > 1e6} { continue }
            if {$worst($type) eq "none" || $slack < $worst($type)} { set worst($type) $slack }
            set time [get_property REQUIREMENT $path]
            if {$type eq "max" && $time > 0} {
                set taken [expr {($time - $slack)/double($time)}]
                if {$taken > $share} { set share $taken }
            }
        }
    }
    set name   [get_property NAME $clock]
    set period [get_property PERIOD $clock]
    puts "$name: $period ns, slack $worst(max) ns (setup), $worst(min) ns (hold)"
    puts $figures [join [list clock $name $period $share $worst(max) $worst(min)] "\t"]
}

# Sizes: no reason to lose what took an hour. Two LUTs may share a place: A5LUT and A6LUT.
if {[catch {
    foreach cell [get_cells -quiet -hierarchical -filter {BEL =~ *LUT}] {
        set place([get_property LOC $cell][string index [lindex [split [get_property BEL $cell] .] end] 0]) 1
    }
    proc number {filter} { return [llength [get_cells -quiet -hierarchical -filter $filter]] }
    set part [get_parts [get_property PART [current_project]]]
    foreach {name used available} [list \
        lut6   [array size place]                                                                LUT_ELEMENTS \
        ff     [number {BEL =~ *FF}]                                                             FLIPFLOPS    \
        ramb36 [expr {[number {REF_NAME =~ RAMB36*}] + [number {REF_NAME =~ RAMB18*}]/2.0}]      BLOCK_RAMS   \
        dsp48  [number {REF_NAME =~ DSP48*}]                                                     DSP          ] {
        puts $figures [join [list resource $name $used [get_property $available $part]] "\t"]
    }
} why]} { puts "no sizes: $why" }
close $figures
"""

# After routing, because `write_bitstream` also writes a bitstream that is too slow.
GATE = [
    "source figures.tcl",
    "if {{[get_property SLACK [get_timing_paths -delay_type max]] < 0}} {{error \"setup: a path misses its time\"}}",
    "if {{[get_property SLACK [get_timing_paths -delay_type min]] < 0}} {{error \"hold: a path misses its time\"}}",
    "if {{[string match {{*Timing constraints are not met*}} [report_timing_summary -no_detailed_paths -return_string]]}} "
    "{{error \"pulse widths, or what else Vivado looks at: it says that constraints are not met\"}}",
]

# A first configuration that takes longer than this watchdog's time, or is damaged, is given up
# (UG470, chapter 7).
FALLBACK = [
    "set_property BITSTREAM.CONFIG.CONFIGFALLBACK ENABLE [current_design]",
    "set_property BITSTREAM.CONFIG.TIMER_CFG 0x0001fbd0 [current_design]",
]
GOLDEN = [
    "set_property BITSTREAM.CONFIG.NEXT_CONFIG_ADDR ADDRESS [current_design]",
    "write_bitstream -force {build_name}_golden.bit",
]

# Project ------------------------------------------------------------------------------------------

def ordered(constraints: str) -> str:
    """An XDC with its lines of asynchronous clocks in order. LiteX takes them from a set of
    objects, in an order that depends on their addresses in memory.
    """
    lines  = constraints.splitlines()
    places = [n for n, line in enumerate(lines) if line.startswith("set_clock_groups ")]
    for n, line in zip(places, sorted(lines[n] for n in places)):
        lines[n] = line
    return "\n".join(lines) + "\n"


def describe(folder: pathlib.Path, part: str, **more: Any) -> None:
    """Write into the project in `folder`: the input of manifest.py, with `more`; that program; the
    interface's files.

    The folder has the board's name.
    """
    content = [(file.name, file.read_bytes()) for file in sorted(folder.iterdir()) if file.is_file()]
    (folder/"project.json").write_text(json.dumps({
        "board": folder.name, "part": part, "design": hashlib.sha256(repr(content).encode()).hexdigest()[:16],
        **bitstream.interface(), **more,
    }, indent=2) + "\n")
    shutil.copy(pathlib.Path(__file__).with_name("manifest.py"), folder)
    bitstream.write_interface(folder)


def write_run(folder: pathlib.Path, text: str) -> None:
    run = folder/"run.sh"
    run.write_text(text)
    run.chmod(0o755)


def generate(folder: pathlib.Path, top: str, platform: Any, design: Any, user: int | None = None) -> tuple[list[str], list[str]]:
    """Verilog, XDC, Tcl and `run.sh` of `design` in `folder`; names of the Verilog sources, and of
    memory contents.

    `user` is the address of a second image in the flash. With it, the FPGA falls back to the golden
    image if the bitstream fails, and there is a golden image that jumps to `user`.
    """
    platform.toolchain.bitstream_commands[:0] = GATE
    platform.toolchain.additional_commands = []    # litex_boards adds layouts of its own
    if user is not None:
        platform.toolchain.bitstream_commands += FALLBACK
        platform.toolchain.additional_commands += [line.replace("ADDRESS", f"{user:#010x}") for line in GOLDEN]
    sources, data = bitstream.generate(folder, top, platform, design)
    constraints = folder/f"{top}.xdc"
    constraints.write_text(ordered(constraints.read_text()))
    tcl = folder/f"{top}.tcl"
    # Sources were copied here, because the project may be taken to another machine with Vivado.
    text = tcl.read_text()
    for path, *_ in platform.sources:
        text = text.replace(f"{{{path}}}", f"{{{pathlib.Path(path).name}}}")
    tcl.write_text(text)
    (folder/"figures.tcl").write_text(FIGURES)
    (folder/f"build_{top}.sh").unlink()
    write_run(folder, RUN.format(top=top))
    describe(folder, platform.device, flow="vivado", needs={name: 1000/float(period) for name, period in
        re.findall(r"^create_clock -name (\S+) -period ([\d.]+)", constraints.read_text(), re.M)})
    return sources, data


def run(name: str, folder: pathlib.Path, tools: Sequence[str]) -> str:
    """Run the project in `folder`. Returns "", or a sentence if one of `tools` is missing. Ends the
    program if the run failed."""
    shown   = folder.relative_to(flow.ROOT)
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        return (f"{name}: the project is in {shown}; not on the PATH: {', '.join(missing)}. Take it to where they are, run {shown}/run.sh there, "
                f"and bring it back: bitstream and manifest.json are then in it")
    if code := subprocess.run([folder/"run.sh"]).returncode:
        sys.exit(f"{name}: {shown}/run.sh ended with {code}: what it said is above")
    return ""


def build(name: str, platform: Any, design: Any, user: int | None = None) -> str:
    """The project in out/vivado/name, and the bitstream if Vivado is installed. Returns the result
    of run(). user : see generate
    """
    generate(OUT/name, f"dibber_{name}", platform, design, user)
    return run(name, OUT/name, ["vivado"])

# Command Line -------------------------------------------------------------------------------------

def main(board: Description, platform: Callable[..., Any], designs: dict[str, Callable[..., Any]], sys_clk_freq: float,
    variants: Sequence[str] = (), builders: dict[str, Any] = {}) -> None:
    """`platform(variant)` gives the board's LiteX platform, `designs[name](platform, sys_clk_freq)`
    the design on it.

    `builders` has the designs that Vivado does not build, with the module that builds them, such as
    openxc7. Its PART is the only part, and its OUT, SYS_CLK_FREQ and `build` replace those here.
    """
    elaborate_quickly()
    parser = argparse.ArgumentParser(description=f"Bitstreams for {board.title}, by Vivado" + "".join(f"; {name}: by {builder.NAME}" for name, builder in builders.items()) + ".")
    parser.add_argument("--design", choices=designs, default="card",
        help="; ".join(f"{name}: {what}" for name, what in board.designs.items()))
    parser.add_argument("--variant", choices=variants or None, help=f"of the board (default {variants[0]}, or what the design is for)" if variants else argparse.SUPPRESS)
    parser.add_argument("--sys-clk-freq", type=float,
        help=f"Hz (default {sys_clk_freq:g}" + "".join(f", {name}: {builder.SYS_CLK_FREQ:g}" for name, builder in builders.items()) + ")")
    parser.add_argument("--build", action="store_true", help="make the project in out/, and run it")
    add_delivery(parser)
    args = parser.parse_args()
    if not (args.build or args.load or args.flash):
        parser.error("nothing to do: --build, --load or --flash")
    if args.variant and not variants:
        parser.error(f"{board.name} has no variants")
    builder = builders.get(args.design)
    fitting = [variant for variant in variants if builder is None or builder.takes(platform(variant).device)]
    variant = args.variant or (fitting[0] if variants else None)
    if builder and variants and variant not in fitting:
        parser.error(f"--design {args.design} is for an {builder.PART}, {variant} has an {platform(variant).device}: --variant {fitting[0]}, or another design")
    name    = "_".join(filter(None, [board.name, variant and variant.replace("+", "p").replace("-", ""),
                                     None if args.design == "card" else args.design]))
    if args.build:
        made   = platform(variant) if variants else platform()
        design = designs[args.design](made, args.sys_clk_freq or (builder.SYS_CLK_FREQ if builder else sys_clk_freq))
        if builder:
            left = builder.build(name, made, design)
        else:
            left = build(name, made, design, boards.of(board.name, variant).user)
        if left and (args.load or args.flash):
            sys.exit(left)
        if left:
            # Here --build can only make the project.
            print(left)
    file = (builder.OUT if builder else OUT)/name/f"dibber_{name}.bit"
    deliver(boards.of(board.name, variant), file, args, golden=file.with_name(f"{file.stem}_golden.bit"))
