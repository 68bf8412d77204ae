"""The registers of a link, as text."""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Mapping
from typing import Any

from dibber.interface.description import (
    COUNTERS,
    HOST,
    LINK_REASON,
    LINK_STATE,
)
from dibber.interface.description import (
    LINK_COUNTERS as PORT_COUNTERS,
)
from dibber.interface.ethernet import ETHERNET_COUNTER
from libdibber import Card

from dibber_cli.link import pairs

# Advice for each reason.
ADVICE = {
    "NO_SIGNAL": "no signal: is the cable plugged in, is the other card on?",
    "NO_COMMA": "symbols without comma: what is at the other end is no Dibber card",
    "WRONG_RATE": "most symbols are no code: the other end has another rate, or the cable is "
    "broken",
    "POLARITY": "the pair is inverted: exchange its two wires, or invert it in the transceiver",
    "NOT_HEARD": "the other end does not hear this one: the pair that leaves here, or its receiver",
    "SILENCE": "the other end fell silent",
    "LOOPBACK": "this card hears itself: a loopback plug, or a far-end loopback that was left on",
    "TEST": "a test is on: LINK_CONTROL",
    "NO_HELLO": "no STATUS frame of another card: is there one behind this Ethernet?",
}

# The same on a ring, where it differs.
ADVICE_RING = {
    "NO_SIGNAL": "no signal: is the cable from the card before plugged in, is that card on?",
    "NO_COMMA": "symbols without comma: what the cable comes from is no Dibber card",
    "WRONG_RATE": "most symbols are no code: the card before has another rate, or the cable is "
    "broken",
    "NOT_HEARD": "the ring is not whole: look at its other cards and cables",
    "SILENCE": "the card before fell silent",
    "LOOPBACK": "this card is alone on its ring: its cable leads back to it",
}

# A build in which PCIe has all transceivers.
ABSENT = "no link: this build has PHY loopback only"

LINK_COUNTERS = [
    name
    for name, _ in COUNTERS
    if name.startswith(("CODE", "DISPARITY", "SLACK", "STOP", "LINK", "WORDS"))
    or name.endswith("CRC_ERROR")
    or name in ("PACKET_TRUNCATED", "PACKET_GAP", "PACKET_DUPLICATE")
]


def fields(name: str, value: int) -> dict[str, int]:
    """The fields of a host register as a dictionary."""
    result, low = {}, 0
    for field in HOST[name].fields:
        result[field.name] = value >> low & (1 << field.bits) - 1
        low += field.bits
    return result


def read_state(card: Card, register: str = "LINK_STATUS") -> dict[str, Any]:
    """LINK_STATUS as a dictionary, or LINK1_STATUS, which has no tests."""
    status = fields(register, card.read_register(register))
    return {
        "state": LINK_STATE.name_of(status["state"]),
        "reason": LINK_REASON.name_of(status["reason"]),
        "signal": bool(status["signal"]),
        "stopped": [n for n in range(4) if status["stopped"] >> n & 1],
        "prbs": bool(status.get("prbs")),
        "absent": bool(status.get("absent")),
    }


def read_second(card: Card) -> dict[str, Any] | None:
    """State, peer, slack and counters of link 1; None for a card with one link."""
    if not fields("FEATURES", card.read_register("FEATURES"))["two_links"]:
        return None
    peer = fields("LINK1_PEER", card.read_register("LINK1_PEER"))
    slack = fields("LINK1_SLACK_HIGH", card.read_register("LINK1_SLACK_HIGH"))
    return {
        **read_state(card, "LINK1_STATUS"),
        "peer": peer["nonce"] if peer["known"] else None,
        "slack_high": [4 * level for level in slack.values()],
        "counters": {name.lower(): card.read_register(f"LINK1_{name}") for name in PORT_COUNTERS},
    }


def read_frames(card: Card) -> dict[str, int]:
    """FRAMES_*, by their names in lower case; empty if the card's link is not Ethernet."""
    if not fields("FEATURES", card.read_register("FEATURES"))["ethernet"]:
        return {}
    return {name.lower(): card.read_register(name) for name, _, _ in ETHERNET_COUNTER.values}


def ring_of(features: int, peer: int) -> dict[str, Any] | None:
    """The place of a card on its ring, from FEATURES and LINK_PEER: `nodes` is 0 while the ring is
    not whole. None for a card that is on no ring.
    """
    place = fields("LINK_PEER", peer)
    if not fields("FEATURES", features)["ring"]:
        return None
    return {
        "nodes": place["nodes"],
        "address": place["address"],
        "scrubber": bool(place["scrubber"]),
    }


def read(card: Card) -> dict[str, Any]:
    """State, reason, peer, slack, counters, and frames over Ethernet, of a card's link, as a
    dictionary. `second` has link 1 of a card with two links.
    """
    peer = card.read_register("LINK_PEER")
    info = card.info()
    counts = info["counters"]
    return {
        **read_state(card),
        "ring": ring_of(info["features"], peer),
        "pair": pairs.read(card, info["features"]),
        "nonce": card.read_register("LINK_NONCE"),
        "peer": peer & 0xFFFF if peer >> 16 & 1 else None,
        "slack_high": [
            4 * level
            for level in fields("LINK_SLACK_HIGH", card.read_register("LINK_SLACK_HIGH")).values()
        ],
        "counters": {name.lower(): counts[name.lower()] for name in LINK_COUNTERS},
        "frames": read_frames(card),
        "second": read_second(card),
    }


def sentence(link: Mapping[str, Any]) -> str:
    """The state of a link in a sentence."""
    ring, pair = link.get("ring"), link.get("pair")
    if link["absent"]:
        return ABSENT
    if link["state"] == "UP":
        held = ", ".join(map(str, link["stopped"]))
        stopped = (
            f", packets of channels {held} wait until their target has room"
            if ring
            else f", the other end stops channels {held}"
        )
        return (
            "up"
            + (
                f", {'a pair of rings' if pair else 'a ring'} of {ring['nodes']} nodes"
                if ring
                else ""
            )
            + (f", {pairs.rings_sentence(pair)}" if pair and not all_up(pair) else "")
            + (stopped if held else "")
        )
    advice = {**ADVICE, **(ADVICE_RING if ring else {})}
    return f"{link['state'].lower()}: {advice.get(link['reason'], link['reason'].lower())}"


def all_up(pair: Mapping[str, Any]) -> bool:
    """Whether both rings of a pair are UP, each by itself."""
    return all(pair["rings"]) and not pair["folded"]


def place_sentence(ring: Mapping[str, Any]) -> str:
    """A card's place on its ring, as ring_of() gives it."""
    if not ring["nodes"]:
        return "not whole: its size and this card's address are not known"
    return f"{ring['nodes']} nodes, this one has address {ring['address']}" + (
        ", the scrubber" if ring["scrubber"] else ""
    )


def rows(link: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """For output.table()."""
    found = [
        ("state", sentence(link)),
        ("signal", "yes" if link["signal"] else "no"),
        (
            "nonce, another node's" if link["ring"] else "nonce, the other's",
            f"{link['nonce']:04x}, "
            + ("not heard" if link["peer"] is None else f"{link['peer']:04x}"),
        ),
        (
            "receive FIFOs, most words" if link["ring"] else "slack, most words",
            " ".join(str(n) for n in link["slack_high"]),
        ),
    ]
    if ring := link["ring"]:
        found.insert(1, ("ring", place_sentence(ring)))
    if pair := link["pair"]:
        found[2:2] = pairs.rows(pair)
    counts = {**link["counters"], **link["frames"]}
    found += [(name, value) for name, value in counts.items() if value]
    if second := link["second"]:
        peer = "not heard" if second["peer"] is None else f"{second['peer']:04x}"
        found += [
            ("link 1: state", sentence(second)),
            ("link 1: the other's nonce", peer),
            ("link 1: slack, most words", " ".join(map(str, second["slack_high"]))),
        ]
        found += [(f"link 1: {name}", n) for name, n in second["counters"].items() if n]
    return found
