"""Chrome trace events as dibber-sim writes them: one event a line (hw/sim/timeline/events.h).

A line is read by itself, so a file of any length needs no more memory than the events that are
kept. The file of a simulator that was killed has no end, and perhaps half a line.
"""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import io
import json
from collections.abc import Iterator
from typing import Any

from dibber_cli import files
from dibber_cli.errors import CommandError

PICOSECONDS = 1_000_000  # of a microsecond, the unit of the file


@dataclasses.dataclass(frozen=True)
class Event:
    """One event.

    phase    : of the format: "X" a span, "i" an instant, "b" and "e" the ends of what may overlap
    card     : number of the card
    row      : name of its row; "" for "b" and "e"
    at, until : picoseconds of simulated time; equal but for a span
    """

    phase: str
    card: int
    row: str
    name: str
    at: int
    until: int
    arguments: dict[str, Any]


def read(path: str) -> Iterator[Event]:
    """The events of a file, in its order. Raises CommandError for a file of another kind."""
    rows: dict[tuple[int, int | None], str] = {}
    try:
        with files.opened(path) as binary, io.TextIOWrapper(binary, encoding="ascii") as file:
            if file.readline() != "[\n":
                raise CommandError(f"{path} is no timeline of dibber-sim")
            for number, line in enumerate(file, 2):
                if not line.endswith("\n") or line == "]\n":
                    return
                raw = _decoded(line, path, number)
                if raw["ph"] != "M":
                    yield _event(raw, rows)
                elif raw["name"] == "thread_name":
                    rows[raw["pid"], raw["tid"]] = raw["args"]["name"]
    except (KeyError, TypeError, ValueError) as error:
        raise CommandError(f"{path} is no timeline of dibber-sim: {error!r}") from None


def _decoded(line: str, path: str, number: int) -> dict[str, Any]:
    try:
        return json.loads(line.rstrip().removesuffix(","))
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path}, line {number}: {error}") from None


def _event(raw: dict[str, Any], rows: dict[tuple[int, int | None], str]) -> Event:
    at = round(raw["ts"] * PICOSECONDS)
    return Event(
        raw["ph"],
        raw["pid"] - 1,
        rows.get((raw["pid"], raw.get("tid")), ""),
        raw["name"],
        at,
        at + round(raw.get("dur", 0) * PICOSECONDS),
        raw.get("args", {}),
    )
