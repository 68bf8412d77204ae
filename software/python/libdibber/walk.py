"""One side of a transfer."""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dibber.interface.description import C

from libdibber.arguments import some_bytes, whole
from libdibber.binding import CSide, CWalk
from libdibber.late import np


@dataclass(frozen=True)
class List:
    """Place of an index list: `count` entries of 8 bytes, the first of them `offset` bytes from
    the start of region `key`.
    """

    key: int
    count: int
    offset: int = 0


@dataclass(frozen=True)
class Walk:
    """Blocks of `block` bytes at strides, or such blocks at each entry of a list.

    Attributes
    ----------
    key    : region key
    block  : bytes of the innermost, contiguous block
    offset : bytes from the region's start to the first block, or to the origin of the entries
    levels : ((count, stride in bytes), …), innermost first, up to three; up to two with a list
    list   : a List, or None
    """

    key: int
    block: int
    offset: int = 0
    levels: tuple[tuple[int, int], ...] = ()
    list: List | None = None

    @property
    def nest(self) -> int:
        """Bytes at each entry; without a list: bytes of the transfer."""
        return self.block * math.prod(count for count, _ in self.levels)

    @property
    def length(self) -> int:
        """Bytes of the transfer."""
        return self.nest * self.list.count if self.list else self.nest

    def as_c(self) -> CWalk:
        """struct dib_walk: the nest at each entry, if there is a list. Raises ValueError for values
        that do not fit into it.
        """
        if len(self.levels) > C.LEVELS:
            raise ValueError(f"{len(self.levels)} stride levels, {C.LEVELS} are possible")
        walk = CWalk(
            key=whole("key", self.key),
            block=whole("block", self.block),
            offset=whole("offset", self.offset),
            levels=len(self.levels),
        )
        for i, (count, stride) in enumerate(self.levels):
            walk.count[i], walk.stride[i] = whole("count", count), whole("stride", stride)
        return walk

    def as_side(self) -> CSide:
        """struct dib_side."""
        if self.list is None:
            return CSide(self.as_c())
        whole("list count", self.list.count)
        return CSide(
            self.as_c(), whole("list offset", self.list.offset), whole("list key", self.list.key)
        )

    def blocks(self, entries: Iterable[int] = (0,)) -> Sequence[int]:
        """Offset of each block, in the order of the transfer. Tests compare the card with it.

        entries : the entries of the list
        """
        offsets = [self.offset]
        for count, stride in self.levels:
            offsets = [o + i * stride for i in range(count) for o in offsets]
        return [o + entry for entry in entries for o in offsets]

    @classmethod
    def of(cls, key: int, array: np.ndarray, base: int) -> Walk:
        """The walk over a NumPy array whose region starts at address `base`, in the array's C
        order.

        Adjacent axes without a gap between them become one block or one level. Raises
        ValueError when more than three levels are left, or when the array has no bytes.
        """
        some_bytes("array", array)
        block = array.itemsize
        levels: list[tuple[int, int]] = []
        for count, stride in zip(reversed(array.shape), reversed(array.strides)):
            if count == 1:
                continue
            if not levels and stride == block:
                block *= count
            elif levels and stride == levels[-1][0] * levels[-1][1]:
                levels[-1] = (levels[-1][0] * count, levels[-1][1])
            else:
                levels.append((count, stride))
        if len(levels) > C.LEVELS:
            raise ValueError(
                f"an array of this shape needs {len(levels)} stride levels, {C.LEVELS} are possible"
            )
        return cls(key, block, array.__array_interface__["data"][0] - base, tuple(levels))
