"""What travels on a ring: send packets, echoes, grants, housekeeping, and idles between them."""

# SPDX-License-Identifier: BSD-2-Clause

from typing import Any

# What an echo says of its packet. BUSY_A and BUSY_B give a reservation of that age.
ACCEPTED, ORDER, BUSY_A, BUSY_B = "accepted", "order", "A", "B"


class Idle:
    """The idle symbols behind an item. Their go bit is known when they leave their node, which is
    later than the item's first symbol. So it is an object that the next nodes look into.
    """

    __slots__ = ("go",)

    def __init__(self, go: bool) -> None:
        self.go = go


class Packet:
    """A send packet.

    Attributes
    ----------
    to, source     : nodes; `to` takes it off the ring
    channel, bytes : `bytes` of payload
    length         : picoseconds on a link, without the idle behind it
    block          : the transfer of a client that it belongs to
    number         : its place in the flow (source, target, channel, ring), from 0
    label          : age of its reservation: None, BUSY_A or BUSY_B
    granted        : the target keeps room for it
    tries          : how often it was sent
    ready, written : when the client gave it, and when it was whole in a send buffer
    left           : when its last symbol left the last time
    """

    __slots__ = (
        "to",
        "source",
        "channel",
        "bytes",
        "length",
        "block",
        "number",
        "label",
        "granted",
        "tries",
        "ready",
        "written",
        "left",
    )

    def __init__(
        self, to: int, source: int, channel: int, bytes: int, length: int, block: Any
    ) -> None:
        self.to, self.source, self.channel = to, source, channel
        self.bytes, self.length, self.block = bytes, length, block
        self.number = 0
        self.label: str | None = None
        self.granted = False
        self.tries = 0
        self.ready = self.written = 0
        self.left = 0


class Echo:
    """The echo of a packet.

    Attributes
    ----------
    to     : the packet's source, which takes the echo off the ring
    length : picoseconds on a link
    packet : the packet that it answers
    answer : ACCEPTED, ORDER, BUSY_A or BUSY_B
    """

    __slots__ = ("to", "length", "packet", "answer")

    def __init__(self, packet: Packet, length: int, answer: str) -> None:
        self.to, self.length, self.packet, self.answer = packet.source, length, packet, answer


class Housekeeping:
    """What a ring tells itself: it goes round once, and the node that sent it takes it off."""

    __slots__ = ("to", "length")

    def __init__(self, node: int, length: int) -> None:
        self.to, self.length = node, length


class Grant:
    """Room is kept at node `target` for the retry of node `to` on a channel."""

    __slots__ = ("to", "length", "target", "channel")

    def __init__(self, to: int, length: int, target: int, channel: int) -> None:
        self.to, self.length, self.target, self.channel = to, length, target, channel


Item = Packet | Echo | Housekeeping | Grant
