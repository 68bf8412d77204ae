"""The recipes of docs/*.md, as they stand there.

A block that begins with ```console is run: each line behind "$ " by a shell, lines behind "(gdb) "
as its input. The other lines are its output, in which "…" stands for anything, and a line that is
"…" for any lines. Blocks without "console" need a board, another machine, or more than a minute.
Of those the command lines are checked: a `dibber` command is one that its parser takes, a program
of this tree is there and knows the options, a target of make is in the Makefile.
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import re
import shlex
import shutil
import subprocess

import pytest
from dibber_cli import main, paths

pytestmark = pytest.mark.fault

ROOT = paths.ROOT
DOCUMENTS = sorted((ROOT / "docs").glob("*.md")) + [ROOT / "README.md"]
# Programs of the system, and files that a build makes.
ELSEWHERE = {"lspci", "ls", "basename", "ulimit", "export", "./run.sh"}
MADE = ("build/sim/", "build/lib/")


def blocks():
    """(document:line, info string, lines) of each fenced block with a command."""
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.S | re.M):
            lines = found[2].splitlines()
            if any(line.startswith("$ ") for line in lines):
                number = text.count("\n", 0, found.start()) + 1
                yield f"{document.name}:{number}", found[1], lines


def commands(lines):
    """(command line, lines of input, lines of output) of each command of a block."""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], [], []))
        elif line.startswith("(gdb) "):
            found[-1][1].append(line.removeprefix("(gdb) "))
        elif found:
            found[-1][2].append(line)
    return found


def pattern(lines):
    """What the output of a command has to match."""
    parts = []
    for line in lines:
        if line == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(map(re.escape, line.split("…"))) + r"\n")
    return re.compile("".join(parts))


RUN = [(where, command) for where, info, lines in blocks() if info for command in commands(lines)]
CHECKED = [
    (where, command)
    for where, info, lines in blocks()
    if not info
    for command, _, _ in commands(lines)
]


@pytest.mark.parametrize("where, command", RUN, ids=lambda value: str(value[0])[:60])
def test_a_recipe_does_what_its_page_shows(where, command):
    line, typed, shown = command
    missing = [tool for tool in ("gdb-multiarch", "openocd") if typed and not shutil.which(tool)]
    assert not missing, f"{' and '.join(missing)} are not installed: install.sh brings them"
    ended = subprocess.run(
        ["sh", "-c", line],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{ROOT}/build/venv/bin:{os.environ['PATH']}"},
        input="".join(f"{text}\n" for text in typed),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=900,
    )
    # gdb does not repeat what it reads from a pipe: its answer stands behind the prompt.
    output = ended.stdout.replace("(gdb) ", "")
    assert pattern(shown).fullmatch(output), f"{where}: {line}\n{output}"


def test_the_recipes_that_are_run_are_there():
    assert {where.partition(":")[0] for where, _ in RUN} >= {"debugging.md", "bringup.md", "cli.md"}


def check_dibber(words):
    try:
        main.parser().parse_args(words)
    except SystemExit as ended:
        assert ended.code == 0, words


def check_make(words):
    targets = [word for word in words if "=" not in word and word != "-C"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in targets:
        assert re.search(rf"^([\w-]+ )*{re.escape(target)}( [\w-]+)*:", makefile, re.M), target


def help_of(script):
    return subprocess.run(
        [ROOT / "build/venv/bin/python", ROOT / script, "--help"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'gateware'}"},
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout


def check_python(words):
    words = words[1:] if words[:1] == ["-P"] else words
    if words[0] == "-m":
        assert words[1] == "pytest" and all((ROOT / word).exists() for word in words[2:])
        return
    script, *options = words
    # NAME stands for a board, of one kind or the other.
    scripts = [script.replace("NAME", board) for board in ("acorn", "ecpix5")]
    assert all((ROOT / name).is_file() for name in scripts), script
    wanted = [word for word in options if word.startswith("--")]
    shown = [help_of(name) for name in scripts[: 1 + ("NAME" in script)]] if wanted else [""]
    assert any(all(re.search(rf"{option}\b", text) for option in wanted) for text in shown), shown


@pytest.mark.parametrize("where, command", CHECKED)
def test_a_recipe_that_cannot_be_run_here_is_a_command_that_is_there(where, command):
    # "[--option]" may be left out; the option must be there.
    words = shlex.split(re.sub(r"\[(\S[^]]*)\]", r"\1", command), comments=True)
    words = words[: words.index("|")] if "|" in words else words
    while "=" in words[0]:
        del words[0]
    program, *words = words
    if program == "dibber":
        check_dibber(words)
    elif program == "make":
        check_make(words)
    elif program == "build/venv/bin/python":
        check_python(words)
    else:
        assert program in ELSEWHERE or program.startswith(MADE), (where, program)
