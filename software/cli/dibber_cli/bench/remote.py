"""Orders and answers of a benchmark between two hosts, over a libdibber.Exchange.

The server listens. The client gives the orders, and drives a card itself. Both count from 1: the
client publishes "order-N" and the server "answer-N", both as JSON. The server's first answer comes
without an order: it has opened its card. Points are named by their number, because both sides have
computed them from the same command line; their digest is compared before the first order.
"""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from libdibber import Exchange, binding
from libdibber.exchange import ExchangeError

from dibber_cli.bench.program import COUNT

SERVER, CLIENT = 0, 1  # parties of the exchange
ORDER_SECONDS = 3600  # a server waits for the next order: the client may be measuring for long
STRUCTURE = "structure"  # key of a structure of the library in JSON
STRUCTURES = {kind.__name__: kind for kind in binding.STRUCTURES.values()}


# JSON ---------------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """What JSON has no form for: structures of the library, and numbers of NumPy."""
    if isinstance(value, ctypes.Structure):
        return {STRUCTURE: type(value).__name__, "bytes": bytes(value).hex()}
    return value.item()


def _structure(value: dict[str, Any]) -> Any:
    if STRUCTURE not in value:
        return value
    return STRUCTURES[value[STRUCTURE]].from_buffer_copy(bytes.fromhex(value["bytes"]))


def encode(value: Any) -> bytes:
    return json.dumps(value, default=_plain).encode()


def decode(data: bytes, what: str) -> Any:
    """Raises ExchangeError for what is no such JSON."""
    try:
        return json.loads(data, object_hook=_structure)
    except (ValueError, TypeError, KeyError) as error:
        raise ExchangeError("PROTOCOL", f"{what} makes no sense: {error!r}") from None


def digest(points: Sequence[Any]) -> str:
    """What two sides compare to know that they have the same points."""
    return hashlib.sha256(repr(points).encode()).hexdigest()


# Pipes --------------------------------------------------------------------------------------------


class Server:
    """The client's end, in place of the pipe to a program on this host (session.Workers)."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange, self.orders = exchange, 0
        self.expected = 1  # number of the next answer; the first comes without an order

    def fileno(self) -> int:
        return self.exchange.fileno()

    def ready(self) -> bool:
        """Whether recv() would not wait."""
        return self.exchange.has(SERVER, f"answer-{self.expected}")

    def send(self, order: Any) -> None:
        self.orders += 1
        if order and order != COUNT:
            order = {"point": order[0].number, "keys": order[1]}
        self.exchange.publish(f"order-{self.orders}", encode(order))

    def recv(self) -> dict[str, Any]:
        try:
            name = f"answer-{self.expected}"
            answer = decode(self.exchange.look_up(SERVER, name), name)
        except ExchangeError as error:
            return {"failed": f"the server: {error}", "name": error.name}
        self.expected += 1
        if not isinstance(answer, dict):
            return {"failed": "the server sent an answer that is none"}
        return answer

    def close(self) -> None:
        """The exchange is closed by whoever opened it."""


class Client:
    """The server's end, in place of the pipe that program.main() is driven by."""

    def __init__(self, exchange: Exchange, points: Sequence[Any]) -> None:
        self.exchange, self.points = exchange, {point.number: point for point in points}
        self.orders = self.answers = 0

    def recv(self) -> Any:
        self.orders += 1
        name = f"order-{self.orders}"
        order = decode(self.exchange.look_up(CLIENT, name, ORDER_SECONDS), name)
        if order is None or order == COUNT:
            return order
        try:
            return self.points[order["point"]], dict(order["keys"])
        except (TypeError, KeyError, ValueError) as error:
            raise ExchangeError("PROTOCOL", f"{name} makes no sense: {error!r}") from None

    def send(self, answer: Mapping[str, Any]) -> None:
        self.answers += 1
        self.exchange.publish(f"answer-{self.answers}", encode(answer))
