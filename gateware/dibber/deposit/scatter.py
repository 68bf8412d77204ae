"""The receiving engine: write the payload of deposit packets to host memory, byte-exact."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, LANE, RIGHT, STATUS
from dibber.layouts import (FAULT_BITS, FAULT_LIST, FAULT_READ, arrival_layout, count_bits, deposit_done_layout, deposit_layout, payload_layout,
    walk_layout, write_layout)

from dibber.deposit.departures import Departures
from dibber.deposit.expected import TAG, expected_port
from dibber.deposit.landing import Landing, landing_layout
from dibber.deposit.lists import ListLookup, ListReader
from dibber.deposit.pages import PagedPieces
from dibber.deposit.regions import lookup_port
from dibber.deposit.unpacker import Unpacker
from dibber.deposit.walker import Walker
from dibber.common.places import Row
from dibber.packet.header import flag

# A packet is reported at most this many lines before its last line. The report needs this many
# cycles to become the last word of the acknowledgement, beyond the cycles that a write without
# waiting needs from its last line to the PHY and back.
REPORTED = 8

# Layout -------------------------------------------------------------------------------------------

def admitted_layout():
    """A packet after its look-up. `mine`: it answers a get, and `context` is that get's."""
    return landing_layout() + [("length", 13), ("context", 16), ("mine", 1)]

# Admission ----------------------------------------------------------------------------------------

class Admission(LiteXModule):
    """Look up a packet's region, then start its walk or refuse the packet.

    A deposit that answers a get (RESPONSE) does not need REMOTE_WRITE. Its region needs LOCAL_WRITE
    and, as owner, the endpoint of its context; and its get must be under way. The region of an
    index list must have the same owner as the walked region.

    An offset beyond the card's address width (`far`) gives an empty region: the walk fails at once.

    Parameters
    ----------
    address_bits : 64 or 32

    Attributes
    ----------
    sink     : Endpoint(deposit_layout), in
    lookup   : lookup_port(), to the region table; for the packet's region, then for its index
               list's
    expected : expected_port(), to the table of gets under way; answers with the region table
    walk     : Endpoint(walk_layout), out      for packets that are not refused and not empty
    source   : Endpoint(admitted_layout), out  every packet; `refused` with its `reason`
    enters   : Signal(), out                   one cycle for each packet: it is looked up

    Cycles: 5 from a packet to its walk, 12 with a list.
    """
    def __init__(self, address_bits=64):
        self.sink   = sink   = stream.Endpoint(deposit_layout(address_bits))
        self.walk   = walk   = stream.Endpoint(walk_layout(address_bits))
        self.source = source = stream.Endpoint(admitted_layout())
        self.enters = Signal()
        self.lookup = lookup = lookup_port()
        self.expected = expected = expected_port()

        # # #

        address  = Signal(address_bits)
        low      = Signal(address_bits)
        high     = Signal(address_bits)
        reason   = Signal(8)
        bad      = Signal()
        response = Signal()
        owned    = Signal()  # the region's owner is the endpoint whose get is answered
        allowed  = Signal()
        mine     = Signal()
        listed   = Signal()
        deep     = sink.levels[:log2_int(C.LIST)]  # number of strides
        owner    = Signal(8)
        self.list = list_ = ListLookup(address_bits)
        self.comb += [
            listed.eq(sink.levels[log2_int(C.LIST)]),
            list_.key.eq(sink.count2),
            list_.offset.eq(sink.stride2),
            list_.owner.eq(owner),
            list_.lookup.connect(
                lookup, keep={"done", "found", "base", "length", "rights", "owner"}),
            response.eq(flag(sink.flags, "RESPONSE")),
            owned.eq(lookup.owner == sink.context[log2_int(C.SLOTS):TAG]),
            allowed.eq(Mux(response,
                ((lookup.rights & RIGHT.LOCAL_WRITE) != 0) & owned & expected.granted,
                (lookup.rights & RIGHT.REMOTE_WRITE) != 0)),
            expected.context.eq(sink.context),
            expected.node.eq(sink.source),
            expected.key.eq(sink.key),
        ]
        if address_bits < 64:
            self.comb += list_.far.eq(sink.list_far)
        self.comb += bad.eq(
            (sink.length != 0) &
            (((sink.levels != 0) & (sink.block == 0)) | ((deep > 0) & (sink.count0 == 0)) |
            ((deep > 1) & (sink.count1 == 0)) | ((deep > 2) & (sink.count2 == 0))))

        self.fsm = fsm = FSM(reset_state="LOOKUP")
        fsm.act("LOOKUP",
            lookup.valid.eq(sink.valid),
            self.enters.eq(sink.valid),
            lookup.key.eq(sink.key),
            expected.valid.eq(sink.valid),
            If(sink.valid, NextState("ANSWER"))
        )
        fsm.act("ANSWER",
            NextValue(low, lookup.base),
            NextValue(high, lookup.base + lookup.length),
            *([If(sink.far, NextValue(high, 0))] if address_bits < 64 else []),
            NextValue(address, lookup.base + sink.offset),
            NextValue(reason, STATUS.OK),
            If(bad, NextValue(reason, STATUS.REMOTE_BAD_HEADER)),
            If(~allowed, NextValue(reason, STATUS.REMOTE_NOT_PERMITTED)),
            If(~lookup.found, NextValue(reason, STATUS.REMOTE_BAD_KEY)),
            NextValue(mine, response & expected.mine),
            NextValue(owner, lookup.owner),
            If(lookup.done,
                NextState("CONTEXT"),
                If(listed & (sink.length != 0), NextState("LIST"))
            )
        )
        fsm.act("LIST",
            list_.start.eq(1),
            lookup.valid.eq(list_.lookup.valid),
            lookup.key.eq(list_.lookup.key),
            NextState("LISTED")
        )
        fsm.act("LISTED",
            If(list_.done & ~list_.good & (reason == STATUS.OK),
                NextValue(reason, STATUS.REMOTE_BAD_LIST)
            ),
            If(list_.done, NextState("CONTEXT"))
        )
        fsm.act("CONTEXT",
            source.valid.eq(1),
            If(source.ready,
                sink.ready.eq((sink.length == 0) | (reason != STATUS.OK)),
                If(sink.ready, NextState("LOOKUP")).Else(NextState("WALK"))
            )
        )
        fsm.act("WALK",
            walk.valid.eq(1),
            sink.ready.eq(walk.ready),
            If(walk.ready, NextState("LOOKUP"))
        )
        self.comb += [
            walk.last.eq(1),
            walk.address.eq(address),
            walk.low.eq(low),
            walk.high.eq(high),
            *[getattr(walk, name).eq(getattr(sink, name)) for name in (
                "block", "stride0", "stride1", "stride2", "count0", "count1", "count2", "length")],
            walk.levels.eq(deep),
            walk.listed.eq(listed),
            If(listed,
                walk.stride2.eq(list_.address),
                walk.count2.eq(list_.entries)
            ),
            # Without levels the sender has added the packet's position to the offset.
            walk.skip.eq(Mux(sink.levels == 0, 0, sink.skip)),
            source.node.eq(sink.source),
            source.incarnation.eq(sink.incarnation),
            source.psn.eq(sink.psn),
            source.final.eq(flag(sink.flags, "LAST")),
            source.alone.eq(sink.length == sink.notice_length),
            source.notice.eq(flag(sink.flags, "NOTICE")),
            source.interrupt.eq(flag(sink.flags, "INTERRUPT")),
            source.response.eq(response),
            source.endpoint.eq(sink.notice_endpoint),
            source.value.eq(sink.notice),
            source.total.eq(sink.notice_length),
            source.key.eq(sink.key),
            source.refused.eq(reason != STATUS.OK),
            source.reason.eq(reason),
            source.length.eq(sink.length),
            source.context.eq(sink.context),
            source.mine.eq(mine),
        ]

# Scatter ------------------------------------------------------------------------------------------

class ScatterEngine(LiteXModule):
    """Write the payload of BULK packets to their regions, and report each packet when it is stored.

    A packet may be cut short between any two blocks. So the write of a piece starts when the
    piece's last block is present and good. The first line of a block comes only when the whole
    block is good (for the last block: the whole packet), so the lines of a write may then follow
    the block's lines directly.

    A refused packet is drained. Bytes before the first byte outside the region have been written by
    then. A packet that is cut short is not reported.

    Parameters
    ----------
    data_width   : 64, 128 or 256
    walked       : dict, further parameters of `PagedPieces`
    listed       : dict, further parameters of `ListReader`
    address_bits : 64 or 32

    Attributes
    ----------
    deposits    : Endpoint(deposit_layout), in    in the order of their payload
    payload     : Endpoint(payload_layout), in    blocks of BLOCK_BYTES, each without gaps between
                  its lines; or a single line with `error`, which is no block
    lookup      : lookup_port(), to the region table
    expected    : expected_port(), to the table of gets under way
    writes      : Endpoint(write_layout), out     the packet's last write has `mark`
    marked      : Signal(), in                    the PHY has taken a write with `mark`
    max_payload : Signal(13), in                  bytes a write, a power of two
    pages       : PagedPieces   the core connects its `directory`, `reads`, `completions` and
                  `extended_tags`
    lists       : ListReader    the core connects its `reads`, `completions`, `departures` and
                  `extended_tags`, and its `pages` to the page finder
    done        : Endpoint(deposit_done_layout), out
    open        : Signal(), out                   see `Landing`
    stored      : Record, out    `line`: a line of payload leaves for host memory or is drained;
                  `last`: it is the last line of its packet. In the order of the packets
    arrivals    : Endpoint(arrival_layout), out
    departures  : Departures    of packets

    Cycles: 12 from a packet to its first line if its payload is present and `skip` is 0 (otherwise
    see `Skip`); then one line a cycle, also from piece to piece; at most 3 between packets.
    """
    def __init__(self, data_width, walked={}, listed={}, address_bits=64):
        self.deposits    = stream.Endpoint(deposit_layout(address_bits))
        self.payload     = payload = stream.Endpoint(payload_layout(data_width))
        self.lookup      = lookup_port()
        self.expected    = expected_port()
        self.writes      = writes = stream.Endpoint(write_layout(data_width))
        self.marked      = Signal()
        self.max_payload = Signal(13)
        self.done        = stream.Endpoint(deposit_done_layout())
        self.open        = Signal()
        self.stored      = Record([("line", 1), ("last", 1)])
        self.arrivals    = stream.Endpoint(arrival_layout())

        # # #

        width        = data_width//8
        bits         = log2_int(width)
        block_bits   = bits_for(C.PACKET_PAYLOAD//C.BLOCK_BYTES)  # bits of their number
        write_params = [("address", address_bits), ("length", 13), ("mark", 1), ("tail", 1)]

        # Header: the next packet is looked up and set up while this one is written.
        self.walker    = walker    = Walker(address_bits)
        self.pages     = pages     = PagedPieces(data_width, address_bits, **walked)
        self.lists     = lists     = ListReader(data_width, address_bits=address_bits, **listed)
        self.admission = admission = Admission(address_bits)
        self.packets   = packets   = Row(admitted_layout(), 4)
        self.landing   = landing   = Landing(LANE.BULK)
        self.comb += [
            walker.max_piece.eq(self.max_payload),
            self.deposits.connect(admission.sink),
            admission.lookup.connect(self.lookup),
            admission.expected.connect(self.expected, omit={"spoil", "spoilt"}),
            admission.walk.connect(walker.sink),
            walker.order.connect(lists.sink),
            lists.source.connect(walker.base),
            lists.drop.eq(walker.drop),
            walker.source.connect(pages.sink),
            admission.source.connect(packets.sink),
            landing.marked.eq(self.marked),
            landing.done.connect(self.done),
            self.open.eq(landing.open),
            landing.arrivals.connect(self.arrivals),
        ]

        # Payload: room for two of the longest packets, so that the longest piece always fits.
        # `ends` holds the number of blocks of each packet that is complete in `store`.
        self.store    = store    = stream.SyncFIFO(
            payload_layout(data_width), 2*C.PACKET_PAYLOAD//width, buffered=True)
        self.ends     = ends     = stream.SyncFIFO([("blocks", block_bits), ("error", 1)], 16)
        self.unpacker = unpacker = Unpacker(data_width, write_params)
        arrived       = Signal(block_bits)  # blocks begun of the packet that is coming in
        blocks_begun  = Signal(block_bits)
        line_in_block = Signal(max=C.BLOCK_BYTES//width)  # of the line in its block
        taken         = Signal()
        self.comb += [
            store.source.connect(unpacker.sink),
            self.stored.line.eq(store.source.valid & store.source.ready),
            self.stored.last.eq(store.source.last),
            payload.connect(store.sink, omit={"valid", "ready"}),
            taken.eq(payload.valid & payload.ready),
            payload.ready.eq(store.sink.ready & ends.sink.ready),
            store.sink.valid.eq(taken),
            blocks_begun.eq(arrived + ((line_in_block == 0) & ~payload.error)),
            ends.sink.valid.eq(taken & payload.last),
            ends.sink.blocks.eq(blocks_begun),
            ends.sink.error.eq(payload.error),
        ]
        self.sync += If(taken,
            arrived.eq(Mux(payload.last, 0, blocks_begun)),
            line_in_block.eq(Mux(payload.last, 0, line_in_block + 1)),
        )

        # Pieces: each becomes orders to the unpacker, one for each line of memory.
        packet           = packets.source
        orders           = unpacker.orders
        piece            = pages.source
        address          = Signal(address_bits)
        length           = Signal(13)
        last_offset      = Signal(13)  # offset in the packet of this piece's last byte
        next_last_offset = Signal(13)  # the same of the next piece
        piece_valid      = Signal()
        last_piece       = Signal()
        error            = Signal()
        fault            = Signal(FAULT_BITS)
        lane             = Signal(bits)
        bytes_left       = Signal(13)
        # This order is the last of its piece. It and `count` are computed one order ahead.
        last_order       = Signal()
        count            = Signal(count_bits(data_width))
        bytes_left_after = Signal(13)
        first_line_room  = Signal(count_bits(data_width))   # bytes in the first line of the next piece
        blocks_present   = Signal(block_bits)  # blocks of the packet that are in `store`
        piece_present    = Signal()    # all blocks of the piece are
        may_write        = Signal()    # registered: the piece is present
        cannot_write     = Signal()    # the packet has ended before the piece's last block
        line             = Signal()    # an order of this piece is taken
        load             = Signal()
        writing          = Signal()
        drop             = Signal()
        self.comb += [
            blocks_present.eq(Mux(ends.source.valid, ends.source.blocks, arrived)),
            next_last_offset.eq(last_offset + piece.length),
            piece_present.eq(
                blocks_present > Mux(load, next_last_offset, last_offset)[
                    log2_int(C.BLOCK_BYTES):log2_int(C.PACKET_PAYLOAD)]),
            bytes_left_after.eq(bytes_left - count),
            first_line_room.eq(width - piece.address[:bits]),
            orders.valid.eq(
                drop | (writing & piece_valid & ~error & may_write & landing.sink.ready)),
            orders.last.eq(drop | (last_piece & last_order)),
            orders.lane.eq(lane),
            orders.count.eq(count),
            orders.address.eq(address),
            orders.length.eq(length),
            orders.mark.eq(last_piece),
            orders.tail.eq(last_order),
            line.eq(orders.valid & orders.ready & ~drop),
            load.eq(writing & (~piece_valid | (line & last_order & ~last_piece))),
        ]
        self.sync += [
            # `may_write` and `cannot_write` hold for the whole piece: blocks are only added.
            may_write.eq(piece_present),
            cannot_write.eq(ends.source.valid & ~piece_present),
            If(line,
                lane.eq(0),
                bytes_left.eq(bytes_left_after),
                last_order.eq(bytes_left_after <= width),
                count.eq(Mux(bytes_left_after <= width, bytes_left_after, width)),
                If(last_order, piece_valid.eq(0)),
            ),
            If(load,
                piece_valid.eq(piece.valid),
                address.eq(piece.address),
                length.eq(piece.length),
                lane.eq(piece.address),
                bytes_left.eq(piece.length),
                last_order.eq(piece.length <= first_line_room),
                count.eq(Mux(piece.length <= first_line_room, piece.length, first_line_room)),
                last_piece.eq(piece.last),
                error.eq(piece.error),
                fault.eq(piece.fault),
                If(piece.valid, last_offset.eq(next_last_offset))
            ),
            # An order that drops has no bytes. It follows a bad piece, and one that is not written.
            If(~writing | (piece_valid & (error | cannot_write)), count.eq(0)),
        ]

        # Packets.
        refused   = Signal()
        reason    = Signal(8)
        report    = Signal()
        reported  = Signal()    # the packet was reported
        cut_short = Signal()    # the packet ended with `error`
        self.fsm = fsm = FSM(reset_state="OPEN")
        fsm.act("OPEN",
            NextValue(reported, 0),
            NextValue(last_offset, 2**len(last_offset) - 1),
            NextValue(refused, packet.refused),
            NextValue(reason, packet.reason),
            If(packet.valid,
                If(packet.length == 0,
                    NextState("REPORT")
                ).Elif(packet.refused,
                    NextState("DROP")
                ).Else(
                    NextState("WRITE")
                )
            )
        )
        fsm.act("WRITE",
            writing.eq(1),
            piece.ready.eq(load),
            If(piece_valid & error,
                NextValue(piece_valid, 0),
                NextValue(refused, 1),
                Case(fault, {
                    FAULT_READ: NextValue(reason, STATUS.REMOTE_READ_ERROR),
                    FAULT_LIST: NextValue(reason, STATUS.REMOTE_BAD_LIST),
                    "default":  NextValue(reason, STATUS.REMOTE_BOUNDS)}),
                If(last_piece,
                    NextState("DROP")
                ).Else(
                    NextState("ABORT")
                )
            ).Elif(piece_valid & cannot_write,
                # The payload is shorter than the header says, and the link has not cut it short.
                NextValue(piece_valid, 0),
                NextValue(refused, 1),
                NextValue(reason, STATUS.REMOTE_BAD_HEADER),
                If(last_piece,
                    NextState("DROP")
                ).Else(
                    NextState("ABORT")
                )
            ).Elif(line & last_piece,
                # From the first line of its last piece on, nothing can stop the packet's writing.
                report.eq(~reported & (bytes_left <= REPORTED*width)),
                NextValue(reported, reported | report),
                If(last_order,
                    ends.source.ready.eq(1),
                    packet.ready.eq(1),
                    NextState("OPEN")
                )
            )
        )
        fsm.act("ABORT",
            walker.abort.eq(~pages.ending),
            piece.ready.eq(1),
            If(piece.valid & piece.last, NextState("DROP"))
        )
        fsm.act("DROP",
            drop.eq(1),
            If(orders.ready, NextState("END"))
        )
        fsm.act("END",
            ends.source.ready.eq(1),
            If(ends.source.valid,
                NextState("REPORT"),
                If(ends.source.error,
                    cut_short.eq(1),
                    packet.ready.eq(1),
                    NextState("OPEN")
                )
            )
        )
        fsm.act("REPORT",
            report.eq(1),
            packet.ready.eq(landing.sink.ready),
            If(landing.sink.ready, NextState("OPEN"))
        )
        self.comb += [
            packet.connect(landing.sink, keep={name for name, _ in landing_layout()}),
            landing.sink.valid.eq(report),
            landing.sink.marked.eq(writing),
            landing.sink.refused.eq(refused),
            landing.sink.reason.eq(reason),
            # A refused packet spoils the rest of the answer that it belongs to.
            self.expected.spoil.eq(report & landing.sink.ready & refused & packet.mine),
            self.expected.spoilt.eq(packet.context),
        ]

        # A packet has departed when it is in memory, or when it was cut short.
        self.departures = Departures(admission.enters,
            [landing.landed, cut_short], 32)

        # Writes.
        lines = unpacker.source
        self.comb += [
            lines.connect(writes, keep={"valid", "ready", "dat", "address", "length", "mark"}),
            writes.last.eq(lines.tail),
        ]
