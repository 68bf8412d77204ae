# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Packets on their way to the link: header, payload blocks and their CRCs, and acknowledgements."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, CHANNEL, PACKET
from dibber.layouts import ack_layout, payload_layout, send_layout, word_layout
from dibber.packet.build import HeaderBuilder, flow_layout
from dibber.packet.commit import CommitFIFO
from dibber.packet.crc import CRC32C
from dibber.packet.flow import FlowTable, flow_reset_layout
from dibber.packet.header import MAX_HEADER_WORDS, header_words
from dibber.packet.pulses import Pulses

# Acknowledgements ---------------------------------------------------------------------------------

class AckTransmitter(LiteXModule):
    """Turn acknowledgements into packets of a header alone.

    Attributes
    ----------
    sink    : Endpoint(ack_layout), in
    node_id : Signal(16), in
    source  : Endpoint(word_layout), out
    sent    : Signal(), out  one cycle for each packet

    Cycles: 7 a packet, 1 between packets.
    """
    def __init__(self):
        self.sink    = sink   = stream.Endpoint(ack_layout())
        self.node_id = Signal(16)
        self.source  = source = stream.Endpoint(word_layout())
        self.sent    = Signal()

        # # #

        self.crc = crc = CRC32C()
        index    = Signal(max=C.HEADER_WORDS + 1)
        words, assign = header_words(
            target=sink.node, source=self.node_id, kind=PACKET.ACK, flags=sink.flags,
            incarnation=sink.incarnation, psn=sink.psn, ack=sink.ack, key=sink.reason)
        self.comb += [
            assign,
            crc.seed.eq(0xffffffff),
            source.channel.eq(CHANNEL.CONTROL),
            source.valid.eq(sink.valid),
            source.first.eq(index == 0),
            source.last.eq(index == C.HEADER_WORDS),
            Case(index, {
                **{i: source.data.eq(word) for i, word in enumerate(words)},
                "default": source.data.eq(crc.value)}),
            crc.word.eq(source.data),
            crc.step.eq(source.valid & source.ready),
            crc.load.eq(self.sent),
            sink.ready.eq(source.ready & source.last),
            self.sent.eq(sink.valid & sink.ready),
        ]
        self.sync += If(source.valid & source.ready,
            index.eq(index + 1),
            If(source.last, index.eq(0)))

# Send Buffer --------------------------------------------------------------------------------------

class SendBuffer(LiteXModule):
    """Payload lines, readable from the moment in which their packet is complete.

    Attributes
    ----------
    sink   : Endpoint(payload_layout), in   a packet that ends with `error` leaves no trace
    source : Endpoint([("dat", data_width)]), out  whole packets only; `last` on the packet's last line

    Holds two packets of PACKET_PAYLOAD: one fills while the other leaves.
    """
    def __init__(self, data_width):
        self.sink   = sink   = stream.Endpoint(payload_layout(data_width))
        self.source = source = stream.Endpoint([("dat", data_width)])

        # # #

        self.fifo = fifo = CommitFIFO(data_width + 1, 2*C.PACKET_PAYLOAD*8//data_width)
        taken     = Signal()
        self.comb += [
            sink.ready.eq(fifo.writable),
            taken.eq(sink.valid & sink.ready),
            fifo.we.eq(taken),
            fifo.din.eq(Cat(sink.dat, sink.last)),
            fifo.commit.eq(taken & sink.last & ~sink.error),
            fifo.rollback.eq(taken & sink.last & sink.error),
            source.valid.eq(fifo.readable),
            Cat(source.dat, source.last).eq(fifo.dout),
            fifo.re.eq(source.ready),
        ]

# Packet Sender ------------------------------------------------------------------------------------

class PacketSender(LiteXModule):
    """Join header words and payload into packets, with their CRCs.

    Packets that come as `stale` are dropped without the link. Once started a packet never waits for
    anything but the link. When the flow is reset under a started packet, the packet ends as bad at
    its next word, so that its rest cannot reach the target however long the link stands still.

    Parameters
    ----------
    data_width : bits of a payload line

    Attributes
    ----------
    words   : Endpoint([("data", 32)]), in         from HeaderBuilder
    flow    : Endpoint(flow_layout and stale), in  from FlowTable
    payload : Endpoint([("dat", data_width)]), in  from SendBuffer
    reset   : Record(flow_reset_layout), in
    source  : Endpoint(word_layout), out           `bad` on the last word of a packet to be dropped
    sent      : Signal(), out  one cycle when a whole packet has left
    word_sent : Signal(), out  one cycle for each payload word

    Cycles: 1 a word; 1 between packets.
    """
    def __init__(self, data_width):
        self.words   = words   = stream.Endpoint([("data", 32)])
        self.flow    = flow    = stream.Endpoint(flow_layout() + [("stale", 1)])
        self.payload = payload = stream.Endpoint([("dat", data_width)])
        self.reset   = reset   = Record(flow_reset_layout())
        self.source  = source  = stream.Endpoint(word_layout())
        self.sent    = Signal()
        self.word_sent = Signal()

        # # #

        lanes       = data_width//32
        block_words = C.BLOCK_BYTES//4

        self.crc   = crc = CRC32C()
        node        = Signal(16)
        incarnation = Signal(8)
        taken       = Signal()
        header_crc  = Signal(32)
        block       = Signal(max=C.PACKET_PAYLOAD//C.BLOCK_BYTES + 1)
        lane        = Signal(max=lanes)
        word        = Signal(max=block_words)   # in the block
        left        = Signal(max=C.PACKET_PAYLOAD//4 + 1)  # payload words
        tail        = Signal(2)                 # bytes of the last payload word, 0 for 4
        first       = Signal()
        dead        = Signal()
        line_word   = Signal(32)
        final       = Signal()
        header_in   = Signal()                  # header words of this packet are still to come
        payload_in  = Signal()                  # payload lines of this packet are still to come
        self.comb += [
            taken.eq(source.valid & source.ready),
            source.channel.eq(CHANNEL.REQUEST),
            source.first.eq(first),
            crc.word.eq(source.data),
            final.eq(left == 1),
            Case(lane, {i: line_word.eq(payload.dat[32*i:32*i + 32]) for i in range(lanes)}),
        ]
        self.sync += [
            If(taken, first.eq(0)),
            If(reset.strobe & (reset.node == node) & (reset.incarnation != incarnation), dead.eq(1)),
            If(words.valid & words.ready & words.last, header_in.eq(0)),
            If(payload.valid & payload.ready & payload.last, payload_in.eq(0)),
        ]

        def send(data, last, *then):
            """One word of the packet; `then` what follows when it was taken and the flow lives."""
            return [
                source.valid.eq(1),
                source.data.eq(data),
                source.last.eq(last),
                If(dead,
                    source.last.eq(1),
                    source.bad.eq(1),
                    If(source.ready, NextState("SKIP"))
                ).Elif(source.ready,
                    *then
                )
            ]

        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            crc.seed.eq(0xffffffff),
            crc.load.eq(1),
            NextValue(first, 1),
            NextValue(dead, 0),
            NextValue(node, flow.node),
            NextValue(incarnation, flow.incarnation),
            NextValue(left, (flow.length + 3)[2:]),
            NextValue(tail, flow.length[:2]),
            NextValue(block, 0),
            NextValue(word, 0),
            NextValue(lane, 0),
            If(flow.valid,
                NextValue(header_in, 1),
                NextValue(payload_in, flow.length != 0),
                If(flow.stale,
                    flow.ready.eq(1),
                    NextState("SKIP")
                ).Elif(payload.valid | (flow.length == 0),
                    flow.ready.eq(1),
                    NextState("HEADER")
                )
            )
        )
        fsm.act("HEADER",
            If(words.valid,
                send(words.data, 0,
                    words.ready.eq(1),
                    crc.step.eq(1),
                    If(words.last, NextState("HEADER-CRC"))
                )
            )
        )
        fsm.act("HEADER-CRC",
            send(crc.value, left == 0,
                crc.load.eq(1),
                crc.seed.eq(crc.value),
                NextValue(header_crc, crc.value),
                NextState("PAYLOAD"),
                If(left == 0,
                    self.sent.eq(1),
                    NextState("IDLE")
                )
            )
        )
        fsm.act("PAYLOAD",
            If(payload.valid,
                send(line_word, 0,
                    crc.step.eq(1),
                    self.word_sent.eq(1),
                    NextValue(left, left - 1),
                    NextValue(word, word + 1),
                    NextValue(lane, lane + 1),
                    payload.ready.eq(final | (lane == lanes - 1)),
                    If(final | (word == block_words - 1),
                        NextValue(word, 0),
                        NextState("BLOCK-CRC")
                    )
                ),
                # What lies behind the packet's last byte in its line stays on the card.
                If(final, Case(tail, {
                    0: [],
                    **{n: source.data[8*n:].eq(0) for n in (1, 2, 3)}}))
            )
        )
        fsm.act("BLOCK-CRC",
            send(crc.value, left == 0,
                crc.load.eq(1),
                crc.seed.eq(header_crc ^ (block + 1)),
                NextValue(block, block + 1),
                NextState("PAYLOAD"),
                If(left == 0,
                    self.sent.eq(1),
                    NextState("IDLE")
                )
            )
        )
        fsm.act("SKIP",
            words.ready.eq(header_in),
            payload.ready.eq(payload_in),
            If(~header_in & ~payload_in, NextState("IDLE"))
        )

# Packet Transmitter -------------------------------------------------------------------------------

class PacketTransmitter(LiteXModule):
    """Everything between the gather engine and the link.

    Parameters
    ----------
    data_width : bits of payload lines and of the command slots' lines

    Attributes
    ----------
    packets  : Endpoint(send_layout), in
    payload  : Endpoint(payload_layout), in
    acks     : Endpoint(ack_layout), in
    slot     : slot_port(data_width), master
    node_id  : Signal(16), in
    sources  : one Endpoint(word_layout) for each of CONTROL and REQUEST
    flows    : FlowTable; its `reset`, `acks`, `acked`, `changed` and `refusals` are the source's state
    counters : dict of pulses: PACKETS_SENT, BYTES_SENT, ACKS_SENT
    """
    def __init__(self, data_width):
        self.packets = stream.Endpoint(send_layout())
        self.payload = stream.Endpoint(payload_layout(data_width))
        self.acks    = stream.Endpoint(ack_layout())
        self.node_id = Signal(16)

        # # #

        # Deep enough for small packets to collect while a long one leaves.
        self.queue  = queue  = stream.SyncFIFO(send_layout(), 16)
        self.build  = build  = HeaderBuilder(data_width)
        self.flows  = flows  = FlowTable()
        self.words  = words  = stream.SyncFIFO([("data", 32)], 32)
        self.buffer = buffer = SendBuffer(data_width)
        self.send   = send   = PacketSender(data_width)
        self.ack    = ack    = AckTransmitter()
        self.packets_sent = packets_sent = Pulses(ack.sent, send.sent)
        assert words.depth >= MAX_HEADER_WORDS  # a header must not wait for the link while it is built

        self.slot     = build.slot
        self.sources  = [ack.source, send.source]
        self.counters = {
            "PACKETS_SENT": packets_sent.pulse,
            "BYTES_SENT":   send.word_sent,
            "ACKS_SENT":    ack.sent,
        }
        self.comb += [
            self.packets.connect(queue.sink),
            queue.source.connect(build.sink),
            build.words.connect(words.sink),
            words.source.connect(send.words),
            build.flow.connect(flows.sink),
            flows.source.connect(send.flow),
            send.reset.eq(flows.reset),
            self.payload.connect(buffer.sink),
            buffer.source.connect(send.payload),
            self.acks.connect(ack.sink),
            build.node_id.eq(self.node_id),
            ack.node_id.eq(self.node_id),
        ]
