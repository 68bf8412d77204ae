# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""What a benchmark leaves in its output folder: JSON, CSV and chart, and the table that people see."""

import csv
import json

from dibber_cli.bench import chart
from dibber_cli.output import table


def write(report, folder):
    """Write out/<test>-<profile>.json, .csv, .png and .svg; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{report['test']}-{report['profile']}"
    (folder/f"{stem}.json").write_text(json.dumps(report, indent=2) + "\n")
    with open(folder/f"{stem}.csv", "w", newline="") as f:
        rows = csv.DictWriter(f, list(report["points"][0]), lineterminator="\n")
        rows.writeheader()
        rows.writerows(report["points"])
    chart.draw(report, [folder/f"{stem}.png", folder/f"{stem}.svg"])
    return [folder/f"{stem}.{kind}" for kind in ("json", "csv", "png", "svg")]


def show(report):
    """The table for people: a row for each x, and for each series the value beside its bound."""
    series = list(dict.fromkeys(p["series"] for p in report["points"]))
    at     = {(p["series"], p["x"]): p for p in report["points"]}
    print(f"{report['test']}, profile {report['profile']}, seed {report['seed']}: MB/s of payload in simulated time "
          f"| bound")
    rows = []
    for x in dict.fromkeys(p["x"] for p in report["points"]):
        row = [x]
        for s in series:
            p = at.get((s, x))
            row += [f"{p['value']:.1f}", f"{p['bound']:.1f}", f"{100*p['value']/p['bound']:.0f}"] if p else ["–"]*3
        rows.append(row)
    table(["stride", *(heading for s in series for heading in (s, "bound", "%"))], rows)
    print(f"{report['bytes_compared']} payload and {report['guard_bytes_compared']} guard bytes compared, "
          f"{report['bytes_wrong']} wrong; {report['wall_seconds']} s")
