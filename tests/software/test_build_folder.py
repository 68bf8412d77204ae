"""Make and Python look for a build of other sizes in the same folder."""

# SPDX-License-Identifier: BSD-2-Clause

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHOW = """
import pathlib
import libdibber.binding as binding
from dibber_cli import paths

pathlib.Path.exists = lambda path: True
print(paths.BUILD)
print(binding.library_path())
"""


@pytest.mark.parametrize(
    "sizes, folder",
    [
        ({}, "build"),
        ({"DIBBER_NODES": "64"}, "build/nodes-64"),
        ({"DIBBER_ENDPOINTS": "16"}, "build/endpoints-16"),
    ],
    ids=["usual", "nodes", "endpoints"],
)
def test_make_and_python_have_one_folder_for_a_build(sizes, folder):
    rest = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DIBBER_") and name not in ("LIBDIBBER", "MAKEFLAGS", "MAKELEVEL")
    }
    output = lambda *command: (
        subprocess.run(
            command, cwd=ROOT, env=rest | sizes, check=True, capture_output=True, text=True
        ).stdout
    )
    made = output("make", "-f", "tools/place.mk", "--eval", "show: ; @echo $(PLACE)", "show")
    assert made.split() == [folder]
    assert output(sys.executable, "-P", "-c", SHOW).split() == [
        str(ROOT / folder),
        str(ROOT / folder / "lib" / "libdibber.so"),
    ]
