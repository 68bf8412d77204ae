"""The programs of `rate`: one thread puts 8-byte messages through one or several endpoints and
takes the completions. Or it issues commands of one endpoint with an answer (asking.py).
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import libdibber
from dibber.interface.description import C
from libdibber.late import np

from dibber_cli.bench.asking import AskingProgram
from dibber_cli.bench.point import FILL, GUARD
from dibber_cli.bench.program import TIMEOUT_NS, Failed, reap

WORD = 8  # bytes of a message; each goes to a place of its own
PAUSE_NS = 64  # with several endpoints: pause after a round of empty polls


@dataclass(frozen=True)
class Flood:
    """`messages` messages over `endpoints` endpoints with `outstanding` under way on each.

    x    : outstanding, of the report
    fast : by the fast path
    """

    series: str
    outstanding: int
    endpoints: int
    messages: int
    fast: bool = True
    number: int = 0
    senders: tuple = (0,)

    @property
    def x(self) -> int:
        return self.outstanding

    @property
    def payload(self) -> int:
        return WORD * self.messages

    def data(self, seed: int) -> np.ndarray:
        return np.random.default_rng((seed, self.number)).integers(
            0, 256, self.payload, dtype=np.uint8
        )


def _numbers(count: int) -> list[int]:
    """The endpoints of a point. The one that is also the administrator's is the last."""
    return [(n + 1) % C.ENDPOINTS for n in range(count)]


class Flooder(AskingProgram):
    """Node 0 sends, node 1 compares."""

    def __init__(
        self, uri: str, node: int, firmware: str, seed: int, points: Sequence[Any]
    ) -> None:
        super().__init__(uri, node, firmware, seed)
        self.allocate(WORD, max(p.payload for p in points) + 2 * GUARD)
        if node == 0:
            for number in _numbers(
                max((p.endpoints for p in points if isinstance(p, Flood)), default=1)
            ):
                self.open(number)
        self.add_area(points)

    def prepare_other(self, point: Flood) -> None:
        self.target.memory[:] = FILL

    def run_other(self, point: Flood, keys: dict[str, Any]) -> dict[str, Any]:
        return self._send(point, keys) if self.node == 0 else self._receive(point)

    def _send(self, point: Flood, keys: dict[str, Any]) -> dict[str, Any]:
        data = point.data(self.seed).tobytes()
        endpoints = [self.open(number) for number in _numbers(point.endpoints)]
        under_way = [0] * point.endpoints
        sent = 0
        begin = self.endpoint.clock()
        while sent < point.messages or any(under_way):
            idle = True
            for n, endpoint in enumerate(endpoints):
                while sent < point.messages and under_way[n] < point.outstanding:
                    endpoint.put_inline(
                        data[WORD * sent : WORD * (sent + 1)],
                        keys["target"],
                        GUARD + WORD * sent,
                        node=1,
                    )
                    under_way[n] += 1
                    sent += 1
                if under_way[n] and (done := reap(endpoint, point.outstanding)):
                    under_way[n] -= done
                    idle = False
            if idle:
                self._pause(endpoints)
        end = self.endpoint.clock()
        # All messages are in memory now: send the notice.
        self.endpoint.put_inline(
            data[-WORD:],
            keys["target"],
            GUARD + WORD * (point.messages - 1),
            node=1,
            notice=point.number,
            endpoint=1,
        )
        while not self.endpoint.poll():
            self._pause([self.endpoint])
        return {
            "elapsed_ps": end.now_ps - begin.now_ps,
            "cpu_ps": end.cpu_ps - begin.cpu_ps,
            "free": end.free,
        }

    def _pause(self, endpoints: Sequence[libdibber.Endpoint]) -> None:
        """No entry was there: sleep until one comes, as far as the library can see."""
        if len(endpoints) > 1:
            endpoints[0].wait(PAUSE_NS)
        elif not endpoints[0].wait(TIMEOUT_NS):
            raise Failed("messages did not complete")

    def _receive(self, point: Flood) -> dict[str, Any]:
        while not self.endpoint.poll_events():
            if not self.endpoint.wait(TIMEOUT_NS):
                raise Failed("no notice came")
        wanted = np.full(len(self.target.memory), FILL, dtype=np.uint8)
        wanted[GUARD : GUARD + point.payload] = point.data(self.seed)
        return {
            "free": self.endpoint.clock().free,
            "bytes_wrong": int(np.count_nonzero(wanted != self.target.memory)),
            "guards": len(wanted) - point.payload,
        }
