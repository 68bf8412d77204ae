"""A map of `dibber map` as a drawing: lines of text, or a graph for Graphviz."""

# SPDX-License-Identifier: BSD-2-Clause

import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from dibber_cli.errors import CommandError

SECONDS = 60  # for Graphviz


def host(peer: Mapping[str, Any]) -> str:
    """A place of a node, with its link if the node has two."""
    return f"node {peer['number']}" + (f" link {peer['link']}" if "link" in peer else "")


def _name(peer: Mapping[str, Any]) -> str:
    if peer["kind"] == "host":
        return host(peer)
    return f"switch {peer['number']} port {peer['port']}"


def _branches(
    found: Mapping[str, Any], number: int, entered: int | None, drawn: set[int]
) -> Iterator[str]:
    """The cables of a switch, without the one of port `entered`. A switch that is not drawn yet
    follows indented."""
    cables = [
        (port, peer)
        for port, peer in enumerate(found["switches"][number]["peers"])
        if peer["kind"] != "none" and port != entered
    ]
    for place, (port, peer) in enumerate(cables):
        last = place == len(cables) - 1
        text = f"{'└' if last else '├'}─ port {port} ── {_name(peer)}"
        if peer["kind"] == "switch" and peer["number"] not in drawn:
            drawn.add(peer["number"])
            yield text
            for line in _branches(found, peer["number"], peer["port"], drawn):
                yield ("   " if last else "│  ") + line
        else:
            yield text


def lines(found: Mapping[str, Any]) -> list[str]:
    """The network as a tree from switch 0; a cable that closes a circle is drawn at both of its
    ends. Switches that no cable joins to these have a tree of their own, and so has a node with
    two links, if it has a cable without a switch. [] without all of this. A ring is a line with its
    first node at both ends.

    found : a map as `dibber map --json` prints it
    """
    if found.get("ring"):
        return [" → ".join(_order(found["ring"]))]
    drawn: set[int] = set()
    text = []
    for number in range(len(found["switches"])):
        if number not in drawn:
            drawn.add(number)
            text += [f"switch {number}", *_branches(found, number, None, drawn)]
    direct = [end["kind"] == "host" for end in found["uplinks"]]
    if len(direct) > 1 and any(direct):
        text.append(f"node {found['own']}")
        for link, end in enumerate(found["uplinks"]):
            name = "nobody" if end["kind"] == "none" else _name(end)
            text.append(f"{'└' if link else '├'}─ link {link} ── {name}")
    return text


def _order(ring: Mapping[str, Any]) -> list[str]:
    """The nodes of a ring in the direction of its words, the first one at both ends."""
    names = [
        f"address {address}, no answer" if node is None else f"node {node}"
        for address, node in enumerate(ring["order"])
    ]
    return [*names, names[0]]


def _ring(found: Mapping[str, Any]) -> str:
    """A ring as a graph in Graphviz's language: its cables are arrows."""
    order = found["ring"]["order"]
    bold = lambda node: ", style=bold" if node == found["own"] else ""
    text = ["digraph dibber {", "  node [fontname=sans]; edge [fontname=sans, fontsize=9];"]
    text += [
        f'  a{address} [label="{name}"{bold(node)}];'
        for address, (name, node) in enumerate(zip(_order(found["ring"]), order))
    ]
    text += [f"  a{n} -> a{(n + 1) % len(order)};" for n in range(len(order))]
    return "\n".join([*text, "}", ""])


def dot(found: Mapping[str, Any]) -> str:
    """The network as a graph in Graphviz's language: boxes are switches, ellipses are nodes, and
    the numbers at the ends of a cable are ports of the map; the links of a node with two stand
    at its end. A ring's cables are arrows.
    """
    if found.get("ring"):
        return _ring(found)
    text = ["graph dibber {", "  node [fontname=sans]; edge [fontname=sans, fontsize=9];"]
    text += [
        f'  n{node} [label="node {node}"{", style=bold" if node == found["own"] else ""}];'
        for node in found["hosts"]
    ]
    for number, switch in enumerate(found["switches"]):
        text.append(f'  s{number} [shape=box, label="switch {number}\\n{switch["ports"]} ports"];')
    for number, switch in enumerate(found["switches"]):
        for port, peer in enumerate(switch["peers"]):
            if peer["kind"] == "host":
                link = f', headlabel="link {peer["link"]}"' if "link" in peer else ""
                text.append(f"  s{number} -- n{peer['number']} [taillabel={port}{link}];")
            # A cable between switches is drawn from the end that comes first.
            elif peer["kind"] == "switch" and (number, port) <= (peer["number"], peer["port"]):
                ends = f"taillabel={port}, headlabel={peer['port']}"
                text.append(f"  s{number} -- s{peer['number']} [{ends}];")
    for own, end in enumerate(found["uplinks"]):
        # A cable between both links of this node is drawn once.
        if end["kind"] != "host" or (end["number"] == found["own"] and own):
            continue
        labels = [f'taillabel="link {own}"'] if len(found["uplinks"]) > 1 else []
        labels += [f'headlabel="link {end["link"]}"'] if "link" in end else []
        label = f" [{', '.join(labels)}]" if labels else ""
        text.append(f"  n{found['own']} -- n{end['number']}{label};")
    return "\n".join([*text, "}", ""])


def svg(found: Mapping[str, Any]) -> str:
    """The drawing of Graphviz's program dot. Raises CommandError if it is not there or fails."""
    try:
        done = subprocess.run(
            ["dot", "-Tsvg"],
            input=dot(found),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=SECONDS,
        )
    except FileNotFoundError:
        raise CommandError(
            "Graphviz's program 'dot' is not installed",
            "install Debian's package graphviz, or write the graph alone with --dot FILE",
        ) from None
    except subprocess.TimeoutExpired:
        raise CommandError(f"Graphviz's program 'dot' did not end within {SECONDS} s") from None
    if done.returncode:
        raise CommandError(f"Graphviz's program 'dot' failed: {done.stderr.strip()[:200]}")
    return done.stdout
