"""MPICH of PyPI in build/mpich, with a provider for the libfabric that it brings.

    python tests/mpich/bring.py

pins.txt holds version and hash. The headers of libfabric 2 come from Debian's suite trixie, because
Debian 12 has those of version 1. Nothing is installed. Does nothing when all is there; the provider
is built by make.
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.system.qemu import fetch

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = ROOT / "build" / "mpich"
PREFIX, HEADERS, PROVIDER = FOLDER / "prefix", FOLDER / "headers", FOLDER / "ofi"
PINS, READY = HERE / "pins.txt", FOLDER / "made-from"
SUITE = "trixie"


def _bring_mpich():
    pip = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    pip += ["--no-deps", "--ignore-installed", "--require-hashes", "--prefix", str(PREFIX)]
    subprocess.run([*pip, "-r", str(PINS)], check=True)


def _bring_headers():
    mirror, _ = fetch.system_suite()
    apt = fetch.Apt(FOLDER / "apt", mirror, [SUITE])
    apt.get("download", "libfabric-dev", cwd=apt.archives)
    apt.unpack(HEADERS)


def bring():
    """Raises CalledProcessError when pip or make fails, and FetchError when apt does."""
    if not READY.exists() or READY.read_text(encoding="utf-8") != PINS.read_text(encoding="utf-8"):
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        _bring_mpich()
        _bring_headers()
        READY.write_text(PINS.read_text(encoding="utf-8"), encoding="utf-8")
    words = [f"BUILD={PROVIDER}", "MPICC=", f"FABRIC_CFLAGS=-I{HEADERS / 'usr' / 'include'}"]
    words.append(f"FABRIC_LIBS=-L{PREFIX / 'lib' / 'mpich'} -l:libfabric.so.1")
    make = ["make", "-s", "-C", str(ROOT / "software" / "ofi"), "DEVELOPER=1", *words]
    subprocess.run(make, check=True, env={**os.environ, "MAKEFLAGS": ""})


if __name__ == "__main__":
    bring()
