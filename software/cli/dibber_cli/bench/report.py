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


def _cells(point, brief):
    if point is None or point["value"] is None:
        return ["–"]*(2 if brief else 4)
    bound = point["bound"]
    share = [f"{bound:.1f}", f"{100*point['value']/bound:.0f}"] if bound else ["–"]*2
    return [f"{point['value']:.1f}", *([] if brief else share), f"{point['cpu_percent']:.1f}"]


def _table(report, table):
    at = {(p["series"], p["x"]): p for p in report["points"]}
    xs = list(dict.fromkeys(p["x"] for s in table.series for p in of_series(report, s)))
    beside = ["CPU %"] if table.brief else ["bound", "%", "CPU %"]
    output.table([table.heading, *(h for s in table.series for h in (s, *beside))],
                 [[x, *(cell for s in table.series for cell in _cells(at.get((s, x)), table.brief))] for x in xs])


def show(report, tables):
    """What people see: the tables, what was found besides, and what was compared."""
    print(f"{report['test']}, profile {report['profile']}, seed {report['seed']}: MB/s of payload in simulated time")
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
