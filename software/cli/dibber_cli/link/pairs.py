"""The two cables of a card on a pair of rings (docs/design/ring-pair.md)."""

# SPDX-License-Identifier: BSD-2-Clause

import random
from collections.abc import Mapping
from typing import Any

from dibber.interface.description import HOST
from libdibber import Card

from dibber_cli.link.tasks import Task

PAIR = 1 << next(f.lsb for f in HOST["FEATURES"].fields if f.name == "pair")
CONNECTORS = ("NEXT", "PREVIOUS")
LINK_CABLES = {field.name: field for field in HOST["LINK_CABLES"].fields}
CABLE_FIELDS = ("signal", "alive", "whole", "folded")


def read(card: Card, features: int) -> dict[str, Any] | None:
    """LINK_CABLES as a dictionary: `cables` has signal, alive, whole, folded of NEXT and PREVIOUS;
    `rings` whether each is UP; `folded`. None for a card without a pair.
    """
    if not features & PAIR:
        return None
    word = card.read_register("LINK_CABLES")
    bit = lambda name: bool(word >> LINK_CABLES[name].lsb & 1)
    return {
        "cables": {
            connector: {name: bit(f"{connector.lower()}_{name}") for name in CABLE_FIELDS}
            for connector in CONNECTORS
        },
        "rings": [bit("ring0"), bit("ring1")],
        "folded": bit("folded"),
    }


def cable_sentence(cable: Mapping[str, bool]) -> str:
    """The state of one cable, from read()."""
    if cable["folded"]:
        return "not used: this card folds the rings here" + (
            "" if cable["signal"] else "; no signal"
        )
    if cable["whole"]:
        return "good in both directions"
    if cable["alive"]:
        return "the other end does not hear this card"
    return (
        "signal, but no idles of the other end: look at the cable"
        if cable["signal"]
        else "no signal: is the cable plugged in, is the other card on?"
    )


def rings_sentence(pair: Mapping[str, Any]) -> str:
    """Which of the two rings are UP, from read()."""
    if pair["folded"]:
        return "folded: both are one ring, because a cable or card is missing"
    names = [str(ring) for ring, up in enumerate(pair["rings"]) if up]
    return {0: "none is up", 1: f"ring {''.join(names)} alone is up", 2: "both are up"}[len(names)]


def rows(pair: Mapping[str, Any]) -> list[tuple[str, str]]:
    """For output.table()."""
    return [
        ("rings", rings_sentence(pair)),
        *[
            (f"cable {connector}", cable_sentence(pair["cables"][connector]))
            for connector in CONNECTORS
        ],
    ]


def choose(side: Any, connector: str) -> None:
    """Let tests of the link work at this connector, NEXT or PREVIOUS."""
    side.card.write_register("LINK_CABLE", CONNECTORS.index(connector))


def connectors(loopback: str | None) -> list[tuple[str, str]]:
    """For each cable between two cards: the connector of the first card, and of the second one.

    NEXT of each card leads to PREVIOUS of the other. In a loopback inside the card, both cards test
    the connector of the same name.
    """
    if loopback in ("near", "phy"):
        return [(connector, connector) for connector in CONNECTORS]
    return [(connector, other) for connector, other in zip(CONNECTORS, reversed(CONNECTORS))]


def chosen(ends: Any, names: tuple[str, ...]) -> None:
    """Choose a connector at each side."""
    ends.both(*[Task(choose, name) for name in names[: len(ends.sides)]])


def nonces(generator: random.Random) -> list[int]:
    """Two nonces of a ring or pair: they differ, and so do their tags (docs/design/ring.md)."""
    return [ring_nonce(generator.getrandbits(12), node) for node in range(2)]


def ring_nonce(drawn: int, node: int) -> int:
    """As the library's: 12 drawn bits, and the node number's lowest 4 in bits 4:1 of the tag."""
    if not drawn & ~8:
        drawn = 0xFFF
    high = drawn >> 4
    return high << 8 | (drawn << 5 & 0xE0) | (drawn >> 3 & 1) | ((node << 1 ^ high) & 0x1E)
