# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""What a walk means, in plain Python: the golden model of `dibber.deposit.walker`."""

from dataclasses import dataclass

ADDRESS = 2**64


@dataclass(frozen=True)
class Walk:
    """The fields of `layouts.walk_layout`; strides are Python integers of either sign."""
    address : int
    low     : int
    high    : int
    block   : int
    strides : tuple  # innermost first, one for each level
    counts  : tuple
    length  : int
    skip    : int = 0

    @property
    def levels(self):
        return len(self.strides)

    def fields(self):
        """The walk as a dictionary by the names of `walk_layout`."""
        values = {name: getattr(self, name)
            for name in ("address", "low", "high", "block", "levels", "length", "skip")}
        for i in range(3):
            values[f"stride{i}"] = (self.strides[i] if i < self.levels else 0) % ADDRESS
            values[f"count{i}"]  = self.counts[i] if i < self.levels else 0
        return values


@dataclass(frozen=True)
class Piece:
    address : int
    length  : int
    last    : bool = False
    error   : bool = False


def blocks(walk):
    """Start address of each block of the whole nest, in order; without end for no levels."""
    indices = [0]*walk.levels
    while True:
        yield (walk.address + sum(i*s for i, s in zip(indices, walk.strides))) % ADDRESS
        for level in range(walk.levels):
            indices[level] += 1
            if indices[level] < walk.counts[level]:
                break
            indices[level] = 0
        else:
            return


def runs(walk):
    """[address, length] of the contiguous runs from `skip` on; None at the end: the nest was too short."""
    if walk.levels == 0:
        return [[(walk.address + walk.skip) % ADDRESS, walk.length]]
    result    = []
    first, at = divmod(walk.skip, walk.block)
    left      = walk.length
    inner     = walk.counts[0]
    for n, address in enumerate(blocks(walk)):
        if n < first:
            continue
        size   = min(walk.block - at, left)
        joined = bool(result) and n % inner and walk.strides[0] == walk.block
        if joined:
            result[-1][1] += size
        else:
            result.append([(address + at) % ADDRESS, size])
        at    = 0
        left -= size
        if left == 0:
            return result
    return result + [None]


def pieces(walk, max_piece):
    """What the walker gives for `walk`: a list of Piece, the last one marked."""
    result = []
    for run in runs(walk):
        if run is None:
            return result + [Piece(0, 0, True, True)]
        address, left = run
        while left:
            room   = max_piece - address % max_piece
            whole  = room if (address + room) % 4096 == 0 else max_piece - address % 4
            length = left if left <= whole else room
            if not walk.low <= address <= address + length <= walk.high:
                return result + [Piece(0, 0, True, True)]
            result.append(Piece(address, length))
            address += length
            left    -= length
    result[-1] = Piece(result[-1].address, result[-1].length, True)
    return result


def touched(walk):
    """Address of every byte of the transfer in stream order, one by one, bounds ignored."""
    if walk.levels == 0:
        return [(walk.address + walk.skip + i) % ADDRESS for i in range(walk.length)]
    stream = ((b + i) % ADDRESS for b in blocks(walk) for i in range(walk.block))
    result = []
    for n, address in enumerate(stream):
        if walk.skip <= n < walk.skip + walk.length:
            result.append(address)
        elif n >= walk.skip + walk.length:
            break
    return result
