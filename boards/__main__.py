"""The table of boards in docs/boards.md, made from the board files.

    build/venv/bin/python -P -m boards             print it
    build/venv/bin/python -P -m boards --write     write it into docs/boards.md
    build/venv/bin/python -P -m boards --memory    the block RAM of each board, by the size of the
                                                   control program's SRAM
    build/venv/bin/python -P -m boards --nodes     what 64 nodes in place of 16 cost each board
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import importlib
import pathlib
import sys

from dibber_cli.pipe import quiet

from boards.description import Description

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT/"gateware"), str(ROOT/"hw"/"synthesis")]

PAGE       = ROOT/"docs"/"boards.md"
BEGIN, END = "<!-- boards -->\n", "<!-- end of boards -->\n"


def boards() -> list[Description]:
    """The description of each board, in the order of their files' names."""
    names = sorted(path.stem for path in (ROOT/"boards").glob("*.py") if "\nBOARD = Description(" in path.read_text())
    return [importlib.import_module(f"boards.{name}").BOARD for name in names]


def table(descriptions: list[Description]) -> str:
    """Markdown: a row for each design of each board."""
    rows = ["| `BOARD` | board | part | `DESIGN` | what it is | verified without the board |", "|---|---|---|---|---|---|"]
    for board in descriptions:
        for design, what in board.designs.items():
            rows.append(f"| `{board.name}` | {board.title} | {board.part} | `{design}` | {what} | {board.verified[design]} |")
    return "\n".join(rows) + "\n"


def replaced(text: str, new: str) -> str:
    """`text` with `new` between the two marks."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + new + END + rest.split(END)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put it into docs/boards.md")
    parser.add_argument("--memory", action="store_true", help="block RAM by the size of the control program's SRAM")
    parser.add_argument("--nodes", action="store_true", help="cost of 64 nodes in place of 16")
    args = parser.parse_args()
    if args.nodes:
        from boards import nodes
        print(nodes.table(), end="")
        return
    if args.memory:
        from boards import memory
        print(memory.table(), end="")
        return
    text = table(boards())
    print(text, end="")
    if args.write:
        PAGE.write_text(replaced(PAGE.read_text(), text))


if __name__ == "__main__":
    sys.exit(quiet(main))
