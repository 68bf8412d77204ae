"""The heat equation of examples/ with columns as derived types, in C and with mpi4py."""

# SPDX-License-Identifier: BSD-2-Clause

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest
from dibber_cli import paths

PATH = pathlib.Path(__file__).parents[1] / "mpi4py" / "suite.py"
SPEC = importlib.util.spec_from_file_location("mpi4py_suite", PATH)
suite = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(suite)

SAID = re.compile(r"(\d+) rows: ([\d.]+) us an exchange, 0 cells wrong\n")


def run(options, *program, **settings):
    done = subprocess.run(
        [sys.executable, "-P", "-m", "dibber_cli", "mpirun", *options, *map(str, program)],
        env={**os.environ, **settings},
        timeout=300,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = SAID.fullmatch(done.stdout)
    assert found and found[1] == "1024", done.stdout
    return float(found[2])


@pytest.mark.parametrize("options", [["-n", "2"], ["-n", "3", "--strided"]], ids=str)
def test_heat_in_c_spreads_as_in_one_process(options):
    """A column of 8,192 bytes each way takes 17 us at the least, at 500 MB/s."""
    assert run(options, paths.BUILD / "ofi" / "heat", 1024, 6, 3) > 17


def test_heat_with_mpi4py_spreads_as_in_one_process():
    suite.bring()
    site = str(suite.FOLDER / "site")
    program = paths.ROOT / "examples" / "heat.py"
    words = [sys.executable, program, 1024, 6, 2]
    assert run(["-n", "2", "--strided"], *words, PYTHONPATH=site) > 17
