# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""What a benchmark leaves in its output folder: JSON, CSV and chart, and the tables that people see."""

import csv
import json

from dibber_cli import output
from dibber_cli.bench import chart
from dibber_cli.bench.views import of_series


def write(report, panels, folder):
    """Write out/<test>-<profile>.json, .csv, .png and .svg; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{report['test']}-{report['profile']}"
    (folder/f"{stem}.json").write_text(json.dumps(report, indent=2) + "\n")
    with open(folder/f"{stem}.csv", "w", newline="") as f:
        # Not every point has every key: why a point is not possible, what one way gave.
        rows = csv.DictWriter(f, list(dict.fromkeys(key for point in report["points"] for key in point)),
                              lineterminator="\n")
        rows.writeheader()
        rows.writerows(report["points"])
    chart.draw(report, panels, [folder/f"{stem}.png", folder/f"{stem}.svg"])
    return [folder/f"{stem}.{kind}" for kind in ("json", "csv", "png", "svg")]


DECIMALS = {"MB/s": 1, "us": 3, "Mmsg/s": 3}    # of a value, by its unit
UNITS    = {"MB/s": "MB/s of payload", "us": "microseconds", "Mmsg/s": "million messages a second"}
LESS     = ("us",)                              # units of which less is better


def _share(point):
    """Percent of the bound that the value comes to."""
    value, bound = point["value"], point["bound"]
    return f"{100*(bound/value if point['unit'] in LESS else value/bound):.0f}"


def _limit(point):
    if not point.get("limited_by"):
        return "–"
    return f"{point['limit']:.{DECIMALS[point['unit']]}f} {point['limited_by']}" if point["limit"] else point["limited_by"]


def _cells(point, brief):
    if point is None or point["value"] is None:
        return ["–"]*(2 if brief else 5)
    decimals = DECIMALS[point["unit"]]
    beside   = [f"{point['bound']:.{decimals}f}", _share(point)] if point["bound"] else ["–"]*2
    return [f"{point['value']:.{decimals}f}", *([] if brief else [*beside, _limit(point)]), f"{point['cpu_percent']:.1f}"]


def _table(report, table):
    at = {(p["series"], p["x"]): p for p in report["points"]}
    xs = list(dict.fromkeys(p["x"] for s in table.series for p in of_series(report, s)))
    beside = ["CPU %"] if table.brief else ["bound", "%", "limit", "CPU %"]
    output.table([table.heading, *(h for s in table.series for h in (s, *beside))],
                 [[x, *(cell for s in table.series for cell in _cells(at.get((s, x)), table.brief))] for x in xs])


def show(report, tables):
    """What people see: the tables, what was found besides, and what was compared."""
    units = ", ".join(UNITS[unit] for unit in dict.fromkeys(p["unit"] for p in report["points"]))
    print(f"{report['test']}, profile {report['profile']}, seed {report['seed']}: {units} in simulated time")
    for table in tables:
        print()
        _table(report, table)
    print()
    reasons = {}
    for point in report["points"]:
        if point["value"] is None:
            reasons.setdefault((point["series"], point["not_possible"]), []).append(str(point["x"]))
    for (series, reason), xs in reasons.items():
        print(f"{series} at {', '.join(xs)}: not possible: {reason}")
    for line in (*report.get("findings", ()), *report.get("notes", ())):
        print(line)
    print(f"{report['bytes_compared']} payload and {report['guard_bytes_compared']} guard bytes compared, "
          f"{report['bytes_wrong']} wrong; {report['wall_seconds']} s")
