"""`block`: contiguous puts, gets and messages of 4 bytes to 1 MiB, streamed and one at a time, with
N½ of each series.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Iterable, Sequence
from typing import Any

from dibber.interface.description import C

from dibber_cli.bench import session
from dibber_cli.bench.figures import half_size
from dibber_cli.bench.messages import EXCHANGES, Messages
from dibber_cli.bench.options import Argument
from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.point import Point, numbered
from dibber_cli.bench.views import Panel, Table, of_series
from dibber_cli.profile import Profile

NAME = "block"

SIZES = tuple(4 << n for n in range(19))  # bytes
STREAM = 16  # commands under way in a stream
ENOUGH = 256 * 1024  # bytes of a point, in at most …
MANY = {STREAM: 128, 1: 16}  # … so many transfers, by how many are under way
MOST = 4 * 1024 * 1024  # bytes of a point at most

# Series: (operation of worker.OPERATIONS, commands under way).
SERIES = {
    "put": ("put", STREAM),
    "put-one-at-a-time": ("put", 1),
    "put-inline": ("put-inline", STREAM),
    "put-inline-one-at-a-time": ("put-inline", 1),
    "get": ("get", STREAM),
    "get-one-at-a-time": ("get", 1),
}
# In the order of measurement. Gets and sends come last, because the control programs execute them.
# After them, the control programs keep the flows to themselves for some hundred commands.
CHOICE = (
    *(s for s in SERIES if not s.startswith("get")),
    "sendrecv-postal",
    "get",
    "get-one-at-a-time",
    "sendrecv-restricted",
)

# For messages, which go both ways: bytes of a point in one direction, and the number of messages.
MESSAGE_BYTES = 128 * 1024
MESSAGES = {"sendrecv-restricted": (1, 8), "sendrecv-postal": (2, 32)}  # least, most

QUICK = {"sizes": (4, 64, 1024, 8192, 65536)}  # of points()
OPTIONS = {"size": Argument(1, SIZES[-1], lambda n: {"sizes": (n,)})}


def transfers(size: int, outstanding: int) -> int:
    """Number of transfers of a point: in a stream enough for `outstanding` under way, else at least
    two.
    """
    return min(MANY[outstanding], max(ENOUGH // size, outstanding, 2), MOST // size)


def points(sizes: Sequence[int] = SIZES, series: Sequence[str] = CHOICE) -> list[Point]:
    def point(name: str, size: int) -> Point:
        if name in EXCHANGES:
            least, most = MESSAGES[name]
            pattern = Pattern.contiguous(size, min(most, max(MESSAGE_BYTES // size, least)))
            return Messages(name, size, pattern, pattern, 1, operation=name)
        operation, outstanding = SERIES[name]
        pattern = Pattern.contiguous(size, transfers(size, outstanding))
        return Point(name, size, pattern, pattern, outstanding, operation=operation)

    return numbered(
        point(s, x)
        for s in series
        for x in sizes
        if not s.startswith("put-inline") or x <= C.INLINE_BYTES
    )


def curve(points: Iterable[dict[str, Any]], name: str) -> list[tuple[float, float]]:
    """(x, value) of a series. A series that ends at INLINE_BYTES continues with the put that a
    program would use for larger sizes.
    """
    series = (
        [name] if not name.startswith("put-inline") else [name, name.replace("put-inline", "put")]
    )
    values: dict[float, float] = {}
    for one in series:
        for p in points:
            if p["series"] == one:
                values.setdefault(p["x"], p["value"])
    return sorted(values.items())


def evaluate(profile: Profile, seed: int, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    measured = [session.evaluate(profile, result, "bytes") for result in results]
    halves = {}
    for name in dict.fromkeys(p["series"] for p in measured):
        half = half_size(curve(measured, name))
        halves[name] = half and round(half, 1)
    return {
        "points": measured,
        "half_size_bytes": halves,
        "findings": [
            f"N½ of {name}: {f'{half:.0f} bytes' if half else 'below the smallest size'}"
            for name, half in halves.items()
        ],
        "notes": [
            "N½: half of the series' own peak, on a straight line over log size between two "
            "points; that of "
            f"'put-inline' is of a program that puts up to {C.INLINE_BYTES} bytes inline and "
            f"others by 'put'",
            "'sendrecv-restricted': ping-pong, half a round, receives posted first. "
            "'sendrecv-postal': both cards send at "
            "once, by mailbox; the value is that of one direction, copies out of the ring are in "
            "it",
            f"'put', 'put-inline' and 'get' have {STREAM} commands under way, or as many as "
            f"{MOST >> 20} MiB have",
        ],
    }


def tables(report: dict[str, Any]) -> list[Table]:
    present = [s for s in SERIES if of_series(report, s)]
    groups = [
        *(
            [s for s in present if SERIES[s][0] == operation]
            for operation in ("put", "put-inline", "get")
        ),
        [s for s in EXCHANGES if of_series(report, s)],
    ]
    return [Table("bytes", group) for group in groups if group]


def panels(report: dict[str, Any]) -> list[Panel]:
    return [Panel(f"contiguous, profile {report['profile']}", list(CHOICE), "bytes a transfer")]
