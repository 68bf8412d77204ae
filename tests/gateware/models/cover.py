"""Which pieces are read together, decided by what they cost: the golden model of
`dibber.deposit.cover`.
"""

# SPDX-License-Identifier: BSD-2-Clause

from dataclasses import dataclass, field

from tests.gateware.models.walk import Walk

UNIT = 64
PICKS = 64
HEADER = 20  # bytes of a request and of a completion: 3 DWs and framing
HEAD = 64  # bytes of a transfer's start
HEAD_REQUEST = 64  # bytes: the longest read of those; twice that up to four times as far


@dataclass
class Read:
    """Bytes [begin, end) of memory; `picks` are (address, length)."""

    begin: int
    end: int
    picks: list = field(default_factory=list)
    last: bool = False
    error: bool = False


def down(begin, end):
    """Bytes of PCIe that the completions of a read take, where each ends with its unit."""
    units = (end - 1) // UNIT - begin // UNIT + 1
    dwords = (end - 1) // 4 - begin // 4 + 1
    return HEADER * units + 4 * dwords


def cost(begin, end, upstream):
    """Bytes of PCIe that decide: those downstream, and the request where upstream limits."""
    return down(begin, end) + (HEADER if upstream else 0)


def merged(read, begin, end, max_request, upstream):
    """The read that brings [begin, end) too, or None: they are read apart."""
    before = sum(read.picks[-1])
    both = Read(min(read.begin, begin), max(read.end, end))
    if both.begin // max_request != (both.end - 1) // max_request:
        return None
    if begin == before:
        both.picks = read.picks[:-1] + [(read.picks[-1][0], read.picks[-1][1] + end - begin)]
        return both
    ahead = begin // UNIT - (before - 1) // UNIT
    if ahead not in ((0, 1) if upstream else (0,)) or len(read.picks) == PICKS:
        return None
    if cost(both.begin, both.end, upstream) > cost(read.begin, read.end, upstream) + cost(
        begin, end, upstream
    ):
        return None
    both.picks = read.picks + [(begin, end - begin)]
    return both


def cover(pieces, max_request, upstream=False, head=HEAD):
    """The reads of a list of `walk.Piece`, several transfers one behind the other.

    upstream : PCIe limits upstream, not downstream alone
    head     : bytes of a transfer's start; a piece of it is read with the next one within
               HEAD_REQUEST bytes, and one behind it, up to four times as far, within twice that
    """
    result, read, before, passed = [], None, 0, 0
    for piece in pieces:
        begin, end = piece.address, piece.address + piece.length
        limit = (
            HEAD_REQUEST
            if before < head
            else min(2 * HEAD_REQUEST, max_request)
            if passed <= 4 * head
            else max_request
        )
        both = merged(read, begin, end, limit, upstream) if read and not piece.error else None
        before, passed = passed, 0 if piece.last else passed + min(piece.length, HEAD)
        if both is None:
            read = Read(begin, end, [(begin, end - begin)])
            result.append(read)
        else:
            read = result[-1] = both
        read.last, read.error = piece.last, piece.error
        if piece.last:
            read = None
    return result


def random_walk(random):
    """Strides near the block, of both signs, so that much is merged and much is not."""
    levels = random.randrange(1, 4)
    block = random.choice([1, 2, 3, 4, 7, 8, 8, 8, 16, 24, 100, 200])
    counts = tuple(random.choice([1, 2, 3, 5, 9, 20]) for _ in range(levels))
    strides = tuple(
        random.choice([block, 2 * block, random.randint(-80, 80), random.randint(-300, 300)])
        for _ in range(levels)
    )
    length = block
    for count in counts:
        length *= count
    address = 2**40 + random.randrange(8192)
    low, high = (0, 2**63) if random.random() < 0.8 else (address - 500, address + 500)
    return Walk(address, low, high, block, strides, counts, min(length, 1500))


def element_walk(block, stride, count, address=2**33):
    return Walk(address, 0, 2**63, block, (stride,), (count,), block * count)
