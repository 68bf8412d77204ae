"""Differences of counters between two reads of a card. They tell a wrapped counter from a reset
card.

A reset makes every counter and the card's clock begin at 0. A counter of 32 bits that wraps goes
on.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Mapping

MODULO = 1 << 32  # of a counter

# No counter counts more than this in a cycle: code errors are counted by symbol, and a word has
# four.
MOST_A_CYCLE = 4
SLACK = 1024  # cycles that it takes to read the counters, one after the other


def was_reset(
    before: Mapping[str, int], after: Mapping[str, int], cycles_before: int, cycles_after: int
) -> bool:
    """Whether the card was reset between two reads.

    before, after               : counters by name, and other counts that a reset clears
    cycles_before, cycles_after : the card's clock at these reads, 64 bits

    It was, if the clock went back, or if a counter fell by more than a wrap in this time explains.
    """
    if cycles_after < cycles_before:
        return True
    most = MOST_A_CYCLE * (cycles_after - cycles_before + SLACK)
    return any(
        value < before[name] and (value - before[name]) % MODULO > most
        for name, value in after.items()
    )


def changes(
    before: Mapping[str, int], after: Mapping[str, int], since_reset: bool = False
) -> dict[str, int]:
    """The difference of each counter; after a reset it is the counter's value."""
    return (
        dict(after)
        if since_reset
        else {name: (value - before[name]) % MODULO for name, value in after.items()}
    )
