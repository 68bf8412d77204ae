"""A soak between two hosts. The client gives the orders; both compute the commands of a round and
the memory after it from the seed, so neither of them goes over TCP.

An order is the kind, the number of the round, its size, and the keys of both sides. An answer is
that of the program (soak.program), but memory is compared where it is: the answer has the wrong
places.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Mapping
from typing import Any

from libdibber import Exchange
from libdibber.exchange import ExchangeError

from dibber_cli import paths
from dibber_cli.bench import program, remote
from dibber_cli.bench.program import COUNT
from dibber_cli.errors import CommandError
from dibber_cli.soak import plan
from dibber_cli.soak.memory import Memory
from dibber_cli.soak.program import Counters, Show, Soldier, Turn

TURN, SHOW, COUNTERS = "turn", "show", "counters"
MOST_PLACES = 1000  # wrong places that an answer names
MOST_ROUND = 1000  # commands of a side in a round that a client may order


def turn_of(
    seed: int, number: int, memory: Memory, keys: plan.Keys, size: int
) -> tuple[plan.Round, Turn]:
    """(the Round, the order to both programs). `memory` is the model, and goes on to its end."""
    todo = plan.Round(seed, number, memory, keys, size)
    return todo, Turn(number, todo.commands, todo.notices, todo.depth, todo.lists)


class Server(remote.Server):
    """The client's end. The Soak tells `keys` and `size` before it orders a Turn."""

    keys: plan.Keys | None = None
    size = 0

    def send(self, order: Any) -> None:
        self.orders += 1
        if order and order != COUNT:
            what = order[0]
            kind = {Turn: TURN, Show: SHOW, Counters: COUNTERS}[type(what)]
            order = {
                "kind": kind,
                "round": what.number if kind == TURN else 0,
                "size": self.size,
                "keys": self.keys,
            }
        self.exchange.publish(f"order-{self.orders}", remote.encode(order))

    def recv(self) -> dict[str, Any]:
        answer = super().recv()
        try:
            # JSON has no numbers as keys, and no tuples.
            if "ended" in answer:
                ended = {int(index): tuple(end) for index, end in answer["ended"].items()}
                answer["ended"] = ended
        except (TypeError, ValueError, AttributeError) as error:
            return {"failed": f"the server's answer makes no sense: {error!r}"}
        return answer


class Client(remote.Client):
    """The server's end, with the model."""

    def __init__(self, exchange: Exchange, seed: int) -> None:
        super().__init__(exchange, ())
        self.seed, self.memory = seed, Memory(seed)

    def recv(self) -> Any:
        self.orders += 1
        name = f"order-{self.orders}"
        data = self.exchange.look_up(remote.CLIENT, name, remote.ORDER_SECONDS)
        order = remote.decode(data, name)
        if order is None or order == COUNT:
            return order
        try:
            if order["kind"] != TURN:
                return {SHOW: Show, COUNTERS: Counters}[order["kind"]](), {}
            number, size, keys = int(order["round"]), int(order["size"]), list(order["keys"])
            if not 0 < size <= MOST_ROUND:
                raise ValueError(f"{size} commands")
            self.memory.begin(number)
            return turn_of(self.seed, number, self.memory, keys, size)[1], {}
        except (TypeError, KeyError, ValueError, IndexError) as error:
            raise ExchangeError("PROTOCOL", f"{name} makes no sense: {error!r}") from None

    def send(self, answer: Mapping[str, Any]) -> None:
        if "memory" in answer:
            wrong = self.memory.wrong(1, answer["memory"])
            answer = {
                "places": wrong[:MOST_PLACES].tolist(),
                "wrong": len(wrong),
                "compared": len(answer["memory"]),
                "free": answer["free"],
            }
        super().send(answer)


def serve(exchange: Exchange, uri: str, seed: int) -> None:
    """The server's part of a run."""
    failed = program.main(Client(exchange, seed), Soldier, uri, 1, str(paths.FIRMWARE), seed, ())
    if failed:
        raise CommandError(f"card {uri}: {failed}")
