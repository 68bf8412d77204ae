# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""`block`: contiguous transfers from 4 bytes to 1 MiB, streamed and one at a time, and N½ of both."""

from dibber_cli.bench import session
from dibber_cli.bench.figures import half_size
from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.point import Point, numbered
from dibber_cli.bench.views import Panel, Table, of_series

NAME = "block"

SIZES  = tuple(4 << n for n in range(19))    # bytes
STREAM = 16                                  # commands under way in a stream
ENOUGH = 256*1024                            # bytes of a point, in at most …
MANY   = {STREAM: 128, 1: 16}                # … so many transfers, by how many are under way
MOST   = 4*1024*1024                         # bytes of a point, whatever else there should be

# Series: (operation of worker.OPERATIONS, commands under way).
SERIES = {"put": ("put", STREAM), "put-one-at-a-time": ("put", 1)}


def transfers(size, outstanding):
    """How many a point has: in a stream so many that `outstanding` can be under way, else two at least."""
    return min(MANY[outstanding], max(ENOUGH//size, outstanding, 2), MOST//size)


def points(sizes=SIZES, series=tuple(SERIES)):
    def point(name, size):
        operation, outstanding = SERIES[name]
        pattern = Pattern.contiguous(size, transfers(size, outstanding))
        return Point(name, size, pattern, pattern, outstanding, operation=operation)

    return numbered(point(s, x) for s in series for x in sizes)


def evaluate(profile, seed, results):
    measured = [session.evaluate(profile, result, "bytes") for result in results]
    halves   = {}
    for name in dict.fromkeys(p["series"] for p in measured):
        half = half_size([(p["x"], p["value"]) for p in measured if p["series"] == name])
        halves[name] = half and round(half, 1)
    return {"points": measured, "half_size_bytes": halves,
            "findings": [f"N½ of {name}: {f'{half:.0f} bytes' if half else 'below the smallest size'}"
                         for name, half in halves.items()],
            "notes": ["N½: half of the series' own peak, on a straight line over log size between two points",
                      f"'put' has {STREAM} commands under way, or as many as {MOST >> 20} MiB have"]}


def tables(report):
    return [Table("bytes", [s for s in SERIES if of_series(report, s)])]


def panels(report):
    return [Panel(f"contiguous, profile {report['profile']}", list(SERIES), "bytes a transfer")]
