"""Write docs/figures.md from rows that `make figures` measured.

    python tests/figures_page.py [FILE]        (default out/figures.json)

The page is a table with a row for each figure. A row that was measured replaces the row of the same
name. A row that was not measured stays as it was, with the commit at which it was measured. So the
page never has a figure that no command printed.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import pathlib
import subprocess
import sys

from dibber_cli.pipe import quiet

from tests.figure_rows import NO_GOAL

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "figures.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"
HEAD = "| figure | value | goal | | command | commit |\n|---|---|---|---|---|---|\n"
COLUMNS = 6


def commit():
    """The commit of this tree, with "-dirty" if a file differs from it; "unknown" without git."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=7", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def rows_of(text):
    """{name: cells} of the table in a page, in its order."""
    table = text.split(BEGIN)[1].split(END)[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table]
    if wrong := [row for row in rows if len(row) != COLUMNS]:
        raise ValueError(f"{PAGE.name}: not {COLUMNS} cells: {wrong[0]}")
    return {row[0].strip("`"): row for row in rows}


def cell(text):
    """Text for one cell of a table: one line without a bar."""
    return " ".join(str(text).replace("|", "/").split()) or "–"


def in_figures(row):
    """Value and unit, with no more digits than a measurement has."""
    value = row["value"]
    return f"{value:.7g} {row['unit']}" if isinstance(value, float) else f"{value} {row['unit']}"


def cells(row, at):
    """The cells of one measured row. `at`: its commit, if the row has none."""
    command = row["command"].replace(f"{ROOT}/", "")
    if row["value"] is None:
        value, verdict = "–", f"not measured: {row.get('reason', '')[:120]}"
    elif row["target"] == NO_GOAL:
        value, verdict = in_figures(row), "–"
    else:
        value, verdict = in_figures(row), "met" if row["pass"] else "**missed**"
    name = row["id"] + (f"-{row['profile']}" if needs_profile(row) else "")
    return [
        f"`{name}`",
        cell(value),
        cell(row["target"]),
        cell(verdict),
        f"`{cell(command)}`",
        row.get("commit", at),
    ]


def needs_profile(row):
    """Whether a name has no profile, or only the default one."""
    return row["profile"] not in ("", "gen2x4") and row["profile"] not in row["id"]


def kept_covers(name, kept):
    """Whether the page has figures of a group that was not measured this time."""
    return any(old.startswith(name) or name in row[4] for old, row in kept.items())


def merged(kept, measured, at):
    """The page's rows, with those that were measured in place of the kept ones.

    A row with an empty target is a detail of another figure. It has no place on the page.
    """
    result = dict(kept)
    for row in (row for row in measured if row["target"]):
        new = cells(row, at)
        name = new[0].strip("`")
        if row["value"] is None and kept_covers(row["id"], kept):
            continue
        result[name] = new
    return result


def replaced(text, rows):
    """The page with these rows."""
    lines = "".join(f"| {' | '.join(row)} |\n" for row in rows.values())
    before, rest = text.split(BEGIN)
    return before + BEGIN + HEAD + lines + END + rest.split(END)[1]


def write(measured, page=PAGE):
    """Put rows of `make figures` into the page."""
    text = page.read_text()
    page.write_text(replaced(text, merged(rows_of(text), measured, commit())))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "file",
        nargs="?",
        type=pathlib.Path,
        default=ROOT / "out" / "figures.json",
        help="what `make figures` wrote (default out/figures.json)",
    )
    args = parser.parse_args(argv)
    write(json.loads(args.file.read_text()))
    print(f"written: {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(quiet(main))
