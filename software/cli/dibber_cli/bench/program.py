"""One of the two programs of a benchmark: a process with a card of its own.

The process that started both drives each over a pipe. While a program waits for that pipe, it is
outside the simulator's clock. For each order both leave and both come back, so simulated time
stands still in between.
"""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import libdibber
from dibber.interface.description import HOST, RIGHT, STATUS
from libdibber import DibberError
from libdibber.exchange import ExchangeError

from dibber_cli.bench import stages

TIMEOUT_NS = 100_000_000  # of simulated time, for one wait
# the order to read counters; other orders are (point, keys of the other side)
COUNT = "count"
FAST_PATH = HOST["FAST_PATH"].reset
# What a card says of itself that bounds depend on: keys of Card.info().
TOLD = ("data_width", "clock_hz", "max_payload", "max_request")


class Failed(Exception):
    """A point failed."""


class Program:
    """A card with its control program, endpoint 1, and memory.

    Subclasses prepare a point while time stands (prepare(point)) and do their part of it
    (run(point, keys): a dictionary, "free" in it as in libdibber's clock).

    With `fast` False, the control programs alone execute a point.

    points         : of the run; subclasses need them
    source, target : regions to read from and to write to, after allocate()
    """

    source: libdibber.Region
    target: libdibber.Region

    if TYPE_CHECKING:  # a subclass has these

        def prepare(self, point: Any) -> None: ...
        def run(self, point: Any, keys: Any) -> dict[str, Any]: ...

    def __init__(
        self, uri: str, node: int, firmware: str, seed: int, points: Sequence[Any] = ()
    ) -> None:
        self.node, self.seed = node, seed
        self.card = libdibber.Card(uri)
        self.card.set_node(node)
        self.card.load_firmware(firmware)
        self.fast = True
        self.endpoints: dict[int, libdibber.Endpoint] = {}
        self.endpoint = self.open(1)

    def open(self, number: int) -> libdibber.Endpoint:
        """Endpoint `number`, opened once."""
        if number not in self.endpoints:
            self.endpoints[number] = self.card.endpoint(number)
        return self.endpoints[number]

    def choose(self, point: object) -> None:
        """Switch the fast path on or off."""
        fast = getattr(point, "fast", True)
        if fast != self.fast:
            self.card.write_register("FAST_PATH", FAST_PATH if fast else 0)
            self.fast = fast

    def allocate(self, source_bytes: int, target_bytes: int, owner: int = 1) -> None:
        """Memory to read from, owned by endpoint `owner`, and to write to."""
        self.source = self.open(owner).register(
            libdibber.alloc(source_bytes), RIGHT.LOCAL_READ | RIGHT.REMOTE_READ
        )
        self.target = self.endpoint.register(
            libdibber.alloc(target_bytes), RIGHT.LOCAL_WRITE | RIGHT.REMOTE_WRITE
        )

    @property
    def keys(self) -> dict[str, Any]:
        """The keys for the other side."""
        return {"source": self.source.key, "target": self.target.key}

    def close(self) -> None:
        self.source.close()
        self.target.close()
        for endpoint in self.endpoints.values():
            endpoint.close()
        self.card.close()


def reap(endpoint: libdibber.Endpoint, limit: int = 16) -> int:
    """Take completions; returns their number. Raises Failed if one has an error."""
    entries = endpoint.poll(limit)
    for entry in entries:
        if entry.status != STATUS.OK:
            raise Failed(f"a transfer ended with {STATUS.name_of(entry.status)}")
    return len(entries)


def _next_order(pipe: Any, program: Program) -> Any:
    """The next order, with its point prepared; None at the end."""
    order = pipe.recv()
    if order and order != COUNT:
        program.prepare(order[0])
    return order


def _obey(program: Program, order: Any) -> dict[str, Any]:
    if order == COUNT:
        return stages.read(program.card)
    program.choose(order[0])
    try:
        return program.run(*order)
    except Failed as failed:
        return {"failed": str(failed)}


def main(
    pipe: Any,
    kind: type[Program],
    uri: str,
    node: int,
    firmware: str,
    seed: int,
    points: Sequence[Any],
) -> str | None:
    """The process of a program of class `kind`: open, then do each order that comes over the pipe,
    until None comes. Returns why it failed, or None.
    """
    try:
        program = kind(uri, node, firmware, seed, points)
        info = program.card.info()
        with program.endpoint.outside_clock():
            pipe.send(
                {
                    "keys": program.keys,
                    "build": info["build"],
                    "identity": info["mcp_identity"],
                    "interface": info["interface_version"],
                    "hash": info["interface_hash"],
                    "simulated": bool(info["simulated_clock"]),
                    **{name: info[name] for name in TOLD},
                }
            )
            order = _next_order(pipe, program)
        while order:
            result = _obey(program, order)
            with program.endpoint.outside_clock():
                pipe.send(result)
                order = _next_order(pipe, program)
        program.close()
    except (DibberError, ExchangeError, OSError, EOFError) as error:
        return _fail(pipe, str(error), getattr(error, "name", ""))
    except Exception:
        return _fail(pipe, traceback.format_exc())
    return None


def _fail(pipe: Any, why: str, name: str = "") -> str:
    """Send the reason why this process ends. The other process may have ended already."""
    with contextlib.suppress(OSError, ExchangeError):
        pipe.send({"failed": why, "name": name})
    return why
