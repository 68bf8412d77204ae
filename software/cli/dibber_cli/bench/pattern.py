# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Where the bytes of a benchmark's transfers lie on one side."""

from dataclasses import dataclass

import numpy as np

from numpy.lib.stride_tricks import as_strided

from dibber_cli.bench.bound import Side
from libdibber import Walk


@dataclass(frozen=True)
class Pattern:
    """`transfers` times blocks at strides, as one side of a point has them in memory.

    Attributes
    ----------
    block     : bytes of the innermost, contiguous block
    levels    : ((count, stride in bytes), …), innermost first; strides are positive
    span      : bytes from one transfer's first byte to the next one's
    transfers : how many there are
    offset    : bytes from the start of memory to the first transfer; odd ones test alignment
    """
    block     : int
    levels    : tuple
    span      : int
    transfers : int = 1
    offset    : int = 0

    @classmethod
    def contiguous(cls, length, transfers=1, offset=0):
        return cls(length, (), length, transfers, offset)

    @classmethod
    def strided(cls, element, count, stride, transfers=1, offset=0):
        """`count` elements of `element` bytes, `stride` bytes apart; one behind the other when that leaves no gap."""
        if stride == element:
            return cls.contiguous(element*count, transfers, offset)
        return cls(element, ((count, stride),), count*stride, transfers, offset)

    @property
    def is_contiguous(self):
        return not self.levels

    @property
    def length(self):
        """Payload bytes of one transfer."""
        length = self.block
        for count, _ in self.levels:
            length *= count
        return length

    @property
    def extent(self):
        """Bytes from the start of memory to the end of the last transfer, gaps included."""
        reach = sum((count - 1)*stride for count, stride in self.levels) + self.block
        return self.offset + max((self.transfers - 1)*self.span + reach, self.transfers*self.span)

    def packed(self):
        """The same payload without gaps: what a program packs it into."""
        return Pattern.contiguous(self.length, self.transfers)

    def walk(self, key, base, transfer):
        """One transfer for libdibber; memory begins `base` bytes after the region."""
        return Walk(key, self.block, base + self.offset + transfer*self.span, self.levels)

    def side(self, address):
        """The first transfer for the bound; memory begins at bus address `address`."""
        return Side(self.block, self.levels, address + self.offset)

    def view(self, memory, transfer):
        """The payload of one transfer in `memory`, in the order of the transfer, as an array that can be written."""
        outer = tuple(reversed(self.levels))
        return as_strided(memory[self.offset + transfer*self.span:], (*(count for count, _ in outer), self.block),
                          (*(stride for _, stride in outer), 1))

    def blocks(self):
        """Offset of each block of the first transfer, in the order of the transfer."""
        offsets = np.array([self.offset])
        for count, stride in self.levels:
            offsets = (np.arange(count)[:, None]*stride + offsets).ravel()
        return offsets


def copy(source, source_memory, target, target_memory):
    """Do what the transfers do: put the payload of `source` where `target` has it."""
    for n in range(source.transfers):
        view = target.view(target_memory, n)
        view[...] = source.view(source_memory, n).reshape(view.shape)
