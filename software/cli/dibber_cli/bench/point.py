"""One point of a benchmark: its transfers, and the expected memory afterwards."""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from libdibber.late import np

from dibber_cli.bench.pattern import Pattern, copy

GUARD = 4096  # bytes before the first and behind the last transfer, and around packed bytes
FILL = 0xEE  # the target's bytes before the transfers
LINE = 64  # bytes; a program aligns its packed buffer to it


# Any class of points that has a field `number`.
Numbered = TypeVar("Numbered")


@dataclass(frozen=True)
class Point:
    """Transfers from a source to a target; one value of a series.

    Attributes
    ----------
    series, x      : of the report
    source, target : Pattern on each side, in the program's own memory
    outstanding    : commands under way at once
    senders        : cards whose memory is read: (0,) or, if both cards send, (0, 1)
    packed         : True when the CPU packs a strided source and unpacks a strided target, and the
                     card moves contiguous bytes
    operation      : of worker.OPERATIONS
    number         : of the point in its run; seeds its payload
    duration_ps    : the transfers are made again and again for so long; 0: once
    iterations     : so many transfers are made, at the same places again and again; 0: each once
    """

    series: str
    x: object
    source: Pattern
    target: Pattern
    outstanding: int
    senders: tuple = (0,)
    packed: bool = False
    operation: str = "put"
    number: int = 0
    duration_ps: int = 0
    iterations: int = 0

    @property
    def transfers(self) -> int:
        return self.source.transfers

    @property
    def pulls(self) -> bool:
        """True if the receiving side issues the commands."""
        return self.operation == "get"

    def issuer(self, sender: int) -> int:
        """The card that issues and times the commands for the bytes that `sender` sends."""
        return 1 - sender if self.pulls else sender

    @property
    def both_ways(self) -> bool:
        """True if bytes go in both directions at once."""
        return len(self.senders) == 2

    @property
    def issuers(self) -> tuple[int, ...]:
        return tuple(self.issuer(sender) for sender in self.senders)

    @property
    def payload(self) -> int:
        """Bytes of all transfers of one direction."""
        return self.transfers * self.source.length

    def staged(self, pattern: Pattern) -> bool:
        """True if the CPU packs or unpacks that side."""
        return self.packed and not pattern.is_contiguous

    def moved(self, pattern: Pattern) -> tuple[Pattern, int]:
        """The bytes that the card moves on that side: (pattern, its start in memory)."""
        if self.staged(pattern):
            return pattern.packed(), -(-(pattern.extent + 2 * GUARD) // LINE) * LINE
        return pattern, GUARD

    def extent(self, pattern: Pattern) -> int:
        """Bytes of memory of that side: guard, pattern, guard; for a staged side also packed bytes
        and a guard behind them.
        """
        moved, base = self.moved(pattern)
        return base + moved.extent + GUARD

    @property
    def guards(self) -> int:
        """Number of the target's bytes that may not change."""
        return self.extent(self.target) - (2 if self.staged(self.target) else 1) * self.payload

    def source_memory(self, seed: int, sender: int) -> np.ndarray:
        """The source's memory before the CPU packs: random bytes, in gaps and guards too."""
        return np.random.default_rng((seed, self.number, sender)).integers(
            0, 256, self.extent(self.source), dtype=np.uint8
        )

    def pack(self, memory: np.ndarray) -> None:
        """The source's CPU packs, before the transfers."""
        if self.staged(self.source):
            packed, base = self.moved(self.source)
            copy(self.source, memory[GUARD:], packed, memory[base:])

    def unpack(self, memory: np.ndarray) -> None:
        """The target's CPU unpacks, after the transfers."""
        if self.staged(self.target):
            packed, base = self.moved(self.target)
            copy(packed, memory[base:], self.target, memory[GUARD:])

    def expected(self, seed: int, sender: int) -> np.ndarray:
        """The expected memory of the target after the transfers."""
        memory = np.full(self.extent(self.target), FILL, dtype=np.uint8)
        source = self.source_memory(seed, sender)
        copy(self.source, source[GUARD:], self.target, memory[GUARD:])
        if self.staged(self.target):
            packed, base = self.moved(self.target)
            copy(self.source, source[GUARD:], packed, memory[base:])
        return memory


def numbered(points: Iterable[Numbered]) -> list[Numbered]:
    """The points in the order of measurement."""
    return [replace(point, number=n) for n, point in enumerate(points)]  # type: ignore[type-var]
