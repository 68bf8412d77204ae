"""How many lines of the library and of its Python code the tests of tests/software run.

    python tools/measure_coverage.py [--seed N] [--json] [tests ...]

Builds libdibber a second time, below build/coverage, with gcov's counters (gcc --coverage), runs
the tests with it, prints each C file and each Python file with lines, lines run and their share,
and writes out/coverage.json. Ends with 1 when a test failed.

Tests that count instructions or build the library themselves are left out: a library with counters
says nothing there.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "coverage"
LEFT_OUT = ("test_put_cost", "test_call_cost", "test_fuzz", "test_install", "test_rooms_check")


def build():
    """libdibber with gcov's counters; its folder. What earlier runs counted is forgotten."""
    shutil.rmtree(BUILD, ignore_errors=True)
    folder = BUILD / "lib"
    command = ["make", "-C", str(ROOT / "software" / "lib"), f"BUILD={folder}"]
    flags = ["CFLAGS=-O0 -g --coverage", "LDFLAGS=--coverage"]
    subprocess.run([*command, *flags], check=True, stdout=subprocess.DEVNULL)
    return folder


def run_tests(folder, tests, seed):
    """Whether all passed."""
    left_out = [f"--ignore={ROOT}/tests/software/{name}.py" for name in LEFT_OUT]
    command = [sys.executable, "-P", "-m", "pytest", "--seed", str(seed), *left_out]
    covered = ["--cov=libdibber", "--cov=dibber_cli", "--cov-report="]
    environment = dict(
        os.environ,
        LIBDIBBER=str(folder / "libdibber.so"),
        COVERAGE_FILE=str(BUILD / "python.coverage"),
    )
    return subprocess.run([*command, *covered, *tests], cwd=ROOT, env=environment).returncode == 0


def c_rows(folder):
    """(file, lines, lines run) of each source of the library."""
    objects = sorted(folder.glob("*.gcno"))
    command = ["gcov", "-n", "-o", str(folder), *(str(path) for path in objects)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=BUILD).stdout
    for name, share, lines in re.findall(r"File '(.*)'\nLines executed:([\d.]+)% of (\d+)", said):
        path = pathlib.Path(name)
        if path.is_relative_to(ROOT / "software"):
            yield str(path.relative_to(ROOT)), int(lines), round(float(share) * int(lines) / 100)


def python_rows():
    """(file, lines, lines run) of each Python file."""
    report = BUILD / "python.json"
    command = [sys.executable, "-P", "-m", "coverage", "json", "--quiet", "-o", str(report)]
    environment = dict(os.environ, COVERAGE_FILE=str(BUILD / "python.coverage"))
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
    for name, file in json.loads(report.read_text())["files"].items():
        summary = file["summary"]
        if summary["num_statements"]:
            yield name, summary["num_statements"], summary["covered_lines"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", nargs="*", default=["tests/software"], help="files of tests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    args = parser.parse_args()
    folder = build()
    passed = run_tests(folder, args.tests, args.seed)
    rows = [*c_rows(folder), *python_rows()]
    rows += [
        (f"all {kind}", sum(r[1] for r in chosen), sum(r[2] for r in chosen))
        for kind, suffix in [("C", (".c", ".h")), ("Python", ".py")]
        for chosen in [[row for row in rows if row[0].endswith(suffix)]]
    ]
    table = [dict(file=name, lines=lines, run=run) for name, lines, run in rows]
    (ROOT / "out").mkdir(exist_ok=True)
    (ROOT / "out" / "coverage.json").write_text(json.dumps(table, indent=2) + "\n")
    if args.json:
        print(json.dumps(table, indent=2))
    else:
        width = max(len(row["file"]) for row in table)
        for row in table:
            share = 100 * row["run"] / row["lines"] if row["lines"] else 100
            print(f"{row['file']:{width}} {row['lines']:6} lines {share:6.1f} % run")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
