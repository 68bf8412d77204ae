"""The manifest of a bitstream that a project's run.sh made. This file is copied into each project,
and needs only Python 3.6.

    python3 manifest.py SECONDS

SECONDS is the time of the build. project.json describes the project, and its tools' output gives
the result. If a clock missed its timing, or is not in the output, the program ends with 1, and
leaves neither manifest nor bitstream.
"""

# SPDX-License-Identifier: BSD-2-Clause

import hashlib
import json
import pathlib
import re
import subprocess
import sys
from typing import Any

TOLD = 0.01  # part by which a clock's speed may differ from the requested one

# Tools --------------------------------------------------------------------------------------------

def vivado(folder: pathlib.Path, project: "dict[str, Any]") -> "dict[str, Any]":
    """The output of figures.tcl, as keys of the manifest."""
    lines  = [line.split("\t") for line in (folder/"figures.txt").read_text().splitlines()]
    absent = dict(project["needs"])
    clocks = []
    for name, period, share, setup, hold in [line[1:] for line in lines if line[0] == "clock"]:
        needed = 1000/float(period)
        told   = absent.pop(name, needed)
        met    = all(slack == "none" or float(slack) >= 0 for slack in (setup, hold)) and abs(needed - told) <= TOLD*told
        # A clock that only feeds a PLL ends no path.
        if float(share) > 0 or not met:
            clocks.append(row(name, needed/float(share) if float(share) > 0 else 0, needed, met))
    return {
        "tools"    : [line[1] for line in lines if line[0] == "tool"],
        "timing"   : "setup, hold and pulse widths of every clock",
        "clocks"   : clocks + [row(name, 0, mhz, False) for name, mhz in absent.items()],
        "resources": {name: cell(used, available) for name, used, available in [line[1:] for line in lines if line[0] == "resource"]}}


def openxc7(folder: pathlib.Path, project: "dict[str, Any]") -> "dict[str, Any]":
    """The log of nextpnr-xilinx, as keys of the manifest. The speed of a clock that is not in
    `needs` was given by --freq.
    """
    log    = (folder/"nextpnr.log").read_text()
    found  = {name: (float(mhz), float(told)) for name, mhz, told in
              re.findall(r"Max frequency for clock +'(.+?)': +([\d.]+) MHz \(\w+ at ([\d.]+) MHz\)", log)}
    # nextpnr takes one of a net's names.
    nets   = json.loads((folder/f"{project['top']}.json").read_text())["modules"][project["top"]]["netnames"]
    bits   = {name: net["bits"] for name, net in nets.items() if len(net["bits"]) == 1}
    needs  = dict(project["needs"])
    def known(name: str) -> "str | None":
        """The name in `needs`, or None."""
        return next((other for other in needs if name == other or bits.get(other) == bits.get(name, [])), None)
    for name in re.findall(r"Clock '(.+?)' has no interior paths", log):
        needs.pop(known(name), None)
    clocks = []
    for name, (mhz, told) in found.items():
        wanted = known(name)
        needed = needs.pop(wanted, told)
        clocks.append(row(wanted or name, mhz, needed, mhz >= needed and abs(told - needed) <= TOLD*needed))
    return {
        "tools"    : [version(tool) for tool in ("yosys", "nextpnr-xilinx")],
        "timing"   : "setup between LUTs, carries and flip-flops alone: nextpnr-xilinx has no times of memories, multipliers and hard blocks, and none of hold",
        "clocks"   : clocks + [row(name, 0, mhz, False) for name, mhz in needs.items()],
        "resources": {name: cell(used, available) for name, used, available in
                      re.findall(r"^Info:\s+(\w+): +(\d+)/ *(\d+) +\d+%$", log, re.M) if int(used)}}


def version(tool: str) -> str:
    """The last line of a tool's output; nextpnr reports it as an error."""
    return subprocess.run([tool, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout.strip().splitlines()[-1]


def row(name: str, mhz: float, needed: float, met: bool) -> "dict[str, Any]":
    return {"clock": name, "mhz": round(mhz, 1), "needed_mhz": round(needed, 3), "met": met}


def cell(used: str, available: str) -> "dict[str, float]":
    return {"used": float(used) if "." in used else int(used), "available": int(available)}


FLOWS = {"vivado": vivado, "openxc7": openxc7}

# Manifest -----------------------------------------------------------------------------------------

def publish(folder: pathlib.Path, seconds: float) -> None:
    """Write the manifest, or end the program without it."""
    project = json.loads((folder/"project.json").read_text())
    found   = FLOWS[project["flow"]](folder, project)
    files   = sorted(folder.glob("*.bit"))
    found["clocks"].sort(key=lambda clock: clock["clock"])
    for clock in found["clocks"]:
        print("  {clock:24}{mhz:7.1f} MHz of {needed_mhz:6.1f}  {0}".format("" if clock["met"] else "MISSED", **clock))
    missed = [clock["clock"] for clock in found["clocks"] if not clock["met"]]
    if missed or not found["clocks"]:
        for file in files:
            file.unlink()
        sys.exit(f"{project['board']}: no bitstream: " + (f"{', '.join(missed)} missed the time" if missed else "no clock was timed"))
    if not files:
        sys.exit(f"{project['board']}: there is no bitstream in {folder}")
    (folder/"manifest.json").write_text(json.dumps({
        **{key: project[key] for key in ("board", "part", "design", "interface", "interface_hash")}, **found,
        "took":  {project["flow"]: {"minutes": round(seconds/60, 1)}},
        "files": {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files},
    }, indent=2) + "\n")


if __name__ == "__main__":
    publish(pathlib.Path(__file__).resolve().parent, float(sys.argv[1]))
