"""Transmitter of channel CONTROL: acknowledgements and scouts. docs/design/packets.md."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, CHANNEL, PACKET
from dibber.layouts import ack_layout, scout_layout
from dibber.packet.header import header_words
from dibber.packet.line_seal import LineSealer
from dibber.packet.seal import PacketSealer

class ControlTransmitter(LiteXModule):
    """Turn acknowledgements, scouts and their answers into packets that are only a header.

    If both are waiting they alternate. One packet is made at a time, so both kinds share the
    header's words and the sealer.

    Parameters
    ----------
    lines : the source has lines with CRCs for a bonded port, in place of words

    Attributes
    ----------
    acks    : Endpoint(ack_layout), in     taken with `left`; the next acknowledgement starts after
              that
    left    : Signal(), in                 the last word of the acknowledgement's packet goes to the
              link
    scouts  : Endpoint(scout_layout), in   scouts (who is at the end of a route?) and answers to
              send
    node_id : Signal(16), in
    source  : Endpoint(word_layout), out; with `lines` Endpoint(sealed_line_layout())
    scout   : Signal(), out                the packet at the source is a scout
    route   : Signal(32), out              the route of this scout
    sent    : Signal(), out                one cycle for each scout

    Cycles: 1 from `acks` to `source`, 2 from `scouts`, then a word a cycle; 2 between packets. With
    `lines`: a line 11 cycles behind `acks`, and 7 between packets.
    """
    def __init__(self, lines=False):
        self.acks    = acks   = stream.Endpoint(ack_layout())
        self.left    = Signal()
        # A buffer, because the requester of a scout may be reset while its packet leaves.
        self.buffer  = buffer = stream.Buffer(scout_layout())
        self.scouts  = buffer.sink
        self.node_id = Signal(16)
        self.scout   = latest = Signal()  # the present or last packet is a scout
        self.route   = buffer.source.route
        self.sent    = Signal()

        # # #

        scout_sink         = buffer.source
        self.seal   = seal = LineSealer() if lines else PacketSealer(CHANNEL.CONTROL, blocks=False)
        self.source = seal.source
        ack_leaving = Signal()  # the packet of the acknowledgement at `acks` has been made
        ack_pending = Signal()
        in_packet   = Signal()  # a packet has begun
        scout       = Signal()  # this or the next one is a scout
        index       = Signal(max=C.HEADER_WORDS + 1)
        choose      = lambda of_scout, of_ack: Mux(scout, of_scout, of_ack)
        words, assign = header_words(
            source=self.node_id, target=choose(scout_sink.node, acks.node),
            kind=choose(Mux(scout_sink.reply, PACKET.SCOUT_REPLY, PACKET.SCOUT), PACKET.ACK),
            flags=choose(0, acks.flags), incarnation=choose(0, acks.incarnation),
            psn=choose(0, acks.psn),
            ack=choose(0, acks.ack), key=choose(scout_sink.number, acks.reason),
            offset_low=choose(scout_sink.back, acks.refusals))
        self.comb += [
            assign,
            ack_pending.eq(acks.valid & ~ack_leaving),
            scout.eq(Mux(in_packet, latest, scout_sink.valid & (~ack_pending | ~latest))),
            seal.sink.valid.eq((scout_sink.valid | ack_pending) & (index != C.HEADER_WORDS)),
            seal.sink.last.eq(index == C.HEADER_WORDS - 1),
            seal.sink.seal.eq(seal.sink.last),
            Case(index, {i: seal.sink.data.eq(word) for i, word in enumerate(words)}),
            acks.ready.eq(self.left),
            scout_sink.ready.eq(seal.ended & scout),
            self.sent.eq(scout_sink.ready),
        ]
        self.sync += [
            If(seal.sink.valid,
                in_packet.eq(1),
                latest.eq(scout),
                If(seal.sink.ready, index.eq(index + 1)),
            ),
            If(self.left, ack_leaving.eq(0)),
            If(seal.ended,
                in_packet.eq(0),
                index.eq(0),
                If(~scout, ack_leaving.eq(1)),
            ),
        ]

class ControlExit(LiteXModule):
    """The last register of channel CONTROL, which is not urgent: its choice and its route are split.

    Parameters
    ----------
    layout : of both streams; with lines, a packet has one

    Attributes
    ----------
    sink   : Endpoint(layout), in    from ControlTransmitter through its gate; lines through the
             router
    source : Endpoint(layout), out   to the router; lines to the link
    scout  : Signal(), in            of ControlTransmitter. It is valid here: when a packet's first
             word enters the register, the sealer still holds this packet
    hold   : Signal(), in            an acknowledgement does not end yet
    left   : Signal(), out           the last word of an acknowledgement leaves

    Cycles: 1; a word a cycle.
    """
    def __init__(self, layout):
        self.chosen = chosen = stream.PipeValid(layout)
        self.sink   = chosen.sink
        self.source = source = stream.Endpoint(layout)
        self.scout  = Signal()
        self.hold   = Signal()
        self.left   = Signal()

        # # #

        ack_ends = Signal()  # the present word is the last one of an acknowledgement
        scout    = Signal()  # the present packet is a scout
        self.comb += [
            chosen.source.connect(source, omit={"valid", "ready"}),
            source.valid.eq(chosen.source.valid & ~(ack_ends & self.hold)),
            chosen.source.ready.eq(source.ready & ~(ack_ends & self.hold)),
            ack_ends.eq(chosen.source.last & ~scout),
            self.left.eq(ack_ends & source.valid & source.ready),
        ]
        self.sync += If(chosen.sink.ready & chosen.sink.valid & chosen.sink.first,
            scout.eq(self.scout)
        )
