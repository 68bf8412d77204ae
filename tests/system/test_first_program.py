"""The first programs of README.md, as they stand there, on two simulated cards."""

# SPDX-License-Identifier: BSD-2-Clause

import re
import subprocess
import sys

import pytest
from dibber_cli import paths, profile
from dibber_cli.simulator import Pair

README = (paths.ROOT / "README.md").read_text()


def program(language):
    """The only block of the README in a language."""
    [text] = re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S)
    return text


def python_program(folder):
    file = folder / "first.py"
    file.write_text(program("python"))
    return [sys.executable, "-P", file]


def c_program(folder):
    """Built by the README's own line for the compiler."""
    (folder / "first.c").write_text(program("c"))
    [line] = re.findall(r"^cc .*$", program("sh"), re.M)
    words = [
        {"first.c": folder / "first.c", "first": folder / "first"}.get(w, w) for w in line.split()
    ]
    built = subprocess.run(words, cwd=paths.ROOT, capture_output=True, text=True)
    assert built.returncode == 0 and built.stderr == "", built.stderr
    return [folder / "first"]


@pytest.mark.parametrize("made, last", [(python_program, "63.0"), (c_program, "63")])
def test_a_first_program_of_the_readme_moves_a_column(made, last, tmp_path, seed):
    command = made(tmp_path)
    with Pair(profile.load("gen2x4"), participants=0, seed=seed) as pair:
        done = subprocess.run(
            [*command, *pair.uris], cwd=paths.ROOT, timeout=600, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    said = f"notice 7 last element {last}"
    assert done.stdout == f"{said}\n" and f"# {said}\n" in program("sh")


def test_the_quick_start_moves_a_column_and_has_forty_lines_at_most(seed):
    program = paths.ROOT / "examples" / "quick_start.py"
    assert len(program.read_text(encoding="utf-8").splitlines()) <= 40
    with Pair(profile.load("gen2x4"), participants=0, seed=seed) as pair:
        done = subprocess.run(
            [sys.executable, "-P", program, *pair.uris],
            cwd=paths.ROOT,
            timeout=600,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"notice 7: 512 bytes in \d{4} ns\n", done.stdout)
