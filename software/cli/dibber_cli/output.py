# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Tables and a progress bar for people, and what help says of a card."""

import sys
import time

URI = "sim:PATH_OF_SOCKET, vfio:0000:01:00.0 or uart:/dev/ttyUSB1"


def table(headings, rows):
    """Print rows in columns; numbers to the right, text to the left."""
    cells  = [[str(c) for c in row] for row in rows]
    widths = [max(len(h), *(len(row[i]) for row in cells)) if cells else len(h) for i, h in enumerate(headings)]
    right  = [bool(rows) and all(isinstance(row[i], (int, float)) or row[i] in ("", "–") or _is_number(row[i])
                                 for row in rows) for i in range(len(headings))]

    def line(values):
        return "  ".join(v.rjust(w) if r else v.ljust(w) for v, w, r in zip(values, widths, right)).rstrip()

    print(line(headings))
    print("  ".join("─"*w for w in widths))
    for row in cells:
        print(line(row))


def _is_number(text):
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


class Progress:
    """A bar on stderr, drawn only where that is a terminal.

    total : steps
    """
    WIDTH = 30

    def __init__(self, total, shown=True):
        self.total, self.done = total, 0
        self.begin = time.monotonic()
        self.shown = shown and sys.stderr.isatty()

    def step(self, what):
        """One more step is done; `what` comes next."""
        self.done += 1
        self.draw(what)

    def draw(self, what):
        if not self.shown:
            return
        full = self.WIDTH*self.done//self.total
        print(f"\r\x1b[K{'━'*full}{'╌'*(self.WIDTH - full)} {self.done}/{self.total} "
              f"{time.monotonic() - self.begin:.0f} s  {what}", end="", file=sys.stderr, flush=True)

    def clear(self):
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
