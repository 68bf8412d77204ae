# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Measure every figure that has a target, and write them to one file.

    python tests/figures.py [--profile gen2x4] [--seed 1] [--out out/figures.json]

A row is {id, value, unit, target, pass, command, profile, seed}; `command` gives the value again. The
benchmark and the simulation speed are run here; figures of the host model and of LitePCIe on it come
from the tests that assert them (fixture `figure` of conftest.py). Ends with 1 when a target is missed.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

ROOT     = pathlib.Path(__file__).resolve().parents[1]
RECORDED = ROOT / "build" / "figures"
RUNS     = 3  # wall times are medians of three


def run(command):
    """Run in the repository's root; what it printed, or the end of this program with that."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}")
    return done.stdout


def row(name, value, unit, sign, limit, command, profile, seed):
    passed = value >= limit if sign == ">=" else value <= limit
    return {"id": name, "value": value, "unit": unit, "target": f"{sign} {limit:g}", "pass": passed,
            "command": " ".join(command), "profile": profile, "seed": seed}


def bench(profile, seed):
    """Contiguous put, wall time of `make bench` warm, and whether its runs agree."""
    command = ["make", "bench", f"PROFILE={profile}", f"SEED={seed}"]
    run(command)  # builds what there is to build
    seconds, results = [], set()
    for _ in range(RUNS):
        start = time.monotonic()
        run(command)
        seconds.append(time.monotonic() - start)
        result = json.loads((ROOT / "out" / f"stride-{profile}.json").read_text())
        del result["wall_seconds"]
        results.add(json.dumps(result))
    contiguous = next(point for point in result["points"] if point["series"] == "put-dst-strided" and point["x"] == 1)
    alike      = RUNS if len(results) == 1 else 0
    return [
        row("contiguous-put", contiguous["value"], "MB/s, simulated time", ">=", 395, command, profile, seed),
        row("bench-wall-time", round(statistics.median(seconds), 1), "s, median of 3, warm", "<=", 90, command,
            profile, seed),
        row("bench-determinism", alike, f"byte-identical results of {RUNS} runs", ">=", RUNS, command, profile, seed),
    ]


def speed(profile, seed):
    """Simulated cycles a second of wall time, beside a bare model timed in the same run."""
    command = ["dibber", "sim", "--speed", "--json", "--profile", profile, "--seed", str(seed)]
    result  = json.loads(run(command))
    rows    = [row("simulation-speed", result["cycles_per_second_per_card"], "cycles/s per card", ">=", 100_000, command,
                   profile, seed)]
    if result["reference_cycles_per_second"]:
        rows.append({**rows[0], "id": "simulation-speed-bare-model", "value": result["reference_cycles_per_second"],
                     "unit": "cycles/s", "target": "none: for comparison", "pass": True})
    return rows


def recorded(seed):
    """What the tests of the host model measure, with bare TLPs and with LitePCIe's own DMA."""
    shutil.rmtree(RECORDED, ignore_errors=True)
    run([sys.executable, "-m", "pytest", "--seed", str(seed), "tests/system/host_model", "tests/system/reference"])
    return [json.loads(file.read_text()) for file in sorted(RECORDED.glob("*.json"))]


def main():
    parser = argparse.ArgumentParser(description="Measure every figure that has a target.")
    parser.add_argument("--profile", default="gen2x4", help="host and link (default gen2x4)")
    parser.add_argument("--seed", type=int, default=1, help="of every random choice (default 1)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out" / "figures.json", help="file to write")
    args = parser.parse_args()
    rows = bench(args.profile, args.seed) + speed(args.profile, args.seed) + recorded(args.seed)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(rows, indent=2) + "\n")
    for r in rows:
        print(f"{'met   ' if r['pass'] else 'MISSED'} {r['id']:32} {r['value']:>12} {r['unit']} (target {r['target']})")
    print(f"written: {args.out}")
    return 0 if all(r["pass"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
