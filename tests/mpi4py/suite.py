"""mpi4py's own tests over simulated cards: whole, or some of its modules.

python tests/mpi4py/suite.py [--ranks N]… [--modules REGEX]

The first call brings mpi4py and its tests into build/mpi4py (pins.txt). A test that fails, or a
rank that runs other tests than the first, ends the command with 1. left_out.txt names the tests
that are left out, with a reason each.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = ROOT / "build" / "mpi4py"
PINS, LEFT_OUT = HERE / "pins.txt", HERE / "left_out.txt"
READY = FOLDER / "made-from"  # a copy of PINS when all is there


@dataclass
class Result:
    """What the ranks did.

    Attributes
    ----------
    ran     : tests of each rank
    skipped : tests that the suite itself skips with this MPI
    failed  : names of tests that failed, of any rank
    code    : exit code
    text    : the output
    """

    ran: list
    skipped: int
    failed: list
    code: int
    text: str

    @property
    def good(self):
        return not self.code and not self.failed and len(set(self.ran)) == 1


def bring():
    """mpi4py and its tests in FOLDER. Raises CalledProcessError when pip fails."""
    if READY.exists() and READY.read_text(encoding="utf-8") == PINS.read_text(encoding="utf-8"):
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    pip = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "-q"]
    pins = ["--no-deps", "--require-hashes", "-r", str(PINS)]
    subprocess.run([*pip, "install", "--target", str(FOLDER / "site"), *pins], check=True)
    source = ["download", "--no-binary", "mpi4py", "-d", str(FOLDER / "source"), *pins]
    subprocess.run([*pip, *source], check=True)
    (archive,) = (FOLDER / "source").glob("*.tar.gz")
    # Debian 12's Python 3.11.2 has no filters. pip has compared the archive's hash.
    checked = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(archive) as tar:
        tar.extractall(FOLDER / "source", **checked)
    READY.write_text(PINS.read_text(encoding="utf-8"), encoding="utf-8")


def tests_folder():
    (folder,) = (FOLDER / "source").glob("mpi4py-*/test")
    return folder


def left_out():
    """{pattern: reason} of left_out.txt. Raises ValueError for a line without a reason."""
    found = {}
    for line in LEFT_OUT.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        pattern, _, reason = line.partition("  # ")
        if not reason.strip():
            raise ValueError(f"{LEFT_OUT}: {line!r} has no reason")
        found[pattern.strip()] = reason.strip()
    return found


def run(ranks, modules="", topology=None, seconds=1800, log=None):
    """Run the suite on so many ranks; returns a Result.

    modules : regular expression of its modules; "": all
    log     : file that the output goes to while the suite runs; None: a temporary one
    """
    command = [sys.executable, "-P", "-m", "dibber_cli", "mpirun", "-n", str(ranks)]
    if topology:
        command += ["--topology", topology]
    command += [sys.executable, "runtests.py", "--path", str(FOLDER / "site"), "--no-builddir"]
    # Arrays of numpy repeat the tests of Python's own arrays.
    command += ["--no-numpy", "-v"]
    command += ["-i", modules] if modules else []
    for pattern in left_out():
        command += ["-x", pattern]
    with open(log, "w+b") if log else tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            cwd=tests_folder(),
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            code = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            # `dibber mpirun` ends its launcher and its simulator when it is asked to end.
            process.terminate()
            process.wait()
            code = 124
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Result(
        ran=[int(n) for n in re.findall(r"Ran (\d+) tests? in", text)],
        skipped=max([int(n) for n in re.findall(r"skipped=(\d+)", text)], default=0),
        failed=sorted(set(re.findall(r"^(?:FAIL|ERROR): (.*)$", text, re.MULTILINE))),
        code=code,
        text=text,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, action="append", help="default: 2, then 4")
    parser.add_argument("--modules", default="", metavar="REGEX")
    parser.add_argument("--bring", action="store_true", help="bring mpi4py, and run nothing")
    arguments = parser.parse_args()
    bring()
    good = True
    for ranks in () if arguments.bring else arguments.ranks or (2, 4):
        begin = time.monotonic()
        log = FOLDER / f"{ranks}-ranks.log"
        found = run(ranks, arguments.modules, seconds=36000, log=log)
        print(
            f"mpi4py's tests on {ranks} ranks: {max(found.ran, default=0)} ran, of them "
            f"{found.skipped} skipped by themselves; {len(found.failed)} failed; "
            f"{len(left_out())} patterns left out; {time.monotonic() - begin:.0f} s; {log}"
        )
        for name in found.failed:
            print(f"  {name}")
        good &= found.good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
