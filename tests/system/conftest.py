"""LitePCIe's own DMA on the host model: a yardstick for the model and the benchmarks."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def litepcie_rate():
    """The program; built if it is not up to date."""
    script = ROOT / "hw" / "sim" / "reference" / "build_reference.py"
    done = subprocess.run([sys.executable, script, "litepcie-rate"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout.split()[-1]
