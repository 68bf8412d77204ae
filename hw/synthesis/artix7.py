# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Does the core fit an Artix-7? Sizes by Yosys, in per cent of the parts of PCIe boards.

    python hw/synthesis/artix7.py [--data-width 128] [--json]

The whole core without PHYs: the PCIe hard block's wrapper and the transceiver come on top. Writes
out/synthesis-artix7-128.json and ends with 1 when it does not fit the smallest part.
"""

import argparse
import json
import sys

import ecp5
import flow

# Xilinx DS180. Acorn CLE-101, CLE-215+, STLV7325 and KC705, VC707.
PARTS = {
    "XC7A100T": {"lut6":  63_400, "ff": 126_800, "ramb36": 135, "dsp48": 240},
    "XC7A200T": {"lut6": 134_600, "ff": 269_200, "ramb36": 365, "dsp48": 740},
    "XC7K325T": {"lut6": 203_800, "ff": 407_600, "ramb36": 445, "dsp48": 840},
    "XC7VX485T": {"lut6": 303_600, "ff": 607_200, "ramb36": 1_030, "dsp48": 2_800},
}
GOAL = "XC7A100T"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-width", type=int, default=128, choices=(64, 128))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    verilog, sources, data = ecp5.generate(args.data_width)
    folder = flow.workspace(f"artix7-{args.data_width}", verilog, [*sources, *data])
    print("synthesis: Yosys, some minutes", file=sys.stderr, flush=True)
    count  = flow.kept(folder, "cells-artix7", lambda: flow.synthesize_artix7(folder, ecp5.TOP, sources))
    used   = flow.resources_artix7(count)
    share  = {part: {name: round(100*used[name]/there, 1) for name, there in cells.items()}
              for part, cells in PARTS.items()}
    fits   = all(used[name] <= there for name, there in PARTS[GOAL].items())
    result = {"part": GOAL, "tools": flow.versions(), "data_width": args.data_width,
              "used": used, "percent": share,
              "figures": [{"id": f"synthesis-artix7-{args.data_width}", "value": max(share[GOAL].values()),
                           "unit": f"% of an {GOAL}, the scarcest of LUT, FF, BRAM, DSP", "target": "<= 100",
                           "pass": fits,
                           "command": f"build/venv/bin/python hw/synthesis/artix7.py --data-width {args.data_width}",
                           "profile": "", "seed": 0}]}
    (flow.ROOT/"out").mkdir(exist_ok=True)
    (flow.ROOT/"out"/f"synthesis-artix7-{args.data_width}.json").write_text(json.dumps(result, indent=2) + "\n")
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        print(f"{'':8}{'used':>9}" + "".join(f"{part:>12}" for part in PARTS))
        for name, number in used.items():
            print(f"{name:8}{number:9g}" + "".join(f"{share[part][name]:10.1f} %" for part in PARTS))
    if not fits:
        sys.exit(1)


if __name__ == "__main__":
    main()
