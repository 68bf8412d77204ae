"""Measure every figure that has a target, and write them to one file.

    python tests/figures.py [--profile gen2x4] [--seed 1] [--out FILE] [--resume] [--long] [--only
    GROUP,…] [--page] [--list]

This program runs the benchmarks and the simulation speed, `stride` also with the profiles gen2x1
and gen1x1, `patterns` with gen2x1. Figures of tests (fixture `figure` of conftest.py) come from the
tests that assert them, file by file. Each of these is a group. A group that fails has a row with
the reason, which counts as missed, and the others go on. The rows of each group are kept in
build/figure-groups, so `--resume` goes on where a run ended, if simulator and control program are
still the same. The campaigns (figure_campaigns.py: from minutes to hours each) are measured with
`--long` or by their name. Otherwise their rows are kept ones, or say that they were not measured.
Rows: figure_rows.py. With `--page` the rows go into docs/figures.md (figures_page.py). Ends with 1
when a target is missed.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time
import zlib

from dibber_cli.pipe import quiet

from tests.figure_campaigns import CAMPAIGNS
from tests.figure_rows import NO_GOAL, READERS, of_stride, row
from tests.figures_page import commit, write

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECORDED = ROOT / "build" / "figures"  # written by the fixture `figure`
KEPT = ROOT / "build" / "figure-groups"  # a file for each group that was measured
RUNS = 3  # wall times are medians of three
PATIENCE = 4 * 3600  # seconds of one command
# profiles for `stride` alone, and only these of its series
NARROW = ("gen2x1", "gen1x1")
OURS = "put-dst-strided,put-src-strided,put-both-strided"

# Minutes on two idle cores, used until a group was measured here once.
MINUTES = {
    "stride": 2.5,
    "block": 1.5,
    "bidir": 1,
    "element": 2,
    "latency": 1.5,
    "rate": 1,
    "link": 3,
    "soak": 2,
    "speed": 0.5,
    "patterns": 3,
    "window": 3,
}
GUESS = 1.0  # of any other


class Failed(Exception):
    """A command of a group failed; the text describes how."""


def run(command, codes=(0,)):
    """Run in the repository's root; returns what it printed. Raises Failed with the end of that, if
    its exit code is none of `codes`.
    """
    environment = {
        **os.environ,
        "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(command)} did not end in {PATIENCE // 60} minutes") from None
    except OSError as error:
        raise Failed(f"{command[0]}: {error}") from error
    if done.returncode not in codes:
        raise Failed(
            f"{' '.join(command)} ended with {done.returncode}: {tail(done.stdout + done.stderr)}"
        )
    return done.stdout


def tail(text):
    """The end of an output, for a row."""
    return " | ".join(line.strip() for line in text.strip().splitlines()[-5:])[-600:]


# Groups -------------------------------------------------------------------------------------------
# Each takes (profile, seed) and returns rows.


def measured(test, profile, seed, *options):
    """A benchmark's report, from a run of its command on an up-to-date simulator."""
    run(["make", "simulator", f"PROFILE={profile}"])
    if test == "window":
        run([sys.executable, "hw/sim/build.py", "--window", "--profile", profile])
    out = ROOT / "out"
    run(
        [
            "dibber",
            "bench",
            test,
            "--profile",
            profile,
            "--seed",
            str(seed),
            "--out",
            str(out),
            *options,
        ]
    )
    return json.loads((out / f"{test}-{profile}.json").read_text())


def benchmark(test, other=None):
    """`other`: a profile in place of the one that was asked for."""
    return lambda profile, seed: READERS[test](measured(test, other or profile, seed))


def narrow(other):
    return lambda profile, seed: of_stride(measured("stride", other, seed, "--series", OURS))


def stride(profile, seed):
    """`make bench`: its rows, its wall time warm, and whether its runs agree."""
    command = ["make", "bench", f"PROFILE={profile}", f"SEED={seed}"]
    run(["make", "build", "reference", f"PROFILE={profile}"])
    seconds, results = [], set()
    for _ in range(RUNS):
        start = time.monotonic()
        run(command)
        seconds.append(time.monotonic() - start)
        result = json.loads((ROOT / "out" / f"stride-{profile}.json").read_text())
        del result["wall_seconds"]
        results.add(json.dumps(result))
    alike = RUNS if len(results) == 1 else 0
    return [
        *of_stride(result),
        row(
            "bench-wall-time",
            round(statistics.median(seconds), 1),
            f"s, median of {RUNS}, warm",
            "<=",
            60,
            command,
            profile,
            seed,
        ),
        row(
            "bench-determinism",
            alike,
            f"byte-identical results of {RUNS} runs",
            ">=",
            RUNS,
            command,
            profile,
            seed,
        ),
    ]


# Goals of the simulation speed: card-cycles a CPU second, as a share of the bare model's.
SPEED_SHARES = {"idle": 0.8, "ping": 0.5, "strided": 0.25}


def speed(profile, seed):
    """Simulated card-cycles a second of CPU time, beside a bare model timed in the same run."""
    command = ["dibber", "sim", "--speed", "--json", "--profile", profile, "--seed", str(seed)]
    rows = []
    for found in json.loads(run(command))["runs"]:
        name = f"simulation-speed-{found['name']}"
        value = found["card_cycles_per_cpu_second"]
        unit = "card-cycles/CPU s"
        rows.append(row(name, value, unit, ">=", 100_000, command, profile, seed))
        if found["share"]:
            goal = SPEED_SHARES[found["name"]]
            unit = "of the bare model"
            rows.append(
                row(f"{name}-share", found["share"], unit, ">=", goal, command, profile, seed)
            )
    return rows


def recorded(file):
    """Rows of the tests of a file. A missed figure is a row like the others, and so is each other
    failure of the file."""

    def group(profile, seed):
        command = [sys.executable, "-P", "-m", "pytest", "--seed", str(seed), file]
        begin, why = time.time(), None
        try:
            run(command)
        except Failed as failed:
            why = failed
        rows = [
            json.loads(found.read_text())
            for found in sorted(RECORDED.glob("*.json"))
            if found.stat().st_mtime >= begin - 1
        ]
        rows = [r for r in rows if f"'{file}::" in r["command"]]
        # A test that asserts its figure fails if the figure is missed; the row reports it.
        if why and all(r["pass"] for r in rows) or not rows:
            rows.append(failure(file, why or Failed("it recorded nothing"), profile, seed, command))
        return rows

    return group


def failure(name, why, profile, seed, command=()):
    """The row of a group that could not be measured."""
    return {
        "id": name,
        "value": None,
        "unit": "",
        "target": "that it runs",
        "pass": False,
        "reason": str(why),
        "command": " ".join(command) or f"python tests/figures.py --only {name}",
        "profile": profile,
        "seed": seed,
    }


def groups(profile):
    """{name: function}, in the order in which they are measured."""
    found = {"stride": stride}
    found.update({test: benchmark(test) for test in READERS if test != "stride"})
    found.update({f"stride-{other}": narrow(other) for other in NARROW if other != profile})
    found["patterns-gen2x1"] = benchmark("patterns", "gen2x1")
    found["speed"] = speed
    found.update({file: recorded(file) for file in tests_with_figures()})
    found.update({name: campaign(name) for name in CAMPAIGNS})
    return found


def campaign(name):
    _, function = CAMPAIGNS[name]
    return (lambda profile, seed: function(run, profile, seed)) if function else recorded(name)


def tests_with_figures():
    """Files whose tests take the fixture `figure`, the short run of `stride` left out: it is
    measured in full here.
    """
    return [
        str(file.relative_to(ROOT))
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        if re.search(r"def test_\w+\([^)]*\bfigure\b", file.read_text())
        and file.name != "test_pair_stride.py"
    ]


# What is kept -------------------------------------------------------------------------------------


def state(profile, seed):
    """Dependencies of rows: profile, seed, and the builds of simulator and control program."""
    files = [
        *(ROOT / "build" / "sim").glob("dibber-sim-*"),
        ROOT / "build" / "firmware" / "mcp.dibfw",
    ]
    return {
        "profile": profile,
        "seed": seed,
        **{file.name: zlib.crc32(file.read_bytes()) for file in files if file.is_file()},
    }


def same(then, now):
    """Whether a state is still valid. After a new build of the simulator it is not."""
    return bool(then) and then.items() <= now.items()


def kept(name):
    """Kept results of a group: {state, seconds, rows}, or nothing."""
    try:
        return json.loads(kept_file(name).read_text())
    except (OSError, ValueError):
        return {}


def kept_file(name):
    return KEPT / f"{name.replace('/', '-')}.json"


def keep(name, state_, seconds, rows):
    KEPT.mkdir(parents=True, exist_ok=True)
    kept_file(name).write_text(
        json.dumps({"state": state_, "seconds": round(seconds, 1), "rows": rows}, indent=2) + "\n"
    )


def minutes(name):
    """Time of a group: that of the last run, or a guess."""
    guess = CAMPAIGNS[name][0] if name in CAMPAIGNS else MINUTES.get(name, GUESS)
    return kept(name).get("seconds", 60 * guess) / 60


# Command ------------------------------------------------------------------------------------------


def say(text, end="\n"):
    print(text, end=end, flush=True)


def measure(name, function, place, args):
    """The rows of one group; kept ones if they are valid."""
    old = kept(name)
    waits = name in CAMPAIGNS and not args.long and not args.only
    if (
        (args.resume or waits)
        and same(old.get("state"), state(args.profile, args.seed))
        and all(r["value"] is not None for r in old["rows"])
    ):
        say(f"{place} {name}: {len(old['rows'])} rows of an earlier run")
        return old["rows"]
    if waits:
        say(f"{place} {name}: not measured, about {minutes(name):.0f} minutes")
        return [
            failure(
                name,
                f"not measured with this simulator and control program: {minutes(name):.0f} "
                f"minutes, --long",
                args.profile,
                args.seed,
            )
        ]
    say(f"{place} {name}: about {minutes(name):.1f} minutes … ", end="")
    begin = time.monotonic()
    try:
        rows = function(args.profile, args.seed)
    except (Failed, OSError, ValueError, KeyError, StopIteration) as why:
        rows = [
            failure(
                name,
                f"{type(why).__name__}: {why}" if not isinstance(why, Failed) else why,
                args.profile,
                args.seed,
            )
        ]
    seconds = time.monotonic() - begin
    for r in rows:
        r["commit"] = args.commit
    # Taken afterwards: a group may have built what it needs.
    keep(name, state(args.profile, args.seed), seconds, rows)
    missed = sum(not r["pass"] for r in rows)
    say(f"{seconds:.0f} s, {len(rows)} rows" + (f", {missed} missed" if missed else ""))
    return rows


def in_words(r):
    """A row for people."""
    why = f": {r['reason']}" if "reason" in r else ""
    if "limited_by" in r and not r["pass"]:
        why = f", at {r['at']}: {r['limited_by']}"
    value = "–" if r["value"] is None else r["value"]
    verdict = "      " if r["target"] == NO_GOAL else "met   " if r["pass"] else "MISSED"
    return f"{verdict} {r['id']:44} {value:>12} {r['unit']} (target {r['target']}{why})"


def main(argv=None):
    parser = argparse.ArgumentParser(description="Measure every figure that has a target.")
    parser.add_argument("--profile", default="gen2x4", help="host and link (default gen2x4)")
    parser.add_argument("--seed", type=int, default=1, help="of every random choice (default 1)")
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        help="file to write (default out/figures.json; figures-part.json with --only)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="take the rows of groups that an earlier run measured"
    )
    parser.add_argument("--long", action="store_true", help="the campaigns too, that take hours")
    parser.add_argument("--only", default="", metavar="GROUP,…", help="these groups")
    parser.add_argument(
        "--page", action="store_true", help="put the rows into docs/figures.md, too"
    )
    parser.add_argument(
        "--list", action="store_true", help="print the groups and their minutes, and end"
    )
    args = parser.parse_args(argv)
    out = args.out or ROOT / "out" / ("figures-part.json" if args.only else "figures.json")
    wanted = groups(args.profile)
    if args.only:
        if unknown := [name for name in args.only.split(",") if name not in wanted]:
            parser.error(f"no group '{unknown[0]}'; --list shows them")
        wanted = {name: wanted[name] for name in args.only.split(",")}
    if args.list:
        for name in wanted:
            say(f"{minutes(name):6.1f}  {name}" + ("  (--long)" if name in CAMPAIGNS else ""))
        return 0
    now = [name for name in wanted if name not in CAMPAIGNS or args.long or args.only]
    say(
        f"{len(wanted)} groups, about {sum(map(minutes, now)):.0f} minutes; Ctrl-C ends it, "
        f"--resume goes on"
    )
    args.commit = commit()
    rows = []
    for number, (name, function) in enumerate(wanted.items(), 1):
        rows += measure(name, function, f"[{number}/{len(wanted)}]", args)
        # Written each time, so a run that is ended early leaves its rows.
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(rows, indent=2) + "\n")
    for r in rows:
        say(in_words(r))
    if args.page:
        write(rows)
    goals = [r for r in rows if r["target"] != NO_GOAL]
    say(f"{sum(r['pass'] for r in goals)} of {len(goals)} met; written: {out}")
    return 0 if all(r["pass"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(quiet(main))
