"""`dibber counters`: what a card has counted, since its reset or since a base."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
from collections.abc import Mapping

import libdibber

from dibber_cli import counts, files, numbers, output, paths
from dibber_cli.errors import CommandError
from dibber_cli.intermixed import Command, Commands

Counted = tuple[dict[str, int], int]  # counters by name, and the card's clock in cycles


def _base_name(uri: str) -> str:
    return paths.kept_of(uri, "counters", "json")


def _parsed(text: bytes, name: str) -> Counted:
    """(counters by name, cycles) of a JSON document that this command or `info --json` printed."""
    try:
        document = json.loads(text)
        counters, cycles = document["counters"], document["cycles"]
        numbers_only = [*counters.values(), cycles]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CommandError(
            f"{name} has no counters: {error!r}", "'dibber counters --json URI' makes such a file"
        ) from None
    if not all(type(value) is int and value >= 0 for value in numbers_only):
        raise CommandError(f"{name} has a counter that is not a whole number")
    return counters, cycles


def _base(arguments: argparse.Namespace) -> Counted | None:
    """(counters, cycles) to count from, or None: since the card's reset."""
    if arguments.since:
        return _parsed(files.read(arguments.since), arguments.since)
    if arguments.absolute:
        return None
    try:
        with paths.RunFolder() as folder:
            return _parsed(folder.read(_base_name(arguments.uri)), "the base of this card")
    except FileNotFoundError:
        return None


def counted(
    now: Mapping[str, int], cycles: int, base: Counted | None
) -> tuple[dict[str, int], int, bool]:
    """What was counted since `base`: (changes by name, cycles of that time, whether the card was
    reset since).

    A counter that the base lacks (another interface) counts from 0.
    """
    if base is None:
        return dict(now), cycles, False
    before, cycles_before = base
    before = {name: before.get(name, 0) for name in now}
    reset = counts.was_reset(before, now, cycles_before, cycles)
    return counts.changes(before, now, reset), cycles - (0 if reset else cycles_before), reset


def show(arguments: argparse.Namespace) -> int:
    base = None if arguments.clear_base else _base(arguments)
    with libdibber.Card(arguments.uri, observe=True) as card:
        info = card.info()
    now, cycles = info["counters"], info["cycles"]
    if arguments.clear_base:
        document = {"cycles": cycles, "counters": now}
        with paths.RunFolder(create=True) as folder:
            folder.write(_base_name(arguments.uri), json.dumps(document).encode())
        if arguments.json:
            print(json.dumps({"uri": arguments.uri, "base": document}, indent=2))
        else:
            print(f"'dibber counters {arguments.uri}' counts from here on")
        return 0
    changes, time, reset = counted(now, cycles, base)
    if arguments.json:
        since = {"reset": reset, "cycles": time, "changes": changes} if base else None
        document = {"uri": arguments.uri, "cycles": cycles, "counters": now, "since": since}
        print(json.dumps(document, indent=2))
        return 0
    begin = "its reset" if base is None else "the base"
    if reset:
        print("the card was reset after the base: counters begin at that reset")
    seconds = time / info["clock_hz"]
    rows = [(name, value) for name, value in changes.items() if value or arguments.all]
    if not rows:
        print(f"nothing was counted since {begin}, {seconds:.6f} s by the card's clock")
        return 0
    output.table([f"counter, {seconds:.6f} s since {begin}", "value"], rows)
    return 0


def add_to(sub: Commands, command: Command) -> None:
    """Add `counters` to the command line; `command` is that of dibber_cli.main."""
    p = command(
        sub,
        "counters",
        show,
        "Show what a card has counted since its reset, or since a base.",
        [
            "dibber counters URI",
            "dibber counters --json URI > before.json; dibber counters --since before.json URI",
            "dibber counters --clear-base URI",
        ],
    )
    p.add_argument("uri", metavar="URI", type=numbers.uri, help=output.URI)
    p.add_argument("--all", action="store_true", help="counters that are 0 too")
    which = p.add_mutually_exclusive_group()
    which.add_argument(
        "--clear-base",
        action="store_true",
        help="remember the present values: later calls count from here",
    )
    which.add_argument("--since", metavar="FILE", help="count from the values in this JSON file")
    which.add_argument(
        "--absolute", action="store_true", help="count from the card's reset, whatever the base"
    )
