"""Commands of 8 bytes with an answer, one at a time or several, timed from the call to the poll
that took the completion.
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import libdibber
from dibber.interface.description import RIGHT, STATUS
from libdibber.late import np

from dibber_cli.bench.program import TIMEOUT_NS, Failed, Program, reap

WORD = 8  # bytes of a command
QUIET_NS = 20_000  # after so much silence no completion comes any more
GET, FETCH_ADD, PUT = "get", "fetch-add", "put"


@dataclass(frozen=True)
class Asking:
    """`count` commands of one kind with `outstanding` under way, from card 0 to card 1, whose
    program does nothing.

    x : of the report
    """

    series: str
    operation: str
    count: int
    outstanding: int = 1
    fast: bool = False
    number: int = 0
    x: object = "rounds"
    senders: tuple = (0,)

    @property
    def messages(self) -> int:
        return self.count

    @property
    def payload(self) -> int:
        return WORD * self.count

    def words(self, seed: int) -> np.ndarray:
        """The first words at the other card, or the words that are put there, for each command."""
        return np.random.default_rng((seed, self.number, WORD)).integers(
            1, 1 << 63, self.count, dtype=np.uint64
        )


class Area:
    """The memory of a program that takes part: `here` for this card, `there` for the other card.

    points : of the benchmark; only those of class Asking count

    Both programs prepare the same words. So the words that card 0 finds are compared with the words
    of card 1.
    """

    def __init__(self, program: Program, points: Sequence[Any]) -> None:
        count = max((point.count for point in points if isinstance(point, Asking)), default=1)
        register = lambda rights: program.endpoint.register(libdibber.alloc(WORD * count), rights)
        self.here = register(RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE)
        self.there = register(RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE)
        self.counts = count

    def close(self) -> None:
        self.here.close()
        self.there.close()

    def _view(self, region: libdibber.Region) -> np.ndarray:
        return region.memory[: WORD * self.counts].view(np.uint64)

    def prepare(self, point: Asking, seed: int) -> None:
        words = np.zeros(self.counts, dtype=np.uint64)
        words[: point.count] = point.words(seed)
        self._view(self.there)[:] = 0 if point.operation == PUT else words
        self._view(self.here)[:] = words if point.operation == PUT else 0

    def _ask(self, point: Asking, endpoint: libdibber.Endpoint, key: int, n: int) -> None:
        """Command `n`, with its number as the tag."""
        if point.operation == GET:
            endpoint.get(key, WORD * n, self.here.key, WORD * n, WORD, node=1, tag=n)
        elif point.operation == PUT:
            endpoint.put(self.here.key, WORD * n, key, WORD * n, WORD, node=1, tag=n)
        else:
            endpoint.fetch_add(key, WORD * n, n + 1, node=1, tag=n)

    def run(
        self, point: Asking, seed: int, endpoint: libdibber.Endpoint, key: int
    ) -> dict[str, Any]:
        """All commands: the answer of a program, with the picoseconds of each when there is one at
        a time.
        """
        rounds, sent, ended = [], 0, 0
        begin = start = endpoint.clock()
        while ended < point.count:
            while sent < point.count and sent - ended < point.outstanding:
                self._ask(point, endpoint, key, sent)
                sent += 1
            while not (entries := endpoint.poll(point.outstanding)):
                if not endpoint.wait(TIMEOUT_NS):
                    raise Failed(f"{sent - ended} commands did not complete")
            for entry in entries:
                if entry.status != STATUS.OK:
                    raise Failed(f"a command ended with {STATUS.name_of(entry.status)}")
                if point.operation == FETCH_ADD:
                    self._view(self.here)[entry.tag] = entry.value
            ended += len(entries)
            end = endpoint.clock()
            rounds.append(end.now_ps - start.now_ps)
            start = end
        return {
            "rounds_ps": rounds,
            "elapsed_ps": end.now_ps - begin.now_ps,
            "cpu_ps": end.cpu_ps - begin.cpu_ps,
            "free": end.free,
            **self.compare(self.here, point, point.words(seed)),
        }

    def left(self, point: Asking, seed: int) -> dict[str, Any]:
        """The final words of card 1."""
        words = point.words(seed)
        if point.operation == FETCH_ADD:
            words = words + np.arange(1, point.count + 1, dtype=np.uint64)
        return self.compare(self.there, point, words)

    def ask(self, point: Asking, program: Program, keys: dict[str, Any]) -> dict[str, Any]:
        """The part of card 0: all commands, and a notice when they have ended."""
        # A point before this one may have left completions, and one may still be on its way.
        while program.endpoint.wait(QUIET_NS):
            reap(program.endpoint)
        answer = self.run(point, program.seed, program.endpoint, keys["there"])
        program.endpoint.put_inline(
            bytes(WORD), keys["target"], 0, node=1, notice=point.number, endpoint=1
        )
        while not reap(program.endpoint):
            program.endpoint.wait(TIMEOUT_NS)
        return answer

    def be_asked(self, point: Asking, program: Program) -> dict[str, Any]:
        """The part of card 1: its program sleeps until all commands have ended."""
        while not program.endpoint.poll_events():
            if not program.endpoint.wait(TIMEOUT_NS):
                raise Failed("no notice came")
        return {"free": program.endpoint.clock().free, **self.left(point, program.seed)}

    def compare(self, region: libdibber.Region, point: Asking, words: np.ndarray) -> dict[str, int]:
        wanted = np.zeros(self.counts, dtype=np.uint64)
        wanted[: point.count] = words
        wrong = np.count_nonzero(wanted.view(np.uint8) != region.memory[: WORD * self.counts])
        return {"bytes_wrong": int(wrong), "guards": WORD * (self.counts - point.count)}


class AskingProgram(Program):
    """A program that has points of its own beside those of Asking: prepare_other(point),
    run_other(point, keys).

    Its __init__ ends with add_area().
    """

    if TYPE_CHECKING:  # a subclass has these

        def prepare_other(self, point: Any) -> None: ...
        def run_other(self, point: Any, keys: Any) -> dict[str, Any]: ...

    def add_area(self, points: Sequence[Any]) -> None:
        self.area = Area(self, points)

    @property
    def keys(self) -> dict[str, Any]:
        return {**super().keys, "there": self.area.there.key}

    def close(self) -> None:
        self.area.close()
        super().close()

    def prepare(self, point: Any) -> None:
        if isinstance(point, Asking):
            self.area.prepare(point, self.seed)
        else:
            self.prepare_other(point)

    def run(self, point: Any, keys: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(point, Asking):
            return self.run_other(point, keys)
        return (
            self.area.ask(point, self, keys) if self.node == 0 else self.area.be_asked(point, self)
        )
