"""Cards with a window."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def program():
    """The simulator of cards with a window; built if it is not up to date."""
    script = ROOT / "hw" / "sim" / "build.py"
    done = subprocess.run([sys.executable, script, "--window"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return pathlib.Path(done.stdout.split()[-1])
