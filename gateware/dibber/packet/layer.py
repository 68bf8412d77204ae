# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The packet layer: from the deposit engines to the link's channels, and back."""

from migen import *

from litex.gen import *

from dibber.packet.acknowledge import Acknowledger
from dibber.packet.receive import PacketReceiver
from dibber.packet.transmit import PacketTransmitter

class PacketLayer(LiteXModule):
    """Both directions of a card's packets, and the acknowledgements that join them.

    Parameters
    ----------
    data_width : bits of payload lines and of the command slots' lines

    Attributes
    ----------
    packets      : Endpoint(send_layout), in
    payload_in   : Endpoint(payload_layout), in     payload to send
    slot         : slot_port(data_width), master
    deposits     : Endpoint(deposit_layout), out
    payload_out  : Endpoint(payload_layout), out    payload received
    deposit_done : Endpoint(deposit_done_layout), in
    sinks        : list of Endpoint(word_layout), in    CONTROL and REQUEST from the link
    sources      : list of Endpoint(word_layout), out   CONTROL and REQUEST to the link
    flow_reset   : Record(flow_reset_layout), in
    acked        : list of Signal(16), out    last PSN acknowledged by each node
    changed      : Signal(NODES), out         a bit pulses when the node's `acked` has moved
    refusals     : Endpoint(refusal_layout), out
    node_id      : Signal(16), in
    counters     : dict of pulses by their names in the interface description
    """
    def __init__(self, data_width):
        self.node_id = Signal(16)

        # # #

        self.transmitter  = transmitter  = PacketTransmitter(data_width)
        self.receiver     = receiver     = PacketReceiver(data_width)
        self.acknowledger = acknowledger = Acknowledger()

        self.packets      = transmitter.packets
        self.payload_in   = transmitter.payload
        self.slot         = transmitter.slot
        self.deposits     = receiver.deposits
        self.payload_out  = receiver.payload
        self.deposit_done = acknowledger.done
        self.sinks        = receiver.sinks
        self.sources      = transmitter.sources
        self.flow_reset   = transmitter.flows.reset
        self.acked        = transmitter.flows.acked
        self.changed      = transmitter.flows.changed
        self.refusals     = transmitter.flows.refusals
        self.counters     = {
            **transmitter.counters,
            **receiver.counters,
            "PACKET_REFUSED": acknowledger.refused,
        }
        self.comb += [
            transmitter.node_id.eq(self.node_id),
            receiver.node_id.eq(self.node_id),
            receiver.acks.connect(transmitter.flows.acks),
            acknowledger.source.connect(transmitter.acks),
            acknowledger.started.eq(receiver.started),
            acknowledger.repeat.eq(receiver.repeat),
            acknowledger.gap.eq(receiver.gap),
        ]
