"""The two programs of `latency`: 8-byte inline puts to and fro. Each program looks at its memory
until they are there. Or one program issues commands with an answer (asking.py).
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from libdibber.late import np

from dibber_cli.bench.asking import AskingProgram
from dibber_cli.bench.point import FILL, GUARD
from dibber_cli.bench.program import TIMEOUT_NS, Failed, reap

WORD = 8  # bytes of a ping, at the start of the target's memory
END = b"the end."
BULK = 64 * 1024  # bytes of a transfer of bulk, from BULK_AT on
BULK_AT = GUARD
TRANSFERS = 4  # of bulk under way
BULK_ENDPOINT = 2
LOOK_NS = 32  # between two looks at memory
MARGIN_NS = 4 * LOOK_NS  # the looks begin so long before the soonest arrival so far
PATIENCE_NS = 1_000_000  # a ping that takes longer is lost


@dataclass(frozen=True)
class PingPong:
    """`rounds` rounds; with `bulk`, both cards keep sending bulk from another endpoint meanwhile.
    `fast`: by the fast path.
    """

    series: str
    rounds: int
    bulk: bool = False
    fast: bool = True
    number: int = 0
    x: object = "rounds"
    senders: tuple = (0, 1)

    @property
    def payload(self) -> int:
        """Bytes of one direction that are compared."""
        return WORD * self.rounds + (BULK if self.bulk else 0)

    def words(self, seed: int, node: int) -> np.ndarray:
        """The bytes that `node` sends in each round; never the bytes that are in memory before."""
        return (
            np.random.default_rng((seed, self.number, node))
            .permutation(1 << 20)[: self.rounds]
            .astype(np.uint64)
        )


class Player(AskingProgram):
    """Node 0 starts each round and measures it, node 1 answers."""

    def __init__(
        self, uri: str, node: int, firmware: str, seed: int, points: Sequence[Any]
    ) -> None:
        super().__init__(uri, node, firmware, seed)
        self.bulk = self.open(BULK_ENDPOINT)
        self.allocate(BULK, BULK_AT + BULK + GUARD, owner=BULK_ENDPOINT)
        self.word = self.target.memory[:WORD].view(np.uint64)
        self.add_area(points)

    def _bulk_of(self, point: PingPong, node: int) -> np.ndarray:
        return np.random.default_rng((self.seed, point.number, node, BULK)).integers(
            0, 256, BULK, dtype=np.uint8
        )

    def prepare_other(self, point: PingPong) -> None:
        self.source.memory[:] = self._bulk_of(point, self.node)
        self.target.memory[:] = FILL
        self.soonest_ns = 0
        self.under_way = 0

    def _feed(self, keys: dict[str, Any]) -> None:
        """Take the completions of the bulk, and send as much again."""
        if self.under_way:
            self.under_way -= reap(self.bulk)
        while self.under_way < TRANSFERS:
            self.bulk.put(self.source.key, 0, keys["target"], BULK_AT, BULK, node=1 - self.node)
            self.under_way += 1

    def _send(self, word: np.uint64, keys: dict[str, Any]) -> None:
        self.endpoint.put_inline(word.tobytes(), keys["target"], 0, node=1 - self.node)

    def _see(self, word: np.uint64) -> None:
        """Return when `word` is in memory. Before the soonest arrival so far, no look is needed."""
        begin = now = self.endpoint.clock().now_ps // 1000
        first = begin + max(self.soonest_ns - MARGIN_NS, 0)
        while self.word[0] != word:
            if self.endpoint.wait(max(first - now, LOOK_NS)):
                reap(self.endpoint)
            now = self.endpoint.clock().now_ps // 1000
            if now - begin > PATIENCE_NS:
                raise Failed("a ping was lost")
        self.soonest_ns = min(self.soonest_ns or now - begin, now - begin)

    def _meet(self, point: PingPong, keys: dict[str, Any]) -> None:
        """Wait until all bulk from and to this card is in memory."""
        while self.under_way:
            if not self.bulk.wait(TIMEOUT_NS):
                raise Failed(f"{self.under_way} transfers of bulk did not complete")
            self.under_way -= reap(self.bulk)
        self.endpoint.put_inline(
            END, keys["target"], WORD, node=1 - self.node, notice=point.number, endpoint=1
        )
        while not self.endpoint.poll_events():
            if not self.endpoint.wait(TIMEOUT_NS):
                raise Failed("no notice came")
            reap(self.endpoint)

    def _wrong(self, point: PingPong, last: np.uint64) -> int:
        """Number of wrong bytes in the target's memory."""
        wanted = np.full(len(self.target.memory), FILL, dtype=np.uint8)
        wanted[:WORD] = np.frombuffer(last.tobytes(), np.uint8)
        wanted[WORD : 2 * WORD] = np.frombuffer(END, np.uint8)
        if point.bulk:
            wanted[BULK_AT : BULK_AT + BULK] = self._bulk_of(point, 1 - self.node)
        return int(np.count_nonzero(wanted != self.target.memory))

    def run_other(self, point: PingPong, keys: dict[str, Any]) -> dict[str, Any]:
        """All rounds: the picoseconds of each round trip, from the call to the look that sees the
        answer.
        """
        ours, theirs = (point.words(self.seed, node) for node in (self.node, 1 - self.node))
        rounds, begin = [], self.endpoint.clock()
        if point.bulk:
            self._feed(keys)
        for mine, awaited in zip(ours, theirs):
            if self.node == 0:
                start = self.endpoint.clock().now_ps
                self._send(mine, keys)
            self._see(awaited)
            if self.node == 0:
                rounds.append(self.endpoint.clock().now_ps - start)
            else:
                self._send(mine, keys)
            if point.bulk:
                self._feed(keys)
        end = self.endpoint.clock()
        self._meet(point, keys)
        return {
            "rounds_ps": rounds,
            "elapsed_ps": end.now_ps - begin.now_ps,
            "cpu_ps": end.cpu_ps - begin.cpu_ps,
            "free": end.free,
            "bytes_wrong": self._wrong(point, theirs[-1]),
            "guards": len(self.target.memory) - 2 * WORD - BULK * point.bulk,
        }
