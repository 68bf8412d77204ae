# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""What a control program does with its time."""

from dibber.interface.description import C, MCP_STATE
from dibber_cli.fw.shared import has_stopped

MODULO = 1 << 32    # of every count

HANDLERS = ("COMMAND", "SEND_DONE", "ACK", "ARRIVAL", "TIMER")
COUNTS   = ("commands", "refused", "timeouts", "strays", "claims", "turns")
COUNTERS = ("doorbells", "fast_commands", "fast_completions", "fast_events", "posts", "events_lost", "interrupts")

# Samples ------------------------------------------------------------------------------------------


def sample(card, shared):
    """State, counts, handlers and queues of a card at one time, as a dictionary."""
    handlers = shared.member("handler")
    info     = card.info()
    return {"cycles": info["cycles"], "state": MCP_STATE.name_of(info["mcp_state"]), "stopped": has_stopped(info["mcp_state"]),
            "handlers": {name.lower(): handlers[getattr(MCP_STATE, name)] for name in HANDLERS},
            "counts":   {**{name: shared.member(name) for name in COUNTS},
                         **{name: info["counters"][name] for name in COUNTERS}},
            "queues":   [queue for n in range(C.ENDPOINTS) if (queue := _queue(card, n))]}


def _queue(card, endpoint):
    """How far an endpoint's queues are; None when it was not used."""
    rung, head, read = (card.read_doorbell(endpoint, name)
                        for name in ("COMMAND_PRODUCER", "COMMAND_HEAD", "CQ_CONSUMER"))
    if not (rung or head or read):
        return None
    return {"endpoint": endpoint, "commands": head, "waiting": (rung - head) % MODULO, "unread": (head - read) % MODULO}


def between(before, after, clock_hz):
    """What a control program did from one sample to another, by the card's own clock."""
    cycles  = max(after["cycles"] - before["cycles"], 1)
    seconds = cycles/clock_hz
    work    = {name: _work(before["handlers"][name], now, cycles, seconds) for name, now in after["handlers"].items()}
    return {"seconds": seconds, "state": after["state"], "handlers": work,
            "busy_percent": sum(w["percent"] for w in work.values()),
            "per_s":  {name: (n - before["counts"][name]) % MODULO/seconds for name, n in after["counts"].items()},
            "counts": after["counts"], "queues": after["queues"]}


def _work(before, now, cycles, seconds):
    change = {name: (now[name] - before[name]) % MODULO for name in ("calls", "cycles", "instructions")}
    return {**change, "calls_per_s": change["calls"]/seconds, "percent": 100*change["cycles"]/cycles,
            "cycles_each": change["cycles"]/change["calls"] if change["calls"] else None,
            "longest": now["longest"]}


# Views --------------------------------------------------------------------------------------------

def tables(rates):
    """(headings, rows) of what output.table() shows, one after the other."""
    yield (["handler", "% of time", "calls/s", "cycles each", "longest", "instructions"],
           [(name, f"{w['percent']:.1f}", f"{w['calls_per_s']:.0f}",
             "–" if w["cycles_each"] is None else f"{w['cycles_each']:.0f}", w["longest"], w["instructions"])
            for name, w in rates["handlers"].items()]
           + [("all", f"{rates['busy_percent']:.1f}", "", "", "", "")])
    yield (["count", "a second", "since the start"],
           [(name, f"{rates['per_s'][name]:.0f}", n) for name, n in rates["counts"].items()])
    if rates["queues"]:
        yield (["endpoint", "commands taken", "waiting", "taken and not read"],
               [(q["endpoint"], q["commands"], q["waiting"], q["unread"]) for q in rates["queues"]])
