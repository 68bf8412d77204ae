# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Scouts: headers that ask who is at the end of a route. docs/design.md, section 3, "Routes"."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, CHANNEL, PACKET
from dibber.layouts import scout_layout, word_layout
from dibber.packet.header import header_words
from dibber.packet.seal import PacketSealer

# Transmitter --------------------------------------------------------------------------------------

class ScoutTransmitter(LiteXModule):
    """Turn scouts and their answers into packets of a header alone.

    Attributes
    ----------
    sink    : Endpoint(scout_layout), in
    node_id : Signal(16), in
    source  : Endpoint(word_layout), out
    route   : Signal(32), out   of the packet at the source
    sent    : Signal(), out     one cycle for each packet

    Cycles: 2 from `sink` to `source`; 8 a packet.
    """
    def __init__(self):
        # What asked for it may be reset while the packet leaves, and acknowledgements are behind it.
        self.buffer  = buffer = stream.Buffer(scout_layout())
        self.sink    = buffer.sink
        self.node_id = Signal(16)
        self.route   = Signal(32)

        # # #

        sink = buffer.source
        self.comb += self.route.eq(sink.route)
        self.seal   = seal = PacketSealer(CHANNEL.CONTROL)
        self.source = seal.source
        self.sent   = seal.sent
        index       = Signal(max=C.HEADER_WORDS + 1)
        words, assign = header_words(
            target=sink.node, source=self.node_id, kind=Mux(sink.reply, PACKET.SCOUT_REPLY, PACKET.SCOUT),
            key=sink.number, offset_low=sink.back)
        self.comb += [
            assign,
            seal.sink.valid.eq(sink.valid & (index != C.HEADER_WORDS)),
            seal.sink.last.eq(index == C.HEADER_WORDS - 1),
            seal.sink.seal.eq(seal.sink.last),
            Case(index, {i: seal.sink.data.eq(word) for i, word in enumerate(words)}),
            sink.ready.eq(seal.ended),
        ]
        self.sync += [
            If(seal.sink.valid & seal.sink.ready, index.eq(index + 1)),
            If(seal.ended, index.eq(0)),
        ]

# Turns --------------------------------------------------------------------------------------------

class ControlTurns(LiteXModule):
    """Acknowledgements and scouts on channel CONTROL, packet by packet and in turn when both are there.

    Attributes
    ----------
    acks, scouts : Endpoint(word_layout), in
    source : Endpoint(word_layout), out
    scout  : Signal(), out   the packet at the source is a scout

    Cycles: none.
    """
    def __init__(self):
        self.acks   = acks   = stream.Endpoint(word_layout())
        self.scouts = scouts = stream.Endpoint(word_layout())
        self.source = source = stream.Endpoint(word_layout())
        self.scout  = scout  = Signal()

        # # #

        inside = Signal()  # a packet has begun
        latest = Signal()  # it is a scout, or the last one was
        self.comb += [
            scout.eq(Mux(inside, latest, scouts.valid & (~acks.valid | ~latest))),
            If(scout, scouts.connect(source)).Else(acks.connect(source)),
        ]
        self.sync += If(source.valid,
            # What is shown stays shown, for the link may have begun with it.
            inside.eq(~(source.ready & source.last)),
            latest.eq(scout),
        )
