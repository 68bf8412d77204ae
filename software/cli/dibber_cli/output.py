"""Tables and a progress bar for people, and the help text for a card's URI."""

# SPDX-License-Identifier: BSD-2-Clause

import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

URI = "sim:PATH_OF_SOCKET, /dev/dibber0, vfio:0000:01:00.0 or uart:/dev/ttyUSB1"


COLUMNS = 100  # characters of a table's line at most, if its columns can be folded


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], group: int = 1) -> None:
    """Print rows in columns; numbers to the right, text to the left.

    A table wider than COLUMNS is folded: it becomes several tables below each other, each with the
    first column in front.

    group : number of columns behind the first that stay together
    """
    cells = [[str(c) for c in row] for row in rows]
    widths = [
        max(len(h), *(len(row[i]) for row in cells)) if cells else len(h)
        for i, h in enumerate(headings)
    ]
    right = [
        bool(rows)
        and all(
            isinstance(row[i], (int, float)) or row[i] in ("", "–") or _is_number(row[i])
            for row in rows
        )
        for i in range(len(headings))
    ]

    def line(values: Sequence[str], columns: Sequence[int]) -> str:
        return "  ".join(
            values[i].rjust(widths[i]) if right[i] else values[i].ljust(widths[i]) for i in columns
        ).rstrip()

    for n, columns in enumerate(folded(widths, group)):
        if n:
            print()
        print(line(headings, columns))
        print("  ".join("─" * widths[i] for i in columns))
        for row in cells:
            print(line(row, columns))


def folded(widths: Sequence[int], group: int = 1) -> list[list[int]]:
    """The column numbers of each part of a folded table whose columns have these widths."""
    parts = [[0]]
    for first in range(1, len(widths), group):
        columns = list(range(first, min(first + group, len(widths))))
        if len(parts[-1]) > 1 and sum(widths[i] + 2 for i in [*parts[-1], *columns]) - 2 > COLUMNS:
            parts.append([0])
        parts[-1] += columns
    return parts


def _is_number(text: str) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


class Progress:
    """A bar on stderr, drawn only if stderr is a terminal.

    total : steps
    """

    WIDTH = 30

    def __init__(self, total: int, shown: bool = True) -> None:
        self.total, self.done = total, 0
        self.begin = time.monotonic()
        self.shown = shown and sys.stderr.isatty()

    def step(self, what: str) -> None:
        """Count one more step as done; `what` comes next."""
        self.done += 1
        self.draw(what)

    def draw(self, what: str) -> None:
        if not self.shown:
            return
        full = self.WIDTH * self.done // self.total
        print(
            f"\r\x1b[K{'━' * full}{'╌' * (self.WIDTH - full)} {self.done}/{self.total} "
            f"{time.monotonic() - self.begin:.0f} s  {what}",
            end="",
            file=sys.stderr,
            flush=True,
        )

    def clear(self) -> None:
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
