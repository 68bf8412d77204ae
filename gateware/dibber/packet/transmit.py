# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Packets on their way to the link: acknowledgements, and all channels together."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, CHANNEL, LANE, PACKET
from dibber.layouts import ack_layout
from dibber.packet.bulk import BulkTransmitter
from dibber.packet.express import ExpressTransmitter
from dibber.packet.flow import FlowTable
from dibber.packet.header import header_words
from dibber.packet.pulses import Pulses
from dibber.packet.seal import PacketSealer

# Acknowledgements ---------------------------------------------------------------------------------

class AckTransmitter(LiteXModule):
    """Turn acknowledgements into packets of a header alone.

    Attributes
    ----------
    sink    : Endpoint(ack_layout), in
    node_id : Signal(16), in
    source  : Endpoint(word_layout), out
    sent    : Signal(), out  one cycle for each packet

    Cycles: 1 from `sink` to `source`; 7 a packet.
    """
    def __init__(self):
        self.sink    = sink = stream.Endpoint(ack_layout())
        self.node_id = Signal(16)

        # # #

        self.seal   = seal = PacketSealer(CHANNEL.CONTROL)
        self.source = seal.source
        self.sent   = seal.sent
        index       = Signal(max=C.HEADER_WORDS)
        words, assign = header_words(
            target=sink.node, source=self.node_id, kind=PACKET.ACK, flags=sink.flags,
            incarnation=sink.incarnation, psn=sink.psn, ack=sink.ack, key=sink.reason,
            offset_low=sink.refusals)
        self.comb += [
            assign,
            seal.sink.valid.eq(sink.valid),
            seal.sink.last.eq(index == C.HEADER_WORDS - 1),
            seal.sink.seal.eq(seal.sink.last),
            Case(index, {i: seal.sink.data.eq(word) for i, word in enumerate(words)}),
            sink.ready.eq(seal.sink.ready & seal.sink.last),
        ]
        self.sync += If(seal.sink.valid & seal.sink.ready,
            index.eq(index + 1),
            If(seal.sink.last, index.eq(0)))

# Packet Transmitter -------------------------------------------------------------------------------

class PacketTransmitter(LiteXModule):
    """Everything between the engines and the link.

    Parameters
    ----------
    data_width : bits of payload lines and of the slots' lines

    Attributes
    ----------
    packets       : Endpoint(send_layout), in       lane BULK
    payload       : Endpoint(payload_layout), in    lane BULK
    expresses     : Endpoint(express_layout), in    lane EXPRESS
    acks          : Endpoint(ack_layout), in
    slot          : slot_port(data_width), master   for headers of lane BULK
    express_slot  : slot_port(data_width), master   for lane EXPRESS
    node_id       : Signal(16), in
    sources       : list of Endpoint(word_layout), by enum channel: CONTROL, EXPRESS, BULK
    flows         : FlowTable; its `reset`, `rewind`, `acks`, `acked`, `changed`, `naked` and `refusals` are
                    the sources' state
    sending       : list of modules, everything but acknowledgements: what a halt of the sending side resets
    counters      : dict of pulses: PACKETS_SENT, BYTES_SENT, ACKS_SENT, PACKETS_WITHDRAWN
    """
    def __init__(self, data_width):
        self.acks    = stream.Endpoint(ack_layout())
        self.node_id = Signal(16)

        # # #

        self.flows   = flows   = FlowTable()
        self.express = express = ExpressTransmitter(data_width)
        self.bulk    = bulk    = BulkTransmitter(data_width)
        self.ack     = ack     = AckTransmitter()
        self.sending = [flows, express, bulk]
        self.packets       = bulk.packets
        self.payload       = bulk.payload
        self.slot          = bulk.slot
        self.expresses     = express.sink
        self.express_slot  = express.slot
        self.sources       = [None]*3
        for channel, part in (CHANNEL.CONTROL, ack), (CHANNEL.EXPRESS, express), (CHANNEL.BULK, bulk):
            self.sources[channel] = part.source
            self.comb += part.node_id.eq(self.node_id)
        for lane, part in (LANE.EXPRESS, express), (LANE.BULK, bulk):
            self.comb += [
                part.flow.connect(flows.sinks[lane]),
                flows.sources[lane].connect(part.passed),
                part.reset.eq(flows.reset),
            ]
        self.comb += self.acks.connect(ack.sink)

        # The link takes a word a cycle, of all channels together: no more can come together for long.
        self.packets_sent = packets_sent = Pulses(ack.sent, express.sent, bulk.sent)
        self.words_sent   = words_sent   = Pulses(express.word_sent, bulk.word_sent)
        self.withdrawn    = withdrawn    = Pulses(express.withdrawn, bulk.withdrawn)
        self.counters = {
            "PACKETS_SENT":      packets_sent.pulse,
            "BYTES_SENT":        words_sent.pulse,
            "ACKS_SENT":         ack.sent,
            "PACKETS_WITHDRAWN": withdrawn.pulse,
        }
