"""If the system refuses anything to the library, the call reports it, nothing leaks, and all
objects can be closed.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import re
import subprocess

from tests.fuzz import sanitized

SOURCE = pathlib.Path(__file__).resolve().with_name("out_of_memory.c")


def test_each_thing_that_the_library_asks_for_is_refused_once(serve, image, tmp_path):
    names = re.findall(r"^WRAP\(.*?, (\w+), ", SOURCE.read_text(), re.MULTILINE)
    program = sanitized.build(
        [SOURCE], tmp_path / "program", options=[f"-Wl,--wrap={name}" for name in names]
    )
    done = subprocess.run(
        [program, serve().uri, image()], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > 20
