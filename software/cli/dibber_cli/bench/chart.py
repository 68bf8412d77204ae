# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""A report as a chart."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

# Contiguous transfer between two PCs over Myrinet: Kurmann and Stricker, EMMSEC 1998.
MYRINET_1998 = 126
STYLES = {"put-dst-strided": ("o", "#1b6ca8"), "put-src-strided": ("s", "#c8553d"), "put-both-strided": ("^", "#588157")}


def draw(report, paths):
    """Draw the points of `report` over their x, with each series' bound dashed. The same report gives the same file."""
    # A fixed salt and no date: else no two SVG files would be alike.
    with plt.rc_context({"svg.hashsalt": "dibber", "font.size": 10}):
        figure, axes = plt.subplots(figsize=(8, 4.8), constrained_layout=True)
        places = list(dict.fromkeys(p["x"] for p in report["points"]))
        bounds = set()
        for name in dict.fromkeys(p["series"] for p in report["points"]):
            points = [p for p in report["points"] if p["series"] == name]
            marker, colour = STYLES[name]
            x = [places.index(p["x"]) for p in points]
            axes.plot(x, [p["value"] for p in points], marker=marker, color=colour, label=name)
            limit = tuple(p["bound"] for p in points)
            if limit not in bounds:
                axes.plot(x, limit, linestyle="--", color=colour if bounds else "black", linewidth=1,
                          label=f"bound of {name}" if bounds else "bound")
            bounds.add(limit)
        axes.plot([0], [MYRINET_1998], marker="*", markersize=11, linestyle="none", color="#7a7a7a",
                  label="Myrinet 1998, contiguous (126 MB/s)")
        axes.set_xticks(range(len(places)), places)
        axes.set_ylim(0, 1.1*max(max(p["bound"], p["value"]) for p in report["points"]))
        axes.set_xlabel(f"stride ({report['points'][0]['x_unit']} of 8 bytes; 1 is contiguous)")
        axes.set_ylabel("payload (MB/s, simulated time)")
        axes.set_title(f"Dibber, {report['test']}: 64 KiB a transfer, profile {report['profile']}")
        axes.grid(axis="y", linewidth=0.4)
        axes.legend(loc="lower right", fontsize=9)
        for path in paths:
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else {"Software": None})
        plt.close(figure)
