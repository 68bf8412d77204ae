"""`dibber selftest`: all items of one card or of two, and their verdict."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import contextlib
import json
import sys
import threading
from collections.abc import Callable, Iterator, Sequence

from dibber_cli import numbers, output, paths, profile, simulator
from dibber_cli.errors import CommandError, UsageError
from dibber_cli.intermixed import Command, Commands
from dibber_cli.selftest import cable, deposits, program, registers
from dibber_cli.selftest.examinee import PASS, Examinee, Meeting
from dibber_cli.simulator import Pair

Items = Sequence[tuple[str, Callable[[Examinee], str]]]

ITEMS: Items = (
    ("identity", registers.identity),
    ("PCIe", registers.pcie),
    ("scratch register", registers.scratch),
    ("SRAM", registers.sram),
    ("control program", program.start),
    ("clock", program.clock),
    ("queues", program.queues),
    ("interrupts", program.interrupts),
    ("near-end loopback", cable.near_end),
    ("transceiver", cable.transceiver),
    ("link", cable.link),
    ("DMA patterns", deposits.deposits),
    ("PCIe errors", registers.pcie_errors),
)


def examine(examinee: Examinee, items: Items) -> None:
    """All items of one card; a card that cannot be opened has only the first one."""
    try:
        for name, test in items:
            examinee.examine(name, test)
            if examinee.card is None:
                return
    finally:
        examinee.close()


def run(
    uris: Sequence[str],
    seed: int,
    say: Callable[[str], None] = lambda text: None,
    items: Items = ITEMS,
) -> list[Examinee]:
    """Examine one card or both, each in a thread of its own, as the simulator's clock requires;
    returns the Examinees.
    """
    meeting = Meeting() if len(uris) == 2 else None
    examinees = [Examinee(uri, node, seed, meeting, say) for node, uri in enumerate(uris)]
    threads = [
        threading.Thread(target=examine, args=(one, items), daemon=True) for one in examinees
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return examinees


# Command ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _cards(arguments: argparse.Namespace) -> Iterator[Sequence[str]]:
    """The given URIs, or those of a simulated pair with the cable that the options describe."""
    if arguments.uris:
        yield arguments.uris
        return
    options = [word for fault in arguments.fault for word in ("--fault", fault)]
    with Pair(profile.load(arguments.profile), seed=arguments.seed, options=options) as pair:
        yield pair.uris


def selftest(arguments: argparse.Namespace) -> int:
    if len(arguments.uris) > 2:
        raise UsageError("give one card or two", "or none, for a simulated pair")
    if arguments.uris and arguments.fault:
        raise UsageError("--fault is of the simulated cable: it says nothing beside a URI")
    if not paths.FIRMWARE.exists():
        raise CommandError(f"{paths.FIRMWARE} is not built", "run 'make firmware'")
    shown = sys.stderr.isatty() and not arguments.json

    def say(text: str) -> None:
        if shown:
            print(f"\r\x1b[K{text}", end=" …" if text else "", file=sys.stderr, flush=True)

    with _cards(arguments) as uris:
        cards = run(uris, arguments.seed, say)
    say("")
    failed = [card for card in cards if card.failed]
    if arguments.json:
        print(
            json.dumps(
                {
                    "pass": not failed,
                    "seed": arguments.seed,
                    "cards": [card.result() for card in cards],
                },
                indent=2,
            )
        )
    else:
        for card in cards:
            output.table(
                [f"card {card.node}", "", simulator.without_folders(card.uri)],
                [(i.item, i.verdict, i.detail) for i in card.items],
            )
            print()
        print(verdict(cards))
    return 1 if failed else 0


CABLES = {
    "none": "no cable",
    "direct": "direct cable",
    "loopback": "loopback to itself",
    "wrong": "wrong cable",
    "": "cable not tested",
}


def verdict(cards: Sequence[Examinee]) -> str:
    """A sentence for each card."""
    said = []
    for card in cards:
        passed = sum(item.verdict == PASS for item in card.items)
        left = [
            item.item
            for item in card.items
            if item.verdict != PASS and item.item not in card.failed
        ]
        text = f"fails: {', '.join(card.failed)}" if card.failed else f"passes {passed} items"
        said.append(
            f"Card {card.node} {text}; {CABLES[card.cable]}"
            + (f"; not tested: {', '.join(left)}" if left else "")
            + "."
        )
    return "\n".join(said)


def add_to(
    sub: Commands, command: Command, add_profile: Callable[[argparse.ArgumentParser], None]
) -> None:
    """Add `selftest` to the command line. `command` and `add_profile` are dibber_cli.main's."""
    p = command(
        sub,
        "selftest",
        selftest,
        "Test a card after flashing: registers, memory, queues, interrupts, loopback, link, DMA. "
        "No other program may use it.",
        [
            "dibber selftest sim:/run/user/1000/dibber-1000/card0.sock",
            "dibber selftest URI0 URI1",
            "dibber selftest --fault loopback",
            "dibber selftest --json | jq .cards[0].failed",
        ],
    )
    add_profile(p)
    p.add_argument(
        "uris",
        nargs="*",
        metavar="URI",
        type=numbers.uri,
        help="one card, or both for DMA between them (default: a simulated pair)",
    )
    p.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="KIND[:T0:T1[:DIRECTION]]",
        help="fault of the simulated cable: unplugged, noise, stop, inverted, rate, foreign, "
        "loopback; times in µs",
    )
