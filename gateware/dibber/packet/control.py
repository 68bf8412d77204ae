"""What leaves on channel CONTROL: acknowledgements, and scouts. docs/design/packets.md."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, CHANNEL, PACKET
from dibber.layouts import ack_layout, scout_layout
from dibber.packet.header import header_words
from dibber.packet.seal import PacketSealer

class ControlTransmitter(LiteXModule):
    """Turn acknowledgements, scouts and their answers into packets of a header alone, by turns when
    both are there.

    One is made at a time, so that they share the header's words and the sealer.

    Attributes
    ----------
    acks    : Endpoint(ack_layout), in     taken with `left`; until then no other acknowledgement
              begins
    left    : Signal(), in                 the last word of the acknowledgement's packet goes to the
              link
    scouts  : Endpoint(scout_layout), in   who asks who is at the end of a route, and the answers
    node_id : Signal(16), in
    source  : Endpoint(word_layout), out
    scout   : Signal(), out                the packet at the source is a scout
    route   : Signal(32), out              and this its route
    sent    : Signal(), out                one cycle for each scout

    Cycles: 1 from `acks` to `source`, 2 from `scouts`, then a word a cycle; 2 between packets.
    """
    def __init__(self):
        self.acks    = acks   = stream.Endpoint(ack_layout())
        self.left    = Signal()
        # What asked for a scout may be reset while the packet leaves.
        self.buffer  = buffer = stream.Buffer(scout_layout())
        self.scouts  = buffer.sink
        self.node_id = Signal(16)
        self.scout   = latest = Signal()  # it is a scout, or the last one was
        self.route   = buffer.source.route
        self.sent    = Signal()

        # # #

        ask         = buffer.source
        self.seal   = seal = PacketSealer(CHANNEL.CONTROL, blocks=False)
        self.source = seal.source
        leaving = Signal()  # the acknowledgement is made
        tell    = Signal()
        inside  = Signal()  # a packet has begun
        scout   = Signal()  # this or the next one is a scout
        index   = Signal(max=C.HEADER_WORDS + 1)
        either  = lambda of_scout, of_ack: Mux(scout, of_scout, of_ack)
        words, assign = header_words(
            source=self.node_id, target=either(ask.node, acks.node),
            kind=either(Mux(ask.reply, PACKET.SCOUT_REPLY, PACKET.SCOUT), PACKET.ACK),
            flags=either(0, acks.flags), incarnation=either(0, acks.incarnation), psn=either(0, acks.psn),
            ack=either(0, acks.ack), key=either(ask.number, acks.reason), offset_low=either(ask.back, acks.refusals))
        self.comb += [
            assign,
            tell.eq(acks.valid & ~leaving),
            scout.eq(Mux(inside, latest, ask.valid & (~tell | ~latest))),
            seal.sink.valid.eq((ask.valid | tell) & (index != C.HEADER_WORDS)),
            seal.sink.last.eq(index == C.HEADER_WORDS - 1),
            seal.sink.seal.eq(seal.sink.last),
            Case(index, {i: seal.sink.data.eq(word) for i, word in enumerate(words)}),
            acks.ready.eq(self.left),
            ask.ready.eq(seal.ended & scout),
            self.sent.eq(ask.ready),
        ]
        self.sync += [
            If(seal.sink.valid,
                inside.eq(1),
                latest.eq(scout),
                If(seal.sink.ready, index.eq(index + 1)),
            ),
            If(self.left, leaving.eq(0)),
            If(seal.ended,
                inside.eq(0),
                index.eq(0),
                If(~scout, leaving.eq(1)),
            ),
        ]
