"""Which pieces of a walk are read with one request: element reads or covering reads, the cheaper.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import FAULT_BITS, piece_layout
from dibber.common.places import Skid

# Constants ----------------------------------------------------------------------------------------

UNIT       = 64  # bytes: completions may end at its multiples (PCIe Base 3.0, 2.3.1.1, RCB)
HEADER     = 20  # bytes of header, 3 DWs, and framing, of a request and of a completion
PICKS      = 64  # of one read at most
HEAD         = 64  # bytes at a transfer's start: the shortest completion that may be
HEAD_REQUEST = 64  # bytes: the longest read of those

# Layout -------------------------------------------------------------------------------------------

def pick_layout():
    """Bytes that a read brings and that are wanted; those of a read in the order of the walk.

    `offset` is the first byte's place in its unit, `length` how many follow each other in memory.
    The unit is the read's first, then the one in which the pick before ended, or with `advance` the
    one behind that. With the `final` pick of a read come its `address`, its `span` in bytes, and in
    how many `units` it lies.

    `error`, `fault`: as in `piece_layout`; there is nothing to read. `last` on the transfer's final
    pick.
    """
    return stream.EndpointDescription(
        [("offset", 6), ("length", 13), ("advance", 1), ("final", 1), ("error", 1), ("fault", FAULT_BITS),
         ("address", 64), ("span", 13), ("units", 7)])

# Cover --------------------------------------------------------------------------------------------

class Cover(LiteXModule):
    """Merge pieces of one transfer into reads, and say which bytes of each read are wanted.

    A read takes 20 bytes of PCIe upstream, header and framing, and downstream 20 for each unit of
    64 bytes that it touches, and its bytes, rounded out to dwords. Pieces of a and b dwords with g
    dwords between them take

                              upstream    downstream
        apart                    40       40 + 4 (a + b)
        together in one unit     20       20 + 4 (a + g + b)
        together in two units    20       40 + 4 (a + g + b)

    Reads alone never take more upstream than downstream, so downstream decides: together when g <=
    5 in one unit, in two when no byte lies between. But where other data leaves the card as fast as
    PCIe takes it (`crowded`), upstream is dear too and the sum decides: g <= 10 in one unit, 5 in
    two. Where a walk ascends each decision depends on one gap alone, so no other choice of reads
    takes less. A host that answers with longer completions takes less for the same reads.

    A piece is merged when it begins in the unit in which the one before it ends, near what is to be
    read of that unit, on either side of it or within it; or where that one ends; or in the unit
    behind. So overlapping blocks are covered too, and descending ones that lie within a unit. What
    is merged lies between two multiples of `max_request`; a read has 64 picks at most.

    A read is passed on when it is whole, and the link takes its bytes as they come. So the first
    HEAD bytes of a transfer are read by HEAD_REQUEST bytes at most, and those up to four times as
    many by twice that: what follows is here when they have left. A transfer takes three requests
    more for it.

    No byte outside the region is read: a read begins with the first byte of one of its pieces and
    ends with the last byte of one; the walker has found both in the region, and a region is an
    interval.

    Parameters
    ----------
    patience : cycles without a new piece after which a read leaves without it
    window   : cycles, a power of two: `crowded` counts when it was true in so many more cycles than
               not

    Attributes
    ----------
    sink        : Endpoint(piece_layout), in     pieces do not cross 4 KiB
    source      : Endpoint(pick_layout), out
    max_request : Signal(13), in    bytes, a power of two from 128 to 4096
    crowded     : Signal(), in      a write waits to leave the card in this cycle
    ending      : Signal(), out     a transfer's last piece is in here

    Cycles: a piece a cycle; 4 from a piece that is the transfer's last, or that the next one does
    not join, to its pick; `patience` more when none follows.
    """
    def __init__(self, patience=4, window=128):
        self.sink        = sink   = stream.Endpoint(piece_layout())
        self.pipe        = pipe   = Skid(pick_layout())
        self.source      = pipe.source
        self.max_request = Signal(13)
        self.crowded     = Signal()
        self.ending      = Signal()

        # # #

        # Whether a pick is taken depends on all that it needs, and decides on the pieces: it is
        # registered here.
        source = pipe.sink

        # Which direction limits.
        crowd    = Signal(max=2*window)
        upstream = Signal()
        self.comb += upstream.eq(crowd[-1])
        self.sync += [
            If(self.crowded & (crowd != 2*window - 1), crowd.eq(crowd + 1)),
            If(~self.crowded & (crowd != 0), crowd.eq(crowd - 1)),
        ]

        # Ends: the low bits of a piece's last byte, and of the byte behind it.
        end = stream.Endpoint([("address", 64), ("length", 13), ("error", 1), ("fault", FAULT_BITS), ("to", 12), ("behind", 13)])
        self.comb += sink.ready.eq(~end.valid | end.ready)
        self.sync += If(sink.ready,
            end.valid.eq(sink.valid),
            end.last.eq(sink.last),
            end.address.eq(sink.address),
            end.length.eq(sink.length),
            end.error.eq(sink.error),
            end.fault.eq(sink.fault),
            end.to.eq(sink.address[:12] + sink.length - 1),
            end.behind.eq(sink.address[:12] + sink.length),
        )

        # Neighbours: how a piece lies to the one before it, whose values stay here when it has
        # left.
        piece = stream.Endpoint([("address", 64), ("length", 13), ("error", 1), ("fault", FAULT_BITS), ("to", 12), ("behind", 13),
            ("near", 1), ("next", 1), ("joined", 1), ("level", 1), ("crosses", 1)])
        outside = Signal(12)  # bits in which addresses of one read are equal
        related = Signal()
        level   = Signal()  # it begins in the unit in which the one before ended
        next_   = Signal()  # it begins in the unit behind that one
        behind  = Signal(7)
        crosses = Signal()  # it ends in another than it begins
        after   = Signal(reset=1)  # the piece before was its transfer's last
        start   = 4*HEAD
        head    = Signal()         # the piece before has bytes of the transfer's first HEAD
        early   = Signal(reset=1)  # no more than `start` bytes of it come before the piece
        passed  = Signal(max=start + 1)  # while that is so, how many
        count   = Signal(max=start + HEAD + 1)
        self.comb += [
            count.eq(passed + Mux(end.length > HEAD, HEAD, end.length)),
            outside.eq(~(self.max_request - 1) | Mux(early, ~(2*HEAD_REQUEST - 1), 0) | Mux(head, ~(HEAD_REQUEST - 1), 0)),
            related.eq(~after & ~end.error & (end.address[12:] == piece.address[12:]) &
                (((end.to ^ piece.address[:12]) & outside) == 0)),
            level.eq(end.address[6:12] == piece.to[6:]),
            behind.eq(piece.to[6:] + 1),
            next_.eq(end.address[6:12] == behind),
            crosses.eq(end.to[6:] != end.address[6:12]),
            end.ready.eq(~piece.valid | piece.ready),
        ]
        self.sync += If(end.ready,
            piece.valid.eq(end.valid),
            If(end.valid,
                after.eq(end.last),
                head.eq(passed < HEAD),
                early.eq(end.last | (early & (count <= start))),
                If(early, passed.eq(count)),
                If(end.last, passed.eq(0)),
                piece.last.eq(end.last),
                piece.address.eq(end.address),
                piece.length.eq(end.length),
                piece.error.eq(end.error),
                piece.fault.eq(end.fault),
                piece.to.eq(end.to),
                piece.behind.eq(end.behind),
                piece.near.eq(related & level),
                piece.next.eq(related & next_),
                piece.joined.eq(related & (end.address[:12] == piece.behind)),
                piece.level.eq(level),
                piece.crosses.eq(crosses),
            )
        )

        # Read: from `address` to `to`, with the pick that is not out yet.
        valid   = Signal()
        last    = Signal()
        error   = Signal()
        fault   = Signal(FAULT_BITS)
        address = Signal(64)
        to      = Signal(12)
        single  = Signal()  # it lies in one unit
        offset  = Signal(6)
        length  = Signal(13)
        advance = Signal()
        picks   = Signal(max=PICKS)  # that are out

        # Dwords of its last unit from which, and up to which, a piece is near. One that begins in
        # the unit behind saves no completion.
        one   = HEADER//4 + 1
        two   = 2*HEADER//4 + 1
        reach = Signal(4)
        above = Signal(6)
        below = Signal(6)
        begin = Signal(5)
        close = Signal()
        near  = Signal()
        join  = Signal()
        quiet = Signal(max=patience + 1)
        free  = Signal()
        push  = Signal()
        take  = Signal()
        self.comb += [
            reach.eq(Mux(upstream & piece.level, two, one)),
            begin.eq(Cat(piece.address[2:6], ~piece.level)),
            above.eq(to[2:6] + reach),
            below.eq(piece.to[2:6] + reach),
            near.eq((piece.near | (piece.next & upstream)) & (picks != PICKS - 1) & (begin <= above) &
                (~piece.level | ~single | piece.crosses | (address[2:6] <= below))),
            join.eq(piece.joined | near),
            close.eq(last | Mux(piece.valid, ~join, quiet == patience)),
            free.eq(~source.valid | source.ready),
            push.eq(valid & free & (close | (piece.valid & ~piece.joined))),
            take.eq(piece.valid & (~valid | push | piece.joined)),
            piece.ready.eq(take),
            self.ending.eq((end.valid & end.last) | (piece.valid & piece.last) | (valid & last) |
                (source.valid & source.last) | (pipe.source.valid & pipe.source.last)),
        ]
        self.sync += [
            If(~valid | piece.valid,
                quiet.eq(0)
            ).Elif(quiet != patience,
                quiet.eq(quiet + 1)
            ),
            If(push,
                picks.eq(picks + 1),
                If(close, valid.eq(0), picks.eq(0))
            ),
            If(take,
                valid.eq(1),
                last.eq(piece.last),
                error.eq(piece.error),
                fault.eq(piece.fault),
                If(valid & join,
                    If(piece.crosses | ~piece.level, single.eq(0)),
                    If(piece.crosses | ~piece.level | (piece.to[:6] > to[:6]), to.eq(piece.to)),
                    If(single & piece.level & (piece.address[:6] < address[:6]),
                        address[:6].eq(piece.address[:6])
                    )
                ).Else(
                    single.eq(~piece.crosses),
                    to.eq(piece.to),
                    address.eq(piece.address),
                ),
                If(valid & piece.joined,
                    length.eq(length + piece.length)
                ).Else(
                    offset.eq(piece.address[:6]),
                    length.eq(piece.length),
                    advance.eq(valid & join & ~piece.level)
                )
            ),
            If(free,
                source.valid.eq(push),
                source.last.eq(last),
                source.final.eq(close),
                source.error.eq(error),
                source.fault.eq(fault),
                source.offset.eq(offset),
                source.length.eq(length),
                source.advance.eq(advance),
                source.address.eq(address),
                source.span.eq(to - address[:12] + 1),
                source.units.eq(to[6:] - address[6:12] + 1),
            )
        ]
