"""`dibber switch`: what the switches of a network say of themselves, and control of their ports."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import libdibber
from dibber.interface.description import LINK_REASON, LINK_STATE, SWITCH, SWITCH_COUNTER, C
from libdibber import DibberError

from dibber_cli import numbers, output, profile
from dibber_cli.errors import CommandError, UsageError
from dibber_cli.intermixed import Command, Commands
from dibber_cli.link import measure
from dibber_cli.link.side import Ends
from dibber_cli.map import peer_text, plain
from dibber_cli.simulator import Network

TOPOLOGY = "star:4"  # of simulated cards, without another word
ATTEMPTS = 3  # of a question, because scouts may be lost
PING_CYCLES = 2500  # a ping has come back long before
WRITTEN_LSB = 16

# Actions on a port, as the help explains them.
ACTIONS = {
    "enable": "let the link train and carry packets",
    "disable": "the link goes DOWN, and packets for the port are dropped",
    "retrain": "let the link go DOWN and train again",
}

Sleep = Callable[[int], None]  # for so many nanoseconds
Task = Callable[[libdibber.Card, Sleep], Any]

# Switches of a map --------------------------------------------------------------------------------


def route_of(turns: Sequence[int], link: int = 0) -> int:
    """A route as constant ROUTE_HOPS says, from a link of the card."""
    hops = len(turns) | C.ROUTE_LINK * link
    return hops | sum((turn & 15) << 4 * (n + 1) for n, turn in enumerate(turns))


class Way(NamedTuple):
    """The way from a card to a switch. It does not pass the switch itself.

    turns   : at the switches before
    arrival : the port where it arrives
    link    : of the card, where it begins
    """

    turns: tuple[int, ...]
    arrival: int
    link: int


def ways(found: Mapping[str, Any]) -> dict[int, Way]:
    """{switch of a map: the shortest way there}.

    found : a map as `dibber map --json` prints it
    """
    known: dict[int, Way] = {}
    for link, end in enumerate(found["uplinks"]):
        if end["kind"] == "switch":
            known.setdefault(end["number"], Way((), end["port"], link))
    todo = list(known)
    while todo:
        number = todo.pop(0)
        turns, arrival, link = known[number]
        switch = found["switches"][number]
        for port, peer in enumerate(switch["peers"]):
            if peer["kind"] == "switch" and peer["number"] not in known:
                onwards = (*turns, (port - arrival) % switch["ports"])
                known[peer["number"]] = Way(onwards, peer["port"], link)
                todo.append(peer["number"])
    return known


class Remote:
    """A switch that answers questions.

    turns   : of the way there
    arrival : the port where the way arrives, by the switch's own count
    link    : of the card, where the way begins
    """

    def __init__(
        self, card: libdibber.Card, turns: Sequence[int], arrival: int, link: int = 0
    ) -> None:
        self.card, self.arrival = card, arrival
        self.route = route_of(turns, link)
        self.back = route_of([-turn for turn in reversed(turns)])

    def _ask(self, question: int) -> int:
        for attempt in range(ATTEMPTS):
            try:
                return self.card.ask_switch(self.route, self.back, question)
            except DibberError as error:
                if error.name != "NOT_FOUND" or attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt has returned or raised")

    def read(self, name: str, index: int = 0) -> int:
        return self._ask(SWITCH[name].offset // 4 + index)

    def write(self, name: str, value: int) -> int:
        """Write 16 bits; the register's value then."""
        word = SWITCH[name].offset // 4
        return self._ask(word | C.SWITCH_ASK_WRITE | value << WRITTEN_LSB)


def _fields(name: str, value: int) -> dict[str, int]:
    found, low = {}, 0
    for field in SWITCH[name].fields:
        found[field.name] = value >> low & (1 << field.bits) - 1
        low += field.bits
    return found


def _port(remote: Remote, port: int, clock_hz: int, link: Mapping[str, Any]) -> dict[str, Any]:
    """State, cable and counters of a port, as plain data.

    link : table of the profile, for the time in the transceivers of both ends
    """
    status = _fields("PORT_STATUS", remote.read("PORT_STATUS", port))
    peer = remote.read("PORT_PEER", port)
    cycles = remote.read("PORT_ROUND_TRIP", port)
    nanoseconds = 1e9 * cycles / clock_hz
    first = C.SWITCH_COUNTER_WORDS * port
    return {
        "state": LINK_STATE.name_of(status["state"]),
        "reason": LINK_REASON.name_of(status["reason"]),
        "signal": bool(status["signal"]),
        "enabled": bool(status["enabled"]),
        "stopped": [n for n in range(4) if status["stopped"] >> n & 1],
        "stuck": [n for n in range(4) if status["stuck"] >> n & 1],
        "peer": peer & 0xFFFF if peer >> 16 else None,
        "round_trip_ns": round(nanoseconds) if cycles else None,
        "cable_m": round(measure.cable_length(nanoseconds, link, clock_hz)[0], 1)
        if cycles
        else None,
        "slack_high": [
            4 * level
            for level in _fields("PORT_SLACK_HIGH", remote.read("PORT_SLACK_HIGH", port)).values()
        ],
        "counters": {
            name.lower(): remote.read("COUNTERS", first + value)
            for name, value, _ in SWITCH_COUNTER.values
        },
    }


def describe(remote: Remote, sleep: Sleep, link: Mapping[str, Any]) -> dict[str, Any]:
    """All that a switch says, as plain data.

    sleep : function that waits so many nanoseconds, for the pings of all ports
    link  : as for _port()
    """
    clock_hz = remote.read("CLOCK_HZ")
    geometry = _fields("GEOMETRY", remote.read("GEOMETRY"))
    remote.write("PING", (1 << geometry["ports"]) - 1)
    sleep(round(PING_CYCLES * 1e9 / clock_hz))
    return {
        "identity": remote.read("IDENTITY"),
        "build": remote.read("BUILD"),
        "interface_version": remote.read("INTERFACE_VERSION"),
        "clock_hz": clock_hz,
        "limit_us": round(remote.read("LIMIT") * C.SWITCH_LIMIT_UNIT * 1e6 / clock_hz, 1),
        **geometry,
        "asked_at": remote.arrival,
        "port": [_port(remote, port, clock_hz, link) for port in range(geometry["ports"])],
    }


# Commands -----------------------------------------------------------------------------------------


def remotes(card: libdibber.Card, attempts: int = 2) -> tuple[dict[str, Any], dict[int, Remote]]:
    """(map as plain data, {switch of the map: Remote}) of the switches that answer."""
    found = plain(card.map(attempts))
    by_number = {}
    for number, (turns, port, link) in ways(found).items():
        switch = found["switches"][number]
        if switch["tells"]:
            arrival = (switch["first"] + port) % switch["ports"]
            by_number[number] = Remote(card, turns, arrival, link)
    return found, by_number


@contextlib.contextmanager
def _asking(arguments: argparse.Namespace) -> Iterator[Callable[[Task], Any]]:
    """ask(function(card, sleep)) → its value, with a given card or with simulated card 0."""
    if arguments.uri:
        if arguments.topology:
            raise UsageError("--topology is for simulated cards, which have no URI yet")
        with libdibber.Card(arguments.uri) as card:
            yield lambda function: function(card, _sleep)
        return
    with (
        Network(
            profile.load(arguments.profile), arguments.topology or TOPOLOGY, seed=arguments.seed
        ) as simulated,
        Ends(simulated.uris) as ends,
    ):

        def ask(function: Task) -> Any:
            first = lambda side: function(side.card, side.sleep) if side.node == 0 else None
            return ends.both(first)[0]

        yield ask


def _sleep(nanoseconds: int) -> None:
    """A card that has no endpoint here: its link is far faster than a call."""


def _chosen(found: Mapping[str, Any], known: Mapping[int, Remote], number: int) -> Remote:
    """The Remote of a switch of the map. Raises CommandError if it is not there or silent."""
    if number not in known:
        there = number < len(found["switches"])
        raise CommandError(
            f"switch {number} does not answer" if there else f"there is no switch {number}",
            f"those that answer: {', '.join(map(str, known)) or 'none'}",
        )
    return known[number]


def status(arguments: argparse.Namespace) -> int:
    """`dibber switch status`."""
    link = measure.transceivers(profile.load(arguments.profile))

    def look(
        card: libdibber.Card, sleep: Sleep
    ) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
        found, known = remotes(card)
        if arguments.switch is not None:
            _chosen(found, known, arguments.switch)
            known = {arguments.switch: known[arguments.switch]}
        return found, {number: describe(remote, sleep, link) for number, remote in known.items()}

    with _asking(arguments) as ask:
        found, told = ask(look)
    if arguments.json:
        print(json.dumps([{"switch": n, **one} for n, one in told.items()], indent=2))
    else:
        for number, one in told.items():
            show(found, number, one)
        if not told:
            print(f"node {found['own']}: no switch answers")
    return 0 if told else 1


def _sentence(port: Mapping[str, Any]) -> str:
    if not port["enabled"]:
        return "disabled"
    return "up" if port["state"] == "UP" else f"{port['state']}: {port['reason']}".lower()


def show(found: Mapping[str, Any], number: int, one: Mapping[str, Any]) -> None:
    """Print what a switch said."""
    switch = found["switches"][number]
    print(
        f"switch {number}: identity {one['identity']:08x}, {one['ports']} ports, "
        f"{one['clock_hz'] / 1e6:g} MHz, buffers of {one['buffer']} words, limit "
        f"{one['limit_us']:g} us, asked at port {one['asked_at']}"
    )
    rows = []
    for own, port in enumerate(one["port"]):
        peer = switch["peers"][(own - switch["first"]) % switch["ports"]]
        counted = {
            name: value
            for name, value in port["counters"].items()
            if value and name.startswith(("dropped", "slack_overflow", "packets_bad"))
        }
        rows.append(
            (
                own,
                _sentence(port),
                peer_text(peer),
                "–" if port["cable_m"] is None else port["cable_m"],
                port["counters"]["packets_passed"],
                port["counters"]["packets_sent"],
                ", ".join(f"{name} {value}" for name, value in counted.items()) or "–",
            )
        )
    headings = ["port", "state", "other end", "cable, m", "came", "left", "lost"]
    output.table(headings, rows)


def port(arguments: argparse.Namespace) -> int:
    """`dibber switch port`."""
    number, wanted = arguments.port
    link = measure.transceivers(profile.load(arguments.profile))

    def act(card: libdibber.Card, sleep: Sleep) -> dict[str, Any]:
        remote = _chosen(*remotes(card), number)
        ports = remote.read("GEOMETRY") & 0xFF
        if wanted >= ports:
            raise UsageError(f"switch {number} has ports 0 … {ports - 1}, no port {wanted}")
        if arguments.action != "enable" and wanted == remote.arrival:
            raise UsageError(
                f"by port {wanted} this card reaches switch {number}, and would lose it",
                "ask from a card behind another port",
            )
        enabled = remote.read("ENABLE")
        if arguments.action == "retrain":
            remote.write("RETRAIN", 1 << wanted)
        else:
            bit = 1 << wanted
            on = arguments.action == "enable"
            remote.write("ENABLE", enabled | bit if on else enabled & ~bit)
        sleep(round(PING_CYCLES * 1e9 / remote.read("CLOCK_HZ")))
        return _port(remote, wanted, remote.read("CLOCK_HZ"), link)

    with _asking(arguments) as ask:
        now = ask(act)
    if arguments.json:
        print(json.dumps(now, indent=2))
    else:
        print(f"switch {number} port {wanted}: {_sentence(now)}")
    return 0


def _place(word: str) -> tuple[int, int]:
    """A type: SWITCH:PORT."""
    found = re.fullmatch(r"(\d{1,4}):(\d{1,2})", word, re.ASCII)
    if not found:
        raise argparse.ArgumentTypeError(f"{word!r} is not SWITCH:PORT, as 0:3")
    return int(found[1]), int(found[2])


def add_to(
    sub: Commands,
    group: Callable[[Commands, str, str], Commands],
    command: Command,
    add_profile: Callable[[argparse.ArgumentParser], None],
) -> None:
    """Add the group `switch`; the functions are those of dibber_cli.main."""
    switches = group(sub, "switch", "Switches that answer: state, counters, ports.")
    common = {
        "status": (
            status,
            "Show what each switch says: identity, ports, their state, cables and counters. The "
            "card asks with scouts; a program that drives it must have ended.",
            ["dibber switch status --topology star:8", "dibber switch status --switch 0 URI"],
        ),
        "port": (
            port,
            "Enable or disable a port of a switch, or let its link train again. PORT counts as the "
            "switch does, SWITCH as 'dibber map' does.",
            ["dibber switch port 0:3 disable URI", "dibber switch port 0:3 enable URI"],
        ),
    }
    for name, (function, text, examples) in common.items():
        p = command(switches, name, function, text, examples)
        add_profile(p)
        p.add_argument(
            "--topology",
            metavar="NAME|FILE",
            help=f"of simulated cards, without a URI (default {TOPOLOGY})",
        )
        if name == "status":
            p.add_argument(
                "--switch", type=numbers.whole(0, 15), metavar="N", help="this switch alone"
            )
        else:
            p.add_argument("port", metavar="SWITCH:PORT", type=_place)
            p.add_argument(
                "action",
                choices=ACTIONS,
                help="; ".join(f"{name}: {text}" for name, text in ACTIONS.items()),
            )
        p.add_argument("uri", metavar="URI", nargs="?", type=numbers.uri, help=output.URI)
