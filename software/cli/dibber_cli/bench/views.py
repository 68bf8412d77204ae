"""Views of a benchmark's report: printed tables and panels of its chart."""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Table:
    """A row for each x, and for each series its value beside its bound and the CPU's share.

    heading : of the column of x
    series  : names, in order
    brief   : leave the bound out
    """

    heading: str
    series: Sequence[str]
    brief: bool = False


@dataclass(frozen=True)
class Panel:
    """Series over their x.

    title, label : of the panel, of its x axis
    series       : names, in order
    history      : mark Myrinet's value of 1998 at the first x
    logarithmic  : scale of the values
    meanings     : what the legend says beside the name of a series
    """

    title: str
    series: Sequence[str]
    label: str
    history: bool = False
    logarithmic: bool = False
    meanings: dict = field(default_factory=dict)


def of_series(report: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return [point for point in report["points"] if point["series"] == name]
