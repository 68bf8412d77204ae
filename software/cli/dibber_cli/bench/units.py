"""The units of benchmarks' values: their names, formats and comparison."""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Unit:
    """words, axis : of a table's heading; of a chart's axis
    form         : format specification of a value
    less         : less is better
    """

    words: str
    axis: str
    form: str
    less: bool = False

    def show(self, value: float) -> str:
        return format(value, self.form)

    def better(self, before: float, after: float) -> float:
        """Percent by which `after` is better than `before`; negative: worse. It is of speed, so
        twice the time is -50. From 0 it is 100.
        """
        if before == after:
            return 0.0
        if self.less:
            before, after = after, before
        return 100 * (after / before - 1) if before else 100.0


UNITS = {
    "MB/s": Unit("MB/s of payload", "payload", ".1f"),
    "us": Unit("microseconds", "latency", ".3f", less=True),
    "ns": Unit("nanoseconds", "round trip", ".0f", less=True),
    "Mmsg/s": Unit("million messages a second", "messages", ".3f"),
    "%": Unit("percent", "payload", ".2f"),
    "irq/s": Unit("interrupts a second", "interrupts a second", ".0f", less=True),
    "irq/MB": Unit("interrupts a MB", "interrupts a MB", ".1f", less=True),
    "/bit": Unit("errors a bit", "bit error rate", ".1e", less=True),
}


def unit_of(point: Mapping[str, Any]) -> Unit:
    return UNITS[point["unit"]]
