# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""One side of a transfer."""

from dataclasses import dataclass

from dibber.interface.description import C
from libdibber.binding import CWalk


@dataclass(frozen=True)
class Walk:
    """Blocks of `block` bytes at strides.

    Attributes
    ----------
    key    : region key
    block  : bytes of the innermost, contiguous block
    offset : bytes from the region's start to the first block
    levels : ((count, stride in bytes), …), innermost first, up to three
    """
    key    : int
    block  : int
    offset : int   = 0
    levels : tuple = ()

    @property
    def length(self):
        """Bytes of the transfer."""
        length = self.block
        for count, _ in self.levels:
            length *= count
        return length

    def as_c(self):
        if len(self.levels) > C.LEVELS:
            raise ValueError(f"{len(self.levels)} stride levels, {C.LEVELS} are possible")
        walk = CWalk(key=self.key, block=self.block, offset=self.offset, levels=len(self.levels))
        for i, (count, stride) in enumerate(self.levels):
            walk.count[i], walk.stride[i] = count, stride
        return walk

    def blocks(self):
        """Offset of each block, in the order of the transfer: what the card does, for tests to compare with."""
        offsets = [self.offset]
        for count, stride in self.levels:
            offsets = [o + i*stride for i in range(count) for o in offsets]
        return offsets

    @classmethod
    def of(cls, key, array, base):
        """The walk over a NumPy array whose region starts at address `base`, in the array's C order.

        Axes that lie without a gap behind each other become one block or one level. Raises ValueError when more
        than three levels are left.
        """
        block, levels = array.itemsize, []
        for count, stride in zip(reversed(array.shape), reversed(array.strides)):
            if count == 1:
                continue
            if not levels and stride == block:
                block *= count
            elif levels and stride == levels[-1][0]*levels[-1][1]:
                levels[-1] = (levels[-1][0]*count, levels[-1][1])
            else:
                levels.append((count, stride))
        if len(levels) > C.LEVELS:
            raise ValueError(f"an array of this shape needs {len(levels)} stride levels, {C.LEVELS} are possible")
        return cls(key, block, array.__array_interface__["data"][0] - base, tuple(levels))
