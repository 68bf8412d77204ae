"""Topologies of simulated cards, switches and cables, by name: the text of the file that dibber-sim
reads (hw/sim/topology.h).
"""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import os
import re
import tomllib
from collections.abc import Callable

from dibber.interface.description import C

from dibber_cli import files
from dibber_cli.errors import CommandError, UsageError

SWITCH_PORTS = (4, 8, 16)  # sizes that hw/sim/build.py builds
MOST_SWITCHES = 64  # hw/sim/topology.cc
LEAF_CARDS, LEAF_UPLINKS = 4, 2  # of a leaf switch of a tree
MOST_RING = 16  # nodes of a ring: docs/design/ring.md


@dataclasses.dataclass
class Topology:
    """What a file says.

    Attributes
    ----------
    cards    : number of cards
    switches : ports of each switch
    cables   : two ends each, "cardN", "cardN:PORT" or "switchN:PORT"
    one_way  : the cables are segments of a ring: each goes from its first end to its second
    links    : links a card, 1 or 2
    """

    cards: int
    switches: list[int] = dataclasses.field(default_factory=list)
    cables: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    one_way: bool = False
    links: int = 1

    def toml(self, title: str) -> str:
        """The text of the file."""
        lines = [f"# {title}", "", f"cards = {self.cards}"]
        lines += [f"links = {self.links}"] * (self.links > 1)
        for number, ports in enumerate(self.switches):
            lines += ["", "[[switch]]", f'name  = "switch{number}"', f"ports = {ports}"]
        for number, (one, other) in enumerate(self.cables):
            lines += ["", "[[cable]]", f'name = "cable{number}"', f'ends = ["{one}", "{other}"]']
            lines += ["one_way = true"] * self.one_way
        return "\n".join(lines) + "\n"


# Shapes -------------------------------------------------------------------------------------------


def fitting(ports: int) -> int:
    """The smallest switch with at least so many ports."""
    return next(size for size in SWITCH_PORTS if size >= ports)


def pairs(count: int) -> Topology:
    """Pairs of cards, each with a cable."""
    cables = [(f"card{2 * n}", f"card{2 * n + 1}") for n in range(count)]
    return Topology(2 * count, [], cables)


def star(cards: int) -> Topology:
    """One switch with all cards."""
    cables = [(f"card{n}", f"switch0:{n}") for n in range(cards)]
    return Topology(cards, [fitting(cards)], cables)


def line(switches: int) -> Topology:
    """Two cards with so many switches in a row between them; port 0 of each is towards card0."""
    ends: list[tuple[str, ...]] = [("card0",)]
    ends += [(f"switch{n}:0", f"switch{n}:1") for n in range(switches)]
    ends += [("card1",)]
    cables = [(near[-1], far[0]) for near, far in zip(ends, ends[1:])]
    return Topology(2, [SWITCH_PORTS[0]] * switches, cables)


def tree(cards: int) -> Topology:
    """Leaf switches of 4 cards; two cables from each to the root, which is switch0."""
    leaves = -(-cards // LEAF_CARDS)
    sizes = [fitting(LEAF_UPLINKS * leaves)] + [fitting(LEAF_CARDS + LEAF_UPLINKS)] * leaves
    cables = [(f"card{n}", f"switch{1 + n // LEAF_CARDS}:{n % LEAF_CARDS}") for n in range(cards)]
    cables += [
        (f"switch{1 + leaf}:{LEAF_CARDS + up}", f"switch0:{LEAF_UPLINKS * leaf + up}")
        for leaf in range(leaves)
        for up in range(LEAF_UPLINKS)
    ]
    return Topology(cards, sizes, cables)


def ring(switches: int) -> Topology:
    """Switches in a ring, each with a card at port 0; port 1 leads to port 2 of the next."""
    cables = [(f"card{n}", f"switch{n}:0") for n in range(switches)]
    cables += [(f"switch{n}:1", f"switch{(n + 1) % switches}:2") for n in range(switches)]
    return Topology(switches, [fitting(3)] * switches, cables)


def card_ring(cards: int) -> Topology:
    """Cards on a ring, without a switch: a cable leads from each to the next."""
    cables = [(f"card{n}", f"card{(n + 1) % cards}") for n in range(cards)]
    return Topology(cards, [], cables, one_way=True)


def card_pair(cards: int) -> Topology:
    """Cards on two rings that go opposite ways: port 0 of each leads to port 1 of the next."""
    cables = [(f"card{n}:0", f"card{(n + 1) % cards}:1") for n in range(cards)]
    return Topology(cards, [], cables)


def two_links(cards: int) -> Topology:
    """Cards with two links, in a row: port 1 of each leads to port 0 of the next. The ports at both
    ends are open; two cards have a cable between their ports 0, too.
    """
    cables = [(f"card{n}:1", f"card{n + 1}:0") for n in range(cards - 1)]
    if cards == 2:
        cables = [(f"card0:{port}", f"card1:{port}") for port in range(2)]
    return Topology(cards, [], cables, links=2)


def two_link_star(cards: int) -> Topology:
    """Cards at one switch, each with two cables: port 0 to switch port n, port 1 to one behind all
    of those.
    """
    cables = [
        (f"card{n}:{port}", f"switch0:{n + port * cards}")
        for n in range(cards)
        for port in range(2)
    ]
    return Topology(cards, [fitting(2 * cards)], cables, links=2)


def torus(width: int, height: int) -> Topology:
    """Switches in a grid whose rows and columns are rings, each with a card at port 0. Port 1 leads
    to port 2 of the next in the row, port 3 to port 4 of the next in the column.
    """
    place = lambda x, y: y % height * width + x % width
    places = [(x, y) for y in range(height) for x in range(width)]
    cables = [(f"card{place(x, y)}", f"switch{place(x, y)}:0") for x, y in places]
    cables += [(f"switch{place(x, y)}:1", f"switch{place(x + 1, y)}:2") for x, y in places]
    cables += [(f"switch{place(x, y)}:3", f"switch{place(x, y + 1)}:4") for x, y in places]
    return Topology(width * height, [fitting(5)] * (width * height), cables)


# Names --------------------------------------------------------------------------------------------

# Pattern of the numbers, function, the least and the most of each number.
SHAPES: dict[str, tuple[str, Callable[..., Topology], tuple[int, int]]] = {
    "pairs": ("N", pairs, (1, C.NODES // 2)),
    "star": ("N", star, (2, min(C.NODES, SWITCH_PORTS[-1]))),
    "line": ("N", line, (0, MOST_SWITCHES)),
    "tree": ("N", tree, (2, min(C.NODES, SWITCH_PORTS[-1] // LEAF_UPLINKS * LEAF_CARDS))),
    "ring": ("N", card_ring, (2, MOST_RING)),
    "ring-pair": ("N", card_pair, (2, MOST_RING // 2)),
    "two-links": ("N", two_links, (2, C.NODES)),
    "two-link-star": ("N", two_link_star, (2, min(C.NODES, SWITCH_PORTS[-1] // 2))),
    "ring-of-switches": ("N", ring, (2, C.NODES)),
    "torus": ("WxH", torus, (2, C.NODES // 2)),
}
NAMES = ("pair", *(f"{name}:{numbers}" for name, (numbers, _, _) in SHAPES.items()))
MOST_BYTES = 1 << 20  # of a file


def named(word: str) -> Topology | None:
    """The Topology of this name, or None for a word that is no name of one. Raises UsageError for a
    number that is out of range.
    """
    if word == "pair":
        return pairs(1)
    shape, _, text = word.partition(":")
    if shape not in SHAPES:
        return None
    numbers, make, (least, most) = SHAPES[shape]
    pattern = r"(\d{1,4})" + r"x(\d{1,4})" * (numbers == "WxH")
    found = re.fullmatch(pattern, text, re.ASCII)
    if not found:
        raise UsageError(f"topology {word!r} is not {shape}:{numbers} with whole numbers")
    values = [int(value) for value in found.groups()]
    for value in values:
        if not least <= value <= most:
            raise UsageError(f"topology {word!r}: {value} is outside {least} … {most}")
    topology = make(*values)
    if topology.cards > C.NODES:
        raise UsageError(
            f"topology {word!r} has {topology.cards} cards; there are at most {C.NODES} nodes"
        )
    return topology


def fabric_of(text: str) -> str | None:
    """What the links of the cards of a file are a part of: "two-links" if it says so, "ring" if a
    cable goes one way, "ring-pair" if one leads to port 1 of a card, else None: whatever the
    profile says. A file that is no TOML is the simulator's to refuse.
    """
    try:
        values = tomllib.loads(text)
        cables = values.get("cable", [])
    except (ValueError, RecursionError):
        return None
    if values.get("links") == 2:
        return "two-links"
    cables = [c for c in cables if isinstance(c, dict)] if isinstance(cables, list) else []
    if any(cable.get("one_way") is True for cable in cables):
        return "ring"
    ends = [end for c in cables if isinstance(c.get("ends"), list) for end in c["ends"]]
    second = any(isinstance(end, str) and re.fullmatch(r"card\d+:1", end) for end in ends)
    return "ring-pair" if second else None


def text_of(word: str) -> tuple[str, int]:
    """(the text of the file, number of cards) of a topology by name, or of the file `word`. Raises
    UsageError for neither, and CommandError for a file that cannot be read or is no TOML. The
    simulator checks the rest.
    """
    topology = named(word)
    if topology:
        return topology.toml(word), topology.cards
    if not os.path.exists(word):
        raise UsageError(f"no topology {word!r}", f"there are: {', '.join(NAMES)}; or a file")
    try:
        text = files.read(word, "topology", MOST_BYTES).decode()
        cards = tomllib.loads(text).get("cards")
    except (ValueError, RecursionError) as error:
        raise CommandError(f"topology {word}: {error}") from error
    if not isinstance(cards, int) or isinstance(cards, bool) or not 1 <= cards <= C.NODES:
        raise CommandError(f"topology {word}: 'cards' must be a whole number, 1 … {C.NODES}")
    return text, cards
