"""Figures from whole curves."""

# SPDX-License-Identifier: BSD-2-Clause

import math
from collections.abc import Iterable, Sequence


def _where(level: float, below: tuple[float, float], above: tuple[float, float]) -> float:
    """x between the points `below` and `above` at which a straight line over log x comes to
    `level`.
    """
    (x0, y0), (x1, y1) = below, above
    return math.exp(math.log(x0) + (level - y0) / (y1 - y0) * (math.log(x1) - math.log(x0)))


def half_size(curve: Sequence[tuple[float, float]]) -> float | None:
    """N½: the x at which a curve first reaches half of its own peak; None if it begins above that.

    curve : [(x, value), …], x rising. Between points: a straight line over log x.
    """
    half = max(value for _, value in curve) / 2
    if curve[0][1] >= half:
        return None
    for before, after in zip(curve, curve[1:]):
        if after[1] >= half:
            return _where(half, before, after)
    return None


def crossover(
    direct: Sequence[tuple[float, float]], packed: Sequence[tuple[float, float]]
) -> float | None:
    """The x from which `direct` is at least as fast as `packed` up to the end: 0 if it always is,
    None if it is not at the end.

    Both are [(x, value), …] over the same x, rising. Between points: a straight line over log x.
    """
    ahead = [(x, value - other) for (x, value), (_, other) in zip(direct, packed)]
    if ahead[-1][1] < 0:
        return None
    last_behind = max((n for n, (_, lead) in enumerate(ahead) if lead < 0), default=None)
    if last_behind is None:
        return 0
    return _where(0, ahead[last_behind], ahead[last_behind + 1])


def percentile(values: Iterable[float], percent: float) -> float:
    """Percentile: the smallest of `values` that at least `percent` of them do not exceed (nearest
    rank)."""
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1]
