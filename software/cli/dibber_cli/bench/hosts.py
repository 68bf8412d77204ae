"""`dibber bench` on cards that are there already: two of this host, or one on each of two hosts."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import contextlib
import dataclasses
import secrets
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import libdibber
from libdibber.exchange import Exchange, ExchangeError

from dibber_cli import errors, numbers, paths
from dibber_cli.bench import options, program, remote
from dibber_cli.bench.worker import Worker
from dibber_cli.errors import CommandError, UsageError
from dibber_cli.profile import Profile

PORT = "7471"
TOKEN_BYTES = 8  # of a token that a server makes up
WAIT_SECONDS = 600  # for the other side to come
ANSWER_SECONDS = 120  # for the other side to take a run


# Of a benchmark's module, names of series, whether the run is quick, and its options.
PointsOf = Callable[[ModuleType, str, bool, options.Options], list[Any]]

# Cards --------------------------------------------------------------------------------------------


class Cards:
    """Two cards in place of a simulator.Pair: card 0 sends where one does.

    uris     : of the cards; None for the one on the other host
    exchange : with the other host's program, or None

    Attributes
    ----------
    opened : what both programs said when they had opened their cards, set by session.measure()
    """

    stats: Path | None = None
    server: type[remote.Server] = remote.Server  # of the pipe to a program on the other host

    def __init__(self, uris: Sequence[str | None], exchange: Exchange | None = None) -> None:
        self.uris, self.exchange = uris, exchange
        self.opened: list[dict[str, Any]] = []

    def __enter__(self) -> "Cards":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def check(self) -> None:
        """A simulated pair raises here when its simulator has ended. Cards say so themselves."""

    def stop(self) -> None:
        pass

    def fitted(self, profile: Profile) -> Profile:
        """The profile, with what the cards themselves say in place of its values. Raises
        CommandError for a profile of other cards.
        """
        for n, card in enumerate(self.opened):
            told = {"data_width": card["data_width"], "clock_hz": card["clock_hz"]}
            for name, value in told.items():
                if value != getattr(profile, name):
                    raise CommandError(
                        f"card {n} has {name} {value:g}, profile {profile.name} "
                        f"{getattr(profile, name):g}",
                        "choose the profile of these cards with --profile",
                    )
        return dataclasses.replace(
            profile,
            max_payload=min(card["max_payload"] for card in self.opened),
            max_read_request=min(card["max_request"] for card in self.opened),
        )

    @property
    def time_base(self) -> str:
        return "simulated" if all(card["simulated"] for card in self.opened) else "hardware"


# The command line ---------------------------------------------------------------------------------


def check(arguments: argparse.Namespace) -> None:
    """Raise UsageError when options and URIs make no sense together."""
    count = len(arguments.uris)
    if arguments.server and arguments.client:
        raise UsageError("--server and --client: one host has one part")
    if (arguments.server or arguments.client) and count != 1:
        raise UsageError(f"--server and --client take one URI, the card of this host, not {count}")
    if not (arguments.server or arguments.client) and count not in (0, 2):
        raise UsageError(
            f"{count} URIs: give two cards of this host, or none for a simulated pair",
            "with one card on each of two hosts: --server there, --client HOST here",
        )
    if not (arguments.server or arguments.client) and (arguments.port or arguments.token):
        raise UsageError("--port and --token belong to --server and --client")


def check_timeline(arguments: argparse.Namespace, test: ModuleType) -> None:
    """Raise UsageError when --timeline makes no sense with a benchmark and its cards."""
    if arguments.timeline and (arguments.server or arguments.uris):
        raise UsageError(
            "--timeline is of the simulator that this command starts",
            "for cards that are there: dibber sim start --timeline FILE",
        )
    if arguments.timeline and hasattr(test, "measure"):
        raise UsageError(f"bench {test.NAME} starts several simulators: it has no --timeline")


# The values of add_to() for a benchmark that has its own simulated cards.
NONE: dict[str, Any] = {
    "uris": [],
    "timeline": None,
    "server": False,
    "client": None,
    "port": None,
    "token": None,
}


def add_to(p: argparse.ArgumentParser) -> None:
    """Add URIs and options for cards that are there already to a benchmark's command line."""
    p.add_argument(
        "uris",
        metavar="URI",
        nargs="*",
        type=numbers.uri,
        help="two cards of this host; one with --server or --client (default: a simulated pair)",
    )
    p.add_argument(
        "--timeline",
        metavar="FILE",
        help="write what both cards do in simulated time, as Chrome trace events",
    )
    p.add_argument(
        "--server", action="store_true", help="serve one run with the card URI of this host"
    )
    p.add_argument(
        "--client",
        metavar="HOST",
        help="measure between the card URI of this host and that of the server on HOST",
    )
    p.add_argument(
        "--port",
        metavar="PORT",
        help=f"TCP port of the server (default {PORT}); with --server also ADDRESS:PORT",
    )
    p.add_argument(
        "--token",
        metavar="WORD",
        help="a word that both sides give (default: the server makes one and prints it)",
    )


def _look(uri: str) -> None:
    """Raise DibberError if there is no such card: sooner than a wait for the other host ends."""
    libdibber.Card(uri, observe=True).close()


# Server -------------------------------------------------------------------------------------------


def _refuse(exchange: Exchange, why: str) -> NoReturn:
    exchange.publish("taken", remote.encode({"refused": why}))
    raise CommandError(f"the client's run was refused: {why}")


def _agree(exchange: Exchange, test: ModuleType, points_of: PointsOf) -> tuple[int, list[Any]]:
    """Take the client's run: (seed, points)."""
    wanted = remote.decode(exchange.look_up(remote.CLIENT, "run", ANSWER_SECONDS), "run")
    try:
        name, seed, digest = wanted["test"], int(wanted["seed"]), wanted["digest"]
        series, quick = str(wanted["series"]), bool(wanted["quick"])
        how = options.Options.told(wanted)
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        _refuse(exchange, f"it makes no sense: {error!r}")
    if name != test.NAME:
        _refuse(exchange, f"this server measures {test.NAME}, not {str(name)[:40]}")
    try:
        points = points_of(test, series, quick, how)
    except CommandError as error:
        _refuse(exchange, str(error))
    if remote.digest(points) != digest:
        _refuse(exchange, "its points are not this side's: use the same version on both hosts")
    exchange.publish("taken", remote.encode({}))
    return seed, points


def serve(arguments: argparse.Namespace, test: ModuleType, points_of: PointsOf) -> int:
    """`dibber bench NAME --server URI`: one run.

    points_of : (test, series, quick, options.Options) → points
    """
    where, token = arguments.port or PORT, arguments.token or secrets.token_hex(TOKEN_BYTES)
    port = where.rpartition(":")[2]
    uri = arguments.uris[0]
    _look(uri)
    print(
        f"on the other host: dibber bench {test.NAME} --client {socket.gethostname()}"
        + (f" --port {port}" if port != PORT else "")
        + f" --token {token} URI",
        flush=True,
    )
    try:
        with Exchange.listen(where, token=token, timeout=WAIT_SECONDS) as exchange:
            seed, points = _agree(exchange, test, points_of)
            if hasattr(test, "serve"):
                test.serve(exchange, uri, seed)
                print("the run is over")
                return 0
            kind = getattr(test, "PROGRAM", Worker)
            failed = program.main(
                remote.Client(exchange, points), kind, uri, 1, str(paths.FIRMWARE), seed, points
            )
    except ExchangeError as error:
        raise CommandError(f"{error.name}: {error}") from None
    if failed:
        raise CommandError(f"card {uri}: {failed}")
    print("the run is over")
    return 0


# Client -------------------------------------------------------------------------------------------


@contextlib.contextmanager
def cards(
    arguments: argparse.Namespace, test: ModuleType, points: Sequence[Any]
) -> Iterator[Cards | None]:
    """The Cards that the command line names, found and agreed upon; None: a simulated pair."""
    if not arguments.uris:
        yield None
        return
    if not arguments.client:
        yield Cards(list(arguments.uris))
        return
    host = f"[{arguments.client}]" if ":" in arguments.client else arguments.client
    where = f"{host}:{arguments.port or PORT}"
    _look(arguments.uris[0])
    errors.warn(f"connecting to {where}; a server may come within {WAIT_SECONDS} s", arguments.json)
    try:
        with Exchange.connect(where, token=arguments.token or "", timeout=WAIT_SECONDS) as exchange:
            run = {
                "test": test.NAME,
                "series": arguments.series,
                "quick": arguments.quick,
                **options.Options.of(arguments).told_to_others(),
                "seed": arguments.seed,
                "digest": remote.digest(points),
            }
            exchange.publish("run", remote.encode(run))
            taken = remote.decode(
                exchange.look_up(remote.SERVER, "taken", ANSWER_SECONDS), "the server's answer"
            )
            if taken.get("refused"):
                raise CommandError(f"the server refused: {taken['refused']}")
            yield Cards([arguments.uris[0], None], exchange)
    except ExchangeError as error:
        raise CommandError(f"{error.name}: {error}") from None
