"""One point of a benchmark: which transfers, and what memory must hold afterwards."""

# SPDX-License-Identifier: BSD-2-Clause

from dataclasses import dataclass, replace

import numpy as np

from dibber_cli.bench.pattern import Pattern, copy

GUARD = 4096  # bytes before the first and behind the last transfer, and around packed bytes
FILL = 0xEE  # what the target's memory holds before
LINE = 64  # bytes; a program aligns what it packs into


@dataclass(frozen=True)
class Point:
    """Transfers from a source to a target; a value of a series.

    Attributes
    ----------
    series, x      : of the report
    source, target : Pattern on either side, in the program's own memory
    outstanding    : commands under way at once
    senders        : whose memory is read: (0,) or, with both cards sending, (0, 1)
    packed         : True when the CPU packs a strided source and unpacks a strided target, and the
                     card moves contiguous bytes
    operation      : of worker.OPERATIONS
    number         : of the point in its run; seeds its payload
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

    @property
    def transfers(self):
        return self.source.transfers

    @property
    def pulls(self):
        """True when the side that wants the bytes asks for them."""
        return self.operation == "get"

    def issuer(self, sender):
        """Which card has the commands, and takes the time, of the bytes that `sender` sends."""
        return 1 - sender if self.pulls else sender

    @property
    def both_ways(self):
        """True when bytes go in both directions at once."""
        return len(self.senders) == 2

    @property
    def issuers(self):
        return tuple(self.issuer(sender) for sender in self.senders)

    @property
    def payload(self):
        """Bytes of all transfers of one direction."""
        return self.transfers * self.source.length

    def staged(self, pattern):
        """True when the CPU packs or unpacks that side."""
        return self.packed and not pattern.is_contiguous

    def moved(self, pattern):
        """What the card moves on that side: (pattern, where it begins in memory)."""
        if self.staged(pattern):
            return pattern.packed(), -(-(pattern.extent + 2 * GUARD) // LINE) * LINE
        return pattern, GUARD

    def extent(self, pattern):
        """Bytes of memory of that side: guard, pattern, guard; for a staged one packed bytes and a
        guard behind them.
        """
        moved, base = self.moved(pattern)
        return base + moved.extent + GUARD

    @property
    def guards(self):
        """Bytes of the target's memory in which nothing may change."""
        return self.extent(self.target) - (2 if self.staged(self.target) else 1) * self.payload

    def source_memory(self, seed, sender):
        """What the source's memory holds before the CPU packs: random bytes, in gaps and guards
        too.
        """
        return np.random.default_rng((seed, self.number, sender)).integers(
            0, 256, self.extent(self.source), dtype=np.uint8
        )

    def pack(self, memory):
        """What the source's CPU does before the transfers."""
        if self.staged(self.source):
            packed, base = self.moved(self.source)
            copy(self.source, memory[GUARD:], packed, memory[base:])

    def unpack(self, memory):
        """What the target's CPU does after them."""
        if self.staged(self.target):
            packed, base = self.moved(self.target)
            copy(packed, memory[base:], self.target, memory[GUARD:])

    def expected(self, seed, sender):
        """What the target's memory must hold when all is done."""
        memory = np.full(self.extent(self.target), FILL, dtype=np.uint8)
        source = self.source_memory(seed, sender)
        copy(self.source, source[GUARD:], self.target, memory[GUARD:])
        if self.staged(self.target):
            packed, base = self.moved(self.target)
            copy(self.source, source[GUARD:], packed, memory[base:])
        return memory


def numbered(points):
    """The points as they are measured, one after the other."""
    return [replace(point, number=n) for n, point in enumerate(points)]
