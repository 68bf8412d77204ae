"""Which stage of the cards limits a transfer, and to what: read off their counters.

A counter BUSY_… counts the cycles in which something stood at the input of its stage. A stage that
is busy all the time is the limit, or waits for a busy one behind it: so the limit is the last one,
in the direction of the data, among the busiest. What it could do is the payload divided by its busy
time. Where no counted stage is busy, what can be computed is looked at: the terms of the bound,
among them the completions that come to the card, and the gather engine, which takes one piece of
the source a cycle.
"""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.interface.description import HANDLER, MCP_STATE, SHARED, C

# In the order in which data pass: on the card whose memory is read, then on the one whose memory is
# written.
SENDER = ("request", "pcie", "packet", "link")
RECEIVER = ("scatter", "write", "pcie")
STAGES = tuple(dict.fromkeys(SENDER + RECEIVER))

# What the control program does: its handlers, each a busy time too.
HANDLERS = ("COMMAND", "SEND_DONE", "ACK", "ARRIVAL", "TIMER")
PROGRAM = "control program"
LATENCY = "latency"

# share of the time, or of the bound, from which on a stage counts as a limit …
BUSY = 0.9
ALIKE = 0.02  # … and shares that differ by no more are alike
GATHER = "gather"
# the same for pieces a cycle in the gather engine, which stands still between two transfers
GATHER_BUSY = 0.75
# the same for the control program's handlers: its loop between them is not counted
PROGRAM_BUSY = 0.6

MODULO = 1 << 32  # of a counter


def read(card):
    """Busy cycles so far of every stage and handler of a libdibber.Card, modulo 2³². Its 16 reads
    take simulated time.
    """
    cycles = {stage: card.read_register(f"COUNT_BUSY_{stage.upper()}") for stage in STAGES}
    for name in HANDLERS:
        calls, spent = handler(card, name)
        cycles[name] = spent
        cycles[f"{name} calls"] = calls
    return cycles


def handler(card, name):
    """(calls, cycles) of a handler of the control program since it was started, modulo 2³²."""
    offset = (
        card.sram_bytes
        - C.SHARED_FROM_END
        + SHARED["handler"].offset
        + HANDLER.size * getattr(MCP_STATE, name)
    )
    words = card.read_firmware(offset, 8)
    return int.from_bytes(words[:4], "little"), int.from_bytes(words[4:], "little")


def between(before, after):
    """What was counted from one read() to another."""
    return {name: (after[name] - before[name]) % MODULO for name in after}


def shares(sender, receiver, cycles):
    """[(name, share of `cycles` in which it was busy), …] in the order of the data.

    sender, receiver : between() of the card whose memory is read, and of the one whose memory is
                       written
    """
    return [
        *((name, sender[name] / cycles) for name in SENDER),
        *((name, receiver[name] / cycles) for name in RECEIVER),
    ]


def program_share(sender, receiver, cycles):
    """The share of the time in which the busier of both control programs was in a handler.

    Of a ping-pong the time is half of what was counted in, so that a program that was never idle
    would have twice the time.
    """
    return min(1, max(sum(side[name] for name in HANDLERS) for side in (sender, receiver)) / cycles)


def limit(sender, receiver, cycles, pieces=0, term=("", 0)):
    """(name of the limit, its share of `cycles`); the share of LATENCY is None: nothing was busy.

    cycles : that the transfer took
    pieces : of the source, as the gather engine takes them
    term   : (name of the least term of the bound, share of it that was reached)
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
