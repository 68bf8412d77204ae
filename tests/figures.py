# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Measure every figure that has a target, and write them to one file.

    python tests/figures.py [--profile gen2x4] [--seed 1] [--out out/figures.json]

A row is {id, value, unit, target, pass, command, profile, seed}; `command` gives the value again. The
benchmarks and the simulation speed are run here, `stride` with the profiles gen2x1 and gen1x1 too; what tests
measure (fixture `figure` of conftest.py) comes from the tests that assert it. A row that is missed says
what limits it. Ends with 1 when a target is missed.
"""

import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

ROOT     = pathlib.Path(__file__).resolve().parents[1]
RECORDED = ROOT / "build" / "figures"
RUNS     = 3    # wall times are medians of three


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


# What is read off a report ------------------------------------------------------------------------

def points(report, series):
    return [p for p in report["points"] if p["series"] == series]


def value_at(report, series, x):
    return next(p for p in points(report, series) if p["x"] == x)


def least(found):
    return min(found, key=lambda p: p["value"])


def share(point):
    """Percent of its bound."""
    return round(100*point["value"]/point["bound"], 1)


def least_share(found):
    return min(found, key=share)


def strided(report, series):
    return [p for p in points(report, series) if p["x"] > 1]


class Rows:
    """Rows of one report: all have its command, profile and seed."""

    def __init__(self, report):
        self.report, self.rows = report, []
        self.stem = f"{report['test']}-{report['profile']}"

    def add(self, name, value, unit, sign, limit, point=None):
        """`point`: of the report, that gave the value; it says where it was and what limits it."""
        made = row(f"{self.stem}-{name}", value, unit, sign, limit, [self.report["command"]], self.report["profile"],
                   self.report["seed"])
        if point:
            made["at"], made["limited_by"] = point["x"], point["limited_by"]
        self.rows.append(made)


def of_stride(report):
    """gen2x4: megabytes a second. Every profile: shares of the bound."""
    rows = Rows(report)
    destination, source, both = (strided(report, f"put-{side}-strided") for side in ("dst", "src", "both"))
    if report["profile"] == "gen2x4":
        contiguous = value_at(report, "put-dst-strided", 1)
        rows.add("contiguous", contiguous["value"], "MB/s", ">=", 470, contiguous)
        rows.add("dst-strided-least", least(destination)["value"], "MB/s", ">=", 423, least(destination))
        rows.add("src-strided-least", least(source)["value"], "MB/s", ">=", 376, least(source))
    else:
        rows.add("dst-strided-of-bound", share(least_share(destination)), "%", ">=", 90, least_share(destination))
        rows.add("src-strided-of-bound", share(least_share(source)), "%", ">=", 80, least_share(source))
    rows.add("both-strided-of-bound", share(least_share(both)), "%", ">=", 80, least_share(both))
    return rows.rows


def of_block(report):
    """N½: a series that begins above half of its peak has it below the smallest size."""
    rows, halves = Rows(report), report["half_size_bytes"]
    for name, limit in (("put", 256), ("put-one-at-a-time", 1024), ("put-inline", 256), ("put-inline-one-at-a-time", 1024)):
        smallest = min(p["x"] for p in points(report, name))
        rows.add(f"half-size-{name}", halves[name] or smallest, "bytes", "<=", limit, value_at(report, name, smallest))
    return rows.rows


def of_bidir(report):
    rows, worst = Rows(report), report["worst"]
    rows.add("contiguous-of-one-way", worst["contiguous"]["percent_of_one_way"], "%", ">=", 90)
    rows.add("dst-strided-of-one-way", worst["put-dst-strided"]["percent_of_one_way"], "%", ">=", 85)
    rows.add("both-strided-of-bound", worst["put-both-strided"]["percent_of_bound"], "%", ">=", 80)
    return rows.rows


def of_element(report):
    rows = Rows(report)
    rows.add("bytes-wrong", report["bytes_wrong"], f"of {report['bytes_compared']} compared", "<=", 0)
    return rows.rows


def of_latency(report):
    rows = Rows(report)
    idle, loaded = (value_at(report, series, 50)["value"] for series in ("mcp", "mcp-under-bulk"))
    rows.add("mcp", idle, "us, median", "<=", 2.0, value_at(report, "mcp", 50))
    rows.add("under-bulk", round(loaded/idle, 2), "times the idle median", "<=", 2)
    return rows.rows


def of_rate(report):
    rows = Rows(report)
    best = max(points(report, "mcp"), key=lambda p: p["value"])
    rows.add("mcp", best["value"], "million messages/s, one queue", ">=", 1.0, best)
    return rows.rows


READERS = {"stride": of_stride, "block": of_block, "bidir": of_bidir, "element": of_element, "latency": of_latency,
           "rate": of_rate}
NARROW = ("gen2x1", "gen1x1")    # profiles that only `stride` is run with, and only these of its series
OURS   = "put-dst-strided,put-src-strided,put-both-strided"


# Runs ---------------------------------------------------------------------------------------------

def measured(test, profile, seed, *options):
    """A benchmark's report, from a run of its command on an up-to-date simulator."""
    run(["make", "simulator", f"PROFILE={profile}"])
    run(["dibber", "bench", test, "--profile", profile, "--seed", str(seed), "--out", str(ROOT/"out"), *options])
    return json.loads((ROOT/"out"/f"{test}-{profile}.json").read_text())


def suite(profile, seed):
    """Rows of every benchmark but `stride`, and of `stride` with the narrow profiles."""
    rows = []
    for test in (t for t in READERS if t != "stride"):
        rows += READERS[test](measured(test, profile, seed))
    for narrow in (p for p in NARROW if p != profile):
        rows += of_stride(measured("stride", narrow, seed, "--series", OURS))
    return rows


def bench(profile, seed):
    """`make bench`: its rows, its wall time warm, and whether its runs agree."""
    command = ["make", "bench", f"PROFILE={profile}", f"SEED={seed}"]
    run(["make", "build", "reference", f"PROFILE={profile}"])
    seconds, results = [], set()
    for _ in range(RUNS):
        start = time.monotonic()
        run(command)
        seconds.append(time.monotonic() - start)
        result = json.loads((ROOT/"out"/f"stride-{profile}.json").read_text())
        del result["wall_seconds"]
        results.add(json.dumps(result))
    alike = RUNS if len(results) == 1 else 0
    return [
        *of_stride(result),
        row("bench-wall-time", round(statistics.median(seconds), 1), f"s, median of {RUNS}, warm", "<=", 60, command,
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
    """What tests measure: the host model, LitePCIe's own DMA on it, and whatever else uses the fixture. A figure that
    its test finds missed is a row like the others."""
    shutil.rmtree(RECORDED, ignore_errors=True)
    command = [sys.executable, "-m", "pytest", "--seed", str(seed), *tests_with_figures()]
    done    = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print(done.stdout[-3000:])
    return [*(json.loads(file.read_text()) for file in sorted(RECORDED.glob("*.json"))),
            row("tests-that-record", done.returncode, "exit code", "<=", 0, command, "", seed)]


def tests_with_figures():
    """Files whose tests take the fixture `figure`, the short run of `stride` left out: it is measured in full here."""
    return [str(file.relative_to(ROOT)) for file in sorted((ROOT/"tests").rglob("test_*.py"))
            if re.search(r"def test_\w+\([^)]*\bfigure\b", file.read_text()) and file.name != "test_pair_stride.py"]


def main():
    parser = argparse.ArgumentParser(description="Measure every figure that has a target.")
    parser.add_argument("--profile", default="gen2x4", help="host and link (default gen2x4)")
    parser.add_argument("--seed", type=int, default=1, help="of every random choice (default 1)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out" / "figures.json", help="file to write")
    args = parser.parse_args()
    rows = (bench(args.profile, args.seed) + suite(args.profile, args.seed) + speed(args.profile, args.seed) +
            recorded(args.seed))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(rows, indent=2) + "\n")
    for r in rows:
        why = f", at {r['at']}: {r['limited_by']}" if "limited_by" in r and not r["pass"] else ""
        print(f"{'met   ' if r['pass'] else 'MISSED'} {r['id']:44} {r['value']:>12} {r['unit']} (target {r['target']}{why})")
    print(f"written: {args.out}")
    return 0 if all(r["pass"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
