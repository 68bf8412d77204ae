"""The stage of the cards that limits a transfer, and its limit, from the cards' counters.

A counter BUSY_… counts the cycles in which data stood at the input of its stage. A stage that is
busy all the time is the limit, or waits for a busy one behind it. So the limit is the last one of
the busiest stages, in the direction of the data. Its possible rate is the payload divided by its
busy time. If no counted stage is busy, computed limits are checked. These are the terms of the
bound, with the completions that come to the card, and the gather engine, which takes one piece of
the source per cycle.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Mapping

from dibber.interface.description import HANDLER, MCP_STATE, SHARED, C
from libdibber import Card

# In the order of the data: on the card whose memory is read, then on the card whose memory is
# written.
SENDER = ("request", "pcie", "packet", "link")
RECEIVER = ("scatter", "write", "pcie")
STAGES = tuple(dict.fromkeys(SENDER + RECEIVER))

# The control program's handlers, each with its busy time.
HANDLERS = ("COMMAND", "SEND_DONE", "ACK", "ARRIVAL", "TIMER")
PROGRAM = "control program"
LATENCY = "latency"

# share of the time, or of the bound, from which on a stage counts as a limit …
BUSY = 0.9
ALIKE = 0.02  # … and shares that differ by no more are equal
GATHER = "gather"
# the same for pieces per cycle in the gather engine, which rests between two transfers
GATHER_BUSY = 0.75
# the same for the control program's handlers: its loop between them is not counted
PROGRAM_BUSY = 0.6

MODULO = 1 << 32  # of a counter


def read(card: Card) -> dict[str, int]:
    """Busy cycles so far of every stage and handler of a libdibber.Card, modulo 2³². Its 16 reads
    take simulated time.
    """
    cycles = {stage: card.read_register(f"COUNT_BUSY_{stage.upper()}") for stage in STAGES}
    for name in HANDLERS:
        calls, spent = handler(card, name)
        cycles[name] = spent
        cycles[f"{name} calls"] = calls
    return cycles


def handler(card: Card, name: str) -> tuple[int, int]:
    """(calls, cycles) of a handler of the control program since it was started, modulo 2³²."""
    offset = (
        card.sram_bytes
        - C.SHARED_FROM_END
        + SHARED["handler"].offset
        + HANDLER.size * getattr(MCP_STATE, name)
    )
    words = card.read_firmware(offset, 8)
    return int.from_bytes(words[:4], "little"), int.from_bytes(words[4:], "little")


def between(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """The counts between two read()s."""
    return {name: (after[name] - before[name]) % MODULO for name in after}


def shares(
    sender: Mapping[str, int], receiver: Mapping[str, int], cycles: float
) -> list[tuple[str, float]]:
    """[(name, share of `cycles` in which it was busy), …] in the order of the data.

    sender, receiver : between() of the card whose memory is read, and of the one whose memory is
                       written
    """
    return [
        *((name, sender[name] / cycles) for name in SENDER),
        *((name, receiver[name] / cycles) for name in RECEIVER),
    ]


def program_share(sender: Mapping[str, int], receiver: Mapping[str, int], cycles: float) -> float:
    """The share of the time in which the busier of both control programs was in a handler.

    The time of a ping-pong is half of the counted time, so a program that was never idle would have
    twice the time.
    """
    return min(1, max(sum(side[name] for name in HANDLERS) for side in (sender, receiver)) / cycles)


def limit(
    sender: Mapping[str, int],
    receiver: Mapping[str, int],
    cycles: float,
    pieces: float = 0,
    term: tuple[str, float] = ("", 0),
) -> tuple[str, float | None]:
    """(name of the limit, its share of `cycles`); the share of LATENCY is None: nothing was busy.

    cycles : time of the transfer
    pieces : of the source, as the gather engine takes them
    term   : (name of the smallest term of the bound, the reached share of it)
    """
    busy = shares(sender, receiver, cycles)
    most = max(share for _, share in busy)
    if most >= BUSY:
        return [(name, share) for name, share in busy if share >= most - ALIKE][-1]
    computed = (
        (*term, BUSY),
        (GATHER, pieces / cycles, GATHER_BUSY),
        (PROGRAM, program_share(sender, receiver, cycles), PROGRAM_BUSY),
    )
    return next(
        ((name, share) for name, share, least in computed if share >= least), (LATENCY, None)
    )
