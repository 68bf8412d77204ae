"""How a control program spends its time."""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Iterator, Mapping
from typing import Any

from dibber.interface.description import MCP_STATE, TRACE
from libdibber import Card

from dibber_cli import counts
from dibber_cli.counts import MODULO
from dibber_cli.fw.shared import has_stopped

HANDLERS = ("COMMAND", "SEND_DONE", "ACK", "ARRIVAL", "SCOUT", "TIMER")

# The program's own counts, by their names in struct mcp_shared; its counts of trace events; and the
# card's counters, for work that hardware does in its place.
COUNTS = (
    "commands",
    "refused",
    "timeouts",
    "strays",
    "claims",
    "turns",
    "checksums",
    "messages",
    "regions",
    "scouts",
)
EVENTS = {
    "send_jobs": "JOB",
    "route_changes": "ROUTE",
    "replays": "REPLAY",
    "incarnations": "INCARNATION",
    "opened": "OPEN",
}
COUNTERS = (
    "doorbells",
    "fast_commands",
    "fast_completions",
    "fast_answers",
    "fast_replies",
    "fast_events",
    "atomics",
    "posts",
    "events_lost",
    "interrupts",
    "packets_sent",
    "packets_received",
    "acks_sent",
    "header_crc_error",
    "payload_crc_error",
    "packet_refused",
    "busy_scatter",
)

# The seven duties of a Myrinet Control Program, as firmware/README.md names them, and the counts
# that prove their work.
DUTIES = {
    "routing table management": ("routes", "route_changes", "scouts"),
    "gathering": ("send_jobs", "fast_commands", "fast_answers"),
    "checksumming": ("checksums", "header_crc_error", "payload_crc_error"),
    "sending and receiving": ("commands", "atomics", "packets_sent", "packets_received"),
    "control message generation": (
        "messages",
        "fast_replies",
        "replays",
        "incarnations",
        "acks_sent",
    ),
    "scattering": ("regions", "packet_refused", "busy_scatter"),
    "interrupts on arrival": ("fast_events", "posts", "interrupts"),
}
OTHERS = tuple(
    name
    for name in (*COUNTS, *EVENTS, *COUNTERS)
    if not any(name in names for names in DUTIES.values())
)

# Samples ------------------------------------------------------------------------------------------


def sample(card: Card, shared: Any) -> dict[str, Any]:
    """State, counts, handlers and queues of a card at one time, as a dictionary."""
    handlers = shared.member("handler")
    info = card.info()
    events = shared.member("events")
    return {
        "cycles": info["cycles"],
        "state": MCP_STATE.name_of(info["mcp_state"]),
        "stopped": has_stopped(info["mcp_state"]),
        "handlers": {name.lower(): handlers[getattr(MCP_STATE, name)] for name in HANDLERS},
        "counts": {
            "routes": sum(bin(node["valid"]).count("1") for node in shared.member("routes")),
            **{name: shared.member(name) for name in COUNTS},
            **{name: events[getattr(TRACE, event)] for name, event in EVENTS.items()},
            **{name: info["counters"][name] for name in COUNTERS},
        },
        "queues": [queue for n in range(info["endpoints"]) if (queue := _queue(card, n))],
    }


def _queue(card: Card, endpoint: int) -> dict[str, int] | None:
    """State of an endpoint's queues; None if it was not used."""
    rung, head, read = (
        card.read_doorbell(endpoint, name)
        for name in ("COMMAND_PRODUCER", "COMMAND_HEAD", "CQ_CONSUMER")
    )
    if not (rung or head or read):
        return None
    return {
        "endpoint": endpoint,
        "commands": head,
        "waiting": (rung - head) % MODULO,
        "unread": (head - read) % MODULO,
    }


def between(before: Mapping[str, Any], after: Mapping[str, Any], clock_hz: int) -> dict[str, Any]:
    """A control program's work from one sample to another, by the card's own clock.

    If the program was `restarted` between them, its counts are of the time since then; so are the
    card's after a reset.
    """
    ticks = before["cycles"], after["cycles"]
    own = lambda sample: {
        **{name: sample["counts"][name] for name in (*COUNTS, *EVENTS)},
        **{
            f"{name} {count}": work[count]
            for name, work in sample["handlers"].items()
            for count in ("calls", "cycles")
        },
    }
    hardware = lambda sample: {name: sample["counts"][name] for name in COUNTERS}
    reset = counts.was_reset(hardware(before), hardware(after), *ticks)
    restarted = reset or counts.was_reset(own(before), own(after), *ticks)
    cycles = max(after["cycles"] - (0 if reset else before["cycles"]), 1)
    seconds = cycles / clock_hz
    change = {
        "routes": 0,
        **counts.changes(own(before), own(after), restarted),
        **counts.changes(hardware(before), hardware(after), reset),
    }
    work = {
        name: _work(before["handlers"][name], now, restarted, cycles, seconds)
        for name, now in after["handlers"].items()
    }
    return {
        "seconds": seconds,
        "restarted": restarted,
        "state": after["state"],
        "handlers": work,
        "busy_percent": sum(w["percent"] for w in work.values()),
        "per_s": {name: change[name] / seconds for name in after["counts"]},
        "counts": after["counts"],
        "queues": after["queues"],
        "duties": {
            duty: {name: after["counts"][name] for name in names} for duty, names in DUTIES.items()
        },
    }


def _work(
    before: Mapping[str, int], now: Mapping[str, int], restarted: bool, cycles: int, seconds: float
) -> dict[str, Any]:
    names = ("calls", "cycles", "instructions")
    change = counts.changes(
        {name: before[name] for name in names}, {name: now[name] for name in names}, restarted
    )
    return {
        **change,
        "calls_per_s": change["calls"] / seconds,
        "percent": 100 * change["cycles"] / cycles,
        "cycles_each": change["cycles"] / change["calls"] if change["calls"] else None,
        "longest": now["longest"],
    }


# Views --------------------------------------------------------------------------------------------


def tables(rates: Mapping[str, Any]) -> Iterator[tuple[list[str], list[tuple[Any, ...]]]]:
    """(headings, rows) of the tables for output.table(), one after the other."""
    yield (
        ["handler", "% of time", "calls/s", "cycles each", "longest", "instructions"],
        [
            (
                name,
                f"{w['percent']:.1f}",
                f"{w['calls_per_s']:.0f}",
                "–" if w["cycles_each"] is None else f"{w['cycles_each']:.0f}",
                w["longest"],
                w["instructions"],
            )
            for name, w in rates["handlers"].items()
        ]
        + [("all", f"{rates['busy_percent']:.1f}", "", "", "", "")],
    )
    yield (
        ["duty", "counted by", "a second", "since the start"],
        [
            (duty if n == 0 else "", name, f"{rates['per_s'][name]:.0f}", rates["counts"][name])
            for duty, names in DUTIES.items()
            for n, name in enumerate(names)
        ],
    )
    yield (
        ["count", "a second", "since the start"],
        [(name, f"{rates['per_s'][name]:.0f}", rates["counts"][name]) for name in OTHERS],
    )
    if rates["queues"]:
        yield (
            ["endpoint", "commands taken", "waiting", "taken and not read"],
            [(q["endpoint"], q["commands"], q["waiting"], q["unread"]) for q in rates["queues"]],
        )
