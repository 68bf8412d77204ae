"""Check what keeps the tree easy to live in: `make check-rooms`.

    python tools/rooms.py [--json]

- no circle of imports among Python modules, and none of includes among C files;
- README.md has at most 100 lines, a source file at most 600, a constructor of gateware 150;
- a line of a page's prose has at most 100 characters;
- a commit's subject has at most 72 characters;
- a word in capitals in the docs is a name of the interface, or stands in docs/glossary.md.

Prints one line for each fault and ends with 1 if there is any. LONGER and CAPITALS below list the
exceptions; a file that is longer than 600 lines may become shorter, never longer.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import ast
import errno
import json
import pathlib
import re
import signal
import sys

from tools import constructors
from tools.files import git, names
from tools.graphs import components

ROOT = pathlib.Path(__file__).resolve().parents[1]

README_LINES = 100
SOURCE_LINES = 600
COLUMNS = 100
SUBJECT = 72

# The first commit whose subject is held to 72 characters is the one after this.
RULE_SINCE = "ceb3366"

# Files that are longer than 600 lines, and how long they may be.
LONGER = {
    "software/lib/include/dibber/dibber.h": 1460,  # the public interface is one file to include
    "gateware/dibber/interface/description.py": 1300,  # every register and field, described once
    "firmware/bounds.py": 760,
    "hw/synthesis/bitstream.py": 660,
    "tests/firmware/fake_fast.c": 790,
    "tests/firmware/test_mcp_fast.py": 800,
    "tests/firmware/test_mcp_messages.py": 640,
    "tests/firmware/test_mcp_replay.py": 650,
    "tests/gateware/fastpath/contexts_world.py": 640,
    "tests/gateware/fastpath/test_fast_commands.py": 650,
    "tests/gateware/mcp/test_control_registers.py": 750,
    "tests/gateware/packet/test_flow_table.py": 870,
    "tests/gateware/packet/test_packet_receiver.py": 940,
    "tests/gateware/packet/test_packet_transmitter.py": 660,
    "tests/software/test_binding_arguments.py": 690,
    "tests/system/host_model/test_clock.py": 640,
    "tests/system/host_model/test_vfio_server.py": 660,
}

# Include circles that are one machine on purpose, by folder: a README there says so.
ONE_MACHINE = ()


def tracked(*patterns):
    """Paths of the tree that match, as strings relative to ROOT."""
    return names(*patterns, root=ROOT)


# Circles ------------------------------------------------------------------------------------------


def circles(graph):
    """Components of {node: nodes that follow} with more than one node, each sorted."""
    return [sorted(part) for part in components(graph) if len(part) > 1]


PACKAGES = {
    "dibber": "gateware/dibber",
    "libdibber": "software/python/libdibber",
    "dibber_cli": "software/cli/dibber_cli",
    "boards": "boards",
}


def python_modules():
    """{module: path} of the packages."""
    modules = {}
    for package, folder in PACKAGES.items():
        for name in tracked(f"{folder}/*.py"):
            inside = pathlib.PurePath(name).relative_to(folder).with_suffix("")
            parts = [package, *inside.parts]
            if parts[-1] == "__init__":
                parts.pop()
            modules[".".join(parts)] = name
    return modules


def imports(tree, module, is_package, modules=()):
    """What is imported when `module` is. Imports inside functions are not counted."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    nodes = list(tree.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package[: len(package) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            parts = [f"{base}.{alias.name}" for alias in node.names]
            yield from parts
            # `from package import module` reads the module; other names are the package's own.
            if not all(part in modules for part in parts):
                yield base
        elif isinstance(node, (ast.If, ast.Try, ast.With, ast.ClassDef)):
            nodes += [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)]


def import_graph(modules):
    """{module: modules of the packages that it imports}."""
    graph = {}
    for module, name in modules.items():
        tree = ast.parse((ROOT / name).read_text())
        found = set(imports(tree, module, name.endswith("__init__.py"), modules))
        graph[module] = {m for m in found if m in modules and m != module}
    return graph


INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def include_graph():
    """{file: files of the tree that it includes}, by the path beside it or by its last parts."""
    files = tracked("*.c", "*.h", "*.cc")
    graph = {}
    for name in files:
        graph[name] = set()
        for included in INCLUDE.findall((ROOT / name).read_text()):
            beside = (ROOT / name).parent.joinpath(included).resolve()
            if beside.is_relative_to(ROOT) and str(beside.relative_to(ROOT)) in files:
                graph[name].add(str(beside.relative_to(ROOT)))
            else:
                top = name.split("/")[0]
                same = [f for f in files if f.endswith("/" + included) and f.startswith(top)]
                graph[name].update(same[:1])
    return graph


def circle_faults():
    for part in circles(import_graph(python_modules())):
        yield f"imports in a circle: {', '.join(part)}"
    for part in circles(include_graph()):
        if not any(all(name.startswith(folder) for name in part) for folder in ONE_MACHINE):
            yield f"includes in a circle: {', '.join(part)}"


# Lengths ------------------------------------------------------------------------------------------


def length_faults():
    lines = len((ROOT / "README.md").read_text().splitlines())
    if lines > README_LINES:
        yield f"README.md: {lines} lines, at most {README_LINES}"
    for name in tracked("*.py", "*.c", "*.h", "*.cc", "*.S", "*.sh", "*.v"):
        lines = len((ROOT / name).read_text().splitlines())
        if lines > LONGER.get(name, SOURCE_LINES):
            yield f"{name}: {lines} lines, at most {LONGER.get(name, SOURCE_LINES)}"
    for name in LONGER:
        if not (ROOT / name).is_file():
            yield f"{name}: is in LONGER of tools/rooms.py, and does not exist"


def constructor_faults():
    folder = "gateware/dibber/"
    return constructors.faults(
        {
            name.removeprefix(folder).removesuffix(".py"): (ROOT / name).read_text(encoding="utf-8")
            for name in tracked(f"{folder}*.py")
        }
    )


def wide_lines(text):
    """Numbers of the lines of prose in a page that are too long. Tables, commands, and a line that
    cannot be wrapped are left out.
    """
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        is_prose = not fenced and not line.startswith(("|", "    "))
        if is_prose and len(line) > COLUMNS and " " in line.strip():
            yield number


def page_faults():
    for name in tracked("*.md"):
        for number in wide_lines((ROOT / name).read_text(encoding="utf-8")):
            yield f"{name}, line {number}: more than {COLUMNS} characters"


def subject_faults():
    """Long subjects since the rule. A shallow clone or an archive has no history to look at."""
    log = git(ROOT, "log", "--no-merges", "--format=%h %s", f"{RULE_SINCE}..HEAD")
    for line in (log or "").splitlines():
        number, _, subject = line.partition(" ")
        if len(subject) > SUBJECT:
            yield f"commit {number}: a subject of {len(subject)} characters, at most {SUBJECT}"


# Words --------------------------------------------------------------------------------------------

WORD = re.compile(
    r"(?<![\w$/.-])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?![\w(])|(?<![\w$/.-])[A-Z]{4,}(?![\w(])"
)


def known_words():
    """Names of the interface description, of the library's header, and of Makefile variables."""
    known = set()
    sources = [
        *tracked("gateware/dibber/interface/*.py", "software/lib/include/*.h", "firmware/*.h"),
        "Makefile",
        "docs/glossary.md",
    ]
    for name in sources:
        if (ROOT / name).is_file():
            known |= set(re.findall(r"[A-Z][A-Z0-9_]{2,}", (ROOT / name).read_text()))
    known |= {part for word in known for part in word.split("_")}
    return known | set(errno.errorcode.values()) | {number.name for number in signal.Signals}


def word_faults():
    known = known_words()
    for name in ["README.md", *tracked("docs/*.md")]:
        text = re.sub(
            r"```.*?```|`[^`\n]*`|\]\([^)]*\)", " ", (ROOT / name).read_text(), flags=re.S
        )
        for word in sorted(set(WORD.findall(text)) - known):
            yield f"{name}: {word} is neither a name of the interface nor in docs/glossary.md"


CHECKS = (
    circle_faults,
    length_faults,
    constructor_faults,
    page_faults,
    subject_faults,
    word_faults,
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the faults as a JSON list")
    args = parser.parse_args()
    faults = [fault for check in CHECKS for fault in check()]
    if args.json:
        print(json.dumps(faults, indent=2))
    else:
        for fault in faults:
            print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
