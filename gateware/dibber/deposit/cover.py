"""Cover: merge pieces of a walk into read requests, where this costs less of the PCIe link."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import FAULT_BITS, piece_layout
from dibber.common.places import Skid

# Constants ----------------------------------------------------------------------------------------

UNIT       = 64  # bytes: completions may end at its multiples (PCIe Base 3.0, 2.3.1.1, RCB)
HEADER     = 20  # bytes: header (3 DWs) and framing of a request or of a completion
PICKS      = 64  # largest number of picks of one read
HEAD         = 64  # bytes at the start of a transfer that use short reads (shortest completion)
HEAD_REQUEST = 64  # bytes: the longest read for them

# Layout -------------------------------------------------------------------------------------------

def pick_layout():
    """A pick: wanted bytes of a read, consecutive in memory. The picks of a read are in walk order.

    offset  : position of the first byte in its 64-byte unit
    length  : bytes
    advance : the pick starts in the unit after the one in which the previous pick ended; otherwise
              in the same unit. The first pick of a read starts in the read's first unit
    final   : last pick of its read. `address`, `span` (bytes) and `units` (64-byte units that the
              read touches) are valid with it
    error, fault : as in `piece_layout`; there is nothing to read
    last    : on the transfer's final pick
    """
    return stream.EndpointDescription(
        [("offset", 6), ("length", 13), ("advance", 1), ("final", 1), ("error", 1),
         ("fault", FAULT_BITS), ("address", 64), ("span", 13), ("units", 7)])

# Cover --------------------------------------------------------------------------------------------

class Cover(LiteXModule):
    """Merge the pieces of one transfer into reads, and list the wanted bytes of each read (picks).

    On PCIe a read costs 20 bytes upstream (header and framing). Downstream it costs 20 bytes for
    each 64-byte unit that it touches, plus its bytes, rounded out to DWs. Two pieces of a and b DWs
    with g DWs between them cost:

                              upstream    downstream
        apart                    40       40 + 4 (a + b)
        together in one unit     20       20 + 4 (a + g + b)
        together in two units    20       40 + 4 (a + g + b)

    A stream of reads never costs more upstream than downstream. So downstream decides: merge if g
    <= 5 in one unit, and in two units only if no byte lies between the pieces. If writes already
    fill the upstream direction (`crowded`), the sum of both decides: g <= 10 in one unit, 5 in two.
    In an ascending walk each decision depends on one gap only, so no other choice of reads is
    cheaper. Longer completions from the host make the same reads cheaper still.

    A piece is merged in three cases: it starts where the previous piece ends; it starts in the unit
    in which that piece ends, near or within the bytes to read there; or it starts in the next unit.
    So overlapping blocks are merged too, and descending blocks within a unit. Merged pieces lie
    between two multiples of `max_request`. A read has at most 64 picks.

    A read is passed on when it is complete, while the link takes bytes at its own rate. So a
    transfer starts with short reads: its first HEAD bytes use reads of at most HEAD_REQUEST bytes,
    and the bytes up to four times HEAD use twice this size. The next data then arrives before these
    bytes have left. This costs three more requests a transfer.

    No byte outside the region is read: a read starts with the first byte of one of its pieces and
    ends with the last byte of one. The walker has found both in the region, and a region is an
    interval.

    Parameters
    ----------
    patience : cycles without a new piece after which a read is issued
    window   : cycles, a power of two: `crowded` counts as set when it was true in so many more
               cycles than false

    Attributes
    ----------
    sink        : Endpoint(piece_layout), in     pieces do not cross 4 KiB
    source      : Endpoint(pick_layout), out
    max_request : Signal(13), in    bytes, a power of two from 128 to 4096
    crowded     : Signal(), in      a write waits to leave the card in this cycle
    ending      : Signal(), out     this block holds the last piece of a transfer

    Cycles: one piece a cycle; 4 from a piece to its pick if it is the transfer's last piece or the
    next piece is not merged; `patience` more if no piece follows.
    """
    def __init__(self, patience=4, window=128):
        self.sink        = sink   = stream.Endpoint(piece_layout())
        self.pipe        = pipe   = Skid(pick_layout())
        self.source      = pipe.source
        self.max_request = Signal(13)
        self.crowded     = Signal()
        self.ending      = Signal()

        # # #

        # Skid buffer: `ready` depends on the whole pick and would decide about the pieces in the
        # same cycle.
        source = pipe.sink

        # Which direction of PCIe is the bottleneck: a saturating counter of `crowded`.
        upstream_load = Signal(max=2*window)
        upstream      = Signal()
        self.comb += upstream.eq(upstream_load[-1])
        self.sync += [
            If(self.crowded & (upstream_load != 2*window - 1), upstream_load.eq(upstream_load + 1)),
            If(~self.crowded & (upstream_load != 0), upstream_load.eq(upstream_load - 1)),
        ]

        # Ends: the low bits of the address of a piece's last byte (`to`) and of the next byte.
        end = stream.Endpoint(
            [
                ("address", 64), ("length", 13), ("error", 1), ("fault", FAULT_BITS), ("to", 12),
                ("behind", 13)])
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

        # Neighbours: position of a piece relative to the previous one. The previous piece's values
        # stay in `piece` after it has left.
        piece = stream.Endpoint(
            [("address", 64), ("length", 13), ("error", 1), ("fault", FAULT_BITS), ("to", 12),
             ("behind", 13), ("near", 1), ("next", 1), ("joined", 1), ("level", 1), ("crosses", 1)])
        equal_bits      = Signal(12)  # address bits in which all pieces of a read are equal
        related         = Signal()
        same_unit       = Signal()  # the piece starts in the unit in which the previous one ended
        next_unit       = Signal()  # it starts in the unit after that
        unit_after      = Signal(7)
        crosses_unit    = Signal()  # it ends in another unit than it starts
        starts_transfer = Signal(reset=1)  # the previous piece was its transfer's last one
        early_bytes     = 4*HEAD
        in_head         = Signal()          # the previous piece has some of the first HEAD bytes
        early        = Signal(reset=1)   # at most `early_bytes` of the transfer precede the piece
        bytes_before    = Signal(max=early_bytes + 1)  # their number, while `early`
        count           = Signal(max=early_bytes + HEAD + 1)
        self.comb += [
            count.eq(bytes_before + Mux(end.length > HEAD, HEAD, end.length)),
            equal_bits.eq(
                ~(self.max_request - 1) | Mux(early, ~(2*HEAD_REQUEST - 1), 0) |
                Mux(in_head, ~(HEAD_REQUEST - 1), 0)),
            related.eq(~starts_transfer & ~end.error & (end.address[12:] == piece.address[12:]) &
                (((end.to ^ piece.address[:12]) & equal_bits) == 0)),
            same_unit.eq(end.address[6:12] == piece.to[6:]),
            unit_after.eq(piece.to[6:] + 1),
            next_unit.eq(end.address[6:12] == unit_after),
            crosses_unit.eq(end.to[6:] != end.address[6:12]),
            end.ready.eq(~piece.valid | piece.ready),
        ]
        self.sync += If(end.ready,
            piece.valid.eq(end.valid),
            If(end.valid,
                starts_transfer.eq(end.last),
                in_head.eq(bytes_before < HEAD),
                early.eq(end.last | (early & (count <= early_bytes))),
                If(early, bytes_before.eq(count)),
                If(end.last, bytes_before.eq(0)),
                piece.last.eq(end.last),
                piece.address.eq(end.address),
                piece.length.eq(end.length),
                piece.error.eq(end.error),
                piece.fault.eq(end.fault),
                piece.to.eq(end.to),
                piece.behind.eq(end.behind),
                piece.near.eq(related & same_unit),
                piece.next.eq(related & next_unit),
                piece.joined.eq(related & (end.address[:12] == piece.behind)),
                piece.level.eq(same_unit),
                piece.crosses.eq(crosses_unit),
            )
        )

        # Read: from `address` to `read_end`, with the pick that has not been sent yet.
        valid    = Signal()
        last     = Signal()
        error    = Signal()
        fault    = Signal(FAULT_BITS)
        address  = Signal(64)
        read_end = Signal(12)
        one_unit = Signal()  # the read lies in one unit
        offset   = Signal(6)
        length   = Signal(13)
        advance  = Signal()
        picks    = Signal(max=PICKS)  # picks already sent

        # A piece is near if it starts or ends within a gap limit, in DWs of the read's last unit. A
        # piece in the next unit saves no completion, only a request.
        gap_one_way   = HEADER//4 + 1
        gap_both_ways = 2*HEADER//4 + 1
        gap_limit     = Signal(4)
        near_end      = Signal(6)
        near_start    = Signal(6)
        piece_start   = Signal(5)
        read_ends     = Signal()
        near          = Signal()
        join          = Signal()
        idle_cycles   = Signal(max=patience + 1)
        free          = Signal()
        push          = Signal()
        take          = Signal()
        self.comb += [
            gap_limit.eq(Mux(upstream & piece.level, gap_both_ways, gap_one_way)),
            piece_start.eq(Cat(piece.address[2:6], ~piece.level)),
            near_end.eq(read_end[2:6] + gap_limit),
            near_start.eq(piece.to[2:6] + gap_limit),
            near.eq(
                (
                    piece.near |
                    (piece.next & upstream)) & (picks != PICKS - 1) & (piece_start <= near_end) &
                (~piece.level | ~one_unit | piece.crosses | (address[2:6] <= near_start))),
            join.eq(piece.joined | near),
            read_ends.eq(last | Mux(piece.valid, ~join, idle_cycles == patience)),
            free.eq(~source.valid | source.ready),
            push.eq(valid & free & (read_ends | (piece.valid & ~piece.joined))),
            take.eq(piece.valid & (~valid | push | piece.joined)),
            piece.ready.eq(take),
            self.ending.eq((end.valid & end.last) | (piece.valid & piece.last) | (valid & last) |
                (source.valid & source.last) | (pipe.source.valid & pipe.source.last)),
        ]
        self.sync += [
            If(~valid | piece.valid,
                idle_cycles.eq(0)
            ).Elif(idle_cycles != patience,
                idle_cycles.eq(idle_cycles + 1)
            ),
            If(push,
                picks.eq(picks + 1),
                If(read_ends, valid.eq(0), picks.eq(0))
            ),
            If(take,
                valid.eq(1),
                last.eq(piece.last),
                error.eq(piece.error),
                fault.eq(piece.fault),
                If(valid & join,
                    If(piece.crosses | ~piece.level, one_unit.eq(0)),
                    If(piece.crosses | ~piece.level | (piece.to[:6] > read_end[:6]),
                        read_end.eq(piece.to)
                    ),
                    If(one_unit & piece.level & (piece.address[:6] < address[:6]),
                        address[:6].eq(piece.address[:6])
                    )
                ).Else(
                    one_unit.eq(~piece.crosses),
                    read_end.eq(piece.to),
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
                source.final.eq(read_ends),
                source.error.eq(error),
                source.fault.eq(fault),
                source.offset.eq(offset),
                source.length.eq(length),
                source.advance.eq(advance),
                source.address.eq(address),
                source.span.eq(read_end - address[:12] + 1),
                source.units.eq(read_end[6:] - address[6:12] + 1),
            )
        ]
