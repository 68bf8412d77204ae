"""The receiving engine: from deposit packets to byte-exact writes of host memory."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, LANE, RIGHT, STATUS
from dibber.layouts import (FAULT_BITS, FAULT_LIST, FAULT_READ, arrival_layout, deposit_done_layout, deposit_layout, payload_layout,
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

# Lines from the report of a packet to its last: as many cycles as there are from a report to the
# last word of its acknowledgement, less those from the last line of a write that does not wait to
# the PHY and back.
REPORTED = 8

# Layout -------------------------------------------------------------------------------------------

def admitted_layout():
    """A packet that was looked up. `mine`: it is of an answer that its `context` waits for."""
    return landing_layout() + [("length", 13), ("context", 16), ("mine", 1)]

# Admission ----------------------------------------------------------------------------------------

class Admission(LiteXModule):
    """Look a packet's region up, and start its walk or refuse it.

    A deposit that answers a get needs no REMOTE_WRITE, but the right LOCAL_WRITE, the endpoint of
    its context as the region's owner, and that its get is under way. The region of an index list
    has the same owner as the walked one.

    What is too far for the card's addresses lies in no region: its walk leaves it at once.

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
        owned    = Signal()  # by the endpoint whose get it answers
        allowed  = Signal()
        mine     = Signal()
        listed   = Signal()
        deep     = sink.levels[:log2_int(C.LIST)]  # strides
        owner    = Signal(8)
        self.list = list_ = ListLookup(address_bits)
        self.comb += [
            listed.eq(sink.levels[log2_int(C.LIST)]),
            list_.key.eq(sink.count2),
            list_.offset.eq(sink.stride2),
            list_.owner.eq(owner),
            list_.lookup.connect(lookup, keep={"done", "found", "base", "length", "rights", "owner"}),
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
        self.comb += bad.eq((sink.length != 0) & (((sink.levels != 0) & (sink.block == 0)) | ((deep > 0) & (sink.count0 == 0)) |
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
            If(list_.done & ~list_.good & (reason == STATUS.OK), NextValue(reason, STATUS.REMOTE_BAD_LIST)),
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
            # Without levels the sender has added the packet's place to the offset.
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
    """Write the payload of lane BULK's packets where they say, and report each when it has landed.

    A packet may be cut short between any two blocks, so a write starts when the last block of its
    piece is good. Blocks come whole, the last one only in a packet that is good to its end: a
    block's first line says all that, and the write's lines follow those of the block as they come.
    A packet that is refused is drained; what was inside the region before the first byte outside
    has been written by then. A packet that is cut short reports nothing.

    Parameters
    ----------
    data_width : 64 or 128
    walked     : dict, further parameters of `PagedPieces`
    listed     : dict, of `ListReader`
    address_bits : 64 or 32

    Attributes
    ----------
    deposits    : Endpoint(deposit_layout), in    in the order of their payload
    payload     : Endpoint(payload_layout), in    blocks of BLOCK_BYTES, the lines of each without
                  gaps; or a line with
                                                  `error`, which is no block
    lookup      : lookup_port(), to the region table
    expected    : expected_port(), to the table of gets under way
    writes      : Endpoint(write_layout), out     the packet's last one with `mark`
    marked      : Signal(), in                    a write with `mark` was taken by the PHY
    max_payload : Signal(13), in                  bytes a write, a power of two
    pages       : PagedPieces                     its `directory`, `reads`, `completions` and
                  `extended_tags` are the
                                                  core's to connect
    lists       : ListReader                      its `reads`, `completions`, `departures` and
                  `extended_tags` likewise,
                                                  its `pages` to the page finder
    done        : Endpoint(deposit_done_layout), out
    open        : Signal(), out                   see `Landing`
    stored      : Record, out                     `line`: a line of payload leaves for host memory,
                  or is drained; `last`: the
                                                  last one of its packet. In the packets' order
    arrivals    : Endpoint(arrival_layout), out
    departures  : Departures of packets

    Cycles: 12 from a packet to its first line when its payload is here and `skip` is 0 (see
    `Skip`); then a line a cycle, also from piece to piece; at most 3 between packets.
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

        width = data_width//8
        bits  = log2_int(width)
        blocks = bits_for(C.PACKET_PAYLOAD//C.BLOCK_BYTES)  # bits of their number
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

        # Payload: two of the longest packets, so that the longest piece always fits, and how many
        # blocks each packet has that is here to its end.
        self.store    = store    = stream.SyncFIFO(
            payload_layout(data_width), 2*C.PACKET_PAYLOAD//width, buffered=True)
        self.ends     = ends     = stream.SyncFIFO([("blocks", blocks), ("error", 1)], 16)
        self.unpacker = unpacker = Unpacker(data_width, write_params)
        arrived = Signal(blocks)  # of the packet that is coming in: blocks that have begun
        total   = Signal(blocks)
        place   = Signal(max=C.BLOCK_BYTES//width)  # of the line in its block
        taken   = Signal()
        self.comb += [
            store.source.connect(unpacker.sink),
            self.stored.line.eq(store.source.valid & store.source.ready),
            self.stored.last.eq(store.source.last),
            payload.connect(store.sink, omit={"valid", "ready"}),
            taken.eq(payload.valid & payload.ready),
            payload.ready.eq(store.sink.ready & ends.sink.ready),
            store.sink.valid.eq(taken),
            total.eq(arrived + ((place == 0) & ~payload.error)),
            ends.sink.valid.eq(taken & payload.last),
            ends.sink.blocks.eq(total),
            ends.sink.error.eq(payload.error),
        ]
        self.sync += If(taken,
            arrived.eq(Mux(payload.last, 0, total)),
            place.eq(Mux(payload.last, 0, place + 1)),
        )

        # Pieces: each as orders for its lines.
        packet  = packets.source
        orders  = unpacker.orders
        piece   = pages.source
        address = Signal(address_bits)
        length  = Signal(13)
        upto    = Signal(13)  # place in the packet of this piece's last byte
        beyond  = Signal(13)  # and of the next one's
        here    = Signal()
        over    = Signal()
        error   = Signal()
        fault   = Signal(FAULT_BITS)
        lane    = Signal(bits)
        rest    = Signal(13)
        # the piece's last order; it and `count` are known before the order goes
        ending  = Signal()
        count   = Signal(5)
        remains = Signal(13)
        room    = Signal(5)   # in the next piece's first line
        present = Signal(blocks)  # blocks of the packet that are here
        covered = Signal()    # all of the piece's are
        good    = Signal()    # it may be written
        cut     = Signal()    # it never may
        line    = Signal()    # a line of this piece goes
        load    = Signal()
        writing = Signal()
        drop    = Signal()
        self.comb += [
            present.eq(Mux(ends.source.valid, ends.source.blocks, arrived)),
            beyond.eq(upto + piece.length),
            covered.eq(present > Mux(load, beyond, upto)[log2_int(C.BLOCK_BYTES):log2_int(C.PACKET_PAYLOAD)]),
            remains.eq(rest - count),
            room.eq(width - piece.address[:bits]),
            orders.valid.eq(drop | (writing & here & ~error & good & landing.sink.ready)),
            orders.last.eq(drop | (over & ending)),
            orders.lane.eq(lane),
            orders.count.eq(count),
            orders.address.eq(address),
            orders.length.eq(length),
            orders.mark.eq(over),
            orders.tail.eq(ending),
            line.eq(orders.valid & orders.ready & ~drop),
            load.eq(writing & (~here | (line & ending & ~over))),
        ]
        self.sync += [
            # A verdict stands while its piece is here, for blocks only become more.
            good.eq(covered),
            cut.eq(ends.source.valid & ~covered),
            If(line,
                lane.eq(0),
                rest.eq(remains),
                ending.eq(remains <= width),
                count.eq(Mux(remains <= width, remains, width)),
                If(ending, here.eq(0)),
            ),
            If(load,
                here.eq(piece.valid),
                address.eq(piece.address),
                length.eq(piece.length),
                lane.eq(piece.address),
                rest.eq(piece.length),
                ending.eq(piece.length <= room),
                count.eq(Mux(piece.length <= room, piece.length, room)),
                over.eq(piece.last),
                error.eq(piece.error),
                fault.eq(piece.fault),
                If(piece.valid, upto.eq(beyond))
            ),
            # An order that drops has no bytes. A piece that is bad, and what is not written, lead
            # to one.
            If(~writing | (here & (error | cut)), count.eq(0)),
        ]

        # Packets.
        refused = Signal()
        reason  = Signal(8)
        report  = Signal()
        told    = Signal()    # it was reported
        short   = Signal()    # it was cut short
        self.fsm = fsm = FSM(reset_state="OPEN")
        fsm.act("OPEN",
            NextValue(told, 0),
            NextValue(upto, 2**len(upto) - 1),
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
            If(here & error,
                NextValue(here, 0),
                NextValue(refused, 1),
                Case(fault, {
                    FAULT_READ: NextValue(reason, STATUS.REMOTE_READ_ERROR),
                    FAULT_LIST: NextValue(reason, STATUS.REMOTE_BAD_LIST),
                    "default":  NextValue(reason, STATUS.REMOTE_BOUNDS)}),
                If(over,
                    NextState("DROP")
                ).Else(
                    NextState("ABORT")
                )
            ).Elif(here & cut,
                # What is too short without having been cut does not have the length it says.
                NextValue(here, 0),
                NextValue(refused, 1),
                NextValue(reason, STATUS.REMOTE_BAD_HEADER),
                If(over,
                    NextState("DROP")
                ).Else(
                    NextState("ABORT")
                )
            ).Elif(line & over,
                # From the last piece's first line on nothing can keep its last one from being
                # written.
                report.eq(~told & (rest <= REPORTED*width)),
                NextValue(told, told | report),
                If(ending,
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
                    short.eq(1),
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
            # One packet of an answer that is refused spoils the rest.
            self.expected.spoil.eq(report & landing.sink.ready & refused & packet.mine),
            self.expected.spoilt.eq(packet.context),
        ]

        # A packet is gone when it has landed, or when it was cut short.
        self.departures = Departures(admission.enters,
            [landing.landed, short], 32)

        # Writes.
        lines = unpacker.source
        self.comb += [
            lines.connect(writes, keep={"valid", "ready", "dat", "address", "length", "mark"}),
            writes.last.eq(lines.tail),
        ]
