"""The scrambler of 64b/66b for rows of several lanes: IEEE 802.3-2018, 49.2.6 and 82.2.5.

All bits of a row are one sequence, the first bit of lane 0 first. Headers are not scrambled. Each
bit that leaves the scrambler is the bit that comes, XOR the bits that left 39 and 58 before it.
"""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import xor

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import row_layout

TAPS  = (39, 58)
STATE = max(TAPS)

def scrambled_terms(bits):
    """For each of the next `bits` bits that leave: the set of what its XOR has.

    Number n >= 0 is bit n that comes; -n is the bit that left n before them.
    """
    terms = {-n: {-n} for n in range(1, STATE + 1)}
    for n in range(bits):
        terms[n] = reduce(set.symmetric_difference, [{n}, *[terms[n - tap] for tap in TAPS]])
    return [terms[n] for n in range(bits)]

class RowScrambler(LiteXModule):
    """Scramble rows, so that each lane has enough edges for the clock recovery.

    Parameters
    ----------
    lanes : 1 to 4

    Attributes
    ----------
    sink, source : Endpoint(row_layout(lanes))

    Cycles: 1; a row a cycle.
    """
    def __init__(self, lanes=4):
        self.sink   = sink   = stream.Endpoint(row_layout(lanes))
        self.source = source = stream.Endpoint(row_layout(lanes))

        # # #

        # Not 0: then a link that sends zeros from reset on would have no edge.
        left = Signal(STATE, reset=2**STATE - 1)  # bits that left, the last one highest
        bits = Cat(*[
            reduce(xor, [sink.data[n] if n >= 0 else left[STATE + n] for n in sorted(terms)])
            for terms in scrambled_terms(64*lanes)])
        row  = Signal(64*lanes)
        self.comb += [
            row.eq(bits),
            sink.ready.eq(~source.valid | source.ready),
        ]
        self.sync += If(sink.ready,
            source.valid.eq(sink.valid),
            source.header.eq(sink.header),
            source.data.eq(row),
            If(sink.valid, left.eq(Cat(left, row)[-STATE:]))
        )

class RowDescrambler(LiteXModule):
    """Undo RowScrambler. It needs no start: after 58 bits it has the sender's state. So the first
    row after the alignment is wrong, and a row behind a lost one.

    A wrong bit that comes makes three wrong bits.

    Parameters
    ----------
    lanes : 1 to 4

    Attributes
    ----------
    sink, source : Endpoint(row_layout(lanes))   without backpressure: `ready` is ignored

    Cycles: 1; a row a cycle.
    """
    def __init__(self, lanes=4):
        self.sink   = sink   = stream.Endpoint(row_layout(lanes))
        self.source = source = stream.Endpoint(row_layout(lanes))

        # # #

        came = Signal(STATE)  # bits that came, the last one highest
        bits = Cat(came, sink.data)
        self.sync += [
            source.valid.eq(sink.valid),
            source.header.eq(sink.header),
            source.data.eq(reduce(xor, [
                bits[STATE - tap:STATE - tap + 64*lanes] for tap in (0, *TAPS)])),
            If(sink.valid, came.eq(bits[-STATE:])),
        ]
