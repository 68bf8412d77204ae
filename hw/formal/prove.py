"""Prove the properties of docs/proofs.md, and let each of them reject its mutants.

    python hw/formal/prove.py [name ...] [--quick] [--check] [--mutant NAME] [--jobs N]
                                    [--json]

Prints a table of the properties and one of the mutants; out/formal.json has both. The exit code is
not 0 when a proof fails or a mutant survives. Counter-examples are left below build/formal/, as VCD
files; for an induction that proves its conclusions one at a time, only their names are printed.

`--check` proves nothing. It elaborates every harness and every mutant in some seconds, so a
name or a mutant's text that is missing in the gateware is found at once.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT/"gateware")]

import delivery
import engine
from dibber_cli.pipe import quiet
from proofs import properties
from dibber.common.elaboration import elaborate_quickly

GOOD = ("proven", "rejected", "elaborates")


def obligations(names, quick, check_only=False):
    """([(row, function)]) of properties and of mutants: the tables before the run.

    With `check_only` the functions elaborate and prove nothing. The Spin models are left out then,
    because they do not refer to the gateware.
    """
    def action(file, *what):
        if check_only:
            return lambda t: engine.elaborates(file, *what)
        return lambda t: engine.check(file, *what, timeout=t)
    proofs, mutants = [], []
    for file, p in properties():
        if (quick and not p.quick) or (names and p.name not in names):
            continue
        method = f"k-induction, k = {p.k}" if p.k else f"bounded, {p.bound} cycles"
        proofs.append((dict(name=p.name, block=p.block, says=p.says, widths=p.widths, method=method),
            action(file, p)))
        for m in p.mutants[:1 if quick else None]:
            mutants.append((dict(property=p.name, mutant=m.name, where=m.module),
                action(file, p, m)))
    if check_only:
        return proofs, mutants
    def model(check):
        def run(t):
            try:
                return delivery.run(check, engine.BUILD/"delivery", t)
            except (RuntimeError, OSError, subprocess.TimeoutExpired) as e:
                return dict(verdict="ERROR", seconds=0.0, depth=None, failed=[str(e)])
        return run
    chosen = [c for c in delivery.MODELS if not (quick and not c.quick) and (not names or c.name in names)]
    proofs += [(dict(name=c.name, block=c.model, says=c.says, widths=c.widths, method="all states (Spin)"),
        model(c)) for c in chosen]
    for name in dict.fromkeys(c.model for c in chosen):
        of_model = [c for c in delivery.MUTANTS if c.model == name]
        mutants += [(dict(property=name.removesuffix(".pml"), mutant=c.name, where=name), model(c))
            for c in of_model[:1 if quick else None]]
    return proofs, mutants


def table(rows, columns):
    """Lines of a table; `columns` are (title, key, alignment)."""
    text   = [[title for title, _, _ in columns]] + [[str(row.get(key, "")) for _, key, _ in columns] for row in rows]
    widths = [max(len(line[i]) for line in text) for i in range(len(columns))]
    return ["  ".join(f"{cell:{columns[i][2]}{widths[i]}}" for i, cell in enumerate(line)).rstrip() for line in text]


def main():
    elaborate_quickly()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="properties; all if none is named")
    parser.add_argument("--quick",   action="store_true", help="a sample, one mutant each")
    parser.add_argument("--check",   action="store_true", help="elaborate only, prove nothing")
    parser.add_argument("--mutant",  action="append", default=[], metavar="NAME",
                        help="these mutants and no property; may be given more than once")
    parser.add_argument("--jobs",    type=int, default=1, help="proofs at a time (default 1)")
    parser.add_argument("--timeout", type=int, default=900, help="seconds for one run of a solver (default 900)")
    parser.add_argument("--json",    action="store_true", help="the tables as JSON")
    args = parser.parse_args()

    start = time.monotonic()
    proofs, mutants = obligations(args.names, args.quick, args.check)
    if not proofs:
        parser.error("no such property; there are " + ", ".join(
            [p.name for _, p in properties()] + [c.name for c in delivery.MODELS]))
    if args.mutant:
        proofs, mutants = [], [item for item in mutants if item[0]["mutant"] in args.mutant]
        if not mutants:
            parser.error("no such mutant")

    def carry_out(item):
        row, function = item
        row.update(function(args.timeout))
        if not args.json:
            print(f"formal     {row['verdict']:8} {row['seconds']:6.1f} s  {row.get('name') or row['mutant']}",
                  file=sys.stderr, flush=True)
        return row
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        rows = list(pool.map(carry_out, proofs + mutants))
    proven, tried = rows[:len(proofs)], rows[len(proofs):]
    good   = all(row["verdict"] in GOOD for row in rows)
    result = {"pass": good, "seconds": round(time.monotonic() - start, 1), "properties": proven, "mutants": tried}
    if not (args.quick or args.names or args.mutant or args.check):
        (ROOT/"out").mkdir(exist_ok=True)
        (ROOT/"out"/"formal.json").write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    if args.json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
        sys.exit(not good)

    print("Properties")
    print("\n".join(table([{**r, "states": f"{r['states']:,}" if "states" in r else ""} for r in proven], (
        ("name", "name", "<"), ("block", "block", "<"), ("widths", "widths", "<"), ("method", "method", "<"),
        ("states", "states", ">"), ("s", "seconds", ">"), ("verdict", "verdict", "<"), ("property", "says", "<")))))
    print("\nMutants: each must be rejected")
    print("\n".join(table([{**r, "broken": ", ".join(r["failed"]) if r["verdict"] == "rejected" else ""} for r in tried], (
        ("property", "property", "<"), ("mutant", "mutant", "<"), ("in", "where", "<"), ("depth", "depth", ">"),
        ("s", "seconds", ">"), ("verdict", "verdict", "<"), ("what breaks", "broken", "<")))))
    for row in rows:
        if row["verdict"] not in GOOD:
            print(f"\n{row.get('name') or row['mutant']}: {row['verdict']}: {'; '.join(row['failed'])}")
    if args.check:
        fits = lambda rows: f"{sum(r['verdict'] == 'elaborates' for r in rows)} of {len(rows)}"
        print(f"\n{fits(proven)} properties and {fits(tried)} mutants elaborate, {result['seconds']} s")
        sys.exit(not good)
    print(f"\n{sum(r['verdict'] == 'proven' for r in proven)} of {len(proven)} properties proven, "
          f"{sum(r['verdict'] == 'rejected' for r in tried)} of {len(tried)} mutants rejected, {result['seconds']} s")
    sys.exit(not good)


if __name__ == "__main__":
    sys.exit(quiet(main))
