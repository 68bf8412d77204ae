"""Bonded lanes: markers at the sender, skew removed at the receiver; see
docs/design/bonded-link.md.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import block_layout, row_layout

# IEEE 802.3-2018, 82.2.4: the synchronisation header of data blocks and of control blocks.
DATA_BLOCK    = 0b01
CONTROL_BLOCK = 0b10

# IEEE 802.3-2018, table 82-3: octets 0 to 2 of the markers of 40GBASE-R. Octets 4 to 6 are their
# complements. Octets 3 and 7 would be a parity; here they are 0x00 and 0xff, because each part of a
# packet has a CRC.
MARKER_OCTETS = ((0x90, 0x76, 0x47), (0xf0, 0xc4, 0xe6), (0xc5, 0x65, 0x9b), (0xa2, 0x79, 0x3d))

# IEEE 802.3-2018, 82.2.7: from one marker of a lane to the next, in blocks.
MARKER_PERIOD_ROWS = 16384

# A marker that bit errors destroyed is forgiven. This number of damaged rows in succession is not, as
# with the marker lock of IEEE 802.3-2018, clause 82.
MISSES = 4

def marker(lane):
    """The 64 bits of a lane's marker, as a number; octet 0 in bits 7:0."""
    octets = [*MARKER_OCTETS[lane], 0x00]
    octets += [octet ^ 0xff for octet in octets]
    return int.from_bytes(bytes(octets), "little")

class LaneMarkers(LiteXModule):
    """Put a row of markers before the first row and then in the place of each `period`-th row.

    A row is one block for each lane. All lanes take it in the same cycle.

    Parameters
    ----------
    lanes  : 1 to 4
    period : rows from one row of markers to the next

    Attributes
    ----------
    sink   : Endpoint(row_layout(lanes)), in
    source : Endpoint(row_layout(lanes)), out   `ready` sets the pace; `valid` without a pause if
             the sink has none
    marks  : Signal(), out                      `source` has a row of markers

    Cycles: 1; a row a cycle.
    """
    def __init__(self, lanes=4, period=MARKER_PERIOD_ROWS):
        self.sink   = sink   = stream.Endpoint(row_layout(lanes))
        self.source = source = stream.Endpoint(row_layout(lanes))
        self.marks  = Signal()

        # # #

        position = Signal(max=period)  # of the next row; 0: markers
        step     = Signal()
        due      = Signal()
        self.comb += [
            step.eq(~source.valid | source.ready),
            due.eq(position == 0),
            sink.ready.eq(step & ~due),
        ]
        self.sync += If(step,
            source.valid.eq(due | sink.valid),
            self.marks.eq(due),
            If(due | sink.valid,
                If(position == period - 1, position.eq(0)).Else(position.eq(position + 1))
            ),
            If(due,
                source.header.eq(Replicate(Constant(CONTROL_BLOCK, 2), lanes)),
                source.data.eq(Cat(*[Constant(marker(n), 64) for n in range(lanes)]))
            ).Else(
                source.header.eq(sink.header),
                source.data.eq(sink.data)
            ),
        )

class LaneDeskew(LiteXModule):
    """Remove the skew of the lanes: the blocks of a row leave in the same cycle.

    Each lane drops its blocks until its marker comes, and is stored from this marker on. The
    markers of one row are written at address 0 of all lanes, so one read address serves all lanes.
    A row leaves when all lanes have a block.

    The alignment ends, and the search begins anew, when

    - a lane loses its block lock: no narrower link is formed;
    - a marker comes where no marker is expected, because a lane lost or gained blocks;
    - a lane has the marker of another lane, because the cable crosses them;
    - markers are missing in MISSES rows of markers in succession;
    - a lane's memory is full, because the skew is more than `depth - 2` blocks.

    Parameters
    ----------
    lanes  : 1 to 4
    depth  : blocks that a lane stores, a power of two
    period : rows from one row of markers to the next, at least 2*depth

    Attributes
    ----------
    sinks   : list of Endpoint(block_layout), in   without backpressure: `ready` is ignored
    locked  : Signal(lanes), in                    the lane has its block lock
    source  : Endpoint(row_layout(lanes)), out     without backpressure; no row of markers
    aligned : Signal(), out                        rows of one sender leave
    crossed : Signal(lanes), out                   one cycle: the lane had another lane's marker
    lost    : Signal(), out                        one cycle: the alignment, or an attempt, ended
    missed  : Signal(), out                        one cycle: a row of markers was damaged

    Cycles: 2 from the last block of a row to the row; a row a cycle.
    """
    def __init__(self, lanes=4, depth=32, period=MARKER_PERIOD_ROWS):
        assert depth & (depth - 1) == 0 and period >= 2*depth
        self.sinks   = sinks  = [stream.Endpoint(block_layout()) for _ in range(lanes)]
        self.locked  = Signal(lanes)
        self.source  = source = stream.Endpoint(row_layout(lanes))
        self.aligned = Signal()
        self.crossed = Signal(lanes)
        self.lost    = Signal()
        self.missed  = Signal()

        # # #

        address_bits = log2_int(depth)
        read     = Signal(address_bits + 1)  # one bit more than the address: full is not empty
        marked   = Signal(lanes)             # the lane's marker came
        holds    = Signal(lanes)             # the lane has a block
        full     = Signal(lanes)             # a block comes and has no place
        is_own   = Signal(lanes)             # the block at the read address is the lane's marker
        pop      = Signal()                  # a row leaves the memories
        position = Signal(max=period)        # of that row; 0: markers are expected
        at_start = Signal()
        slipped  = Signal()
        misses   = Signal(max=MISSES)

        # Lanes ------------------------------------------------------------------------------------
        for n, sink in enumerate(sinks):
            memory = Memory(67, depth, name=f"lane_{n}")
            write  = Signal(address_bits + 1)
            port   = memory.get_port(write_capable=True)
            out    = memory.get_port(async_read=True)
            own    = Signal()  # the block that comes is the lane's marker
            other  = Signal()
            stores = Signal()
            self.specials += memory, port, out
            control = sink.valid & (sink.header == CONTROL_BLOCK)
            self.comb += [
                own.eq(control & (sink.data == marker(n))),
                other.eq(control & Reduce("OR", [
                    sink.data == marker(m) for m in range(lanes) if m != n])) if lanes > 1 else [],
                self.crossed[n].eq(self.locked[n] & other),
                stores.eq(sink.valid & (marked[n] | own)),
                holds[n].eq(write != read),
                full[n].eq(stores & (write[:-1] == read[:-1]) & (write[-1] != read[-1])),
                port.adr.eq(write[:-1]),
                port.dat_w.eq(Cat(sink.data, sink.header, own)),
                port.we.eq(stores),
                out.adr.eq(read[:-1]),
                is_own[n].eq(out.dat_r[66]),
            ]
            self.sync += [
                source.data[64*n:64*(n + 1)].eq(out.dat_r[:64]),
                source.header[2*n:2*(n + 1)].eq(out.dat_r[64:66]),
                If(stores,
                    marked[n].eq(1),
                    write.eq(write + 1)
                ),
                If(self.lost,
                    marked[n].eq(0),
                    write.eq(0)
                ),
            ]

        # Rows -------------------------------------------------------------------------------------
        self.comb += [
            pop.eq(holds == 2**lanes - 1),
            at_start.eq(position == 0),
            slipped.eq(pop & ~at_start & (is_own != 0)),
            self.missed.eq(pop & at_start & (is_own != 2**lanes - 1)),
            self.lost.eq((self.locked != 2**lanes - 1) | (self.crossed != 0) | (full != 0) | slipped
                | (self.missed & (misses == MISSES - 1))),
        ]
        self.sync += [
            source.valid.eq(pop & ~at_start & ~self.lost),
            If(pop,
                read.eq(read + 1),
                self.aligned.eq(1),
                If(position == period - 1, position.eq(0)).Else(position.eq(position + 1)),
                If(at_start,
                    If(self.missed, misses.eq(misses + 1)).Else(misses.eq(0))
                ),
            ),
            If(self.lost,
                read.eq(0),
                self.aligned.eq(0),
                position.eq(0),
                misses.eq(0)
            ),
        ]
