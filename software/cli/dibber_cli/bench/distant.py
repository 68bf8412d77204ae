"""`bench link` between two hosts: tasks of a cable's two ends, over a libdibber.Exchange.

The client has end 0 and gives the orders, the server has end 1. Both count from 1: the client
publishes "order-N", a task by name with its arguments, or None at the end; the server publishes
"answer-N". Its first answer comes without an order: its card is ready.
"""

# SPDX-License-Identifier: BSD-2-Clause

import concurrent.futures
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from libdibber import DibberError, Exchange
from libdibber.exchange import ExchangeError

from dibber_cli.bench import remote
from dibber_cli.errors import CommandError
from dibber_cli.link.side import START_SECONDS, Side
from dibber_cli.link.tasks import Task


def _ready(side: Side) -> None:
    """Wait for a card. Raises CommandError."""
    try:
        side.ready.result(START_SECONDS)
    except concurrent.futures.TimeoutError:
        raise CommandError(
            f"the card's control program was not ready after {START_SECONDS} s"
        ) from None
    if side.tester:
        raise CommandError(
            f"{side.uri} is a link tester: it has no packets", "'dibber link test' tests its link"
        )


class Distant:
    """As link.side.Ends, with the second end on another host; in a `with` statement.

    tasks of both() are link.tasks.Task, of functions that serve() knows
    """

    def __init__(self, uri: str, exchange: Exchange) -> None:
        self.exchange, self.orders = exchange, 0
        self.side = Side(uri, 0)

    def __enter__(self) -> "Distant":
        _ready(self.side)
        self.chunk = min(self.side.chunk, self._answer(0)["chunk"])
        self.side.chunk = self.chunk
        return self

    def both(self, *tasks: Callable[[Any], Any]) -> list[Any]:
        """The results of a task on both ends at once, or of one for each."""
        here, there = tasks * 2 if len(tasks) == 1 else tasks
        assert isinstance(there, Task)
        self.orders += 1
        order = {"task": there.name, "arguments": there.arguments, "chunk": self.chunk}
        self.exchange.publish(f"order-{self.orders}", remote.encode(order))
        future = self.side.call(here)
        concurrent.futures.wait([future])
        answer = self._answer(self.orders)
        return [future.result(), answer["result"]]

    def _answer(self, order: int) -> dict[str, Any]:
        name = f"answer-{order + 1}"
        data = self.exchange.look_up(remote.SERVER, name, remote.ORDER_SECONDS)
        answer = remote.decode(data, name)
        if not isinstance(answer, dict) or not {"failed", "result", "chunk"} & set(answer):
            raise CommandError(f"{name} of the server makes no sense")
        if "failed" in answer:
            raise CommandError(f"the server: {answer['failed']}")
        return answer

    def __exit__(self, *_: object) -> None:
        if self.side.is_alive():
            concurrent.futures.wait([self.side.call(None)], 10)
        try:
            self.exchange.publish(f"order-{self.orders + 1}", remote.encode(None))
        except ExchangeError:
            pass  # the error that ended the run says more


def serve(exchange: Exchange, uri: str, functions: Iterable[Callable[..., Any]]) -> None:
    """The server's part: do what the client orders, until it orders None.

    functions : those that may be ordered
    """
    known = {function.__name__: function for function in functions}
    side, count = Side(uri, 1), 1
    try:
        _ready(side)
        answer = {"chunk": side.chunk}
        while True:
            exchange.publish(f"answer-{count}", remote.encode(answer))
            name = f"order-{count}"
            order = remote.decode(exchange.look_up(remote.CLIENT, name, remote.ORDER_SECONDS), name)
            if order is None:
                return
            answer = _done(side, order, known)
            count += 1
    except (DibberError, CommandError) as error:
        exchange.publish(f"answer-{count}", remote.encode({"failed": str(error)}))
        raise
    finally:
        if side.is_alive():
            concurrent.futures.wait([side.call(None)], 10)


def _done(side: Side, order: Any, known: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
    """Do a task: its answer."""
    try:
        function, arguments = known[order["task"]], list(order["arguments"])
        side.chunk = min(int(order["chunk"]), side.chunk)
    except (TypeError, KeyError, ValueError) as error:
        return {"failed": f"an order makes no sense: {error!r}"}
    try:
        return {"result": side.call(lambda one: function(one, *arguments)).result()}
    except (DibberError, OSError, ValueError, TypeError) as error:
        return {"failed": str(error)}
