"""Messages of `block` in the two semantics of Kurmann and Stricker (EMMSEC 1998).

restricted : the receive is posted first, and the payload goes straight to its place: dib_send() and
             dib_receive(), ping-pong
postal     : sent at any time, buffered where it arrives, copied out: a mailbox, ping-ping, both
             programs sending at once
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import libdibber
from dibber.interface.description import STATUS
from libdibber.binding import Clock
from libdibber.late import np
from libdibber.mailbox import MESSAGE, ROOM

from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.point import Point
from dibber_cli.bench.program import TIMEOUT_NS, Failed

MAILBOX_ENDPOINT = 2
POSTED_NS = 10_000  # after this time the other card knows a posted receive
SENT, RECEIVED = 0, 1  # tags


class Exchanger(Protocol):
    """A program that sends and receives messages: a worker.Worker."""

    node: int
    endpoint: libdibber.Endpoint
    source: libdibber.Region
    target: libdibber.Region

    def connected_mailbox(self, address: bytes) -> libdibber.Mailbox:
        """The mailbox, connected with that of the other side."""


@dataclass(frozen=True)
class Messages(Point):
    """As many messages in each direction as transfers; the operation gives the semantics."""

    senders: tuple = (0, 1)

    @property
    def both_ways(self) -> bool:
        return self.operation == "sendrecv-postal"


def message(point: Point, side: Pattern, memory: np.ndarray, n: int) -> np.ndarray:
    """The bytes of message `n` on the side of a Pattern, a view of that side's memory."""
    moved, base = point.moved(side)
    return memory[base + n * moved.span : base + n * moved.span + moved.length]


def times(begin: Clock, end: Clock, ways: int = 1) -> dict[str, Any]:
    """The answer of a program; `ways`: one-way messages in the time of one value."""
    return {
        "elapsed_ps": (end.now_ps - begin.now_ps) // ways,
        "cpu_ps": (end.cpu_ps - begin.cpu_ps) // ways,
        "free": end.free,
    }


def ping_pong(worker: Exchanger, point: Point, keys: dict[str, Any]) -> dict[str, Any]:
    """Restricted: node 0 begins, each sends back its received message. The time is half of all
    rounds."""
    endpoint, size, other = worker.endpoint, point.source.length, 1 - worker.node
    base = point.moved(point.source)[1]
    ended = [0, 0]

    def post(n: int) -> None:
        if n < point.transfers:
            endpoint.receive(
                worker.target.key, base + n * size, size, node=other, endpoint=1, tag=RECEIVED
            )

    def send(n: int) -> None:
        endpoint.send(worker.source.key, base + n * size, size, node=other, endpoint=1, tag=SENT)

    def complete(tag: int, count: int) -> None:
        while ended[tag] < count:
            if not endpoint.wait(TIMEOUT_NS):
                raise Failed(f"{ended} of {count} messages were sent and received")
            for entry in endpoint.poll():
                if entry.status != STATUS.OK:
                    raise Failed(f"a message ended with {STATUS.name_of(entry.status)}")
                ended[entry.tag] += 1

    post(0)
    endpoint.wait(POSTED_NS)
    begin = endpoint.clock()
    for n in range(point.transfers):
        if worker.node == 0:
            send(n)
            post(n + 1)
            complete(RECEIVED, n + 1)
        else:
            complete(RECEIVED, n + 1)
            post(n + 1)
            send(n)
    end = endpoint.clock()
    complete(SENT, point.transfers)
    return times(begin, end, ways=2)


def ping_ping(worker: Exchanger, point: Point, keys: dict[str, Any]) -> dict[str, Any]:
    """Postal: both send all messages, and receive meanwhile."""
    mailbox = worker.connected_mailbox(keys["mailbox"])
    sent = received = 0
    begin = worker.endpoint.clock()
    while sent < point.transfers or received < point.transfers:
        if sent < point.transfers and mailbox.send(
            message(point, point.source, worker.source.memory, sent)
        ):
            sent += 1
        elif mailbox.receive_into(
            message(point, point.target, worker.target.memory, received)
            if received < point.transfers
            else worker.target.memory[:0]
        ):
            received += 1
        elif not mailbox.wait(MESSAGE | ROOM if sent < point.transfers else MESSAGE, TIMEOUT_NS):
            raise Failed(f"{sent} messages were sent and {received} received of {point.transfers}")
    return times(begin, worker.endpoint.clock())


EXCHANGES = {"sendrecv-restricted": ping_pong, "sendrecv-postal": ping_ping}
