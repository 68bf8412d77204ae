# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Does the core fit an Artix-7? Sizes by Yosys, in per cent of an XC7A100T.

    python hw/synthesis/artix7.py [--data-width 128] [--json]

The whole core without PHYs: the PCIe hard block's wrapper and the transceiver come on top. Writes
out/synthesis-artix7-128.json and ends with 1 when it does not fit.
"""

import argparse
import json
import sys

import ecp5
import flow

XC7A100T = {"lut6": 63_400, "ff": 126_800, "ramb36": 135, "dsp48": 240}  # Xilinx DS180


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
    share  = {name: round(100*used[name]/there, 1) for name, there in XC7A100T.items()}
    fits   = all(used[name] <= there for name, there in XC7A100T.items())
    result = {"part": "XC7A100T", "tools": flow.versions(), "data_width": args.data_width,
              "used": used, "percent": share,
              "figures": [{"id": f"synthesis-artix7-{args.data_width}", "value": max(share.values()),
                           "unit": "% of an XC7A100T, the scarcest of LUT, FF, BRAM, DSP", "target": "<= 100",
                           "pass": fits,
                           "command": f"build/venv/bin/python hw/synthesis/artix7.py --data-width {args.data_width}",
                           "profile": "", "seed": 0}]}
    (flow.ROOT/"out").mkdir(exist_ok=True)
    (flow.ROOT/"out"/f"synthesis-artix7-{args.data_width}.json").write_text(json.dumps(result, indent=2) + "\n")
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        for name, there in XC7A100T.items():
            print(f"{name:8}{used[name]:9g} of {there:7}  {share[name]:5.1f} %")
    if not fits:
        sys.exit(1)


if __name__ == "__main__":
    main()
