"""`dibber map`: the hosts and switches that a card can reach, and the routes to them."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import libdibber
from dibber.interface.description import MCP_STATE, C
from libdibber.binding import PEERS
from libdibber.binding import Network as Map

from dibber_cli import drawing, numbers, output, profile
from dibber_cli.errors import CommandError, UsageError
from dibber_cli.intermixed import Command, Commands
from dibber_cli.link import status
from dibber_cli.link.side import Ends
from dibber_cli.simulator import Network, without_folders

# Map ----------------------------------------------------------------------------------------------


def turns_of(route: int) -> list[int]:
    """A route as the turns at its switches, -7 … 8."""
    return [
        turn if turn <= 8 else turn - 16
        for n in range(route & C.ROUTE_HOPS)
        for turn in [route >> 4 * (n + 1) & 15]
    ]


def link_of(route: int) -> int:
    """The link of the card that a route begins at."""
    return 1 if route & C.ROUTE_LINK else 0


def peer_text(peer: Mapping[str, Any]) -> str:
    """The other end of a cable of a plain map, as text."""
    if peer["kind"] == "switch":
        return f"switch {peer['number']} port {peer['port']}"
    return drawing.host(peer) if peer["kind"] == "host" else "nobody"


def plain(network: Map) -> dict[str, Any]:
    """A map as plain data. Hosts with two links have `link` at each of their places."""
    switches = network.sw[: network.switches]
    ends = [*network.uplink, *(peer for sw in switches for peer in sw.peer[: sw.ports])]
    two = {end.number for end in ends if PEERS[end.kind] == "host" and end.port}
    two |= {network.own} if network.links > 1 else set()
    more = lambda peer: {
        "none": {},
        "host": {"link": peer.port} if peer.number in two else {},
        "switch": {"port": peer.port},
    }[PEERS[peer.kind]]
    described = lambda peer: {
        "kind": PEERS[peer.kind],
        "number": peer.number,
        **more(peer),
    }
    nodes = lambda mask: [n for n in range(C.NODES) if mask >> n & 1]
    return {
        "own": network.own,
        "hosts": nodes(network.hosts),
        "conflicts": nodes(network.conflicts),
        "scouts": network.scouts,
        "truncated": bool(network.truncated),
        "uplinks": [described(peer) for peer in network.uplink[: network.links]],
        "switches": [
            {
                "ports": sw.ports,
                "level": sw.level,
                "tells": bool(sw.tells),
                "first": sw.first,
                "peers": [described(peer) for peer in sw.peer[: sw.ports]],
            }
            for sw in switches
        ],
    }


def survey(card: libdibber.Card, attempts: int, enter: bool) -> dict[str, Any]:
    """The map of a card's network as plain data. `enter`: give the control program the routes.

    Raises CommandError if the routes of all hosts of the map could deadlock as a whole.
    """
    network = card.map(attempts)
    found = plain(network)
    if circle := libdibber.circle_of(network):
        outputs = ", ".join(f"switch {switch} port {port}" for switch, port in circle)
        raise CommandError(f"the routes of this map can deadlock, none is entered: {outputs}")
    others = [node for node in found["hosts"] if node != network.own]
    ways = {node: libdibber.routes_to(network, node) for node in others}
    found["unreachable"] = [
        node for node in others if not ways[node] and node not in found["conflicts"]
    ]
    for node in others if enter else ():
        for place in range(C.ROUTES):
            card.set_route(node, place, ways[node][place] if place < len(ways[node]) else None)
    found["routes"] = [route for node in range(C.NODES) for route in [known(card, node)] if route]
    found["ring"] = ring_of(card, found)
    return found


def ring_of(card: libdibber.Card, found: Mapping[str, Any]) -> dict[str, Any] | None:
    """The ring that a card is on: `nodes` and `order`, the node at each address or None if none
    answered there. None for a card that is on no ring, or while the ring is not whole.
    """
    place = status.ring_of(card.info()["features"], card.read_register("LINK_PEER"))
    if not place or not place["nodes"]:
        return None
    order = [None] * place["nodes"]
    order[place["address"]] = found["own"]
    [uplink] = found["uplinks"]
    if uplink["kind"] == "host":  # a ring of two needs no route
        order[1 - place["address"]] = uplink["number"]
    for sw in found["switches"]:
        # The ring is a switch in the map. Its ports count onward from the lowest node.
        own = next(n for n, p in enumerate(sw["peers"]) if p == _host(found["own"]))
        for port, peer in enumerate(sw["peers"]):
            address = (place["address"] + port - own) % len(sw["peers"])
            if peer["kind"] == "host" and len(sw["peers"]) == len(order):
                order[address] = peer["number"]
    return {"nodes": place["nodes"], "order": order}


def _host(number: int) -> dict[str, Any]:
    """An end of a plain map that is a node."""
    return {"kind": "host", "number": number}


def look(card: libdibber.Card) -> dict[str, Any]:
    """The routes that a card already knows, as plain data. Another program may drive the card, so
    nothing is sent or entered.
    """
    routes = [route for node in range(C.NODES) for route in [known(card, node)] if route]
    state = MCP_STATE.name_of(card.read_register("MCP_STATE"))
    return {
        "own": card.read_register("NODE_ID"),
        "control_program": state,
        "routes": routes if state != "RESET" else [],
        "link": status.sentence(status.read(card)),
    }


def known(card: libdibber.Card, node: int) -> dict[str, Any] | None:
    """The routes to a node in the control program's table; None where it has none."""
    routes, current, age, changes = card.routes(node)
    if all(route is None for route in routes):
        return None
    return {
        "node": node,
        "routes": [None if route is None else turns_of(route) for route in routes],
        "links": [None if route is None else link_of(route) for route in routes],
        "current": current,
        "changes": changes,
        "heard_cycles_ago": age,
    }


# Command ------------------------------------------------------------------------------------------


def sentence(found: Mapping[str, Any]) -> str:
    """The summary of a map."""
    others = [
        node for node in found["hosts"] if node != found["own"] and node not in found["unreachable"]
    ]
    if len(found["hosts"]) == 1 and not found["switches"]:
        end = (
            "the other end of the cable" if len(found["uplinks"]) == 1 else "the cables' other ends"
        )
        return f"node {found['own']}: nobody answers at {end}"
    count = len(found["switches"])
    at = f"{count} switch{'es' * (count != 1)}" if count else "a direct cable"
    if len(found["uplinks"]) > 1:
        at = ", ".join(
            [at] * (count > 0)
            + [f"link {n} to {peer_text(end)}" for n, end in enumerate(found["uplinks"])]
        )
    if found.get("ring"):
        at = f"a ring of {found['ring']['nodes']} nodes"
    text = (
        f"node {found['own']} reaches "
        f"{', '.join(f'node {n}' for n in others) or 'no other node'} by {at}, {found['scouts']} "
        f"scout{'s' * (found['scouts'] != 1)}"
    )
    if found["conflicts"]:
        text += (
            f"; {', '.join(f'node {n}' for n in found['conflicts'])}: more than one card has "
            f"this number, which gets no routes"
        )
    if found["unreachable"]:
        text += (
            f"; no route to {', '.join(f'node {n}' for n in found['unreachable'])}: each way that "
            f"cannot deadlock passes more than {C.ROUTE_HOPS} switches"
        )
    return text + (
        f"; there may be more: switches lie behind more than {C.ROUTE_HOPS} others, or a map has "
        f"no room for them"
        if found["truncated"]
        else ""
    )


def show(uri: str, found: Mapping[str, Any]) -> None:
    if "link" in found:
        print(
            f"{uri}: node {found['own']}, link {found['link']}; the control program "
            f"({found['control_program']}) knows "
            f"{len(found['routes']) or 'no'} route{'s' * (len(found['routes']) != 1)}"
        )
    else:
        print(f"{uri}: {sentence(found)}")
    if found.get("ring"):
        print("\n".join(["", *drawing.lines(found), ""]))
    elif found.get("switches"):
        name = {
            "none": lambda p: "–",
            "host": drawing.host,
            "switch": lambda p: f"{p['number']}:{p['port']}",
        }
        widest = max(sw["ports"] for sw in found["switches"])
        output.table(
            ["switch", "level", *[f"port {n}" for n in range(widest)]],
            [
                (
                    n,
                    sw["level"],
                    *[name[p["kind"]](p) for p in sw["peers"]],
                    *[""] * (widest - sw["ports"]),
                )
                for n, sw in enumerate(found["switches"])
            ],
        )
        print("\n".join(["", *drawing.lines(found), ""]))
    elif "uplinks" in found and (drawn := drawing.lines(found)):
        print("\n".join(["", *drawn, ""]))
    if found["routes"]:
        two = len(found.get("uplinks", ())) > 1 or any(1 in r["links"] for r in found["routes"])

        def way(route: Mapping[str, Any], place: int) -> str:
            turns = route["routes"][place]
            text = "direct" if turns == [] else " ".join(f"{turn:+d}" for turn in turns)
            return f"link {route['links'][place]}: {text}" if two else text

        output.table(
            ["node", "current", "others", "changes"],
            [
                (
                    r["node"],
                    way(r, r["current"]),
                    ", ".join(
                        way(r, n)
                        for n, turns in enumerate(r["routes"])
                        if turns is not None and n != r["current"]
                    )
                    or "–",
                    r["changes"],
                )
                for r in found["routes"]
            ],
        )


@contextlib.contextmanager
def _found(arguments: argparse.Namespace) -> Iterator[Iterable[tuple[str, dict[str, Any]]]]:
    """(URI, map) of each card: of the given ones, or of a simulated pair."""
    if arguments.uris and arguments.topology:
        raise UsageError("--topology is for simulated cards, which have no URI yet")
    if arguments.uris:

        def each() -> Iterator[tuple[str, dict[str, Any]]]:
            for uri in arguments.uris:
                with libdibber.Card(uri, observe=arguments.look) as card:
                    yield (
                        uri,
                        look(card) if arguments.look else survey(card, arguments.attempts, True),
                    )

        yield each()
        return
    with (
        Network(
            profile.load(arguments.profile), arguments.topology, seed=arguments.seed
        ) as simulated,
        Ends(simulated.uris) as ends,
    ):
        yield zip(
            simulated.uris,
            ends.both(lambda side: survey(side.card, arguments.attempts, not arguments.look)),
        )


def network_map(arguments: argparse.Namespace) -> int:
    with _found(arguments) as cards:
        results = [{"uri": without_folders(uri), **found} for uri, found in cards]
    for file, draw in ((arguments.dot, drawing.dot), (arguments.svg, drawing.svg)):
        if file:
            if "link" in results[0]:
                raise UsageError("--look with a URI makes no map that could be drawn")
            Path(file).write_text(draw(results[0]), encoding="utf-8")
    if arguments.json:
        print(json.dumps(results, indent=2))
    else:
        for result in results:
            show(result["uri"], result)
    return (
        0
        if all(
            result["routes"]
            if "link" in result
            else len(result["hosts"]) > 1 and not result["conflicts"] and not result["unreachable"]
            for result in results
        )
        else 1
    )


def add_to(
    sub: Commands, command: Command, add_profile: Callable[[argparse.ArgumentParser], None]
) -> None:
    """Add `map` to the command line; `command` and `add_profile` are those of dibber_cli.main."""
    p = command(
        sub,
        "map",
        network_map,
        "Find the hosts and switches that a card can reach, and enter routes that cannot deadlock. "
        "Ends with 1 when there is no other host, or no route to one. A card that a program drives "
        "is left as it is: use --look.",
        [
            "dibber map",
            "dibber map --topology star:4",
            "dibber map --look URI",
            "dibber map --json URI | jq '.[].switches'",
        ],
    )
    add_profile(p)
    p.add_argument(
        "--topology",
        metavar="NAME|FILE",
        help="of the simulated cards, in place of a pair (see 'dibber sim start')",
    )
    p.add_argument(
        "uris",
        nargs="*",
        metavar="URI",
        type=numbers.uri,
        help="cards with a control program (default: a simulated pair)",
    )
    p.add_argument(
        "--look",
        action="store_true",
        help="change nothing: show the routes that a card's control program knows, while another "
        "program drives it; without URI, map a simulated pair and enter nothing",
    )
    p.add_argument(
        "--dot", metavar="FILE", help="write the first card's map as a graph for Graphviz"
    )
    p.add_argument(
        "--svg",
        metavar="FILE",
        help="draw it, with Graphviz's program dot, which must be installed",
    )
    p.add_argument(
        "--attempts",
        type=numbers.whole(1, 16),
        default=2,
        metavar="N",
        help="scouts to a place that does not answer (default 2)",
    )
