"""The two ends of a cable. Each has its own thread, because the simulator's clock needs it."""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import libdibber
from dibber.interface.description import HOST
from libdibber.late import np

from dibber_cli import paths
from dibber_cli.errors import CommandError
from dibber_cli.link import measure, pairs
from dibber_cli.link.tester import is_tester

START_SECONDS = 120
ETHERNET, RING = (
    1 << next(f.lsb for f in HOST["FEATURES"].fields if f.name == name)
    for name in ("ethernet", "ring")
)


# Of a task: its result, which may be of any type.
Answer = concurrent.futures.Future[Any]


class Side(threading.Thread):
    """One card with its control program and an endpoint, or a link tester, which has neither. Its
    thread runs the tasks of call().

    Attributes
    ----------
    card, endpoint : libdibber's; only for use inside a task. endpoint is None for a link tester
    node           : number of this card: 0 or 1
    tester         : whether it is a link tester: registers and a link that carries no packets
    clock_hz       : of the card
    ethernet       : whether its link is Ethernet: no bit sequences, and no cable of one length
    ring           : whether it is a node of a ring
    pair           : whether it has a pair of rings, with two cables
    chunk          : bytes of a put between both, for measure; None for a link tester
    store, region  : of measure.offer()
    """

    card: libdibber.Card
    endpoint: libdibber.Endpoint
    chunk: int
    store: np.ndarray
    region: libdibber.Region

    def __init__(self, uri: str, node: int) -> None:
        super().__init__(daemon=True, name=f"card {node}")
        self.uri, self.node = uri, node
        self.tasks: queue.SimpleQueue[tuple[Callable[[Side], Any] | None, Answer]] = (
            queue.SimpleQueue()
        )
        self.ready: Answer = concurrent.futures.Future()
        self.start()

    def call(self, task: Callable[[Side], Any] | None) -> Answer:
        """Let the thread run task(side); returns a Future."""
        future: Answer = concurrent.futures.Future()
        self.tasks.put((task, future))
        return future

    def run(self) -> None:
        try:
            self.card = libdibber.Card(self.uri)
        except BaseException as error:
            self.ready.set_exception(error)
            return
        try:
            self.card.set_node(self.node)
            info = self.card.info()
            self.clock_hz = info["clock_hz"]
            self.tester = is_tester(info)
            self.ethernet = bool(info["features"] & ETHERNET)
            self.ring = bool(info["features"] & RING)
            self.pair = bool(info["features"] & pairs.PAIR)
            self.endpoint = self.chunk = None  # type: ignore[assignment]
            if not self.tester:
                self.card.load_firmware(str(paths.FIRMWARE))
                self.chunk = measure.SMALL if info["copies"] else measure.CHUNK
                self.endpoint = self.card.endpoint(1)
        except BaseException as error:
            # An idle thread that stays in the clock would stop it for the other side.
            self.card.close()
            self.ready.set_exception(error)
            return
        answer: Callable[[], None] = lambda: self.ready.set_result(None)
        while True:
            # Give the answer outside of the clock. Otherwise the other side may get its next task
            # before this side has left: it would find this side in the clock, do its task and leave
            # again. Then this side would wait for its return.
            with contextlib.nullcontext() if self.tester else self.endpoint.outside_clock():
                answer()
                task, future = self.tasks.get()
            if task is None:
                break
            try:
                answer = functools.partial(future.set_result, task(self))
            except BaseException as error:
                answer = functools.partial(future.set_exception, error)
        if not self.tester:
            self.endpoint.close()
        self.card.close()
        future.set_result(None)

    # In tasks -------------------------------------------------------------------------------------

    def sleep(self, nanoseconds: int) -> None:
        """Wait for so much time (simulated, if a simulator keeps it), and ignore completions."""
        if self.tester:
            time.sleep(nanoseconds / 1e9)
            return
        end = self.now() + nanoseconds
        while self.now() < end:
            self.endpoint.wait(max(1, end - self.now()))
            self.endpoint.poll()
            self.endpoint.poll_events()

    def now(self) -> int:
        """Nanoseconds."""
        return time.monotonic_ns() if self.tester else self.endpoint.clock().now_ps // 1000


class Ends:
    """Both ends of the cable, in a `with` statement.

    Attributes
    ----------
    sides   : list of Side
    testers : whether one is a link tester; then there are no packets
    """

    def __init__(self, uris: Sequence[str], nodes: Sequence[int] | None = None) -> None:
        """`nodes`: the number of each card; otherwise they are counted from 0."""
        numbers = range(len(uris)) if nodes is None else nodes
        self.sides = [Side(uri, node) for node, uri in zip(numbers, uris, strict=True)]

    def __enter__(self) -> Ends:
        try:
            for ready in concurrent.futures.as_completed(
                [side.ready for side in self.sides], START_SECONDS
            ):
                ready.result()
        except concurrent.futures.TimeoutError:
            raise CommandError(
                f"a card's control program was not ready after {START_SECONDS} s"
            ) from None
        self.testers = any(side.tester for side in self.sides)
        if not self.testers:
            for side in self.sides:
                side.chunk = min(other.chunk for other in self.sides)
        return self

    def both(self, *tasks: Callable[[Side], Any]) -> list[Any]:
        """Run tasks on both sides at once, one task for both or one for each; returns their
        results.

        Both always run: a side that has left the simulator's clock must come back before the other
        one goes on.
        """
        tasks = tasks * len(self.sides) if len(tasks) == 1 else tasks
        futures = [side.call(task) for side, task in zip(self.sides, tasks)]
        concurrent.futures.wait(futures)
        return [future.result() for future in futures]

    def __exit__(self, *_: object) -> None:
        futures = [side.call(None) for side in self.sides if side.is_alive()]
        concurrent.futures.wait(futures, 10)
