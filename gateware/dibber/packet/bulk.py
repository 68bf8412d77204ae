"""Packets whose payload comes from host memory: lane BULK."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, CHANNEL, LANE
from dibber.layouts import payload_layout, send_layout
from dibber.packet.build import HeaderBuilder
from dibber.common.commit import CommitFIFO
from dibber.packet.flow_table import flow_layout, flow_reset_layout, passed_layout
from dibber.packet.header import MAX_HEADER_WORDS, field_of, header_word
from dibber.packet.question import Asker
from dibber.packet.seal import PacketSealer, UnderWay
from dibber.common.places import BlockFIFO

QUEUED  = 16          # packets that collect while a long one leaves
# no more have payload in the buffer: others are built, wait at the gate, and leave
PACKETS = 2*QUEUED

# Layout -------------------------------------------------------------------------------------------

def line_layout(data_width):
    """A line of a packet's payload; with `void`, on its `last` one, the packet ends here as bad."""
    return stream.EndpointDescription([("dat", data_width), ("void", 1)])

# Packet Queue -------------------------------------------------------------------------------------

class PacketQueue(LiteXModule):
    """Packets that wait for their headers to be built.

    What is not asked for at once is in block RAM: LUT memory takes six LUT4 for four bits.

    Attributes
    ----------
    sink, source : Endpoint(send_layout); members LATE of the source come 2 cycles after `valid`

    Cycles: 1; a packet every 2 cycles or more.
    """
    LATE = ("node", "incarnation", "epoch", "psn", "skip", "message")

    def __init__(self):
        self.sink   = sink   = stream.Endpoint(send_layout())
        self.source = source = stream.Endpoint(send_layout())

        # # #

        names   = [name for name, *_ in source.description.payload_layout]
        members = lambda endpoint, late: [getattr(endpoint, name) for name in names if (name in self.LATE) == late]
        bits    = log2_int(QUEUED)
        produce = Signal(bits + 1)  # one bit more than the address tells full from empty
        consume = Signal(bits + 1)
        early   = Memory(len(Cat(members(sink, False))), QUEUED)
        late    = Memory(len(Cat(members(sink, True))), QUEUED, name="block_packets")
        write   = Signal()
        self.comb += [
            source.valid.eq(produce != consume),
            sink.ready.eq((produce[:bits] != consume[:bits]) | (produce[bits] == consume[bits])),
            write.eq(sink.valid & sink.ready),
        ]
        self.sync += [
            produce.eq(produce + write),
            consume.eq(consume + (source.valid & source.ready)),
        ]
        for memory, is_late in (early, False), (late, True):
            enter = memory.get_port(write_capable=True, mode=READ_FIRST)
            look  = memory.get_port(async_read=not is_late, mode=READ_FIRST)
            self.specials += memory, enter, look
            self.comb += [
                enter.adr.eq(produce[:bits]),
                enter.dat_w.eq(Cat(members(sink, is_late))),
                enter.we.eq(write),
                look.adr.eq(consume[:bits]),
            ]
            domain, lsb = self.sync if is_late else self.comb, 0
            for member in members(source, is_late):
                domain += member.eq(look.dat_r[lsb:lsb + len(member)])
                lsb += len(member)

# Send Buffer --------------------------------------------------------------------------------------

class SendBuffer(LiteXModule):
    """Payload lines on their way to the sender.

    Attributes
    ----------
    sink   : Endpoint(payload_layout), in
    source : Endpoint(line_layout), out
    void   : Signal(), out    the packet at `source` is void, and all of it is here

    Cycles: 2. Holds two packets of PACKET_PAYLOAD: one fills while the other leaves.
    """
    def __init__(self, data_width):
        self.sink   = sink   = stream.Endpoint(payload_layout(data_width))
        self.source = source = stream.Endpoint(line_layout(data_width))
        self.void   = Signal()

        # # #

        self.fifo = fifo = CommitFIFO(data_width + 2, 2*C.PACKET_PAYLOAD*8//data_width)
        self.comb += [
            sink.ready.eq(fifo.writable),
            fifo.we.eq(sink.valid),
            fifo.commit.eq(1),
            fifo.din.eq(Cat(sink.dat, sink.last, sink.error)),
            source.valid.eq(fifo.readable),
            Cat(source.dat, source.last, source.void).eq(fifo.dout),
            fifo.re.eq(source.ready),
        ]

        # How the packets end whose last line is here.
        self.ends = ends = stream.SyncFIFO([("void", 1)], PACKETS)
        self.comb += [
            ends.sink.valid.eq(sink.valid & sink.ready & sink.last),
            ends.sink.void.eq(sink.error),
            ends.source.ready.eq(source.valid & source.ready & source.last),
            self.void.eq(ends.source.valid & ends.source.void),
        ]

# Packet Sender ------------------------------------------------------------------------------------

class PacketSender(LiteXModule):
    """Join header words, the incarnation that the gate tells, and payload lines into packets.

    Packets that come as `stale` are dropped without the link, and in place of a `question` its
    target is asked. A packet starts when it has passed the gate: its payload comes from host memory
    while the header leaves, and what is here of it waits for nothing but the link. If it becomes
    void it ends as bad; what is void before it starts is dropped, for its slot may be another
    command's by now. A rewind of its flow lets it finish; a reset ends it as bad.

    Parameters
    ----------
    data_width : bits of a payload line

    Attributes
    ----------
    words   : Endpoint([("data", 32)]), in         from HeaderBuilder
    flow    : Endpoint(passed_layout), in  from the gate
    payload : Endpoint(line_layout), in            from SendBuffer
    void    : Signal(), in                         likewise
    reset   : Record(flow_reset_layout), in
    node_id : Signal(16), in
    source  : Endpoint(word_layout), out           `bad` on the last word of a packet to be dropped
    sent      : Signal(), out  one cycle when a whole packet has left
    withdrawn : Signal(), out  one cycle when a packet is dropped
    word_sent : Signal(), out  one cycle for each payload word

    Cycles: 1 a word; 2 from the gate to the first one, and between packets.
    """
    def __init__(self, data_width):
        self.words   = words   = stream.Endpoint([("data", 32)])
        self.flow    = flow    = stream.Endpoint(passed_layout())
        self.payload = payload = stream.Endpoint(line_layout(data_width))
        self.void    = Signal()
        self.reset   = Record(flow_reset_layout())
        self.withdrawn = Signal()

        # # #

        lanes       = data_width//32
        block_words = C.BLOCK_BYTES//4

        self.seal      = seal      = PacketSealer(CHANNEL.BULK)
        self.under_way = under_way = UnderWay(LANE.BULK)
        self.asker     = asker     = Asker(flags=0)
        voids          = Signal()  # the packet under way becomes void
        void           = Signal()
        self.sync += [
            If(seal.ended, void.eq(0)),
            If(voids, void.eq(1)),
        ]
        self.node_id   = asker.node_id
        self.source    = seal.source
        self.sent      = seal.sent
        self.word_sent = seal.word_sent
        self.comb += [
            under_way.reset.eq(self.reset),
            under_way.node.eq(flow.node),
            under_way.incarnation.eq(flow.incarnation),
            under_way.ended.eq(seal.ended),
            seal.dead.eq(under_way.dead | void),
            asker.node.eq(flow.node),
            asker.token.eq(flow.token),
        ]

        body        = seal.sink
        lane        = Signal(max=lanes)
        word        = Signal(max=block_words)              # in the block
        left        = Signal(max=C.PACKET_PAYLOAD//4 + 1)  # payload words
        tail        = Signal(2)                            # bytes of the last payload word, 0 for 4
        final       = Signal()
        line_word   = Signal(32)
        # header words of this packet are still to come
        header_in   = Signal()
        # payload lines of this packet are still to come
        payload_in  = Signal()
        # of the header word; stays behind this one
        index       = Signal(max=header_word("incarnation") + 2)
        number      = Signal(8)                            # incarnation on the link
        self.comb += [
            final.eq(left == 1),
            Case(lane, {i: line_word.eq(payload.dat[32*i:32*i + 32]) for i in range(lanes)}),
        ]
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            NextValue(left, (flow.length + 3)[2:]),
            NextValue(tail, flow.length[:2]),
            NextValue(word, 0),
            NextValue(lane, 0),
            NextValue(header_in, 1),
            NextValue(payload_in, flow.length != 0),
            NextValue(index, 0),
            NextValue(number, flow.number),
            If(flow.valid,
                If(flow.stale | (self.void & (flow.length != 0) & ~flow.question),
                    flow.ready.eq(1),
                    self.withdrawn.eq(1),
                    NextState("SKIP")
                ).Elif(flow.question,
                    flow.ready.eq(~under_way.busy),
                    under_way.begin.eq(flow.ready),
                    asker.begin.eq(flow.ready),
                    If(flow.ready, NextState("ASK"))
                ).Elif(~under_way.busy,
                    flow.ready.eq(1),
                    under_way.begin.eq(1),
                    NextState("HEADER")
                )
            )
        )
        fsm.act("HEADER",
            words.connect(body, keep={"valid", "ready", "data"}),
            If(index == header_word("incarnation"), field_of(body.data, "incarnation").eq(number)),
            If(body.valid & body.ready & (index <= header_word("incarnation")), NextValue(index, index + 1)),
            body.seal.eq(words.last),
            body.last.eq(words.last & (left == 0)),
            If(body.valid & body.ready & body.seal,
                NextState("PAYLOAD"),
                If(body.last, NextState("IDLE"))
            )
        )
        fsm.act("PAYLOAD",
            body.valid.eq(payload.valid),
            body.data.eq(line_word),
            # What lies behind the packet's last byte in its line stays on the card.
            If(final, Case(tail, {
                0: [],
                **{n: body.data[8*n:].eq(0) for n in (1, 2, 3)}})),
            body.seal.eq(final | payload.void | (word == block_words - 1)),
            body.last.eq(final | payload.void),
            If(body.valid & body.ready,
                NextValue(left, left - 1),
                NextValue(word, word + 1),
                NextValue(lane, lane + 1),
                payload.ready.eq(final | payload.void | (lane == lanes - 1)),
                voids.eq(payload.void),
                If(body.last, NextState("IDLE"))
            )
        )
        fsm.act("ASK",
            asker.source.connect(body),
            If(body.ready & body.last, NextState("IDLE"))
        )
        fsm.act("SKIP",
            words.ready.eq(header_in),
            payload.ready.eq(payload_in),
            If(words.valid & words.last, NextValue(header_in, 0)),
            If(payload.valid & payload_in & payload.last, NextValue(payload_in, 0)),
            If(~header_in & ~payload_in, NextState("IDLE"))
        )

# Bulk Transmitter ---------------------------------------------------------------------------------

class BulkTransmitter(LiteXModule):
    """From the send engine's packets to the link.

    Parameters
    ----------
    data_width : bits of payload lines and of the slots' lines

    Attributes
    ----------
    packets, payload, slot, node_id : as in PacketTransmitter
    flow   : Endpoint(flow_layout), out              to the lane's gate
    passed : Endpoint(passed_layout), in     from it
    reset  : Record(flow_reset_layout), in
    source : Endpoint(word_layout), out
    sent, withdrawn, word_sent : Signals, out        as in PacketSender
    """
    def __init__(self, data_width):
        self.packets = stream.Endpoint(send_layout())
        self.payload = stream.Endpoint(payload_layout(data_width))

        # # #

        self.queue  = queue  = PacketQueue()
        self.build  = build  = HeaderBuilder(data_width)
        self.words  = words  = BlockFIFO([("data", 32)], 32)
        self.buffer = buffer = SendBuffer(data_width)
        self.send   = send   = PacketSender(data_width)
        # a header must not wait for the link while it is built
        assert words.depth >= MAX_HEADER_WORDS

        self.slot      = build.slot
        self.node_id   = Signal(16)
        self.flow      = build.flow
        self.passed    = send.flow
        self.reset     = send.reset
        self.source    = send.source
        self.sent      = send.sent
        self.withdrawn = send.withdrawn
        self.word_sent = send.word_sent
        self.comb += [
            build.node_id.eq(self.node_id),
            send.node_id.eq(self.node_id),
            self.packets.connect(queue.sink),
            queue.source.connect(build.sink),
            build.words.connect(words.sink),
            words.source.connect(send.words),
            self.payload.connect(buffer.sink),
            buffer.source.connect(send.payload),
            send.void.eq(buffer.void),
        ]
