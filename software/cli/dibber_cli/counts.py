"""What was counted between two looks at a card: a counter that wrapped, and a card that was reset,
are told apart.

A reset makes every counter and the card's clock begin at 0. A counter of 32 bits that wraps goes
on.
"""

# SPDX-License-Identifier: BSD-2-Clause

MODULO = 1 << 32  # of a counter

# No counter counts more than this in a cycle: code errors go by the symbol, of which a word has
# four.
MOST_A_CYCLE = 4
SLACK = 1024  # cycles in which the counters are read, one after the other


def was_reset(before, after, cycles_before, cycles_after):
    """Whether the card was reset between two looks.

    before, after               : counters by name, and other counts that a reset clears
    cycles_before, cycles_after : the card's clock at these looks, 64 bits

    The clock went back, or a counter fell by more than a wrap in this time explains.
    """
    if cycles_after < cycles_before:
        return True
    most = MOST_A_CYCLE * (cycles_after - cycles_before + SLACK)
    return any(
        value < before[name] and (value - before[name]) % MODULO > most
        for name, value in after.items()
    )


def changes(before, after, since_reset=False):
    """What each counter counted; after a reset that is its value."""
    return (
        dict(after)
        if since_reset
        else {name: (value - before[name]) % MODULO for name, value in after.items()}
    )
