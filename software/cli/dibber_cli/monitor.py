"""`dibber monitor`: a card's counters and rates while it works."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

import libdibber
from dibber.interface.description import COUNTERS, LINK_STATE, MCP_STATE

from dibber_cli import counts, numbers, output, signals
from dibber_cli.intermixed import Command, Commands

# Any change of these counters is an error.
ERRORS = tuple(
    name.lower()
    for name, _ in COUNTERS
    if name.endswith(("_ERROR", "_ERRORS", "_MALFORMED", "_TIMEOUT", "_OVERFLOW"))
    or name in ("PACKET_TRUNCATED", "PACKET_GAP", "PACKET_WRONG_NODE", "LINK_LOST")
    or name.startswith("COMPLETION_")
)


# Samples ------------------------------------------------------------------------------------------


def sample(card: libdibber.Card) -> dict[str, Any]:
    """State and counters of a card at one time, as a dictionary."""
    info = card.info()
    return {
        "cycles": info["cycles"],
        "link": LINK_STATE.name_of(info["link_state"]),
        "control_program": MCP_STATE.name_of(info["mcp_state"]),
        "counters": info["counters"],
    }


def between(before: Mapping[str, Any], after: Mapping[str, Any], clock_hz: int) -> dict[str, Any]:
    """A card's work from one sample to another: rates by the card's own clock, and the changes of
    all counters.

    If the card was `reset` between them, all values are of the time since then.
    """
    reset = counts.was_reset(
        before["counters"], after["counters"], before["cycles"], after["cycles"]
    )
    cycles = max(after["cycles"] - (0 if reset else before["cycles"]), 1)
    seconds = cycles / clock_hz
    change = counts.changes(before["counters"], after["counters"], reset)
    return {
        "seconds": seconds,
        "reset": reset,
        "link": after["link"],
        "control_program": after["control_program"],
        "sent_mb_per_s": change["bytes_sent"] * 4 / seconds / 1e6,
        "received_mb_per_s": change["bytes_received"] * 4 / seconds / 1e6,
        "packets_sent_per_s": change["packets_sent"] / seconds,
        "packets_received_per_s": change["packets_received"] / seconds,
        "doorbells_per_s": change["doorbells"] / seconds,
        "link_busy_percent": 100 * change["busy_link"] / cycles,
        "stopped_percent": 100 * change["stopped_cycles"] / cycles,
        "errors": sum(change[name] for name in ERRORS),
        "changes": change,
        "counters": after["counters"],
    }


def pause(card: libdibber.Card, info: Mapping[str, Any], seconds: float) -> None:
    """Wait for so much wall time. A participant in a simulated clock stops the clock while it
    sleeps, so it asks for the time again and again. An observer is no participant and may sleep.
    """
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if info["simulated_clock"]:
            card.read_register("CYCLES_LOW")
        else:
            time.sleep(left)


# Views --------------------------------------------------------------------------------------------

COLUMNS = (
    "link",
    "sent MB/s",
    "got MB/s",
    "sent pkt/s",
    "got pkt/s",
    "doorbells/s",
    "link %",
    "stopped %",
    "errors",
    "over ms",
)


def line(rates: Mapping[str, Any]) -> list[str]:
    """Cells below COLUMNS."""
    return [
        rates["link"],
        *(f"{rates[name]:.1f}" for name in ("sent_mb_per_s", "received_mb_per_s")),
        *(
            f"{rates[name]:.0f}"
            for name in ("packets_sent_per_s", "packets_received_per_s", "doorbells_per_s")
        ),
        *(f"{rates[name]:.1f}" for name in ("link_busy_percent", "stopped_percent")),
        str(rates["errors"]),
        f"{1e3 * rates['seconds']:.3g}",
    ]


def _print_line(cells: Iterable[str]) -> None:
    print(
        "  ".join(cell.rjust(max(len(column), 8)) for cell, column in zip(cells, COLUMNS)),
        flush=True,
    )


def _screen(uri: str, rates: Mapping[str, Any]) -> None:
    """Show all counters that ever moved, on a cleared terminal."""
    if sys.stdout.isatty():
        print("\x1b[H\x1b[2J", end="")
    output.table(COLUMNS, [line(rates)])
    print()
    output.table(
        [uri, "value", "a second"],
        [
            (name, value, f"{rates['changes'][name] / rates['seconds']:.0f}")
            for name, value in rates["counters"].items()
            if value
        ],
    )
    sys.stdout.flush()


def _show(arguments: argparse.Namespace, rates: Mapping[str, Any], number: int) -> None:
    if arguments.json:
        print(json.dumps(rates), flush=True)
        return
    if rates["reset"]:
        print(
            "the card was reset: counters begin at 0, rates are of the time since then", flush=True
        )
    if arguments.all:
        _screen(arguments.uri, rates)
    else:
        if number % 20 == 0:
            _print_line(COLUMNS)
        _print_line(line(rates))


# Command ------------------------------------------------------------------------------------------


def monitor(arguments: argparse.Namespace) -> int:
    """Ends with 1 if an error was counted. Ctrl-C is the normal end, and no error."""
    wanted, errors, number = 1 if arguments.once else arguments.count, 0, 0
    with libdibber.Card(arguments.uri, observe=True) as card:
        info, before = card.info(), sample(card)
        try:
            while not wanted or number < wanted:
                pause(card, info, arguments.interval)
                after = sample(card)
                rates = between(before, after, info["clock_hz"])
                errors += rates["errors"]
                _show(arguments, rates, number)
                before, number = after, number + 1
        except signals.Ended:
            raise
        except KeyboardInterrupt:
            if not arguments.json:
                print()
    return 1 if errors else 0


def add_to(sub: Commands, command: Command) -> None:
    """Add `monitor` to the command line; `command` is that of dibber_cli.main."""
    p = command(
        sub,
        "monitor",
        monitor,
        "Show a card's rates, one line per second. Ends with 1 when an error was counted.",
        [
            "dibber monitor URI",
            "dibber monitor --all --interval 0.2 URI",
            "dibber monitor --once --json URI | jq .sent_mb_per_s",
        ],
        as_json="lines",
    )
    p.add_argument("uri", metavar="URI", type=numbers.uri, help=output.URI)
    p.add_argument(
        "--interval",
        type=numbers.real(*numbers.SECONDS),
        default=1.0,
        metavar="SECONDS",
        help="time between two lines (default 1)",
    )
    p.add_argument(
        "--count",
        type=numbers.whole(0, 1 << 31),
        default=0,
        metavar="N",
        help="lines (default: until Ctrl-C)",
    )
    p.add_argument("--once", action="store_true", help="print one line and end")
    p.add_argument(
        "--all", action="store_true", help="print all counters that are not 0 instead of a line"
    )
