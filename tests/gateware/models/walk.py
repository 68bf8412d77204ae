"""What a walk means, in plain Python: the golden model of `dibber.deposit.walker`."""

# SPDX-License-Identifier: BSD-2-Clause

from dataclasses import dataclass
from itertools import product

# Faults of an error piece.
READ, LIST = 1, 2


@dataclass(frozen=True)
class Walk:
    """The fields of `layouts.walk_layout`; strides are Python integers of either sign.

    `entries`: those of an index list, up to the end of its region, which lies at `place`; None in
    it is one that cannot be read. `bits` are those of an address.
    """

    address: int
    low: int
    high: int
    block: int
    strides: tuple  # innermost first, one for each level
    counts: tuple
    length: int
    skip: int = 0
    entries: tuple = None
    place: int = 0
    bits: int = 64

    @property
    def addresses(self):
        return 2**self.bits

    @property
    def levels(self):
        return len(self.strides)

    def fields(self):
        """The walk as a dictionary by the names of `walk_layout`."""
        values = {
            name: getattr(self, name)
            for name in ("address", "low", "high", "block", "levels", "length", "skip")
        }
        for i in range(3):
            values[f"stride{i}"] = (self.strides[i] if i < self.levels else 0) % self.addresses
            values[f"count{i}"] = self.counts[i] if i < self.levels else 0
        values["listed"] = int(self.entries is not None)
        if self.entries is not None:
            values["stride2"], values["count2"] = self.place, len(self.entries)
        return values

    def needed(self):
        """First entry of the list that the walk needs, and how many; as if the list had no end."""
        size = self.block
        for count in self.counts:
            size *= count
        first = self.skip // size
        return first, min((self.skip + self.length - 1) // size, 2**32 - 1) - first + 1


@dataclass(frozen=True)
class Fault:
    number: int


@dataclass(frozen=True)
class Piece:
    address: int
    length: int
    last: bool = False
    error: bool = False
    fault: int = 0


def blocks(walk):
    """Start address of each block of the whole nest, in order. In place of those that there are
    not, the fault of the list's entry.
    """
    for entry in (0,) if walk.entries is None else walk.entries:
        fault = (
            READ
            if entry is None
            else 0
            if walk.bits < 64 and not -walk.addresses // 2 <= entry < walk.addresses // 2
            else None
        )
        for indices in product(*map(range, reversed(walk.counts))):
            offset = sum(i * s for i, s in zip(reversed(indices), walk.strides))
            yield (
                (walk.address + entry + offset) % walk.addresses if fault is None else Fault(fault)
            )


def runs(walk):
    """[address, length] of the contiguous runs from `skip` on; behind them a number if the nest was
    too short: the fault.
    """
    if walk.levels == 0 and walk.entries is None:
        return [[(walk.address + walk.skip) % walk.addresses, walk.length]]
    result = []
    first, at = divmod(walk.skip, walk.block)
    left = walk.length
    inner = walk.counts[0] if walk.levels else 1
    for n, address in enumerate(blocks(walk)):
        if n < first:
            continue
        if isinstance(address, Fault):
            return result + [address.number]
        size = min(walk.block - at, left)
        joined = bool(result) and n % inner and walk.strides[0] == walk.block
        if joined:
            result[-1][1] += size
        else:
            result.append([(address + at) % walk.addresses, size])
        at = 0
        left -= size
        if left == 0:
            return result
    return result + [0 if walk.entries is None else LIST]


def pieces(walk, max_piece):
    """What the walker gives for `walk`: a list of Piece, the last one marked."""
    result = []
    for run in runs(walk):
        if isinstance(run, int):
            return result + [Piece(0, 0, True, True, run)]
        address, left = run
        while left:
            room = max_piece - address % max_piece
            whole = room if (address + room) % 4096 == 0 else max_piece - address % 4
            length = left if left <= whole else room
            if not walk.low <= address <= address + length <= walk.high:
                return result + [Piece(0, 0, True, True)]
            result.append(Piece(address, length))
            address += length
            left -= length
    result[-1] = Piece(result[-1].address, result[-1].length, True)
    return result


def touched(walk):
    """Address of every byte of the transfer in stream order, one by one, bounds ignored."""
    if walk.levels == 0 and walk.entries is None:
        return [(walk.address + walk.skip + i) % walk.addresses for i in range(walk.length)]
    stream = ((b + i) % walk.addresses for b in blocks(walk) for i in range(walk.block))
    result = []
    for n, address in enumerate(stream):
        if walk.skip <= n < walk.skip + walk.length:
            result.append(address)
        elif n >= walk.skip + walk.length:
            break
    return result
