"""`bidir`: both cards send at once; each direction beside one direction alone in the same run."""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dibber_cli.bench import session, stride
from dibber_cli.bench.point import Point, numbered
from dibber_cli.bench.views import Panel, Table
from dibber_cli.profile import Profile

NAME = "bidir"

STRIDES = (1, 2, 3, 4, 6, 8, 16, 64)  # elements of 8 bytes; 1 is contiguous
SERIES = ("put-dst-strided", "put-both-strided")
CHOICE = SERIES
DIRECTIONS = ("0to1", "1to0")

QUICK = {"strides": (1, 8, 64)}  # of points()
OPTIONS = stride.OPTIONS


def points(
    strides: Sequence[int] = STRIDES,
    series: Sequence[str] = SERIES,
    elements: int = stride.ELEMENTS,
) -> list[Point]:
    def one_way(name: str, x: int) -> Point:
        source, target = (stride.side(strided, x, elements) for strided in stride.OURS[name])
        return Point(f"{name}-one-way", x, source, target, stride.TRANSFERS)

    pairs = [(name, x) for name in series for x in strides]
    return numbered(
        point
        for name, x in pairs
        for point in (one_way(name, x), replace(one_way(name, x), series=name, senders=(0, 1)))
    )


def evaluate(profile: Profile, seed: int, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    alone = {
        (r["point"].series, r["point"].x): session.evaluate(profile, r, "elements")
        for r in results
        if r["point"].senders == (0,)
    }
    found = list(alone.values())
    for result in (r for r in results if r["point"].senders == (0, 1)):
        one_way = alone[f"{result['point'].series}-one-way", result["point"].x]["value"]
        for sender, direction in enumerate(DIRECTIONS):
            point = session.evaluate(profile, result, "elements", sender)
            found.append(
                {
                    **point,
                    "series": f"{point['series']}-{direction}",
                    "percent_of_one_way": round(100 * point["value"] / one_way, 1),
                }
            )
    worst = _worst([p for p in found if "percent_of_one_way" in p])
    return {
        "points": found,
        "worst": worst,
        "findings": [
            f"{name}: at least {w['percent_of_one_way']} % of one way and {w['percent_of_bound']} "
            f"% of its bound"
            for name, w in worst.items()
        ],
        "notes": [
            f"{stride.TRANSFERS} transfers of {stride.ELEMENTS * stride.ELEMENT >> 10} KiB under "
            f"way in each "
            "direction"
        ],
    }


def _worst(points: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The smallest share of any direction and stride, for contiguous transfers and for each strided
    series.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for point in points:
        groups.setdefault(
            "contiguous" if point["x"] == 1 else point["series"].rpartition("-")[0], []
        ).append(point)
    return {
        name: {
            "percent_of_one_way": min(p["percent_of_one_way"] for p in group),
            "percent_of_bound": round(min(100 * p["value"] / p["bound"] for p in group), 1),
        }
        for name, group in groups.items()
    }


def _series(report: dict[str, Any]) -> list[list[str]]:
    return [
        [s for s in dict.fromkeys(p["series"] for p in report["points"]) if s.startswith(name)]
        for name in SERIES
    ]


def tables(report: dict[str, Any]) -> list[Table]:
    return [Table("stride", series) for series in _series(report) if series]


def panels(report: dict[str, Any]) -> list[Panel]:
    return [
        Panel(
            f"both cards send, profile {report['profile']}",
            [s for series in _series(report) for s in series],
            "stride (elements of 8 bytes; 1 is contiguous)",
        )
    ]
