"""A report as a chart."""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes

from dibber_cli.bench.views import Panel

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from dibber_cli.bench.units import unit_of
from dibber_cli.bench.views import of_series

# Contiguous transfer between two PCs over Myrinet: Kurmann and Stricker, EMMSEC 1998.
MYRINET_1998 = 126
MARKERS = "os^DvPX<>p"
COLOURS = (
    "#1b6ca8",
    "#c8553d",
    "#588157",
    "#7b4ea3",
    "#b8860b",
    "#2a9d8f",
    "#8d5524",
    "#5c677d",
    "#d81b60",
    "#264653",
)
# of the bound
TERMS = {
    "link": "link",
    "pcie_up": "PCIe up",
    "pcie_down": "PCIe down",
    "engine": "engine",
    "wire": "wire",
    "cut": "cut",
    "cpu": "CPU",
}
BEYOND = 2  # a series above so many times the highest bound is named, not drawn
ALIKE = 0.02  # of the chart's height: closer lines cover each other


def _in_words(points: Sequence[dict[str, Any]]) -> str:
    low, high = (f(p["value"] for p in points) for f in (min, max))
    return f"{low:.0f} … {high:.0f} {points[0]['unit']}, off the scale"


def _bound_in_words(name: str, points: Sequence[dict[str, Any]], first: bool) -> str:
    terms = dict.fromkeys(TERMS[p["bound_by"]] for p in points if p.get("bound_by"))
    return f"bound{'' if first else f' of {name}'}{': ' if terms else ''}{', '.join(terms)}"


def _label(panel: Panel, name: str) -> str:
    """The name of a series in the legend, with its meaning in a line of its own."""
    return f"{name}\n{panel.meanings[name]}" if name in panel.meanings else name


def _layers(lines: Sequence[dict[Any, float]], ceiling: float) -> list[int]:
    """Number of lines over each line, for lines that are drawn in this order.

    lines : for each series its values by x. A line that another one covers is drawn wider, so both
            are visible.
    """

    def covers(low: dict[Any, float], high: dict[Any, float]) -> bool:
        alike = [abs(value - high[x]) <= ALIKE * ceiling for x, value in low.items() if x in high]
        return 2 * sum(alike) > len(alike)

    above = [0] * len(lines)
    for n in reversed(range(len(lines))):
        above[n] = max(
            (above[m] + 1 for m in range(n + 1, len(lines)) if covers(lines[n], lines[m])),
            default=0,
        )
    return above


def _series(
    axes: Axes, report: dict[str, Any], panel: Panel, places: list[Any], ceiling: float
) -> None:
    """Draw each measured series, and each different bound dashed. A series of a single point is
    only in the table.
    """
    bounds: set[frozenset[tuple[int, float]]] = set()
    present = [name for name in panel.series if of_series(report, name)]
    above = _layers(
        [
            {p["x"]: p["value"] for p in of_series(report, name) if p["value"] is not None}
            for name in present
        ],
        ceiling,
    )
    for name, marker, colour, covered in zip(present, MARKERS * 2, COLOURS * 2, above):
        points = of_series(report, name)
        done = [p for p in points if p["value"] is not None]
        if done and min(p["value"] for p in done) > BEYOND * ceiling:
            axes.plot([], [], marker=marker, color=colour, label=f"{name}: {_in_words(done)}")
            continue
        axes.plot(
            [places.index(p["x"]) for p in done],
            [p["value"] for p in done],
            marker=marker,
            color=colour,
            markersize=4 + 2 * covered,
            linewidth=1.5 + 2.5 * covered,
            linestyle="none" if isinstance(places[0], str) else "-",
            label=_label(panel, name),
        )
        missing = [places.index(p["x"]) for p in points if p["value"] is None]
        if missing:
            axes.plot(
                missing,
                [0] * len(missing),
                marker="x",
                color=colour,
                linestyle="none",
                clip_on=False,
                label=f"{name}: not possible",
            )
        limit = tuple((places.index(p["x"]), p["bound"]) for p in done if p["bound"])
        if len(limit) > 1 and not any(set(limit) <= drawn for drawn in bounds):
            axes.plot(
                *zip(*limit),
                linestyle="--",
                color=colour if bounds else "black",
                linewidth=1,
                label=_bound_in_words(name, done, not bounds),
            )
            bounds.add(frozenset(limit))


def _panel(axes: Axes, report: dict[str, Any], panel: Panel) -> None:
    points = [p for name in panel.series for p in of_series(report, name)]
    places = list(dict.fromkeys(p["x"] for p in points))
    bounded = [p for p in points if p["bound"]]
    ceiling = max(max(p["bound"] or 0, p["value"] or 0) for p in bounded or points)
    _series(axes, report, panel, places, ceiling)
    if panel.history:
        axes.plot(
            [0],
            [MYRINET_1998],
            marker="*",
            markersize=11,
            linestyle="none",
            color="#7a7a7a",
            label="Myrinet 1998, contiguous (126 MB/s)",
        )
    axes.set_xticks(
        range(len(places)),
        places,
        rotation=45 if len(places) > 14 or isinstance(places[0], str) else 0,
    )
    if panel.logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.1 * ceiling)
    axes.set_xlabel(panel.label)
    time = "simulated time" if report.get("time_base") == "simulated" else "hardware"
    axes.set_ylabel(f"{unit_of(points[0]).axis} ({points[0]['unit']}, {time})")
    axes.set_title(f"Dibber, {report['test']}: {panel.title}", fontsize=10)
    axes.grid(axis="y", linewidth=0.4)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)


def draw(report: dict[str, Any], panels: Sequence[Panel], paths: Sequence[Any]) -> None:
    """Draw `panels` one above the other into files, or as SVG into streams. The same report gives
    the same bytes.
    """
    # A fixed salt and no date make equal SVG files for equal reports. A chart for a page keeps its
    # text as text.
    streams = any(hasattr(path, "write") for path in paths)
    with plt.rc_context(
        {"svg.hashsalt": "dibber", "svg.fonttype": "none" if streams else "path", "font.size": 9}
    ):
        figure, axes = plt.subplots(
            len(panels), figsize=(11, 4.6 * len(panels)), constrained_layout=True, squeeze=False
        )
        for one, panel in zip(axes[:, 0], panels):
            _panel(one, report, panel)
        for path in paths:
            kind = "svg" if streams else path.suffix[1:]
            figure.savefig(
                path,
                format=kind,
                dpi=150,
                metadata={"Date": None} if kind == "svg" else {"Software": None},
            )
        plt.close(figure)
