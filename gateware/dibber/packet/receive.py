# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Packets from the link: checked, put in sequence, and handed on block by block."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, PACKET, PACKET_FLAG
from dibber.layouts import ack_layout, deposit_layout, payload_layout, word_layout
from dibber.packet.check import HeaderChecker
from dibber.packet.commit import CommitFIFO
from dibber.packet.crc import CRC32C
from dibber.packet.header import BLOCK, LEVEL, NOTICE, SKIP, flag
from dibber.packet.pulses import Pulses
from dibber.packet.sequence import Sequencer

# Flags that a packet of each kind may have.
DEPOSIT_FLAGS = PACKET_FLAG.FIRST | PACKET_FLAG.LAST | PACKET_FLAG.NOTICE | PACKET_FLAG.INTERRUPT
ACK_FLAGS     = PACKET_FLAG.REFUSED | PACKET_FLAG.NAK

# Acknowledgements ---------------------------------------------------------------------------------

class AckReceiver(LiteXModule):
    """Acknowledgements from the CONTROL channel. Never holds it up.

    Attributes
    ----------
    sink    : Endpoint(word_layout), in   always ready
    source  : Endpoint(ack_layout), out   one cycle; must be taken at once. `node` is who sent it
    checker : HeaderChecker

    Cycles: 1 from the last word to `source`.
    """
    def __init__(self):
        self.sink    = sink    = stream.Endpoint(word_layout())
        self.source  = source  = stream.Endpoint(ack_layout())
        self.checker = checker = HeaderChecker(sink, extended=False)

        # # #

        fields = checker.fields
        self.comb += [
            sink.ready.eq(1),
            checker.malformed.eq((fields["kind"] != PACKET.ACK) | (fields["levels"] != 0)
                | ((fields["flags"] & (0xff & ~ACK_FLAGS)) != 0) | (fields["length"] != 0)),
            source.node.eq(fields["source"]),
            source.incarnation.eq(fields["incarnation"]),
            source.ack.eq(fields["ack"]),
            source.psn.eq(fields["psn"]),
            source.flags.eq(fields["flags"]),
            source.reason.eq(fields["key"]),
        ]
        self.sync += source.valid.eq(checker.good)

# Deposits -----------------------------------------------------------------------------------------

class DepositReceiver(LiteXModule):
    """Deposits from the REQUEST channel.

    A deposit is announced when its header is good and it is the expected packet. Its payload goes into
    the block buffer, and out of it block by block as their CRCs are found good. When the rest of an
    announced packet is not good, a line without data ends it as an error.

    Parameters
    ----------
    data_width : bits of a payload line

    Attributes
    ----------
    sink     : Endpoint(word_layout), in
    deposits : Endpoint(deposit_layout), out
    payload  : Endpoint(payload_layout), out
    checker  : HeaderChecker
    started  : Record, out  `strobe`, `node`, `incarnation`: a flow starts
    repeat   : Record, out  `strobe`, `node`: a duplicate came, to be acknowledged again
    gap      : Record, out  `strobe`, `node`: a packet is missing; once until it comes
    received, payload_crc_error, truncated, stale, duplicate, missed : Signal(), out  one cycle an event
    accepted_words : Signal(), out  payload words that became readable in this cycle

    Cycles: 1 a word. From the header's CRC to `deposits` 1; from a block's CRC to `payload` 2.
    """
    def __init__(self, data_width):
        self.sink     = sink     = stream.Endpoint(word_layout())
        self.deposits = stream.Endpoint(deposit_layout())
        self.payload  = payload  = stream.Endpoint(payload_layout(data_width))
        self.checker  = checker  = HeaderChecker(sink, extended=True)
        self.started  = Record([("strobe", 1), ("node", 16), ("incarnation", 8)])
        self.repeat   = Record([("strobe", 1), ("node", 16)])
        self.gap      = Record([("strobe", 1), ("node", 16)])
        self.received          = Signal()
        self.payload_crc_error = Signal()
        self.truncated         = Signal()
        self.stale             = Signal()
        self.duplicate         = Signal()
        self.missed            = Signal()
        self.accepted_words    = Signal(max=C.BLOCK_BYTES//4 + 1)

        # # #

        lanes       = data_width//32
        line_bytes  = data_width//8
        block_words = C.BLOCK_BYTES//4
        fields      = checker.fields

        # Header -----------------------------------------------------------------------------------
        # Four announced deposits may wait for the engine while blocks of the first still drain.
        self.sequencer = sequencer = Sequencer()
        self.queue     = queue     = stream.SyncFIFO(deposit_layout(), 4)
        execute = Signal()
        deposit = queue.sink
        walked  = Signal()
        self.comb += [
            queue.source.connect(self.deposits),
            checker.malformed.eq((fields["kind"] != PACKET.DEPOSIT) | (fields["levels"] > C.LEVELS)
                | ((fields["flags"] & (0xff & ~DEPOSIT_FLAGS)) != 0)
                | (fields["length"] > C.PACKET_PAYLOAD)),
            sequencer.node.eq(fields["source"]),
            sequencer.incarnation.eq(fields["incarnation"]),
            sequencer.psn.eq(fields["psn"]),
            sequencer.first.eq(flag(fields["flags"], "FIRST")),
            sequencer.accept.eq(execute),
            execute.eq(checker.good & sequencer.execute),
            self.stale.eq(checker.good & sequencer.stale),
            self.duplicate.eq(checker.good & sequencer.duplicate),
            self.missed.eq(checker.good & sequencer.gap),
            sequencer.missing.eq(self.missed),
            self.started.strobe.eq(execute & sequencer.fresh),
            self.started.node.eq(fields["source"]),
            self.started.incarnation.eq(fields["incarnation"]),
            self.repeat.strobe.eq(self.duplicate),
            self.repeat.node.eq(fields["source"]),
            self.gap.strobe.eq(self.missed & ~sequencer.again),
            self.gap.node.eq(fields["source"]),

            walked.eq(fields["levels"] != 0),
            deposit.valid.eq(execute),
            deposit.source.eq(fields["source"]),
            deposit.incarnation.eq(fields["incarnation"]),
            deposit.flags.eq(fields["flags"]),
            deposit.psn.eq(fields["psn"]),
            deposit.levels.eq(fields["levels"]),
            deposit.key.eq(fields["key"]),
            deposit.offset.eq(Cat(fields["offset_low"], fields["offset_high"])),
            deposit.length.eq(fields["length"]),
            If(walked,
                deposit.skip.eq(checker.extension[SKIP]),
                deposit.block.eq(checker.extension[BLOCK]),
            ),
            *[getattr(deposit, f"stride{n}").eq(Cat(checker.extension[LEVEL + 3*n],
                checker.extension[LEVEL + 3*n + 1])) for n in range(C.LEVELS)],
            *[getattr(deposit, f"count{n}").eq(checker.extension[LEVEL + 3*n + 2]) for n in range(C.LEVELS)],
            deposit.notice.eq(checker.extension[NOTICE]),
            deposit.notice_length.eq(checker.extension[NOTICE + 1]),
            deposit.notice_endpoint.eq(checker.extension[NOTICE + 2]),
        ]

        # Payload ----------------------------------------------------------------------------------
        # Two KiB: eight blocks, of which one is being filled.
        self.buffer = buffer = CommitFIFO(data_width + 7, 2048//line_bytes)
        self.crc    = crc    = CRC32C()
        taken   = Signal()
        word    = Signal(max=block_words + 1)
        left    = Signal(max=C.PACKET_PAYLOAD//4 + 1)
        lane    = Signal(max=lanes)
        block   = Signal(max=C.PACKET_PAYLOAD//C.BLOCK_BYTES + 1)
        base    = Signal(32)                    # the header's CRC
        final   = Signal()
        ended   = Signal()                      # the packet's last word was taken
        line    = Array(Signal(32, name=f"line{n}") for n in range(lanes))
        lines   = [Signal(32, name=f"out{n}") for n in range(lanes)]
        count   = Signal(5)
        last    = Signal()
        error   = Signal()
        self.comb += [
            taken.eq(sink.valid & sink.ready),
            crc.word.eq(sink.data),
            final.eq(left == 1),
            *[lines[n].eq(Mux(lane == n, sink.data, line[n])) for n in range(lanes)],
            count.eq(line_bytes),
            If(final & (fields["length"][:log2_int(line_bytes)] != 0),
                count.eq(fields["length"][:log2_int(line_bytes)])),
            buffer.din.eq(Cat(*lines, count, last, error)),
            Cat(payload.dat, payload.bytes, payload.last, payload.error).eq(buffer.dout),
            payload.valid.eq(buffer.readable),
            buffer.re.eq(payload.ready),
        ]
        self.fsm = fsm = FSM(reset_state="HEADER")
        fsm.act("HEADER",
            # A packet that is dropped is taken here to its end; only a deposit that is to be executed
            # needs room in the queue.
            sink.ready.eq(~checker.at_crc | queue.sink.ready),
            crc.load.eq(1),
            crc.seed.eq(checker.header_crc),
            NextValue(base, checker.header_crc),
            NextValue(left, (fields["length"] + 3)[2:]),
            NextValue(word, 0),
            NextValue(lane, 0),
            NextValue(block, 0),
            NextValue(ended, 0),
            If(execute,
                If(sink.last,
                    self.received.eq(1)
                ).Else(
                    NextState("PAYLOAD")
                )
            )
        )
        fsm.act("PAYLOAD",
            sink.ready.eq(buffer.writable),
            last.eq(final),
            If(taken,
                crc.step.eq(1),
                NextValue(line[lane], sink.data),
                NextValue(lane, lane + 1),
                NextValue(left, left - 1),
                NextValue(word, word + 1),
                If(sink.last,
                    self.truncated.eq(1),
                    NextValue(ended, 1),
                    NextState("CUT")
                ).Else(
                    buffer.we.eq(final | (lane == lanes - 1)),
                    If(final | (word == block_words - 1), NextState("BLOCK-CRC"))
                )
            )
        )
        fsm.act("BLOCK-CRC",
            sink.ready.eq(1),
            crc.load.eq(taken),
            crc.seed.eq(base ^ (block + 1)),
            NextValue(ended, sink.last),
            If(taken,
                NextValue(word, 0),
                NextValue(block, block + 1),
                If((sink.last != (left == 0)) | (sink.last & sink.bad),
                    self.truncated.eq(1),
                    NextState("CUT")
                ).Elif(sink.data != crc.value,
                    self.payload_crc_error.eq(1),
                    NextState("CUT")
                ).Else(
                    buffer.commit.eq(1),
                    self.accepted_words.eq(word),
                    NextState("PAYLOAD"),
                    If(sink.last,
                        self.received.eq(1),
                        NextState("HEADER")
                    )
                )
            )
        )
        fsm.act("CUT",
            # What of the block is in the buffer goes, which makes room for the line that ends the packet.
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
                If(ended, NextState("HEADER"))
            )
        )
        fsm.act("DRAIN",
            sink.ready.eq(1),
            If(taken & sink.last, NextState("HEADER"))
        )
        self.comb += sequencer.complete.eq(self.received)

# Packet Receiver ----------------------------------------------------------------------------------

class PacketReceiver(LiteXModule):
    """Everything between the link and the scatter engine.

    Parameters
    ----------
    data_width : bits of payload lines

    Attributes
    ----------
    sinks    : one Endpoint(word_layout) for each of CONTROL and REQUEST
    node_id  : Signal(16), in
    acks     : Endpoint(ack_layout), out   one cycle; must be taken at once
    deposits : Endpoint(deposit_layout), out
    payload  : Endpoint(payload_layout), out
    started, repeat, gap : events for the Acknowledger, see DepositReceiver
    counters : dict of pulses: PACKETS_RECEIVED, BYTES_RECEIVED, HEADER_CRC_ERROR, PAYLOAD_CRC_ERROR,
               PACKET_TRUNCATED (and contradictory headers), PACKET_WRONG_NODE, PACKET_STALE,
               PACKET_DUPLICATE, PACKET_GAP
    """
    def __init__(self, data_width):
        self.node_id = Signal(16)

        # # #

        self.ack     = ack     = AckReceiver()
        self.deposit = deposit = DepositReceiver(data_width)
        self.sinks    = [ack.sink, deposit.sink]
        self.acks     = ack.source
        self.deposits = deposit.deposits
        self.payload  = deposit.payload
        self.started, self.repeat, self.gap = deposit.started, deposit.repeat, deposit.gap
        self.comb += [
            ack.checker.node_id.eq(self.node_id),
            deposit.checker.node_id.eq(self.node_id),
        ]

        # Both channels can end a packet in one cycle.
        a, d = ack.checker, deposit.checker
        self.packets    = Pulses(a.good, deposit.received)
        self.words      = Pulses(deposit.accepted_words, bits=8)
        self.crc_errors = Pulses(a.crc_error, d.crc_error)
        self.truncated  = Pulses(a.truncated, d.truncated, deposit.truncated)
        self.wrong_node = Pulses(a.wrong_node, d.wrong_node)
        self.counters = {
            "PACKETS_RECEIVED":  self.packets.pulse,
            "BYTES_RECEIVED":    self.words.pulse,
            "HEADER_CRC_ERROR":  self.crc_errors.pulse,
            "PAYLOAD_CRC_ERROR": deposit.payload_crc_error,
            "PACKET_TRUNCATED":  self.truncated.pulse,
            "PACKET_WRONG_NODE": self.wrong_node.pulse,
            "PACKET_STALE":      deposit.stale,
            "PACKET_DUPLICATE":  deposit.duplicate,
            "PACKET_GAP":        deposit.missed,
        }
