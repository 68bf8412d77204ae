# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The transfers of the stride benchmark: which bytes go where, and what memory must hold afterwards."""

from dataclasses import dataclass

import numpy as np

from dibber_cli.bench.bound import Side
from libdibber import Walk

STRIDES   = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64)    # elements: Kurmann and Stricker, EMMSEC 1998
ELEMENT   = 8                                                   # bytes
ELEMENTS  = 64*1024//ELEMENT
TRANSFERS = 4                                                   # under way at once
GUARD     = 4096                                                # bytes before the first and behind the last transfer

# Which side is strided.
SERIES = {
    "put-dst-strided"  : (False, True),
    "put-src-strided"  : (True,  False),
    "put-both-strided" : (True,  True),
}
FILL = 0xee


@dataclass(frozen=True)
class Point:
    """One point: TRANSFERS transfers of ELEMENTS elements, one behind the other in memory on each side.

    series : of SERIES
    stride : elements
    number : of the point in the run; seeds its payload
    """
    series : str
    stride : int
    number : int

    @property
    def length(self):
        """Payload bytes of all transfers."""
        return TRANSFERS*ELEMENTS*ELEMENT

    def _stride(self, side):
        return self.stride*ELEMENT if SERIES[self.series][side] else ELEMENT

    def span(self, side):
        """Bytes from one transfer's start to the next's on the source (0) or target (1) side."""
        return ELEMENTS*self._stride(side)

    def extent(self, side):
        """Bytes of memory that the point uses, guards included."""
        return 2*GUARD + TRANSFERS*self.span(side)

    def walk(self, side, key, transfer):
        offset = GUARD + transfer*self.span(side)
        if self._stride(side) == ELEMENT:
            return Walk(key, ELEMENTS*ELEMENT, offset)
        return Walk(key, ELEMENT, offset, ((ELEMENTS, self._stride(side)),))

    def side(self, side, address):
        """The first transfer as the bound sees it, memory beginning at bus address `address`."""
        return Side(ELEMENT, ELEMENTS, self._stride(side), address + GUARD)

    def source(self, seed):
        """What the source's memory holds: random bytes, in gaps and guards too."""
        return np.random.default_rng((seed, self.number)).integers(0, 256, self.extent(0), dtype=np.uint8)

    def _elements(self, memory, side):
        """The elements in `memory`, in the order of the transfers, as a view."""
        inner = memory[GUARD:self.extent(side) - GUARD]
        return inner.reshape(TRANSFERS*ELEMENTS, self._stride(side))[:, :ELEMENT]

    def expected(self, seed):
        """What the target's memory must hold afterwards."""
        memory = np.full(self.extent(1), FILL, dtype=np.uint8)
        self._elements(memory, 1)[:] = self._elements(self.source(seed), 0)
        return memory


def points(series=tuple(SERIES), strides=STRIDES):
    """All points, in the order in which they are measured."""
    pairs = [(s, x) for s in series for x in strides]
    return [Point(s, x, n) for n, (s, x) in enumerate(pairs)]
