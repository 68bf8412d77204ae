"""Data first, notice after: hold notices until a packet's writes have been handed to the PHY."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.layouts import arrival_layout, deposit_done_layout
from dibber.common.places import BlockFIFO, Place

# Layout -------------------------------------------------------------------------------------------

def landing_layout():
    """A packet whose result is known when it has landed, which means: is in memory.

    final   : last packet of its transfer
    alone   : it carries a whole transfer
    notice  : it asks for an arrival
    total   : bytes of the transfer
    is_message, slot, response : as in arrival_layout
    """
    return [
        ("node", log2_int(C.NODES)), ("incarnation", 8), ("psn", 16), ("final", 1), ("alone", 1),
        ("notice", 1),
        ("interrupt", 1), ("endpoint", 8), ("value", 32), ("total", 32), ("key", 32),
        ("is_message", 1),
        ("slot", 8), ("response", 1), ("refused", 1), ("reason", 8)]

def decided_layout():
    """The fields of a packet that decide about its report.

    `notice`: an arrival follows, unless a packet of the same transfer was refused.
    """
    return [
        ("node", log2_int(C.NODES)), ("incarnation", 8), ("psn", 16), ("final", 1), ("alone", 1),
        ("notice", 1),
        ("refused", 1), ("reason", 8), ("marked", 1)]

# Landing ------------------------------------------------------------------------------------------

class Landing(LiteXModule):
    """Report packets in order: `done` early, the notice after all writes up to its packet's last.

    `done` comes before the packet's writes are handed to the PHY. So its acknowledgement can
    already be on its way to the link; but it must not end while the packet is `open`. Only the
    oldest packet is reported before it has landed. So at most one packet is open, and its
    acknowledgement waits for no other packet.

    A notice announces a whole transfer. If one of its packets was refused, there is no notice, even
    if the last packet is good. (A transfer that its source abandons has no last packet. If one of
    its packets was refused, the next longer transfer from that node loses its notice. A timeout
    finds a lost notice; nothing would find a false one.) A new incarnation starts with nothing
    refused. PSN 0 with FIRST does not mark a new incarnation, because the PSN wraps.

    Parameters
    ----------
    lane  : enum lane, of `done`
    depth : packets that can wait here, and arrivals that can wait for the control program

    Attributes
    ----------
    sink     : Endpoint(landing_layout + marked), in    `marked`: its last write carries a mark.
               `ready` is a register
    marked   : Signal(), in    the PHY has taken a write with a mark
    done     : Endpoint(deposit_done_layout), out       its packet will certainly land, and there is
               room for its notice
    open     : Signal(), out   the packet of the last `done` has not landed; valid from the cycle
               after `done`
    landed   : Signal(), out   one cycle for each packet, not before its `done`
    arrivals : Endpoint(arrival_layout), out            if this stalls, packets wait

    Cycles: 2 from `sink` to `done`; 1 from `marked` to `landed`, 2 to `arrivals`; at most one
    packet every 2 cycles.
    """
    def __init__(self, lane, depth=16):
        self.sink     = sink     = stream.Endpoint(landing_layout() + [("marked", 1)])
        self.marked   = Signal()
        self.done     = done     = stream.Endpoint(deposit_done_layout())
        self.arrivals = arrivals = stream.Endpoint(arrival_layout())
        self.open     = Signal()
        self.landed   = landed   = Signal()

        # # #

        # A notice is stored in block RAM when its packet comes. It is sent when the packet has
        # landed. There is a place for the notice of each packet in here.
        self.waiting = waiting = stream.SyncFIFO(decided_layout(), depth)
        self.first   = first   = stream.PipeValid(decided_layout())
        self.notices = notices = BlockFIFO(arrival_layout(), 4*depth)
        # Output register: a read from block RAM would be late in its cycle. One place is enough,
        # because the consumer is slower than one event in two cycles.
        self.notice  = notice  = Place(arrival_layout())
        # one for each landed packet with a notice: whether the notice is sent
        self.verdicts = verdicts = stream.SyncFIFO([("good", 1)], depth)
        has_verdict = Signal()
        room        = Signal(reset=1)
        # Registered, so a place that became free is seen one cycle later.
        self.sync += room.eq(
            (waiting.level < depth - 1) | ((waiting.level < depth) & ~waiting.sink.valid))
        self.comb += [
            sink.ready.eq(room),
            waiting.sink.valid.eq(sink.valid & room),
            sink.connect(waiting.sink, keep={*[name for name, _ in decided_layout()]} - {"notice"}),
            waiting.sink.notice.eq(sink.notice & ~sink.refused),
            waiting.source.connect(first.sink),

            notices.sink.valid.eq(sink.valid & sink.ready & waiting.sink.notice),
            notices.sink.last.eq(1),
            *[getattr(notices.sink, name).eq(getattr(sink, {"length": "total"}.get(name, name)))
                for name, _ in arrival_layout().payload_layout],
            notices.source.connect(notice.sink),
            notice.source.connect(arrivals, omit={"valid", "ready"}),
            has_verdict.eq(notice.source.valid & verdicts.source.valid),
            arrivals.valid.eq(has_verdict & verdicts.source.good),
            notice.source.ready.eq(has_verdict & (arrivals.ready | ~verdicts.source.good)),
            verdicts.source.ready.eq(notice.source.ready),
        ]

        # Marks come in the order of the packets that wait for them.
        packet       = first.source
        marks_left   = Signal(max=2*depth)
        reported     = Signal()         # `done` was sent for this packet
        not_written  = Signal()         # its last write has not been handed to the PHY
        node_bit     = Signal(C.NODES)
        spoilt       = Signal()         # an earlier packet of this transfer was refused
        spoilt_nodes = Signal(C.NODES)  # by node; valid if `flows` holds the same incarnation
        flows        = Memory(8, C.NODES)
        read         = flows.get_port(async_read=True)
        write        = flows.get_port(write_capable=True)
        self.specials += flows, read, write
        self.comb += [
            node_bit.eq(1 << packet.node),
            # If `verdicts` had room at `done`, it still has: only this block fills it.
            not_written.eq(packet.marked & (marks_left == 0)),
            landed.eq(packet.valid & (reported | (done.valid & done.ready)) & ~not_written),
            read.adr.eq(packet.node),
            write.adr.eq(packet.node),
            write.dat_w.eq(packet.incarnation),
            write.we.eq(packet.ready),
            spoilt.eq(((spoilt_nodes & node_bit) != 0) & (read.dat_r == packet.incarnation)),
            done.valid.eq(packet.valid & ~reported & (~packet.notice | verdicts.sink.ready)),
            done.last.eq(1),
            done.lane.eq(lane),
            done.node.eq(packet.node),
            done.incarnation.eq(packet.incarnation),
            done.psn.eq(packet.psn),
            done.refused.eq(packet.refused),
            done.reason.eq(packet.reason),
            packet.ready.eq(landed),
            verdicts.sink.valid.eq(packet.ready & packet.notice),
            verdicts.sink.good.eq(packet.alone | ~spoilt),
        ]
        self.sync += [
            marks_left.eq(marks_left + self.marked - (packet.ready & packet.marked)),
            reported.eq((reported | (done.valid & done.ready)) & ~landed),
            self.open.eq((reported | (done.valid & done.ready)) & not_written & ~self.marked),
            If(packet.ready,
                spoilt_nodes.eq(
                    (spoilt_nodes & ~node_bit) |
                    Mux(~packet.final & (packet.refused | spoilt), node_bit, 0))
            ),
        ]
