"""Numbers and URIs of the command line: types for argparse. It ends with exit code 2 if a type
refuses its word.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import math
from collections.abc import Callable

from dibber_cli import output

SEEDS = (0, (1 << 64) - 1)  # hw/sim/options.cc
SECONDS = (0, 86_400)  # between two reads of a card: up to a day
SCHEMES = ("sim:", "/dev/dibber", "vfio:", "uart:")


def whole(low: int, high: int) -> Callable[[str], int]:
    """A type: whole numbers of a range, both ends included."""

    def number(word: str) -> int:
        try:
            value = int(word)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{word!r} is not a whole number of {low} … {high}"
            ) from None
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{value} is outside {low} … {high}")
        return value

    return number


def real(low: float, high: float) -> Callable[[str], float]:
    """A type: numbers of a range, both ends included; neither NaN nor infinity."""

    def number(word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise argparse.ArgumentTypeError(f"{word!r} is not a number of {low:g} … {high:g}")
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{word} is outside {low:g} … {high:g}")
        return value

    return number


def uri(word: str) -> str:
    """A type: the URI of a card."""
    if not word.startswith(SCHEMES):
        raise argparse.ArgumentTypeError(f"{word!r} names no card: {output.URI}")
    return word
