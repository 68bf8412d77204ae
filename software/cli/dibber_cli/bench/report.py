"""The output of a benchmark: JSON, CSV and chart in a folder, and the printed tables."""

# SPDX-License-Identifier: BSD-2-Clause

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dibber_cli import output
from dibber_cli.bench import chart
from dibber_cli.bench.units import UNITS, unit_of
from dibber_cli.bench.views import Panel, Table, of_series


def stem(report: Mapping[str, Any]) -> str:
    """Name of its files, without the ending."""
    return f"{report['test']}-{report['profile']}"


def write(report: dict[str, Any], panels: Sequence[Panel], folder: Path) -> list[Path]:
    """Write out/<test>-<profile>.json, .csv, .png and .svg; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    json_, csv_, png, svg = (
        folder / f"{stem(report)}.{kind}" for kind in ("json", "csv", "png", "svg")
    )
    json_.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    with open(csv_, "w", newline="", encoding="utf-8") as f:
        # Some keys are only in some points: why a point is not possible, the value of one
        # direction.
        rows = csv.DictWriter(
            f,
            list(dict.fromkeys(key for point in report["points"] for key in point)),
            lineterminator="\n",
        )
        rows.writeheader()
        rows.writerows(report["points"])
    chart.draw(report, panels, [png, svg])
    return [json_, csv_, png, svg]


# Tables -------------------------------------------------------------------------------------------


def share(point: Mapping[str, Any]) -> float | None:
    """The value in percent of the bound, if both exist; else None."""
    value, bound = point["value"], point.get("bound")
    if not value or not bound:
        return None
    return 100 * (bound / value if unit_of(point).less else value / bound)


def _limit(point: Mapping[str, Any]) -> str:
    if not point.get("limited_by"):
        return "–"
    return (
        f"{unit_of(point).show(point['limit'])} {point['limited_by']}"
        if point["limit"]
        else point["limited_by"]
    )


def _cells(point: Mapping[str, Any] | None, brief: bool) -> list[str]:
    if point is None or point["value"] is None:
        return ["–"] * (2 if brief else 5)
    show = unit_of(point).show
    beside = (
        []
        if brief
        else [
            *([show(point["bound"]), f"{share(point):.0f}"] if share(point) else ["–"] * 2),
            _limit(point),
        ]
    )
    cpu = point.get("cpu_percent")
    return [show(point["value"]), *beside, "–" if cpu is None else f"{cpu:.1f}"]


def tabulate(report: dict[str, Any], table: Table) -> tuple[list[str], list[list[Any]]]:
    """(headings, rows) of a views.Table."""
    at = {(p["series"], p["x"]): p for p in report["points"]}
    xs = list(dict.fromkeys(p["x"] for s in table.series for p in of_series(report, s)))
    beside = ["CPU %"] if table.brief else ["bound", "%", "limit", "CPU %"]
    units = {s: of_series(report, s)[0]["unit"] for s in table.series}
    names = {s: f"{s}, {unit}" if len(set(units.values())) > 1 else s for s, unit in units.items()}
    return (
        [table.heading, *(h for s in table.series for h in (names[s], *beside))],
        [
            [x, *(cell for s in table.series for cell in _cells(at.get((s, x)), table.brief))]
            for x in xs
        ],
    )


def units(report: Mapping[str, Any]) -> str:
    """The units of all points, as text."""
    return ", ".join(
        UNITS[unit].words for unit in dict.fromkeys(p["unit"] for p in report["points"])
    )


def remarks(report: Mapping[str, Any]) -> list[str]:
    """Sentences below the tables: impossible points, findings, notes on the measurement, compared
    bytes.
    """
    reasons: dict[tuple[str, str], list[str]] = {}
    for point in report["points"]:
        if point["value"] is None:
            reasons.setdefault((point["series"], point["not_possible"]), []).append(str(point["x"]))
    return [
        *(
            f"{series} at {', '.join(xs)}: not possible: {reason}"
            for (series, reason), xs in reasons.items()
        ),
        *report.get("findings", ()),
        *report.get("notes", ()),
        f"{report['bytes_compared']} payload and {report['guard_bytes_compared']} guard bytes "
        f"compared, "
        f"{report['bytes_wrong']} wrong; {report['wall_seconds']} s",
    ]


def show(report: dict[str, Any], tables: Iterable[Table]) -> None:
    """Print the tables, the findings, and the compared bytes."""
    print(
        f"{report['test']}, profile {report['profile']}, seed {report['seed']}: {units(report)} "
        f"{'in simulated time' if report['time_base'] == 'simulated' else 'on hardware'}"
    )
    for table in tables:
        print()
        output.table(*tabulate(report, table), group=2 if table.brief else 5)
    print()
    print("\n".join(remarks(report)))
