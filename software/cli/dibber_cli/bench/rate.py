"""`rate`: distinct 8-byte inline puts per second, without coalescing, with their completions, from
one thread; gets and fetch-adds of 8 bytes.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Sequence
from typing import Any

from dibber_cli.bench import bound, stages
from dibber_cli.bench.asking import FETCH_ADD, GET, Asking
from dibber_cli.bench.flood import WORD, Flood, Flooder
from dibber_cli.bench.options import MOST_ITERATIONS, Argument
from dibber_cli.bench.point import numbered
from dibber_cli.bench.views import Panel, Table, of_series
from dibber_cli.profile import Profile

NAME = "rate"
PROGRAM = Flooder

OUTSTANDING = (1, 2, 4, 8, 16, 32)  # of an endpoint: up to its slots
ENDPOINTS = (1, 2, 4, 8)
ASKED = {"mcp-get": GET, "mcp-fetch-add": FETCH_ADD}
FEW, MANY = 96, 320  # messages of a point …
FULL = 8  # … few, when fewer than this are under way

QUICK = {"outstanding": (1, 8, 32), "endpoints": (1, 8)}  # of points()
OPTIONS = {"iterations": Argument(1, MOST_ITERATIONS, lambda n: {"few": n, "many": n})}


def series(endpoints: int, fast: bool) -> str:
    name = "fastpath" if fast else "mcp"
    return name if endpoints == 1 else f"{name}-{endpoints}-endpoints"


def points(
    outstanding: Sequence[int] = OUTSTANDING,
    endpoints: Sequence[int] = ENDPOINTS,
    many: int = MANY,
    few: int = FEW,
) -> list[Any]:
    return numbered(
        [
            *(
                Flood(series(e, fast), o, e, many if o * e >= FULL else few, fast)
                for fast in (True, False)
                for e in endpoints
                for o in outstanding
            ),
            *(
                Asking(name, operation, few, o, x=o)
                for name, operation in ASKED.items()
                for o in outstanding
            ),
        ]
    )


def _report(profile: Profile, result: dict[str, Any]) -> dict[str, Any]:
    point, answer = result["point"], result["answers"][0]
    seconds = answer["elapsed_ps"] * 1e-12
    most, name = bound.messages(profile, WORD)
    sender, receiver = result["busy"]
    limited_by, share = stages.limit(sender, receiver, seconds * profile.clock_hz)
    rate = point.messages / seconds / 1e6
    return {
        "series": point.series,
        "x": point.x,
        "x_unit": "outstanding",
        "value": round(rate, 4),
        "unit": "Mmsg/s",
        "bound": round(most / 1e6, 4),
        "bound_by": name,
        "limit": share and round(rate / share, 4),
        "limited_by": limited_by,
        "cycles": round(seconds * profile.clock_hz),
        "cpu_percent": round(100 * answer["cpu_ps"] / answer["elapsed_ps"], 2),
    }


def evaluate(profile: Profile, seed: int, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found = [_report(profile, result) for result in results]
    best = {
        name: max(p["value"] for p in found if p["series"] == name)
        for name in dict.fromkeys(p["series"] for p in found)
    }
    return {
        "points": found,
        "best": best,
        "findings": [
            f"{name}: {value:.3f} million messages a second at best" for name, value in best.items()
        ],
        "notes": [
            f"{MANY} messages of {WORD} bytes a point, {FEW} where fewer than {FULL} are under "
            f"way; from the first call "
            "to the poll that took the last completion",
            "each rings the doorbell; outstanding: of each endpoint",
            "mcp: host register FAST_PATH is 0 on both cards",
            f"mcp-get, mcp-fetch-add: {FEW} commands a point; both control programs work for each",
        ],
    }


def tables(report: dict[str, Any]) -> list[Table]:
    return [
        Table("outstanding", [name])
        for name in dict.fromkeys(p["series"] for p in report["points"])
        if of_series(report, name)
    ]


def panels(report: dict[str, Any]) -> list[Panel]:
    return [
        Panel(
            f"8 bytes, profile {report['profile']}",
            list(dict.fromkeys(p["series"] for p in report["points"])),
            "messages under way of each endpoint",
        )
    ]
