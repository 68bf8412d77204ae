"""The trace ring of a control program, as text."""

# SPDX-License-Identifier: BSD-2-Clause

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dibber.interface.description import LANE, MCP, MCP_STATE, STATUS, TRACE, C

MODULO = 1 << 32  # of the ring's head, and of the clock's low word

# Ring ---------------------------------------------------------------------------------------------


def read(shared: Any, since: int = 0) -> tuple[list[dict[str, Any]], int, int]:
    """(entries, lost, next): the entries since `since`, and how many of them the ring has lost.

    If the head is before `since`, the program was restarted: all its entries are returned.

    An entry is a dictionary; `next` is the `since` of the following call. The program may run, and
    may be writing its oldest entry now, so this entry is left out.
    """
    head = shared.member("trace_head")
    if (head - since) % MODULO >= MODULO // 2:
        since = 0
    first = (head - min((head - since) % MODULO, C.TRACE_ENTRIES)) % MODULO
    raw: list[dict[str, Any]] = []
    while len(raw) < (head - first) % MODULO:
        at = (first + len(raw)) % C.TRACE_ENTRIES
        raw += shared.elements(
            "trace", at, min((head - first) % MODULO - len(raw), C.TRACE_ENTRIES - at)
        )
    written = (shared.member("trace_head") - first) % MODULO
    gone = min(max(0, written - (C.TRACE_ENTRIES - 1)), len(raw))
    entries = [_entry((first + n) % MODULO, raw[n]) for n in range(gone, len(raw))]
    return entries, (first + gone - since) % MODULO, head


def _entry(index: int, raw: Mapping[str, Any]) -> dict[str, Any]:
    event = raw["event"] >> 8
    return {
        "index": index,
        "cycles": raw["cycles"],
        "handler": MCP_STATE.name_of(raw["event"] & 0xFF),
        "event": TRACE.name_of(event),
        "arguments": raw["argument"],
        "text": arguments(event, raw["argument"]),
    }


# Arguments ----------------------------------------------------------------------------------------


def names_of(event: int) -> list[str]:
    """The names of an event's two arguments, as the description has them in parentheses."""
    doc = next((doc for _, value, doc in TRACE.values if value == event), "")
    found = re.search(r"\(([^()]*)\)$", doc)
    return [name.strip() for name in found.group(1).split(",")] if found else ["", ""]


def arguments(event: int, values: Sequence[int]) -> str:
    """Both in a line of text."""
    return ", ".join(
        _argument(name, value) for name, value in zip(names_of(event), values) if name != "0"
    )


def _argument(name: str, value: int) -> str:
    if name in REGISTERS:
        return _fields(name, value)
    if name.startswith("tag"):
        return "no transfer" if value == 0xFFFF else tag(value)
    if name == "flow":
        return flow(value)
    if name == "endpoint << 8 | status":
        return f"endpoint {value >> 8}, {STATUS.name_of(value & 0xFF)}"
    if "flows" in name:
        return f"{name}: {', '.join(flow(n) for n in range(32) if value >> n & 1) or 'none'}"
    decimal = (
        name in ("endpoint", "incarnation", "COMMAND_HEAD", "cycles")
        or "PSN" in name
        or "puts" in name
    )
    return f"{name} {value}" if decimal else f"{name} {value:#x}".strip()


SLOT_SETS = {C.OUTBOX: "outbox", C.INBOX: "inbox"}
REGISTERS = {register.name: register for register in MCP.registers if register.fields}


def _fields(name: str, value: int) -> str:
    """A register's value, field by field; flags only when they are set."""
    texts, low = [], 0
    for field in REGISTERS[name].fields:
        part = value >> low & (1 << field.bits) - 1
        low += field.bits
        if field.bits == 1:
            texts += [field.name] if part else []
        elif field.name in ("status", "reason"):
            texts.append(STATUS.name_of(part))
        else:
            texts.append(
                {"tag": tag, "flow": flow}.get(
                    field.name, lambda part, name=field.name: f"{name} {part}"
                )(part)
            )
    return ", ".join(texts)


def tag(value: int) -> str:
    """The slot that a tag names."""
    slots, slot = divmod(value, C.SLOTS)
    return f"{SLOT_SETS.get(slots, f'endpoint {slots}')} slot {slot}"


def flow(value: int) -> str:
    lane, node = divmod(value, C.NODES)
    return f"flow {LANE.name_of(lane)} to {node}"


# Views --------------------------------------------------------------------------------------------


def line(entry: Mapping[str, Any], before: Mapping[str, Any] | None, clock_hz: int) -> str:
    """A line of text: time, time since the entry before, handler, event."""
    gap = (
        ""
        if before is None
        else f"+{(entry['cycles'] - before['cycles']) % MODULO * 1e6 / clock_hz:.2f} µs"
    )
    return (
        f"{entry['cycles']:>10}  {gap:>14}  {entry['handler']:<9}  {entry['event']:<11}  "
        f"{entry['text']}"
    ).rstrip()
