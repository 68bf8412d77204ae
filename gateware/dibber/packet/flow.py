# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""What the source of a flow knows: its incarnation, what was sent, what was acknowledged."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.layouts import ack_layout
from dibber.packet.build import flow_layout
from dibber.packet.header import flag

def flow_reset_layout():
    """Start a new flow to `node`, in a cycle with `strobe`."""
    return [("strobe", 1), ("node", 8), ("incarnation", 8)]

def refusal_layout():
    """A packet that its target refused; `reason` as enum status."""
    return [("node", 8), ("psn", 16), ("reason", 8)]

class FlowTable(LiteXModule):
    """Per-node state of the flows that start here, and the gate that it makes.

    An acknowledgement counts only if it is of the current incarnation and moves `acked` forward
    within what was sent. A refusal that found its FIFO full would let its transfer end as a success;
    so from then on nothing that the node says is believed, until its flow is reset.

    Attributes
    ----------
    reset    : Record(flow_reset_layout), in   `acked` of the node becomes 0xffff
    sink     : Endpoint(flow_layout), in       the packet that wants to leave
    source   : Endpoint(flow_layout and stale), out  valid once it may, or once it is to be dropped:
                                               then `stale` is set
    acks     : Endpoint(ack_layout), in        always ready; two cycles between acknowledgements
    acked    : list of Signal(16), out         last PSN acknowledged by each node
    changed  : Signal(NODES), out              a bit pulses when the node's `acked` has moved
    refusals : Endpoint(refusal_layout), out

    Cycles: 2 from `sink` or a moved window to `source`; 2 from `acks` to `acked`.
    """
    def __init__(self):
        self.reset    = reset  = Record(flow_reset_layout())
        self.sink     = sink   = stream.Endpoint(flow_layout())
        self.source   = source = stream.Endpoint(flow_layout() + [("stale", 1)])
        self.acks     = acks   = stream.Endpoint(ack_layout())
        self.acked    = [Signal(16, reset=0xffff, name=f"acked{n}") for n in range(C.NODES)]
        self.changed  = changed = Signal(C.NODES)
        self.refusals = stream.Endpoint(refusal_layout())

        # # #

        bits        = log2_int(C.NODES)
        incarnation = Array(Signal(8, name=f"incarnation{n}") for n in range(C.NODES))
        sent        = Array(Signal(16, reset=0xffff, name=f"sent{n}") for n in range(C.NODES))
        acked       = Array(self.acked)

        # Gate. Its lookup is registered, so it is only believed when neither packet nor table has changed.
        node     = sink.node[:bits]
        stale    = Signal()
        may_go   = Signal()
        settled  = Signal()
        in_flight = Signal(16)
        self.comb += [
            in_flight.eq(sink.psn - acked[node]),
            sink.connect(source, omit={"valid", "ready"}),
            source.stale.eq(stale),
            source.valid.eq(sink.valid & settled & (stale | may_go) & ~reset.strobe),
            sink.ready.eq(source.valid & source.ready),
        ]
        self.sync += [
            stale.eq((incarnation[node] != sink.incarnation) | (sink.node >= C.NODES)),
            may_go.eq(in_flight <= C.WINDOW),
            settled.eq(sink.valid & ~sink.ready & ~reset.strobe),
            If(sink.valid & sink.ready & ~stale, sent[node].eq(sink.psn)),
        ]

        # Acknowledgements: looked up in the first cycle, judged in the second.
        heard    = Signal()
        current  = Signal()
        peer     = Signal(bits)
        psn      = Signal(16)
        ack      = Signal(16)
        refused  = Signal()
        reason   = Signal(8)
        moved    = Signal(16)
        possible = Signal(16)
        deaf     = Signal(C.NODES)
        forward  = Signal()
        deafen   = Signal()
        self.queue = queue = stream.SyncFIFO(refusal_layout(), 16)
        self.sync += [
            heard.eq(acks.valid & (acks.node < C.NODES)),
            current.eq((incarnation[acks.node[:bits]] == acks.incarnation)
                & ~(reset.strobe & (reset.node == acks.node))),
            peer.eq(acks.node[:bits]),
            psn.eq(acks.psn),
            ack.eq(acks.ack),
            refused.eq(flag(acks.flags, "REFUSED")),
            reason.eq(acks.reason),
            moved.eq(acks.ack - acked[acks.node[:bits]]),
            possible.eq(sent[acks.node[:bits]] - acked[acks.node[:bits]]),
        ]
        self.comb += [
            acks.ready.eq(1),
            forward.eq(heard & current & (moved != 0) & (moved <= possible)
                & ~(deaf >> peer)[0] & ~(reset.strobe & (reset.node == peer))),
            queue.sink.valid.eq(forward & refused),
            queue.sink.node.eq(peer),
            queue.sink.psn.eq(psn),
            queue.sink.reason.eq(reason),
            deafen.eq(queue.sink.valid & ~queue.sink.ready),
            queue.source.connect(self.refusals),
        ]
        self.sync += [
            changed.eq(0),
            If(deafen,
                deaf.eq(deaf | (1 << peer))
            ).Elif(forward,
                acked[peer].eq(ack),
                changed.eq(1 << peer)
            ),
            If(reset.strobe & (reset.node < C.NODES),
                incarnation[reset.node[:bits]].eq(reset.incarnation),
                acked[reset.node[:bits]].eq(0xffff),
                sent[reset.node[:bits]].eq(0xffff),
                deaf.eq(deaf & ~(1 << reset.node[:bits])),
            ),
        ]
