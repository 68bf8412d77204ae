"""Place and route the whole NIC core for ECP5-5G, to keep its clock and size honest.

    python hw/synthesis/ecp5.py [--data-width 64] [--seed 1] [--no-route] [--json]

The core is the one that the simulator runs, behind pin registers (see flow.py), on an LFE5UM5G-85F,
speed grade 8. Shows the clock that nextpnr estimates when it has placed the core and, some minutes
later, the one after routing; writes out/synthesis-ecp5-64.json. What has not changed since the last
run is not run again.

    --yosys OPTIONS, --nextpnr OPTIONS   further options of synth_ecp5 and nextpnr, to compare them

Times of nextpnr are estimates of the open database; leave a margin. Ends with 1 below the goal.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys

import flow

from dibber.common.elaboration import elaborate_quickly
from dibber.mcp.processor import SRAM_SCARCE
from dibber_cli.pipe import quiet

TARGET_MHZ = 80.0
AIM_MHZ = 100.0  # what nextpnr is told to reach
TOP = "dibber_card"

# Verilog ------------------------------------------------------------------------------------------


def generate(data_width):
    """The core's Verilog and its harness in a folder; the names of sources, and of memory contents."""
    gateware = flow.BUILD / "generated" / f"core-{data_width}"
    subprocess.run(
        [
            sys.executable,
            flow.ROOT / "boards" / "sim.py",
            "--data-width",
            str(data_width),
            "--sram",
            str(SRAM_SCARCE >> 10),
            "--output",
            gateware,
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    sources = [pathlib.Path(p) for p in (gateware / f"{TOP}.f").read_text().split()]
    data = [file.name for file in gateware.glob("*.init")]
    verilog = (gateware / f"{TOP}.v").read_text()
    # The simulator names memory contents by absolute paths; the tools run where the files are.
    (gateware / f"{TOP}.v").write_text(re.sub(r'\$readmemh\(".*/', '$readmemh("', verilog))
    for source in sources[1:]:
        (gateware / source.name).write_bytes(source.read_bytes())
    (gateware / "harness.v").write_text(flow.harness(TOP, flow.ports(verilog, TOP)))
    return gateware, [source.name for source in sources], data


# Measure ------------------------------------------------------------------------------------------


def measure(data_width, seed, route, yosys, nextpnr):
    verilog, sources, data = generate(data_width)
    folder = flow.workspace(
        f"core-{data_width}" + re.sub(r"\W+", "-", yosys), verilog, [*sources, *data, "harness.v"]
    )
    print("synthesis: Yosys, some minutes", file=sys.stderr, flush=True)
    count = flow.kept(
        folder, "cells-ecp5", lambda: flow.synthesize_ecp5(folder, TOP, sources, yosys)
    )

    def placed():
        report = flow.place_ecp5(
            folder, AIM_MHZ, seed, route, shlex.split(nextpnr), flow.progress()
        )
        return {
            "fmax_mhz": round(flow.fmax(report), 1),
            "critical_path": flow.critical_path(report) if route else None,
            "slowest_registers": flow.slowest_registers(report, 25),
            "utilization": {
                cell: v["used"] for cell, v in report["utilization"].items() if v["used"]
            },
        }

    print("synthesis: nextpnr, many minutes", file=sys.stderr, flush=True)
    name = "-".join(["routed" if route else "placed", str(seed), *re.findall(r"\w+", nextpnr)])
    return {"ecp5": flow.resources_ecp5(count), **flow.kept(folder, name, placed)}


def main():
    elaborate_quickly()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-width", type=int, default=64, choices=(64, 128))
    parser.add_argument("--seed", type=int, default=1, help="nextpnr's placement seed")
    parser.add_argument(
        "--no-route", action="store_true", help="end with the estimate after placement"
    )
    parser.add_argument(
        "--yosys", default="", metavar="OPTIONS", help="further options of synth_ecp5"
    )
    parser.add_argument(
        "--nextpnr", default="", metavar="OPTIONS", help="further options of nextpnr-ecp5"
    )
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    measured = measure(args.data_width, args.seed, not args.no_route, args.yosys, args.nextpnr)
    mhz = measured["fmax_mhz"]
    command = ["build/venv/bin/python", "hw/synthesis/ecp5.py", *sys.argv[1:]]
    result = {
        "part": flow.PART,
        "tools": flow.versions(),
        "data_width": args.data_width,
        "seed": args.seed,
        "routed": not args.no_route,
        **measured,
        "figures": [
            {
                "id": f"synthesis-core-{args.data_width}",
                "value": mhz,
                "unit": f"MHz, {flow.PART}, {args.data_width} bits"
                + (", estimated after placement" if args.no_route else ""),
                "target": f">= {TARGET_MHZ:g}",
                "pass": mhz >= TARGET_MHZ and not args.no_route,
                "command": shlex.join(command),
                "profile": "",
                "seed": args.seed,
            }
        ],
    }
    (flow.ROOT / "out").mkdir(exist_ok=True)
    (flow.ROOT / "out" / f"synthesis-ecp5-{args.data_width}.json").write_text(
        json.dumps(result, indent=2) + "\n"
    )
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        print(
            f"{flow.PART}, {args.data_width} bits: {mhz} MHz (goal {TARGET_MHZ:g}), "
            + ", ".join(f"{name} {number}" for name, number in measured["ecp5"].items())
        )
        for ns, register in measured["slowest_registers"]:
            print(f"  {ns:6.2f} ns  {register}")
    if mhz < TARGET_MHZ:
        sys.exit(1)


if __name__ == "__main__":
    sys.exit(quiet(main))
