"""Programs whose reader stops reading: they stop silently."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONG = "lambda: [print('x'*1000) for _ in range(1000)]"


def unread(*words):
    """(exit code, stderr) of a program whose reader has ended."""
    program = subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    program.stdout.close()
    said = program.stderr.read()
    return program.wait(), said


@pytest.mark.parametrize(
    "words",
    [
        "-m dibber_cli completion bash",
        "-u -m dibber_cli completion bash",
        "-m dibber_cli --help",
        "-m boards",
        "hw/synthesis/sizes.py --help",
    ],
)
def test_a_command_ends_without_a_word(words):
    code, said = unread(*words.split())
    assert said == "" and code in (0, 141)


def test_what_is_left_in_the_buffer_is_not_complained_of():
    assert unread(
        "-c", "import sys; from dibber_cli.pipe import quiet; sys.exit(quiet(lambda: print('x')))"
    ) == (141, "")
    assert unread(
        "-c", f"import sys; from dibber_cli.pipe import quiet; sys.exit(quiet({LONG}))"
    ) == (141, "")


def test_another_pipe_that_breaks_is_told():
    text = (
        "import os; from dibber_cli.pipe import quiet; ends = os.pipe(); os.close(ends[0]); "
        "quiet(lambda: os.write(ends[1], b'x'))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 1 and "BrokenPipeError" in done.stderr


def test_the_exit_code_is_that_of_the_program():
    for code in (0, 1):
        text = f"import sys; from dibber_cli.pipe import quiet; sys.exit(quiet(lambda: {code}))"
        assert subprocess.run([sys.executable, "-c", text]).returncode == code
