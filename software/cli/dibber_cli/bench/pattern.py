"""Places of the bytes of a benchmark's transfers on one side."""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from libdibber import List, Walk
from libdibber.late import np

from dibber_cli.bench.bound import Side


@dataclass(frozen=True)
class Pattern:
    """Memory layout of one side of a point: `transfers` times blocks at strides, or such a nest at
    each place of a list.

    Attributes
    ----------
    block     : bytes of the innermost, contiguous block
    levels    : ((count, stride in bytes), …), innermost first; strides are positive
    span      : bytes from one transfer's first byte to the next one's
    transfers : their number
    offset    : bytes from the start of memory to the first transfer; odd ones test alignment
    entries   : of an index list: bytes from a transfer's first byte, not negative; () without a
                list
    """

    block: int
    levels: tuple
    span: int
    transfers: int = 1
    offset: int = 0
    entries: tuple = ()

    @classmethod
    def contiguous(cls, length: int, transfers: int = 1, offset: int = 0) -> Pattern:
        return cls(length, (), length, transfers, offset)

    @classmethod
    def strided(
        cls, element: int, count: int, stride: int, transfers: int = 1, offset: int = 0
    ) -> Pattern:
        """`count` elements of `element` bytes, `stride` bytes apart; contiguous if that leaves no
        gap.
        """
        if stride == element:
            return cls.contiguous(element * count, transfers, offset)
        return cls(element, ((count, stride),), count * stride, transfers, offset)

    @classmethod
    def indexed(
        cls, element: int, places: Iterable[int], span: int, transfers: int = 1, offset: int = 0
    ) -> Pattern:
        """An element of `element` bytes at each of `places`, which are counted in elements."""
        return cls(
            element, (), span, transfers, offset, tuple(element * int(place) for place in places)
        )

    @property
    def is_contiguous(self) -> bool:
        return not self.levels and not self.entries

    @property
    def length(self) -> int:
        """Payload bytes of one transfer."""
        return self.block * math.prod(count for count, _ in self.levels) * max(1, len(self.entries))

    @property
    def extent(self) -> int:
        """Bytes from the start of memory to the end of the last transfer, gaps included."""
        reach = (
            max(self.entries, default=0)
            + sum((count - 1) * stride for count, stride in self.levels)
            + self.block
        )
        return self.offset + max(
            (self.transfers - 1) * self.span + reach, self.transfers * self.span
        )

    def packed(self) -> Pattern:
        """The same payload without gaps: the packed buffer of a program."""
        return Pattern.contiguous(self.length, self.transfers)

    def walk(
        self, key: int, base: int, transfer: int, list_key: int = 0, list_offset: int = 0
    ) -> Walk:
        """One transfer for libdibber; memory begins `base` bytes after the region. Of the list:
        where it lies.
        """
        places = List(list_key, len(self.entries), list_offset) if self.entries else None
        return Walk(key, self.block, base + self.offset + transfer * self.span, self.levels, places)

    def side(self, address: int) -> Side:
        """The first transfer for the bound; memory begins at bus address `address`."""
        return Side(self.block, self.levels, address + self.offset, self.entries)

    def view(self, memory: np.ndarray, transfer: int) -> np.ndarray:
        """The payload of one transfer in `memory`, in its order, as an array that can be written.
        Not of a list.
        """
        outer = tuple(reversed(self.levels))
        return np.lib.stride_tricks.as_strided(
            memory[self.offset + transfer * self.span :],
            (*(count for count, _ in outer), self.block),
            (*(stride for _, stride in outer), 1),
        )

    def blocks(self) -> np.ndarray:
        """Offset of each block of the first transfer, in the order of the transfer."""
        offsets = np.array([self.offset])
        for count, stride in self.levels:
            offsets = (np.arange(count)[:, None] * stride + offsets).ravel()
        return (np.array(self.entries)[:, None] + offsets).ravel() if self.entries else offsets

    def _bytes(self, transfer: int) -> np.ndarray:
        """Offset of each byte of one transfer, in its order."""
        return ((self.blocks() + transfer * self.span)[:, None] + np.arange(self.block)).ravel()

    def take(self, memory: np.ndarray, transfer: int) -> np.ndarray:
        """The payload of one transfer in `memory`, in its order."""
        return (
            memory[self._bytes(transfer)]
            if self.entries
            else self.view(memory, transfer).reshape(-1)
        )

    def store(self, memory: np.ndarray, transfer: int, payload: np.ndarray) -> None:
        """Write the payload of one transfer into `memory`."""
        if self.entries:
            memory[self._bytes(transfer)] = payload
        else:
            view = self.view(memory, transfer)
            view[...] = payload.reshape(view.shape)


def copy(
    source: Pattern, source_memory: np.ndarray, target: Pattern, target_memory: np.ndarray
) -> None:
    """Do the work of the transfers: copy the payload of `source` to the places of `target`."""
    for n in range(source.transfers):
        target.store(target_memory, n, source.take(source_memory, n))
