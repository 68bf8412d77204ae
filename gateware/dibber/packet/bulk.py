"""BULK packets: header and payload from host memory."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, CHANNEL, LANE
from dibber.layouts import payload_layout, send_layout
from dibber.packet.build import HeaderBuilder
from dibber.common.commit import CommitFIFO
from dibber.packet.flow_table import flow_reset_layout, passed_layout
from dibber.packet.header import MAX_HEADER_WORDS, field_of, header_word
from dibber.packet.line_seal import LineSealer
from dibber.packet.pairs import PairJoiner
from dibber.packet.question import Asker
from dibber.packet.seal import PacketSealer, UnderWay
from dibber.common.places import BlockFIFO

QUEUED  = 16          # packets that can queue while a long one leaves
# Largest number of packets with payload in the buffer: being built, at the gate, or leaving.
PACKETS = 2*QUEUED

# Layout -------------------------------------------------------------------------------------------

def line_layout(data_width):
    """A line of a packet's payload. `void` on the `last` line: the packet ends here as bad."""
    return stream.EndpointDescription([("dat", data_width), ("void", 1)])

# Packet Queue -------------------------------------------------------------------------------------

class PacketQueue(LiteXModule):
    """Queue of packets whose headers are not built yet.

    Members that are not needed at once are in block RAM, because LUT memory takes six LUT4 for four
    bits.

    Attributes
    ----------
    sink, source : Endpoint(send_layout); the source's members LATE come 2 cycles after `valid`

    Cycles: 1; at most one packet every 2 cycles.
    """
    LATE = ("node", "incarnation", "epoch", "psn", "skip", "message")

    def __init__(self):
        self.sink   = sink   = stream.Endpoint(send_layout())
        self.source = source = stream.Endpoint(send_layout())

        # # #

        names   = [name for name, *_ in source.description.payload_layout]
        members = lambda endpoint, late: [
            getattr(endpoint, name) for name in names if (name in self.LATE) == late]
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
    """Buffer of payload lines for the sender.

    Attributes
    ----------
    sink   : Endpoint(payload_layout), in
    source : Endpoint(line_layout), out
    void   : Signal(), out    the packet at `source` is void, and all of it is here

    Cycles: 2. It holds two packets of PACKET_PAYLOAD: one fills while the other leaves.
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

        # For each packet whose last line is here: whether it is void.
        self.ends = ends = stream.SyncFIFO([("void", 1)], PACKETS)
        self.comb += [
            ends.sink.valid.eq(sink.valid & sink.ready & sink.last),
            ends.sink.void.eq(sink.error),
            ends.source.ready.eq(source.valid & source.ready & source.last),
            self.void.eq(ends.source.valid & ends.source.void),
        ]

# Packet Sender ------------------------------------------------------------------------------------

class PacketSender(LiteXModule):
    """Assemble packets from header words, the gate's incarnation, and payload lines.

    A packet that comes as `stale` is dropped. For a `question` its target is asked, and the packet
    stays. A packet starts when it has passed the gate: its payload is read from host memory while
    the header leaves, and then waits only for the link. If the packet becomes void it ends as bad.
    A packet that is void before it starts is dropped, because its slot may hold another command by
    now. A rewind of its flow lets the packet finish; a reset ends it as bad.

    Parameters
    ----------
    data_width : bits of a payload line
    width      : bits of payload that leave in a cycle: 32, 64 or, by lines, 256

    Attributes
    ----------
    words   : Endpoint([("data", 32)]), in         from HeaderBuilder
    flow    : Endpoint(passed_layout), in  from the gate
    payload : Endpoint(line_layout), in            from SendBuffer
    void    : Signal(), in                         from SendBuffer
    reset   : Record(flow_reset_layout), in
    node_id : Signal(16), in
    source  : Endpoint(word_layout(width)), out    `bad` on the last word of a packet to be dropped;
              by lines Endpoint(sealed_line_layout())
    sent      : Signal(), out  one cycle when a whole packet has left
    withdrawn : Signal(), out  one cycle when a packet is dropped
    word_sent : Signal, out    number of payload words that leave

    Cycles: 1 a word of the header, a CRC, and `width` bits of payload; 2 from the gate to the first
    word, and between packets. By lines: 1 a word of the header and a line of payload; 7 from the
    last item of a packet to the first one of the next, which waits until the packet has left.
    """
    def __init__(self, data_width, width=32):
        self.words   = words   = stream.Endpoint([("data", 32)])
        self.flow    = flow    = stream.Endpoint(passed_layout())
        self.payload = payload = stream.Endpoint(line_layout(data_width))
        self.void    = Signal()
        self.reset   = Record(flow_reset_layout())
        self.withdrawn = Signal()

        # # #

        lanes       = data_width//width  # words in a line
        word_bytes  = width//8
        block_words = C.BLOCK_BYTES//word_bytes

        self.seal      = seal      = (
            LineSealer(width) if width == 256 else PacketSealer(CHANNEL.BULK, width=width))
        self.under_way = under_way = UnderWay(LANE.BULK)
        self.asker     = asker     = Asker(flags=0)
        becomes_void = Signal()  # the packet under way becomes void
        packet_void  = Signal()
        self.sync += [
            If(seal.ended, packet_void.eq(0)),
            If(becomes_void, packet_void.eq(1)),
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
            seal.dead.eq(under_way.dead | packet_void),
            asker.node.eq(flow.node),
            asker.token.eq(flow.token),
        ]

        body          = seal.sink
        lane          = Signal(max=max(lanes, 2))
        word_in_block = Signal(max=block_words)              # in the block
        words_left    = Signal(max=C.PACKET_PAYLOAD//word_bytes + 1)  # payload words
        # bytes of the last payload word, 0 for all
        last_bytes = Signal(log2_int(word_bytes))
        final      = Signal()
        line_word  = Signal(width)
        # header words of this packet are still to come
        header_in   = Signal()
        # payload lines of this packet are still to come
        payload_in  = Signal()
        # Index of the header word; it stops after the word with the incarnation.
        index            = Signal(max=header_word("incarnation") + 2)
        link_incarnation = Signal(8)                       # as it is on the link
        self.comb += [
            final.eq(words_left == 1),
            Case(lane, {i: line_word.eq(payload.dat[width*i:width*(i + 1)]) for i in range(lanes)}),
        ]
        self.fsm = fsm = FSM(reset_state="IDLE")
        if width == 64:
            # Words go alone but for the payload. Its last one does so if it has four bytes or less.
            self.comb += body.half.eq(~fsm.ongoing("PAYLOAD") |
                (final & (last_bytes != 0) & (last_bytes <= 4)))
        if width == 256:
            self.comb += body.words.eq(
                Mux(final & (last_bytes != 0), (last_bytes + 3)[2:], word_bytes//4))
        fsm.act("IDLE",
            NextValue(words_left, (flow.length + (word_bytes - 1))[log2_int(word_bytes):]),
            NextValue(last_bytes, flow.length[:len(last_bytes)]),
            NextValue(word_in_block, 0),
            NextValue(lane, 0),
            NextValue(header_in, 1),
            NextValue(payload_in, flow.length != 0),
            NextValue(index, 0),
            NextValue(link_incarnation, flow.number),
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
            If(index == header_word("incarnation"),
                field_of(body.data, "incarnation").eq(link_incarnation)
            ),
            If(body.valid & body.ready & (index <= header_word("incarnation")),
                NextValue(index, index + 1)
            ),
            body.seal.eq(words.last),
            body.last.eq(words.last & (words_left == 0)),
            If(body.valid & body.ready & body.seal,
                NextState("PAYLOAD"),
                If(body.last, NextState("IDLE"))
            )
        )
        fsm.act("PAYLOAD",
            body.valid.eq(payload.valid),
            body.data.eq(line_word),
            # Bytes of the line after the packet's last byte are sent as 0: they must not leave the
            # card.
            If(final, Case(last_bytes, {
                0: [],
                **{n: body.data[8*n:].eq(0) for n in range(1, word_bytes)}})),
            body.seal.eq(final | payload.void | (word_in_block == block_words - 1)),
            body.last.eq(final | payload.void),
            If(body.valid & body.ready,
                NextValue(words_left, words_left - 1),
                NextValue(word_in_block, word_in_block + 1),
                NextValue(lane, lane + 1 if lanes > 1 else 0),
                payload.ready.eq(final | payload.void | (lane == lanes - 1)),
                becomes_void.eq(payload.void),
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
    width      : as of PacketSender

    Attributes
    ----------
    packets, payload, slot, node_id : as in PacketTransmitter
    flow   : Endpoint(flow_layout), out              to the lane's gate
    passed : Endpoint(passed_layout), in             from the lane's gate
    reset  : Record(flow_reset_layout), in
    source : Endpoint, out                           as of PacketSender
    sent, withdrawn, word_sent : Signals, out        as in PacketSender
    """
    def __init__(self, data_width, width=32):
        self.packets = stream.Endpoint(send_layout())
        self.payload = stream.Endpoint(payload_layout(data_width))

        # # #

        self.queue  = queue  = PacketQueue()
        self.build  = build  = HeaderBuilder(data_width)
        self.words  = words  = BlockFIFO([("data", 32)], 32)
        self.buffer = buffer = SendBuffer(data_width)
        self.send   = send   = PacketSender(data_width, width)
        # The header of one packet must fit, so that its building does not wait for the link.
        assert words.depth >= MAX_HEADER_WORDS

        self.slot      = build.slot
        self.node_id   = Signal(16)
        self.flow      = build.flow
        self.passed    = send.flow
        self.reset     = send.reset
        self.source    = send.source
        if width == 64:
            self.joiner = joiner = PairJoiner()
            self.source = joiner.source
            self.comb  += send.source.connect(joiner.sink)
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
