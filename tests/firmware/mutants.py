#!/usr/bin/env python3
"""Small changes of the control program's sources. A test must notice each of them.

    python tests/firmware/mutants.py choose [--seed 1] [--count 30]   choose by seed, write the list
    python tests/firmware/mutants.py find                    find the test that kills each new one
    python tests/firmware/mutants.py run [--sample N] [--seed 1]   all (or N) must fail their
    tests

The list is mutants.toml. A mutant is identified by its file, the text of its line, and the number
of the line among equal ones. It has no line number, so it survives changes elsewhere in the file.
Kinds:

    relation    < and <=, > and >=, == and != are exchanged
    constant    a number is increased by one
    statement   a line is left out
    named       written by hand

A mutant that no test can notice has `same` instead of `test`: the reason why the program behaves
the same.

`run` ends with 1 when a mutant lives, when a text of the list is no longer in its file, or when a
`same` is without reason. If a text is gone, remove its entry from the list. Then `choose` fills
the list up and `find` looks for the test.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import collections
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIST = HERE / "mutants.toml"

# It reads the machine code of the image: kicks of the watchdog, and the stack.
BOUNDS = "tests/firmware/test_mcp_bounds.py"

FIRMWARE = ROOT / "firmware"
FLAGS = [
    "-std=gnu11",
    "-O1",
    "-w",
    "-DMCP_NATIVE",
    "-fsanitize=undefined",
    "-fno-sanitize-recover=all",
    "-fPIC",
]

# Tests of the image, and tests that compile the program themselves: they do not use a mutant's
# library. Of these only `bounds` is tried, last.
OTHERS = ("binary", "bounds", "image", "trap", "duties", "fuzz", "mutants")
# of wall time for a run of tests; a program that takes longer hangs, so it is noticed
SECONDS = 600

RELATIONS = {"<=": "<", ">=": ">", "==": "!=", "!=": "==", "<": "<=", ">": ">="}
RELATION = re.compile(r"(?<![-<>=!])(<=|>=|==|!=|<|>)(?![<>=])")
CONSTANT = re.compile(r"(?<![\w.])(\d+)(u?)(?![\w.])")
STATEMENT = re.compile(
    r"^(?!return\b|break\b|continue\b|case\b|default\b|static\b|extern\b|struct\b|enum\b|u?int\d|bool\b|const\b"
    r"|goto\b|else\b|do\b|while\b)[\w*(&+-].*;$"
)

# `at`: the place in the line; `new`: the line's new text
Mutant = collections.namedtuple("Mutant", "file line number kind at new")

# Candidates ---------------------------------------------------------------------------------------


def code_lines(text):
    """(index, line) of the lines of functions, comments blanked out by spaces."""
    blank = lambda found: re.sub(r"[^\n]", " ", found[0])
    lines = re.sub(r"/\*.*?\*/|\"[^\"\n]*\"", blank, text, flags=re.S).split("\n")
    inside = False
    for index, line in enumerate(lines):
        if line == "{":
            inside = True
        elif line == "}":
            inside = False
        elif inside:
            yield index, line


def whole_statement(lines, index):
    """Whether the line is a statement by itself, and not the end of one, nor all that an `if`
    has.
    """
    before = next((line.rstrip() for line in reversed(lines[:index]) if line.strip()), "")
    return bool(STATEMENT.match(lines[index].strip())) and before.endswith((";", "{", "}", ":"))


def mutants_of(name, text):
    """All mutants of a source file."""
    raw, lines = text.split("\n"), dict(code_lines(text))
    whole, seen = [lines.get(n, "") for n in range(len(raw))], collections.Counter()
    for index, line in enumerate(raw):
        number = seen[line.strip()]
        seen[line.strip()] += 1
        if index not in lines:
            continue
        code = lines[index]
        for at, found in enumerate(RELATION.finditer(code)):
            new = line[: found.start()] + RELATIONS[found[1]] + line[found.end() :]
            yield Mutant(name, line.strip(), number, "relation", at, new.strip())
        for at, found in enumerate(CONSTANT.finditer(code)):
            new = line[: found.start()] + str(int(found[1]) + 1) + found[2] + line[found.end() :]
            yield Mutant(name, line.strip(), number, "constant", at, new.strip())
        if whole_statement(whole, index):
            yield Mutant(name, line.strip(), number, "statement", 0, ";")


def program_files():
    """Paths of the program's C files, by their names below firmware/."""
    return {
        str(path.relative_to(FIRMWARE)): path
        for path in FIRMWARE.rglob("*.c")
        if path.name != "asm_offsets.c"
    }


def candidates():
    return [
        mutant
        for name, path in sorted(program_files().items())
        for mutant in mutants_of(name, path.read_text())
    ]


def chosen(seed, count, kept=()):
    """`count` mutants, those of `kept` among them; a third of each kind, by seed."""
    rng, found = random.Random(seed), {kind: [] for kind in ("relation", "constant", "statement")}
    for mutant in candidates():
        found[mutant.kind].append(mutant)
    taken = list(kept)
    lines = {(mutant.file, mutant.line) for mutant in taken}
    for mutants in found.values():
        rng.shuffle(mutants)
    while len(taken) < count:
        kind = min(found, key=lambda kind: sum(mutant.kind == kind for mutant in taken))
        mutant = found[kind].pop()
        if (mutant.file, mutant.line) not in lines:
            lines.add((mutant.file, mutant.line))
            taken.append(mutant)
    return taken


# The list -----------------------------------------------------------------------------------------


def read_list():
    """[(Mutant, {"test": …} or {"same": …} or {})]"""
    if not LIST.exists():
        return []
    entries = tomllib.loads(LIST.read_text())["mutant"]
    return [
        (
            Mutant(*(entry[name] for name in Mutant._fields)),
            {k: entry[k] for k in ("test", "same") if k in entry},
        )
        for entry in entries
    ]


def write_list(entries):
    quote = lambda value: (
        str(value)
        if isinstance(value, int)
        else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    )
    text = (
        "# Mutants of the control program: see mutants.py, which writes this list. `same` is "
        "written by hand.\n"
    )
    for mutant, verdict in sorted(entries, key=lambda entry: entry[0]):
        rows = {**mutant._asdict(), **verdict}
        text += "\n[[mutant]]\n" + "".join(
            f"{name:<6} = {quote(value)}\n" for name, value in rows.items()
        )
    LIST.write_text(text)


def mutated(mutant):
    """The text of the mutant's file; None if its line is no longer there."""
    lines = (
        (FIRMWARE / mutant.file).read_text().split("\n")
        if (FIRMWARE / mutant.file).exists()
        else []
    )
    places = [n for n, line in enumerate(lines) if line.strip() == mutant.line]
    if mutant.number >= len(places):
        return None
    line = lines[places[mutant.number]]
    lines[places[mutant.number]] = line[: len(line) - len(line.lstrip())] + mutant.new
    return "\n".join(lines)


# Build and run ------------------------------------------------------------------------------------


class Builder:
    """Objects of the program and of the register fake, made once, and a library for each mutant."""

    def __init__(self, folder):
        from tests.firmware import mcp_native

        mcp_native.build()  # and the headers that it writes
        self.folder = pathlib.Path(folder)
        self.include = [f"-I{FIRMWARE}", f"-I{mcp_native.OUT}", f"-I{HERE}"]
        sources = program_files() | {path.name: path for path in HERE.glob("*.c")}
        self.objects = {name: self.compiled(path, path.stem) for name, path in sources.items()}

    def compiled(self, path, name):
        target = self.folder / f"{name}.o"
        subprocess.run(["gcc", *FLAGS, *self.include, "-c", "-o", target, path], check=True)
        return target

    def library(self, mutant, text):
        source = self.folder / f"mutant-{pathlib.Path(mutant.file).name}"
        source.write_text(text)
        objects = {**self.objects, mutant.file: self.compiled(source, "mutant")}
        target = self.folder / "mutant.so"
        subprocess.run(
            ["gcc", "-shared", "-fsanitize=undefined", "-o", target, *objects.values()], check=True
        )
        return target

    def images(self, mutant, text):
        """The folder of the images, of the mutant's source and the others."""
        source, out = self.folder / "source", self.folder / "images"
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(FIRMWARE, source)
        (source / mutant.file).write_text(text)
        subprocess.run(
            [
                "make",
                "-s",
                "-C",
                FIRMWARE,
                f"SOURCE={source}",
                f"OUT={out}",
                f"PYTHON={sys.executable}",
                *[out / size / "mcp.elf" for size in ("64k", "128k")],
            ],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "gateware")},
        )
        return out


def first_failure(tests, **environment):
    """The test that fails with a program, or None. A test that does not end, or aborts, has failed.

    environment : MCP_LIBRARY, the native program, or MCP_IMAGES, the folder of images
    """
    command = [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        "-x",
        "-vv",
        "--seed",
        "1",
        "-p",
        "no:cacheprovider",
        *map(str, tests),
    ]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        out = done.stdout
        if done.returncode == 0:
            return None
    except subprocess.TimeoutExpired as late:
        out = (late.stdout or b"").decode(errors="replace")
    ran = re.findall(r"^(tests/firmware/\S+\.py::.*?)(?: (PASSED|FAILED|ERROR)|\s*$)", out, re.M)
    if not ran:
        raise RuntimeError(f"no test ran: {out[-500:]}")
    return next(
        (name for name, verdict in ran if verdict in ("FAILED", "ERROR")), ran[-1][0]
    ).strip()


def killed_by(builder, mutant, text, tests):
    """The first of these tests that notices a mutant, or None. Those of test_mcp_bounds.py use the
    image."""
    if str(tests[0]).startswith(BOUNDS):
        return first_failure(tests, MCP_IMAGES=str(builder.images(mutant, text)))
    return first_failure(tests, MCP_LIBRARY=str(builder.library(mutant, text)))


def native_tests():
    """Files of tests that run the native program, the quick ones first."""
    names = sorted(
        path
        for path in HERE.glob("test_mcp_*.py")
        if path.stem.removeprefix("test_mcp_") not in OTHERS
    )
    slow = ("flow", "replay", "answers", "way_back", "fast", "express")
    return sorted(names, key=lambda path: path.stem.removeprefix("test_mcp_") in slow)


def shown(mutant):
    return f"{mutant.file}: {mutant.line}  ->  {mutant.new}"


def find(builder, entries):
    """Give each mutant without a verdict the test that kills it, if there is one. Return whether
    all have one now.
    """
    alive = 0
    for n, (mutant, verdict) in enumerate(entries):
        text = mutated(mutant)
        if verdict or text is None:
            continue
        killer = killed_by(builder, mutant, text, native_tests()) or killed_by(
            builder, mutant, text, [BOUNDS]
        )
        print(f"{'killed' if killer else 'ALIVE '}  {shown(mutant)}  {killer or ''}", flush=True)
        if killer:
            entries[n] = mutant, {"test": killer}
            write_list(entries)
        else:
            alive += 1
    return alive == 0


def run(builder, entries):
    """Faults of these mutants, as lines."""
    wrong = []
    for mutant, verdict in entries:
        text = mutated(mutant)
        if text is None:
            wrong.append(
                f"no longer there: {shown(mutant)}; take it out of {LIST.name}, 'choose' and "
                f"'find' another one"
            )
        elif "same" in verdict:
            if len(verdict["same"]) < 20:
                wrong.append(f"no reason why it is the same: {shown(mutant)}")
        elif "test" not in verdict:
            wrong.append(f"nobody has looked for its test: {shown(mutant)}")
        elif not killed_by(builder, mutant, text, [verdict["test"]]):
            wrong.append(f"lives, {verdict['test']} passes: {shown(mutant)}")
    return wrong


# Command line -------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["choose", "find", "run"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=30, help="mutants of the list (default 30)")
    parser.add_argument("--sample", type=int, help="of the list, by seed; without it all")
    args = parser.parse_args()
    entries = read_list()
    if args.what == "choose":
        known = dict(entries)
        write_list(
            [(mutant, known.get(mutant, {})) for mutant in chosen(args.seed, args.count, known)]
        )
        return 0
    with tempfile.TemporaryDirectory() as folder:
        builder = Builder(folder)
        if args.what == "find":
            return 0 if find(builder, entries) else 1
        if args.sample:
            entries = random.Random(args.seed).sample(entries, min(args.sample, len(entries)))
        wrong = run(builder, entries)
    print(
        *wrong,
        f"{len(entries) - len(wrong)} of {len(entries)} mutants killed, or argued to be the same "
        f"program",
        sep="\n",
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
