"""Size and clock of each block of the core alone.

    python hw/synthesis/engines.py [--only NAME ...] [--data-width 64] [--seed 1] [--no-artix7]
    [--no-route] [--json]

Resources come from Yosys, for ECP5 and for Artix-7; the clock from nextpnr, each block placed and
routed by itself on an LFE5UM5G-85F, speed grade 8, behind pin registers (see flow.py). Writes
out/synthesis.json; `--only` replaces the rows of those blocks there. What has not changed since the
last run is not run again. `--no-route` does not wait for nextpnr: sizes only. `--no-artix7` leaves
out the other part.

Ends with 1 when a block that was routed is slower than its target.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import pathlib
import subprocess
import sys
import time

import flow

from blocks import BLOCKS
from dibber_cli.pipe import quiet

TARGET_MHZ = 100.0
AIM_MHZ = 125.0  # what nextpnr is told to reach
RESULT = flow.ROOT / "out" / "synthesis.json"

# Measure ------------------------------------------------------------------------------------------


class Block:
    """A block in its workspace; each of its three measurements is kept.

    Parameters
    ----------
    name       : of BLOCKS
    data_width : 64 or 128
    """

    def __init__(self, name, data_width):
        self.name = name
        verilog = flow.fresh(flow.BUILD / "generated" / f"{name}-{data_width}")
        self.sources, data = json.loads(
            subprocess.run(
                [
                    sys.executable,
                    pathlib.Path(__file__).with_name("blocks.py"),
                    name,
                    str(data_width),
                    verilog,
                ],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        pins = flow.ports((verilog / f"{name}.v").read_text(), name)
        (verilog / "harness.v").write_text(flow.harness(name, pins))
        self.folder = flow.workspace(
            f"{name}-{data_width}", verilog, [*self.sources, *data, "harness.v"]
        )
        self.row = {"block": name, "data_width": data_width}

    def ecp5(self):
        count = flow.kept(
            self.folder,
            "cells-ecp5",
            lambda: flow.synthesize_ecp5(self.folder, self.name, self.sources),
        )
        self.row["ecp5"] = flow.resources_ecp5(count)

    def artix7(self):
        count = flow.kept(
            self.folder,
            "cells-artix7",
            lambda: flow.synthesize_artix7(self.folder, self.name, self.sources),
        )
        self.row["artix7"] = flow.resources_artix7(count)

    def route(self, seed):
        def routed():
            report = flow.place_ecp5(self.folder, AIM_MHZ, seed)
            return {
                "fmax_mhz": round(flow.fmax(report), 1),
                "critical_path": flow.critical_path(report),
            }

        self.row |= {"seed": seed, **flow.kept(self.folder, f"routed-{seed}", routed)}


# Report -------------------------------------------------------------------------------------------


def figure(row):
    """The row of `make figures` for a block that was routed."""
    return {
        "id": f"synthesis-{row['block']}-{row['data_width']}",
        "value": row["fmax_mhz"],
        "unit": f"MHz, {flow.PART}, {row['data_width']} bits",
        "target": f">= {TARGET_MHZ:g}",
        "pass": row["fmax_mhz"] >= TARGET_MHZ,
        "command": f"build/venv/bin/python hw/synthesis/engines.py --only {row['block']}"
        f" --data-width {row['data_width']} --seed {row['seed']}",
        "profile": "",
        "seed": row["seed"],
    }


def table(rows):
    """Lines of the table, and below it where the longest paths run."""
    yield f"{'':16}|{'ECP5':^30}|{'Artix-7':^24}|{'ECP5':>9}"
    yield f"{'block':16}|{'LUT4':>9}{'FF':>7}{'DP16KD':>8}{'MULT':>5} |{'LUT6':>7}{'FF':>7}{'BRAM36':>8}  |{'MHz':>9}"
    for row in rows:
        ecp5, artix7 = row["ecp5"], row.get("artix7")
        other = (
            f"{artix7['lut6']:7}{artix7['ff']:7}{artix7['ramb36']:8.1f}"
            if artix7
            else f"{'-':>7}{'-':>7}{'-':>8}"
        )
        clock = f"{row['fmax_mhz']:9.1f}" if "fmax_mhz" in row else f"{'-':>9}"
        yield (
            f"{row['block']:16}|{ecp5['lut4']:9}{ecp5['ff']:7}{ecp5['dp16kd']:8}{ecp5['mult18']:5} |"
            f"{other}  |{clock}"
        )
    yield ""
    for row in rows:
        if "critical_path" in row:
            path = row["critical_path"]
            yield (
                f"{row['block']}: {path['from']} -> {path['to']}, {path['ns']} ns through {path['stages']} cells, "
                f"{path['routing_ns']} of it routing"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only",
        nargs="+",
        choices=BLOCKS,
        metavar="NAME",
        default=list(BLOCKS),
        help=f"of {', '.join(BLOCKS)}",
    )
    parser.add_argument("--data-width", type=int, default=64, choices=(64, 128))
    parser.add_argument("--seed", type=int, default=1, help="nextpnr's placement seed")
    parser.add_argument("--no-artix7", action="store_true", help="ECP5 alone")
    parser.add_argument("--no-route", action="store_true", help="sizes only")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    args = parser.parse_args()

    start = time.monotonic()

    def progress(number, name, step):
        print(
            f"synthesis {time.monotonic() - start:5.0f} s  {number:2}/{len(args.only)} {name:16}{step}",
            file=sys.stderr,
            flush=True,
        )

    blocks = []
    for number, name in enumerate(args.only, start=1):
        progress(number, name, "Yosys, ECP5")
        blocks.append(Block(name, args.data_width))
        blocks[-1].ecp5()
    for number, block in enumerate([] if args.no_artix7 else blocks, start=1):
        progress(number, block.name, "Yosys, Artix-7")
        block.artix7()
    for number, block in enumerate([] if args.no_route else blocks, start=1):
        progress(number, block.name, "nextpnr")
        block.route(args.seed)
        progress(number, block.name, f"{block.row['fmax_mhz']} MHz")

    rows = [block.row for block in blocks]
    before = json.loads(RESULT.read_text())["blocks"] if RESULT.exists() else []
    done = {(row["block"], row["data_width"]) for row in rows}
    every = [row for row in before if (row["block"], row["data_width"]) not in done] + rows
    every.sort(key=lambda row: (row["data_width"], list(BLOCKS).index(row["block"])))
    result = {
        "part": flow.PART,
        "tools": flow.versions(),
        "blocks": every,
        "figures": [figure(row) for row in every if "fmax_mhz" in row],
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        print(*table(rows), sep="\n")
    if any(row.get("fmax_mhz", TARGET_MHZ) < TARGET_MHZ for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    sys.exit(quiet(main))
