"""Data first, notice after: what waits until a packet's writes have been handed to the PHY, and
what is only held until then.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.layouts import arrival_layout, deposit_done_layout
from dibber.common.places import BlockFIFO, Place

# Layout -------------------------------------------------------------------------------------------

def landing_layout():
    """A packet whose fate is known once it has landed.

    `final`: last packet of its transfer. `alone`: it carries a whole transfer. `notice`: there is
    to be an arrival. `total`: bytes of the transfer. `is_message`, `slot`, `response` as in
    arrival_layout.
    """
    return [("node", log2_int(C.NODES)), ("incarnation", 8), ("psn", 16), ("final", 1), ("alone", 1), ("notice", 1),
        ("interrupt", 1), ("endpoint", 8), ("value", 32), ("total", 32), ("key", 32), ("is_message", 1),
        ("slot", 8), ("response", 1), ("refused", 1), ("reason", 8)]

def decided_layout():
    """What decides about a packet. `notice`: there is one to be, unless a packet of its transfer
    was refused before.
    """
    return [("node", log2_int(C.NODES)), ("incarnation", 8), ("psn", 16), ("final", 1), ("alone", 1), ("notice", 1),
        ("refused", 1), ("reason", 8), ("marked", 1)]

# Landing ------------------------------------------------------------------------------------------

class Landing(LiteXModule):
    """Report packets in order: a notice after all writes up to its packet's last have been handed
    to the PHY, `done` before that.

    So an acknowledgement can be on its way to the link meanwhile, and must not end while what it
    tells of is `open`. Only the first packet is told of before it has landed, so what is open is
    one packet, and its own acknowledgement waits for nothing else.

    A notice announces the bytes of a whole transfer. When a packet of the transfer was refused
    there is no notice, though its last packet may be good. (A transfer that its source gave up has
    no last packet; if it was refused too, the notice of the next longer transfer from that node is
    lost: a lost one is found by a timeout, a false one never.) A new incarnation begins with
    nothing refused; PSN 0 with FIRST does not show it, for that comes again whenever the PSNs have
    come round.

    Parameters
    ----------
    lane  : enum lane, that of `done`
    depth : packets that wait here, and arrivals that wait for the control program

    Attributes
    ----------
    sink     : Endpoint(landing_layout + marked), in    `marked`: its last write carries a mark.
               `ready` is a register
    marked   : Signal(), in    a write with a mark was taken by the PHY
    done     : Endpoint(deposit_done_layout), out       when its packet will land for certain, and
               finds room for its notice
    open     : Signal(), out   the packet of the last `done` has not landed yet; from the cycle
               behind `done` on
    landed   : Signal(), out   one cycle for each packet, not before its `done`
    arrivals : Endpoint(arrival_layout), out            when full, packets wait

    Cycles: 2 from `sink` to `done`; 1 from `marked` to `landed`, 2 to `arrivals`; one of these
    every 2 cycles.
    """
    def __init__(self, lane, depth=16):
        self.sink     = sink     = stream.Endpoint(landing_layout() + [("marked", 1)])
        self.marked   = Signal()
        self.done     = done     = stream.Endpoint(deposit_done_layout())
        self.arrivals = arrivals = stream.Endpoint(arrival_layout())
        self.open     = Signal()
        self.landed   = landed   = Signal()

        # # #

        # A notice is written down when its packet comes, in block RAM, and follows when that has
        # landed. There is a place for each packet that can be in here.
        self.waiting = waiting = stream.SyncFIFO(decided_layout(), depth)
        self.first   = first   = stream.PipeValid(decided_layout())
        self.notices = notices = BlockFIFO(arrival_layout(), 4*depth)
        # Out of block RAM it would come late in its cycle. Of one place whether it is free is a
        # register; nobody takes events as fast.
        self.notice  = notice  = Place(arrival_layout())
        # on those that have landed
        self.verdicts = verdicts = stream.SyncFIFO([("good", 1)], depth)
        judged = Signal()
        room   = Signal(reset=1)
        # A place that was left is found a cycle later; one that is promised stays.
        self.sync += room.eq((waiting.level < depth - 1) | ((waiting.level < depth) & ~waiting.sink.valid))
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
            judged.eq(notice.source.valid & verdicts.source.valid),
            arrivals.valid.eq(judged & verdicts.source.good),
            notice.source.ready.eq(judged & (arrivals.ready | ~verdicts.source.good)),
            verdicts.source.ready.eq(notice.source.ready),
        ]

        # Marks come in the order of the packets that wait for them.
        packet = first.source
        marks  = Signal(max=2*depth)
        told   = Signal()         # of the packet
        writes = Signal()         # it has not been handed over to its end
        bit    = Signal(C.NODES)
        spoilt = Signal()         # a packet of the transfer was refused before
        spoils = Signal(C.NODES)  # the same by node, if the incarnation is still the one in `flows`
        flows  = Memory(8, C.NODES)
        read   = flows.get_port(async_read=True)
        write  = flows.get_port(write_capable=True)
        self.specials += flows, read, write
        self.comb += [
            bit.eq(1 << packet.node),
            # Room for a verdict stays, for verdicts come from here alone.
            writes.eq(packet.marked & (marks == 0)),
            landed.eq(packet.valid & (told | (done.valid & done.ready)) & ~writes),
            read.adr.eq(packet.node),
            write.adr.eq(packet.node),
            write.dat_w.eq(packet.incarnation),
            write.we.eq(packet.ready),
            spoilt.eq(((spoils & bit) != 0) & (read.dat_r == packet.incarnation)),
            done.valid.eq(packet.valid & ~told & (~packet.notice | verdicts.sink.ready)),
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
            marks.eq(marks + self.marked - (packet.ready & packet.marked)),
            told.eq((told | (done.valid & done.ready)) & ~landed),
            self.open.eq((told | (done.valid & done.ready)) & writes & ~self.marked),
            If(packet.ready, spoils.eq((spoils & ~bit) | Mux(~packet.final & (packet.refused | spoilt), bit, 0))),
        ]
