"""A transfer as a picture: its stages with nanoseconds, and what was busy meanwhile."""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Sequence

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from dibber_cli.timeline.transfer import Spans, Stage

# Of card 0, of card 1, of the cable.
COLOURS: dict[int | None, str] = {0: "#1b6ca8", 1: "#c8553d", None: "#588157"}
OTHER = "#7b4ea3"  # cards from 2 on
BUSY = "#b0b0b0"
ROW_INCHES = 0.28
WIDE = 0.2  # of the width: a bar that has its label inside
TEXT_SHARE = 0.55  # of the width: a label of a bar that ends later stands to its left


def draw(title: str, stages: Sequence[Stage], beside: Sequence[Spans], path: str) -> None:
    """Write an SVG. The same transfer gives the same bytes.

    stages : transfer.Stage, one a row
    beside : (name, [(from, until)]) in picoseconds, one a row below
    """
    begin, end = stages[0].begin, stages[-1].end
    rows = len(stages) + len(beside)
    with plt.rc_context({"svg.hashsalt": "dibber", "svg.fonttype": "path", "font.size": 9}):
        figure, axes = plt.subplots(
            figsize=(11, 1.3 + ROW_INCHES * rows), constrained_layout=True, squeeze=True
        )
        for row, stage in enumerate(stages):
            _bar(axes, row, stage, begin, end)
        for row, (_, spans) in enumerate(beside, len(stages)):
            axes.broken_barh(
                [((at - begin) / 1000, (until - at) / 1000) for at, until in spans],
                (row - 0.3, 0.6),
                color=BUSY,
            )
        axes.axhline(len(stages) - 0.5, color="black", linewidth=0.6)
        axes.set_yticks(
            range(rows), [*(_name(stage) for stage in stages), *(name for name, _ in beside)]
        )
        axes.set_ylim(rows - 0.4, -0.6)
        axes.set_xlim(0, (end - begin) / 1000)
        axes.set_xlabel("nanoseconds of simulated time since the call")
        axes.set_title(title, fontsize=10)
        axes.grid(axis="x", linewidth=0.4)
        figure.savefig(path, format="svg", metadata={"Date": None})
        plt.close(figure)


def _name(stage: Stage) -> str:
    return stage.name if stage.card is None else f"card {stage.card}: {stage.name}"


def _bar(axes: Axes, row: int, stage: Stage, begin: int, end: int) -> None:
    at, until = (stage.begin - begin) / 1000, (stage.end - begin) / 1000
    axes.broken_barh([(at, until - at)], (row - 0.3, 0.6), color=COLOURS.get(stage.card, OTHER))
    total = (end - begin) / 1000
    if until - at > WIDE * total:
        place, shift, side, colour = (at + until) / 2, 0, "center", "white"
    elif until > TEXT_SHARE * total:
        place, shift, side, colour = at, -4, "right", "black"
    else:
        place, shift, side, colour = until, 4, "left", "black"
    axes.annotate(
        f"{stage.nanoseconds:.0f} ns",
        (place, row),
        xytext=(shift, 0),
        textcoords="offset points",
        ha=side,
        va="center",
        color=colour,
        fontsize=8,
    )
