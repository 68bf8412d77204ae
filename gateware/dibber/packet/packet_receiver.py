"""The receiver of packets: checks, sequence, and delivery block by block."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, LANE, PACKET, PACKET_FLAG
from dibber.layouts import ack_layout, count_bits, deposit_layout, payload_layout, scout_layout
from dibber.packet.check import HEADER_CRC, PAYLOAD, HeaderChecker, WordInspector
from dibber.packet.chunk_inspector import ChunkInspector
from dibber.common.commit import CommitFIFO
from dibber.packet.header import BLOCK, LAST_LEVELS, LEVEL, NOTICE, SKIP, STRIDE_HIGH, flag, has_level
from dibber.common.pulses import Pulses
from dibber.packet.sequence import Sequencer
from dibber.common.places import Place, Row

# Flags that are allowed in each kind of packet. On lane EXPRESS, deposits and messages must have
# the flag EXPRESS.
DEPOSIT_FLAGS = PACKET_FLAG.FIRST | PACKET_FLAG.LAST | PACKET_FLAG.NOTICE | PACKET_FLAG.INTERRUPT
MESSAGE_FLAGS = PACKET_FLAG.FIRST | PACKET_FLAG.LAST
ACK_FLAGS     = PACKET_FLAG.REFUSED | PACKET_FLAG.NAK | PACKET_FLAG.EXPRESS | PACKET_FLAG.FIRST

# Acknowledgements and Scouts ----------------------------------------------------------------------

class ControlReceiver(LiteXModule):
    """Acknowledgements, scouts and their answers from channel CONTROL; it never stalls the channel.

    Parameters
    ----------
    chunks : the sink takes chunks of the bonded link. Then a chunk may wait some cycles until the
             words before it are judged, and nothing else

    Attributes
    ----------
    sink    : Endpoint(word_layout), in   always ready; with `chunks` Endpoint(chunk_layout())
    source  : Endpoint(ack_layout), out   one cycle; must be taken at once. `node` is its sender
    scouts  : Endpoint(scout_layout), out
    no_room : Signal(), out               one cycle: SCOUTS are waiting, this one is dropped
    checker : HeaderChecker

    Cycles: 1 from the last word to `source`.
    """
    def __init__(self, chunks=False):
        self.inspector = inspector = ChunkInspector(32) if chunks else WordInspector(extended=False)
        self.checker   = checker   = HeaderChecker(inspector.source, extended=False)
        self.sink      = inspector.sink
        self.source    = source    = stream.Endpoint(ack_layout())
        self.waiting   = waiting   = Row(scout_layout(), C.SCOUTS)
        self.scouts    = waiting.source
        self.no_room   = Signal()

        # # #

        fields       = checker.fields
        fields_wrong = Signal()
        length_wrong = Signal()
        ack          = Signal()
        scout        = Signal()
        reply        = Signal()
        self.comb += [
            inspector.source.ready.eq(1),
            checker.malformed.eq(fields_wrong | length_wrong),
            source.valid.eq(checker.good & ack),
            source.node.eq(fields["source"]),
            source.incarnation.eq(fields["incarnation"]),
            source.ack.eq(fields["ack"]),
            source.psn.eq(fields["psn"]),
            source.flags.eq(fields["flags"]),
            source.reason.eq(fields["key"]),
            source.refusals.eq(fields["offset_low"]),
            ack.eq(fields["kind"] == PACKET.ACK),
            scout.eq(fields["kind"] == PACKET.SCOUT),
            reply.eq(fields["kind"] == PACKET.SCOUT_REPLY),
            checker.anybody.eq(scout),
            waiting.sink.last.eq(1),
            waiting.sink.node.eq(fields["source"]),
            waiting.sink.reply.eq(reply),
            waiting.sink.number.eq(fields["key"]),
            waiting.sink.back.eq(fields["offset_low"]),
            self.no_room.eq(waiting.sink.valid & ~waiting.sink.ready),
        ]
        self.sync += [
            fields_wrong.eq(~(ack | scout | reply) | (fields["levels"] != 0)
                | ((fields["flags"] & Mux(ack, 0xff & ~ACK_FLAGS, 0xff)) != 0)),
            If(checker.at_length, length_wrong.eq(checker.coming["length"] != 0)),
            waiting.sink.valid.eq(checker.good & ~ack),
        ]

# Deposits and Messages ----------------------------------------------------------------------------

class DepositReceiver(LiteXModule):
    """Deposits from the channel of a lane; on EXPRESS also messages.

    A packet is announced at `deposits` if its header is good and it is the expected one. Its
    payload goes through a buffer, and each block becomes readable when its CRC was found good. If
    the rest of an announced packet is not good, a line without data ends it as an error. EXPRESS
    packets have one block.

    A message that finds no room in the inbox is dropped and reported as a gap, so it comes again.

    Parameters
    ----------
    data_width : bits of a payload line
    lane       : LANE.BULK or LANE.EXPRESS
    address_bits : width that is kept of offset and strides, 64 or 32
    width      : bits of payload that are taken in a cycle: 32, 64 or, with `chunks`, 256
    sequencer  : SequencerPort, if two receivers share a memory of flows; then the buffer has room for
                 a whole packet, and a header waits for `may`
    chunks     : the sink takes chunks of the bonded link; `width` is 32 or 256

    Attributes
    ----------
    sink     : Endpoint(word_layout(width)), in; with `chunks` Endpoint(chunk_layout())
    deposits : Endpoint(deposit_layout), out
    payload  : Endpoint(payload_layout), out    lines of a block come without gaps
    checker  : HeaderChecker
    started  : Record, out  `strobe`, `node`, `incarnation`: a flow starts
    repeat   : Record, out  `strobe`, `node`: a duplicate came, acknowledge again
    asked    : Record, out  `strobe`, `node`, `token`: a question came
    gap      : Record, out  `strobe`, `node`: a packet is missing; reported once until it comes
    entered  : Record, out  `strobe`, `node`: a packet with payload is announced
    absent   : Record, out  `strobe`, `node`, `incarnation`, `psn`: a packet came whose flow is not
               held; it is dropped
    forget   : Signal(), in   one cycle: forget all flows (see Sequencer)
    freed    : Signal(), in   lane EXPRESS, one cycle: one of the SLOTS slots of the inbox is free
               again
    received, payload_crc_error, truncated, stale, duplicate, missed, no_room : Signal(), out
               one cycle an event
    accepted_words : Signal(), out  payload words that became readable in this cycle
    may      : Signal(), in   with `sequencer`: the header that waits for its verdict may be judged
    enters   : Signal(), out  a packet is announced
    whole    : Signal(), out  pulse: a packet's last line is in the buffer, or a packet without
               payload is announced

    Cycles: 1 a word, and for `width` bits of payload. From the header's CRC to `deposits` 2, on BULK 3; from a block's CRC to
    `payload` 3.
    """
    def __init__(self, data_width, lane, address_bits=64, width=32, sequencer=None, chunks=False):
        self.inspector = inspector = (
            ChunkInspector(width) if chunks else WordInspector(extended=True, width=width))
        self.checker   = checker   = HeaderChecker(
            inspector.source, extended=True, address_bits=address_bits)
        self.sink      = inspector.sink
        self.deposits  = stream.Endpoint(deposit_layout(address_bits))
        self.payload   = payload = stream.Endpoint(payload_layout(data_width))
        self.started   = Record([("strobe", 1), ("node", 16), ("incarnation", 8)])
        self.repeat    = Record([("strobe", 1), ("node", 16)])
        self.gap       = Record([("strobe", 1), ("node", 16)])
        self.asked     = Record([("strobe", 1), ("node", 16), ("token", 16)])
        self.entered   = Record([("strobe", 1), ("node", 16)])
        self.absent    = Record([("strobe", 1), ("node", 16), ("incarnation", 8), ("psn", 16)])
        self.forget    = Signal()
        self.freed     = Signal()
        self.received          = Signal()
        self.payload_crc_error = Signal()
        self.truncated         = Signal()
        self.stale             = Signal()
        self.duplicate         = Signal()
        self.missed            = Signal()
        self.no_room           = Signal()
        self.accepted_words    = Signal(max=C.BLOCK_BYTES//4 + 1)
        self.may               = Signal()
        self.enters            = Signal()
        self.whole             = Signal()

        # # #

        lanes      = data_width//width
        line_bytes = data_width//8
        express    = lane == LANE.EXPRESS
        sink       = inspector.source
        fields     = checker.fields
        # Words of payload in the present word of the sink.
        amount     = 1 if width == 32 else Mux(sink.half, 1, 2) if width == 64 else sink.words

        # Form -------------------------------------------------------------------------------------
        # Registered: from the fields of the header's last word as it comes, and from the other
        # fields when they are stored.
        fields_wrong = Signal()
        length_wrong = Signal()
        message      = Signal()
        question     = Signal()
        forbidden    = lambda allowed: (fields["flags"] & (0xff & ~allowed)) != 0
        length       = checker.coming["length"]
        self.comb += checker.malformed.eq(fields_wrong | length_wrong)
        self.sync += question.eq(fields["kind"] == PACKET.QUESTION)
        if express:
            self.sync += [
                message.eq(fields["kind"] == PACKET.MESSAGE),
                fields_wrong.eq((fields["levels"] != 0) | ~flag(fields["flags"], "EXPRESS") | ~(
                    (
                        (fields["kind"] == PACKET.DEPOSIT) &
                        ~forbidden(DEPOSIT_FLAGS | PACKET_FLAG.EXPRESS)) |
                    (
                        (fields["kind"] == PACKET.MESSAGE) &
                        ~forbidden(MESSAGE_FLAGS | PACKET_FLAG.EXPRESS)) |
                    ((fields["kind"] == PACKET.QUESTION) & ~forbidden(PACKET_FLAG.EXPRESS)))),
                If(checker.at_length,
                    length_wrong.eq(
                        Mux(
                            message, length != C.MESSAGE_BYTES,
                            Mux(question, length != 0, length > C.INLINE_BYTES)))),
            ]
        else:
            self.sync += [
                fields_wrong.eq((fields["levels"] > LAST_LEVELS) | ~(
                    (
                        (fields["kind"] == PACKET.DEPOSIT) &
                        ~forbidden(DEPOSIT_FLAGS | PACKET_FLAG.RESPONSE)) |
                    (
                        (fields["kind"] == PACKET.QUESTION) & (fields["flags"] == 0) &
                        (fields["levels"] == 0)))),
                If(checker.at_length,
                    length_wrong.eq(Mux(question, length != 0, length > C.PACKET_PAYLOAD))
                ),
            ]

        # Header -----------------------------------------------------------------------------------
        # A deposit waits here for its engine while its blocks drain. The next header takes longer
        # to come than an engine's look-up, so one place is enough. BULK has a second place, for a
        # deposit whose walk is being set up.
        shared         = sequencer is not None
        self.sequencer = sequencer = sequencer or Sequencer()
        self.queue     = queue     = Place(deposit_layout(address_bits))
        expected       = Signal()
        execute        = Signal()
        no_room        = Signal()  # the inbox has no room for a message
        is_flow_packet = Signal()  # a good packet that is no question
        deposit        = queue.sink
        room           = queue.sink.ready & self.may if shared else queue.sink.ready
        self.comb += [
            sequencer.node.eq(fields["source"]),
            sequencer.incarnation.eq(fields["incarnation"]),
            sequencer.psn.eq(fields["psn"]),
            sequencer.first.eq(flag(fields["flags"], "FIRST")),
            sequencer.asked.eq(self.asked.strobe),
            *([] if shared else [sequencer.forget.eq(self.forget)]),
            self.absent.strobe.eq(is_flow_packet & sequencer.stale & sequencer.absent),
            self.absent.node.eq(fields["source"]),
            self.absent.incarnation.eq(fields["incarnation"]),
            self.absent.psn.eq(fields["psn"]),
            is_flow_packet.eq(checker.good & ~question),
            expected.eq(is_flow_packet & sequencer.execute),
            execute.eq(expected & ~(message & no_room)),
            self.no_room.eq(expected & message & no_room),
            self.stale.eq(is_flow_packet & sequencer.stale),
            self.duplicate.eq(is_flow_packet & sequencer.duplicate),
            self.missed.eq(is_flow_packet & sequencer.gap),
            # A flow also starts if its first packet finds no room.
            sequencer.accept.eq(execute | self.started.strobe),
            sequencer.missing.eq(self.missed | self.no_room),
            self.started.strobe.eq(expected & sequencer.fresh),
            self.started.node.eq(fields["source"]),
            self.started.incarnation.eq(fields["incarnation"]),
            self.repeat.strobe.eq(self.duplicate),
            self.repeat.node.eq(fields["source"]),
            self.gap.strobe.eq(sequencer.missing & (sequencer.fresh | ~sequencer.again)),
            self.gap.node.eq(fields["source"]),
            self.asked.strobe.eq(checker.good & question),
            self.asked.node.eq(fields["source"]),
            self.asked.token.eq(fields["psn"]),

            self.entered.strobe.eq(execute & ~sink.last),
            self.entered.node.eq(fields["source"]),
            deposit.valid.eq(execute),
            deposit.source.eq(fields["source"]),
            deposit.incarnation.eq(fields["incarnation"]),
            deposit.flags.eq(fields["flags"]),
            deposit.psn.eq(fields["psn"]),
            deposit.levels.eq(fields["levels"]),
            deposit.is_message.eq(message),
            deposit.context.eq(fields["ack"]),
            deposit.key.eq(fields["key"]),
            deposit.offset.eq(Cat(fields["offset_low"], fields["offset_high"])),
            deposit.length.eq(fields["length"]),
            deposit.notice.eq(checker.extension[NOTICE]),
            deposit.notice_length.eq(checker.extension[NOTICE + 1]),
            deposit.notice_endpoint.eq(checker.extension[NOTICE + 2]),
        ]
        if express:
            self.comb += queue.source.connect(self.deposits)
        else:
            extension = checker.extension
            self.ahead = ahead = Place(deposit_layout(address_bits))
            self.comb += [
                queue.source.connect(ahead.sink),
                ahead.source.connect(self.deposits),
                If(fields["levels"] != 0,
                    deposit.skip.eq(extension[SKIP]),
                    deposit.block.eq(extension[BLOCK]),
                ),
                *[
                    getattr(deposit, f"stride{n}").eq(
                        Cat(extension[LEVEL + 3*n], extension[LEVEL + 3*n + 1])
                        if address_bits == 64 else
                    extension[LEVEL + 3*n]) for n in range(C.LEVELS)],
                *[
                    getattr(deposit, f"count{n}").eq(extension[LEVEL + 3*n + 2])
                    for n in range(C.LEVELS)],
            ]

        # Bits that were cut off. The words of levels that a packet does not have are left over from
        # an earlier packet.
        if address_bits < 64:
            levels, listed = fields["levels"], fields["levels"][log2_int(C.LIST)]
            cut_off = [fields["offset_high"] != 0]
            if not express:
                unsigned, stride_high = 1, [extension[p] for p in STRIDE_HIGH]
                cut_off += [
                    has_level(levels, n) & stride_high[n][0] & (~listed if n == C.LEVELS - 1 else 1)
                    for n in range(C.LEVELS)]
                self.comb += deposit.list_far.eq(stride_high[-1][unsigned])
            self.comb += deposit.far.eq(reduce(or_, cut_off))

        # Inbox. A message takes its room when it is complete; no other message can come before.
        if express:
            messages_free = Signal(max=C.SLOTS + 1, reset=C.SLOTS)
            self.comb += no_room.eq(messages_free == 0)
            self.sync += messages_free.eq(messages_free + self.freed - (self.received & message))

        # Payload ----------------------------------------------------------------------------------
        # BULK: 2 KiB, which are eight blocks; one of them is being filled. EXPRESS: four messages.
        size        = 512 if express else C.PACKET_PAYLOAD if shared else 2048
        self.buffer = buffer = CommitFIFO(data_width + count_bits(data_width) + 2, size//line_bytes)
        taken           = Signal()                      # a word of payload is taken
        word            = Signal(max=C.BLOCK_BYTES//4 + 1)
        word_in_line    = Signal(max=max(lanes, 2))
        packet_ended    = Signal()               # the packet's last word was taken
        line            = Array(Signal(width, name=f"line{n}") for n in range(lanes))
        lines           = [Signal(width, name=f"out{n}") for n in range(lanes)]
        last_line_bytes = fields["length"][:log2_int(line_bytes)]
        count           = Signal(count_bits(data_width))
        last            = Signal()
        error           = Signal()
        self.comb += [
            # Only HEADER takes a header's CRC: the other states wait for a packet's last word.
            checker.room.eq(room),
            taken.eq(sink.valid & buffer.writable),
            *[lines[n].eq(Mux(word_in_line == n, sink.data, line[n])) for n in range(lanes)],
            count.eq(line_bytes),
            If(sink.final & (last_line_bytes != 0), count.eq(last_line_bytes)),
            buffer.din.eq(Cat(*lines, count, last, error)),
            Cat(payload.dat, payload.bytes, payload.last, payload.error).eq(buffer.dout),
            payload.valid.eq(buffer.readable),
            buffer.re.eq(payload.ready),
        ]
        self.fsm = fsm = FSM(reset_state="HEADER")
        fsm.act("HEADER",
            # A packet that is dropped is consumed here to its end. Only a deposit that will be
            # executed needs room in the queue.
            sink.ready.eq((sink.kind != HEADER_CRC) | room),
            NextValue(word, 0),
            NextValue(word_in_line, 0),
            NextValue(packet_ended, 0),
            If(execute,
                If(sink.last,
                    self.received.eq(1)
                ).Else(
                    NextState("PAYLOAD")
                )
            )
        )
        fsm.act("PAYLOAD",
            # Payload and block CRCs follow the header, until the last CRC ends the packet.
            If(sink.kind == PAYLOAD,
                sink.ready.eq(buffer.writable),
                last.eq(sink.final),
                If(taken,
                    NextValue(line[word_in_line], sink.data),
                    NextValue(word_in_line, word_in_line + 1 if lanes > 1 else 0),
                    NextValue(word, word + amount),
                    If(sink.last,
                        self.truncated.eq(1),
                        NextValue(packet_ended, 1),
                        NextState("CUT")
                    ).Else(
                        buffer.we.eq(sink.final | (word_in_line == lanes - 1)),
                    )
                )
            ).Else(
                sink.ready.eq(1),
                NextValue(packet_ended, sink.last),
                If(sink.valid,
                    NextValue(word, 0),
                    If((sink.last != sink.final) | (sink.last & sink.bad),
                        self.truncated.eq(1),
                        NextState("CUT")
                    ).Elif(~sink.match,
                        self.payload_crc_error.eq(1),
                        NextState("CUT")
                    ).Else(
                        buffer.commit.eq(1),
                        self.accepted_words.eq(word),
                        If(sink.last,
                            self.received.eq(1),
                            NextState("HEADER")
                        )
                    )
                )
            )
        )
        fsm.act("CUT",
            # Drop the present block from the buffer. This also makes room for the error line.
            buffer.rollback.eq(1),
            NextState("VOID")
        )
        fsm.act("VOID",
            last.eq(1),
            error.eq(1),
            If(buffer.writable,
                buffer.we.eq(1),
                buffer.commit.eq(1),
                NextState("DRAIN"),
                If(packet_ended, NextState("HEADER"))
            )
        )
        fsm.act("DRAIN",
            sink.ready.eq(1),
            If(sink.valid & sink.last, NextState("HEADER"))
        )
        self.comb += sequencer.complete.eq(self.received)
        if shared:
            self.comb += [
                self.enters.eq(execute),
                self.whole.eq(self.received | (fsm.ongoing("VOID") & buffer.writable)),
            ]

# Packet Receiver ----------------------------------------------------------------------------------

class PacketReceiver(LiteXModule):
    """Everything between the link and the engines that write host memory.

    Parameters
    ----------
    data_width : bits of payload lines
    address_bits : see DepositReceiver
    bulk_width : bits of a word of channel BULK, 32 or 64; 256 for a BondedPort, whose channels all
                 give chunks

    Attributes
    ----------
    sinks    : list of Endpoint(word_layout), indexed by enum channel: CONTROL, EXPRESS, BULK. That
               of BULK has `bulk_width`
    node_id  : Signal(16), in
    acks     : Endpoint(ack_layout), out   one cycle; must be taken at once
    scouts   : Endpoint(scout_layout), out
    lanes    : DepositReceivers, indexed by enum lane
    deposits, payload                 : of lane BULK
    express_deposits, express_payload : of lane EXPRESS
    inbox_freed : Signal(), in   a slot of the inbox is free again
    forget   : Signal(), in   one cycle: forget all flows (see Sequencer)
    counters : dict of pulses: PACKETS_RECEIVED, BYTES_RECEIVED, HEADER_CRC_ERROR,
               PAYLOAD_CRC_ERROR, PACKET_TRUNCATED (also for headers that contradict themselves),
               PACKET_WRONG_NODE, PACKET_STALE, PACKET_DUPLICATE, PACKET_GAP, MESSAGE_NO_ROOM,
               SCOUT_NO_ROOM, NAKS_RECEIVED
    """
    def __init__(self, data_width, address_bits=64, bulk_width=32):
        self.node_id = Signal(16)

        # # #

        chunks = bulk_width == 256
        self.ack     = ack     = ControlReceiver(chunks)
        self.express = express = DepositReceiver(
            data_width, LANE.EXPRESS, address_bits, chunks=chunks)
        self.bulk    = bulk    = DepositReceiver(
            data_width, LANE.BULK, address_bits, bulk_width, chunks=chunks)
        self.lanes   = [express, bulk]
        self.sinks   = [ack.sink, express.sink, bulk.sink]
        self.acks    = ack.source
        self.scouts  = ack.scouts
        self.deposits         = bulk.deposits
        self.payload          = bulk.payload
        self.express_deposits = express.deposits
        self.express_payload  = express.payload
        self.inbox_freed      = express.freed
        self.forget           = Signal()
        self.comb += [lane.forget.eq(self.forget) for lane in self.lanes]
        checkers = [ack.checker, express.checker, bulk.checker]
        self.comb += [checker.node_id.eq(self.node_id) for checker in checkers]

        # Several channels can end a packet in the same cycle.
        of_lanes = lambda name: [getattr(lane, name) for lane in self.lanes]
        of_all   = lambda name: [getattr(checker, name) for checker in checkers]
        self.pulses = pulses = {
            "PACKETS_RECEIVED":  Pulses(
                ack.checker.good, *of_lanes("received"),
                *[lane.asked.strobe for lane in self.lanes]),
            # Words of both lanes come at the link's rate, or faster out of its slack buffers.
            "BYTES_RECEIVED":    Pulses(
                *of_lanes("accepted_words"), bits=10, most=bulk_width//32),
            "HEADER_CRC_ERROR":  Pulses(*of_all("crc_error")),
            "PAYLOAD_CRC_ERROR": Pulses(*of_lanes("payload_crc_error")),
            "PACKET_TRUNCATED":  Pulses(*of_all("truncated"), *of_lanes("truncated"), bits=4),
            "PACKET_WRONG_NODE": Pulses(*of_all("wrong_node")),
            "PACKET_STALE":      Pulses(*of_lanes("stale")),
            "PACKET_DUPLICATE":  Pulses(*of_lanes("duplicate")),
            "PACKET_GAP":        Pulses(*of_lanes("missed")),
        }
        self.submodules += list(pulses.values())
        self.counters = {
            **{name: counter.pulse for name, counter in pulses.items()},
            "MESSAGE_NO_ROOM": express.no_room,
            "SCOUT_NO_ROOM":   ack.no_room,
            "NAKS_RECEIVED":   ack.source.valid & flag(ack.source.flags, "NAK"),
        }
