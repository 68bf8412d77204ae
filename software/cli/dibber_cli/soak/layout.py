"""Layout of a side's memory in the soak test, with its regions and walks.

Both sides have one arena of the same layout. Places in it are counted from its start ("absolute"),
for any region that a command uses to reach them. Regions begin and end at odd places, so an offset
is never an absolute place. Index lists lie in memory of their own, which is written for each round.
Every endpoint has a region of it.
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from dibber.interface.description import RIGHT
from libdibber.late import np

ENDPOINTS = (1, 2, 3)

SOURCE = 0  # start of the part that is only read
TARGET = 640 * 1024  # start of the part that is written, refilled for each round
EDGE = TARGET + 1472 * 1024  # where transfers cross a region's end
ARENA = EDGE + 64 * 1024

LISTS = 1 << 21  # bytes for a round's index lists

COUNTERS = 64  # bytes at TARGET + 64 with the counter for all additions


@dataclass(frozen=True)
class Region:
    """Part of an arena: absolute places from `start` to `end`, `owner` is an endpoint."""

    name: str
    start: int
    end: int
    owner: int
    rights: int


def regions() -> list[Region]:
    """The regions of a side: the same memory for each endpoint, at different odd places.

    `source` may be read by all, `target` read and written by all, `blind` only written from the
    wire.
    """
    everything = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
    return [
        region
        for e in ENDPOINTS
        for region in (
            Region(
                f"source{e}",
                SOURCE + 5 * e,
                TARGET - 4096 - 3 * e,
                e,
                RIGHT.LOCAL_READ | RIGHT.REMOTE_READ,
            ),
            Region(f"target{e}", TARGET + 3 * e, ARENA - 8192 - 7 * e, e, everything),
            Region(f"blind{e}", TARGET + 9 * e, ARENA - 8192 - 2 * e, e, RIGHT.REMOTE_WRITE),
        )
    ]


@dataclass(frozen=True)
class Shape:
    """Blocks at strides: `levels` of (count, stride), innermost first; `place` is absolute, of the
    first block.

    entries : of an index list, distances from `place`; () without a list
    cut     : bytes by which the last nest of the list is shorter
    """

    block: int
    place: int
    levels: tuple = ()
    entries: tuple = ()
    cut: int = 0

    @property
    def length(self) -> int:
        length = self.block * max(1, len(self.entries))
        for count, _ in self.levels:
            length *= count
        return length - self.cut

    def moved(self, distance: int) -> Shape:
        return dataclasses.replace(self, place=self.place + distance)

    def bytes(self) -> np.ndarray:
        """Absolute place of each byte, in the order of the transfer."""
        places = np.array([self.place], dtype=np.int64)
        for count, stride in self.levels:
            places = (np.arange(count, dtype=np.int64)[:, None] * stride + places).ravel()
        if self.entries:
            places = (np.array(self.entries, dtype=np.int64)[:, None] + places).ravel()
        return (places[:, None] + np.arange(self.block, dtype=np.int64)).ravel()[: self.length]


def fill(seed: int, number: int, node: int) -> np.ndarray:
    """Contents of an arena's written part at the start of a round."""
    return np.frombuffer(
        np.random.default_rng([seed, number, node]).bytes(ARENA - TARGET), dtype=np.uint8
    )


def fill_source(seed: int, node: int) -> np.ndarray:
    """Contents of the part that is never written."""
    return np.frombuffer(np.random.default_rng([seed, 1 << 32, node]).bytes(TARGET), dtype=np.uint8)
