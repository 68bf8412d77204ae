"""Charts of a ring: a sweep, or the nodes and links of one run."""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from dibber_cli.bench.chart import COLOURS, MARKERS

KINDS = ("svg", "png")  # of files


def _finish(axes: Axes, label: str, unit: str, title: str) -> None:
    axes.set_ylim(0, 1.1 * max(axes.dataLim.y1, 1e-9))
    axes.set_xlabel(label)
    axes.set_ylabel(unit)
    axes.set_title(title, fontsize=10)
    axes.grid(axis="y", linewidth=0.4)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)


def _sweep(axes: Iterable[Axes], results: list[dict[str, Any]]) -> None:
    """Throughput, latency and use over the first swept key; a line for each value of the others."""
    key, *others = results[0]["at"]
    places = list(dict.fromkeys(str(r["at"][key]) for r in results))
    series: dict[str, list] = {}
    for r in results:
        name = ", ".join(f"{other} = {r['at'][other]}" for other in others) or r["name"]
        series.setdefault(name, []).append(r)
    panels = (
        ("payload (MB/s)", lambda r: r["total"]["mbps"]),
        ("time of a packet (ns), mean", lambda r: r["total"]["latency"]["mean_ns"]),
        ("use of the links (%), mean", lambda r: 100 * max(x["use"] for x in r["by_ring"])),
    )
    for one, (unit, value) in zip(axes, panels):
        for (name, points), marker, colour in zip(series.items(), MARKERS * 100, COLOURS * 100):
            at = [places.index(str(r["at"][key])) for r in points]
            line = [value(r) for r in points]
            one.plot(at, line, marker=marker, color=colour, markersize=4, label=name)
        one.set_xticks(range(len(places)), places, rotation=45 if len(places) > 14 else 0)
        _finish(one, key, unit, f"Model of a ring: {results[0]['name']}")


def _run(axes: Sequence[Axes], result: dict[str, Any]) -> None:
    """Throughput, latency and links of each node."""
    nodes = [n["node"] for n in result["by_node"]]
    title = f"Model of a ring: {result['name']}"
    for key, shift, colour in (("sent", -0.2, COLOURS[0]), ("received", 0.2, COLOURS[1])):
        values = [n[f"{key}_mbps"] for n in result["by_node"]]
        axes[0].bar([n + shift for n in nodes], values, 0.4, color=colour, label=key)
    _finish(axes[0], "node", "payload (MB/s)", title)
    for key, marker, colour in zip(("mean", "p50", "p95", "p99"), MARKERS, COLOURS):
        values = [n["latency"][f"{key}_ns"] for n in result["by_node"]]
        axes[1].plot(nodes, values, marker=marker, color=colour, linestyle="none", label=key)
    _finish(axes[1], "node", "time of a packet that came in (ns)", title)
    rings = result["rings"]
    for ring in range(rings):
        links = [link for link in result["by_link"] if link["ring"] == ring]
        base = [0.0] * len(links)
        at = [link["node"] + (0.4 * ring - 0.2 if rings == 2 else 0) for link in links]
        for key, colour in zip(("own", "passing", "echoes"), COLOURS):
            values = [100 * link[key] for link in links]
            label = key if ring == 0 else None
            axes[2].bar(at, values, 0.8 / rings, base, color=colour, label=label)
            base = [low + value for low, value in zip(base, values)]
    for one in axes:
        one.set_xticks(nodes)
    label = "node that feeds the link" + ("; right: the second ring" if rings == 2 else "")
    _finish(axes[2], label, "use of the link (%)", title)


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """Draw the results into an SVG or PNG file. The same results give the same bytes."""
    with plt.rc_context({"svg.hashsalt": "dibber", "font.size": 9}):
        figure, axes = plt.subplots(3, figsize=(11, 11), constrained_layout=True)
        if results[0]["at"]:
            _sweep(axes, results)
        else:
            _run(axes, results[0])
        kind = path.suffix[1:]
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        try:
            figure.savefig(path, format=kind, dpi=150, metadata=metadata)
        finally:
            plt.close(figure)
