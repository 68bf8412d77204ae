"""The two programs of the soak: each issues its commands of a round, then returns its memory."""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import libdibber
from libdibber.late import np

from dibber_cli.bench.program import Program
from dibber_cli.soak import player


@dataclass(frozen=True)
class Turn:
    """A round, as both programs get it: for each side the commands, the expected events, and the
    lists.
    """

    number: int
    commands: list
    notices: list
    depth: int
    lists: list


@dataclass(frozen=True)
class Show:
    """The order to return memory. It comes when both have finished, so nothing writes any more."""


@dataclass(frozen=True)
class Counters:
    """The order to return the card's counters."""


class Soldier(Program):
    """A card with three endpoints, one arena under nine regions, and index lists under one region
    of each endpoint.
    """

    arena: np.ndarray
    lists: np.ndarray

    def __init__(self, uri: str, node: int, firmware: str, seed: int, points: object) -> None:
        super().__init__(uri, node, firmware, seed)
        self.regions: dict[str, libdibber.Region] = {}
        self.names = player.prepare(self, seed)

    @property
    def keys(self) -> dict[str, int]:
        return self.names

    def prepare(self, order: Turn | Show | Counters) -> None:
        if isinstance(order, Turn):
            player.begin(self, self.seed, order.number, self.node, order.lists[self.node])

    def run(self, order: Turn | Show | Counters, keys: Mapping[str, Any]) -> dict[str, Any]:
        if isinstance(order, Show):
            return {"memory": player.collect(self), "free": False}
        if isinstance(order, Counters):
            return {"counters": self.card.info()["counters"], "free": False}
        begin = self.endpoint.clock()
        ended, trouble = player.play(
            self, order.commands[self.node], order.notices[self.node], order.depth
        )
        end = self.endpoint.clock()
        return {
            "ended": ended,
            "trouble": trouble,
            "begin_ps": begin.now_ps,
            "end_ps": end.now_ps,
            "cpu_ps": end.cpu_ps - begin.cpu_ps,
            "free": end.free,
        }

    def close(self) -> None:
        for region in self.regions.values():
            region.close()
        for endpoint in self.endpoints.values():
            endpoint.close()
        self.card.close()
