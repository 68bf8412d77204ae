"""`dibber timeline FILE`."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import dataclasses
import json
from collections.abc import Sequence

from dibber_cli import numbers, output
from dibber_cli.errors import CommandError
from dibber_cli.intermixed import Command, Commands
from dibber_cli.timeline import transfer


def _looked_up(
    path: str, number: int
) -> tuple[transfer.Transfer, int, transfer.Scene, list[transfer.Stage]]:
    """(the transfer, how many there are, its Scene, its stages). Raises CommandError."""
    try:
        one, count = transfer.chosen(path, number)
        scene = transfer.Scene(path, one)
        return one, count, scene, transfer.stages(scene)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        # JSON of another program: a value that all events of dibber-sim have is missing.
        raise CommandError(f"{path} is no timeline of dibber-sim: {error!r}") from None


def show(arguments: argparse.Namespace) -> int:
    one, count, scene, stages = _looked_up(arguments.file, arguments.transfer)
    total = (stages[-1].end - stages[0].begin) / 1000
    title = (
        f"{one.command} of {one.length} bytes, card {one.card} to card {one.node}, at "
        f"{one.begin / 1e6:.3f} µs: {total:.0f} ns"
    )
    if arguments.svg:
        _draw(title, scene, stages, arguments.svg)
    if arguments.json:
        document = {
            "file": arguments.file,
            "alone": count,
            "transfer": dataclasses.asdict(one),
            "nanoseconds": total,
            "stages": [
                {"name": s.name, "card": s.card, "nanoseconds": s.nanoseconds} for s in stages
            ],
        }
        print(json.dumps(document, indent=2))
        return 0
    print(f"{title} ({count} transfers in the file began alone)")
    output.table(
        ["stage", "where", "ns"],
        [
            (s.name, "cable" if s.card is None else f"card {s.card}", f"{s.nanoseconds:.1f}")
            for s in stages
        ],
    )
    if arguments.svg:
        print(f"written: {arguments.svg}")
    return 0


def _draw(title: str, scene: transfer.Scene, stages: Sequence[transfer.Stage], path: str) -> None:
    from dibber_cli.timeline import picture

    beside = transfer.beside(scene, stages[0].begin, stages[-1].end)
    try:
        picture.draw(title, stages, beside, path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from None


def add_to(sub: Commands, command: Command) -> None:
    """Add `timeline` to the command line; `command` is that of dibber_cli.main."""
    p = command(
        sub,
        "timeline",
        show,
        "Show the stages of one put or get, from its call to its completion.",
        [
            "dibber bench latency --quick --timeline run.json",
            "dibber timeline run.json --svg put.svg",
        ],
    )
    p.add_argument(
        "file", metavar="FILE", help="written by 'dibber sim start --timeline', or a benchmark"
    )
    p.add_argument("--svg", metavar="OUT", help="draw the stages into this file")
    p.add_argument(
        "--transfer",
        type=numbers.whole(0, 1 << 31),
        default=0,
        metavar="N",
        help="the N-th transfer that began while no other one was under way (default 0: the last)",
    )
