"""A card under test: the state of its items, and their results."""

# SPDX-License-Identifier: BSD-2-Clause

import random
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from libdibber import Card, DibberError, Endpoint

from dibber_cli import simulator
from dibber_cli.errors import CommandError

PASS, FAIL, SKIPPED = "pass", "FAIL", "not tested"

MEET_SECONDS = 300


class Wrong(Exception):
    """An item found a fault; the text describes it."""


class Impossible(Exception):
    """An item cannot be tested here; the text says why."""


@dataclass(frozen=True)
class Item:
    """One line of the result."""

    item: str
    verdict: str
    detail: str


class Meeting:
    """Where both cards' threads wait for each other and exchange values.

    A thread that cannot go on calls leave(); then meet() raises Impossible in the other one.
    """

    def __init__(self) -> None:
        self.barrier = threading.Barrier(2)
        self.values = [None, None]

    def meet(self, node: int, value: Any) -> Any:
        """The other's value."""
        try:
            self.values[node] = value
            self.barrier.wait(MEET_SECONDS)
            other = self.values[1 - node]
            self.barrier.wait(MEET_SECONDS)  # only then may the next value replace this one
        except threading.BrokenBarrierError:
            raise Impossible("the other card does not get so far") from None
        return other

    def leave(self) -> None:
        self.barrier.abort()


class Examinee:
    """One card.

    Attributes
    ----------
    card, endpoint : libdibber's; None before they are open
    node           : 0 or 1
    clock_hz       : of the card, once it is open
    copies         : whether it is behind a UART and has copies of memory
    random         : seeded by the run's seed and the node
    meeting        : Meeting with the other card, None if only one card is tested
    cable          : "none", "direct", "loopback", "wrong"; "" if not known
    items          : list of Item
    say            : called with the name of each item
    """

    card: Card
    endpoint: Endpoint

    def __init__(
        self,
        uri: str,
        node: int,
        seed: int,
        meeting: Meeting | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.uri, self.node, self.seed = uri, node, seed
        self.meeting, self.say = meeting, say
        self.random = random.Random(f"{seed}/{node}/{uri if meeting is None else ''}")
        self.card = self.endpoint = None  # type: ignore[assignment]
        self.clock_hz, self.cable, self.copies = 0, "", False
        self.items: list[Item] = []

    def examine(self, name: str, test: Callable[["Examinee"], str]) -> None:
        """Run one item: test(self) returns its detail, or raises Wrong or Impossible."""
        self.say(f"card {self.node}: {name}")
        try:
            found = Item(name, PASS, test(self))
        except (Wrong, DibberError, OSError, CommandError) as error:
            text = f"{error.name}: {error}" if isinstance(error, DibberError) else str(error)
            found = Item(name, FAIL, simulator.without_folders(text))
        except Impossible as reason:
            found = Item(name, SKIPPED, str(reason))
        self.items.append(found)

    def result(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "uri": simulator.without_folders(self.uri),
            "node": self.node,
            "cable": self.cable,
            "pass": not self.failed,
            "failed": self.failed,
            "items": [asdict(item) for item in self.items],
        }

    @property
    def failed(self) -> list[str]:
        """Names of the items that failed."""
        return [item.item for item in self.items if item.verdict == FAIL]

    # For items ------------------------------------------------------------------------------------

    def needs_program(self) -> None:
        if self.endpoint is None:
            raise Impossible("the control program does not run")

    def now(self) -> int:
        """Nanoseconds, simulated where the simulator keeps the time."""
        return self.endpoint.clock().now_ps // 1000

    def sleep(self, nanoseconds: int) -> None:
        """Wait for so much time, and ignore completions."""
        end = self.now() + nanoseconds
        while (left := end - self.now()) > 0:
            self.endpoint.wait(left)
            self.endpoint.poll()
            self.endpoint.poll_events()

    def meet(self, value: Any = None) -> Any:
        """Meet the other card's thread, outside the clock; returns its value. Raises Impossible."""
        if self.meeting is None:
            raise Impossible("give the other card too, whose program must answer")
        with self.endpoint.outside_clock():
            return self.meeting.meet(self.node, value)

    def close(self) -> None:
        """Close card and endpoint; the other card's thread waits no longer."""
        if self.meeting:
            self.meeting.leave()
        if self.endpoint:
            self.endpoint.close()
        if self.card:
            self.card.close()
        self.card = self.endpoint = None  # type: ignore[assignment]
