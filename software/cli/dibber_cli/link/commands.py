"""`dibber link status | prbs | test`."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterator

import libdibber

from dibber_cli import numbers, output, profile
from dibber_cli.errors import CommandError, UsageError
from dibber_cli.intermixed import Command, Commands
from dibber_cli.link import measure, report, status
from dibber_cli.link.side import Ends
from dibber_cli.simulator import Pair


def link_status(arguments: argparse.Namespace) -> int:
    with libdibber.Card(arguments.uri, observe=True) as card:
        link = status.read(card)
    if arguments.json:
        print(json.dumps(link, indent=2))
    else:
        output.table(["link", arguments.uri], status.rows(link))
    return 0 if link["state"] == "UP" else 1


@contextlib.contextmanager
def _ends(
    arguments: argparse.Namespace, alone: bool = False
) -> Iterator[tuple[Ends, profile.Profile]]:
    """The cards named, or a simulated pair with the cable that the options describe. `alone`: one
    card is enough.
    """
    chosen = profile.load(arguments.profile)
    if arguments.uris:
        cable = [
            name
            for name in ("length", "ber", "fault")
            if getattr(arguments, name) not in (None, [])
        ]
        if cable:
            raise UsageError(
                f"--{cable[0]} describes a simulated cable: leave it out, or leave the URIs out"
            )
        if len(arguments.uris) != 2 and not (alone and len(arguments.uris) == 1):
            raise UsageError("give the URIs of both cards, or none for a simulated pair")
        with Ends(arguments.uris) as ends:
            yield ends, chosen
        return
    options = [word for fault in arguments.fault for word in ("--fault", fault)]
    if arguments.length is not None:
        options += ["--set", f"link.length_m={arguments.length}"]
    if arguments.ber is not None:
        options += ["--ber", str(arguments.ber)]
    with Pair(chosen, seed=arguments.seed, options=options) as pair, Ends(pair.uris) as ends:
        yield ends, chosen


def link_prbs(arguments: argparse.Namespace) -> int:
    sequence = measure.sequence_of(arguments.sequence)
    with _ends(arguments, alone=arguments.loopback in ("near", "phy")) as (ends, _):
        over = [str(side.node) for side in ends.sides if side.ethernet]
        if over:
            raise CommandError(
                f"card {' and '.join(over)}: the link is Ethernet, which has no bit sequences",
                "'dibber link test' measures rate and loss",
            )
        if arguments.loopback == "phy" and any(side.ring for side in ends.sides):
            raise CommandError(
                "a node of a ring does not know its own words in a loopback of its transceiver",
                "use --loopback near, or none: each card checks what the card before sends",
            )
        found = measure.prbs_cables(
            ends, sequence, int(arguments.milliseconds * 1e6), arguments.loopback
        )
        links = ends.both(lambda side: measure.wait_up(side)[0])
    results = [errors for errors in found if errors is not None]
    if len(results) < len(found):
        # A card with two cables has a result for each.
        deaf = sorted({str(n % len(links)) for n, errors in enumerate(found) if errors is None})
        raise CommandError(
            f"card {' and '.join(deaf)}: the transceiver has no loopback, or does not work in it"
        )
    if arguments.json:
        print(
            json.dumps(
                {
                    "sequence": arguments.sequence,
                    "loopback": arguments.loopback,
                    "cards": results,
                    "links": [{"state": link["state"], "reason": link["reason"]} for link in links],
                },
                indent=2,
            )
        )
    else:
        output.table(
            ["card", "found", "bits", "errors", "rate", "below, 95 %"],
            [
                (
                    measure.place(r),
                    "yes" if r["locked"] else "no",
                    f"{r['bits']:.3g}",
                    r["errors"],
                    f"{r['rate']:.1e}" if r["rate"] is not None else "–",
                    f"{r['rate_below']:.1e}",
                )
                for r in results
            ],
        )
        if arguments.loopback in (None, "far"):
            for r in results:
                if not r["locked"]:
                    print(f"Card {measure.place(r)}: {status.sentence(links[r['card']])}")
    return 0 if all(r["locked"] and not r["errors"] for r in results) else 1


def link_test(arguments: argparse.Namespace) -> int:
    def say(step: str) -> None:
        if sys.stderr.isatty() and not arguments.json:
            print(f"\r\x1b[K{step} …", end="", file=sys.stderr, flush=True)

    with _ends(arguments) as (ends, chosen):
        result = report.Tester(ends, measure.transceivers(chosen), arguments.seed, say).run(
            arguments.megabytes, arguments.milliseconds
        )
    say("")
    result["profile"] = chosen.name
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        output.table(
            [
                "link",
                f"profile {chosen.name}, simulated time"
                if not arguments.uris
                else " ".join(arguments.uris),
            ],
            report.rows(result),
        )
        print(result["verdict"])
    return 0 if result["pass"] else 1


def add_to(
    sub: Commands, command: Command, add_profile: Callable[[argparse.ArgumentParser], None]
) -> None:
    """Add the group `link` to the command line; `command` and `add_profile` are those of
    dibber_cli.main.
    """
    group = sub.add_parser("link", help="The cable between two cards.").add_subparsers(
        metavar="COMMAND", required=True
    )
    p = command(
        group, "status", link_status, "Show a card's link: state, why it is not up, counters."
    )
    p.add_argument("uri", metavar="URI", type=numbers.uri, help=output.URI)
    for name, function, text in (
        (
            "prbs",
            link_prbs,
            "Measure bit errors with a pseudo-random sequence, in both directions.",
        ),
        (
            "test",
            link_test,
            "Train the link; measure length, bit errors, rate and loss; print a verdict. Loads "
            "the control program. "
            "A link tester has no control program: its rate and loss are not measured.",
        ),
    ):
        p = command(group, name, function, text)
        add_profile(p)
        p.add_argument(
            "uris",
            nargs="*",
            metavar="URI",
            type=numbers.uri,
            help="both cards (default: a simulated pair)"
            + ("; one is enough for loopback near or phy" if name == "prbs" else ""),
        )
        p.add_argument(
            "--milliseconds",
            type=numbers.real(0.001, 3_600_000),
            default=2,
            metavar="N",
            help="how long the bit sequence is sent (default 2)",
        )
        p.add_argument(
            "--length",
            type=numbers.real(*profile.RANGES["link.length_m"]),
            metavar="M",
            help="length of the simulated cable in metres",
        )
        p.add_argument(
            "--ber",
            type=numbers.real(*profile.RANGES["link.bit_error_rate"]),
            metavar="X",
            help="bit error rate of the simulated cable",
        )
        p.add_argument(
            "--fault",
            action="append",
            default=[],
            metavar="KIND[:T0:T1[:DIRECTION]]",
            help="fault of the simulated cable: unplugged, noise, stop, inverted, rate, foreign, "
            "loopback. T0 and "
            "T1 are µs of simulated time since the run began; loading the control program takes "
            "some 1000. "
            "DIRECTION is 0: from the first card, or 1: from the second (default: both)",
        )
        if name == "prbs":
            p.add_argument(
                "--sequence", default="prbs31", choices=["prbs7", "prbs15", "prbs23", "prbs31"]
            )
            p.add_argument(
                "--loopback",
                choices=["near", "phy", "far"],
                help="near: each card hears itself in front of its transceiver; phy: each card "
                "hears itself through "
                "its transceiver, without the cable; far: the second card sends back what it hears",
            )
        else:
            p.add_argument(
                "--megabytes",
                type=numbers.whole(1, 1_000_000),
                default=2,
                metavar="N",
                help="megabytes to send when the rate is measured (default 2)",
            )
