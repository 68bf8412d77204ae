"""The packet that asks a flow's target which incarnation it holds."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, PACKET
from dibber.packet.header import header_words
from dibber.packet.seal import body_layout

class Asker(LiteXModule):
    """Make a QUESTION, a packet that is only a header.

    Parameters
    ----------
    flags : of the packet

    Attributes
    ----------
    node_id     : Signal(16), in
    begin       : Signal(), in    start a question; not before the last one has left
    node, token : Signals, in     its target, and the value that the answer repeats; sampled at
                  `begin`
    source      : Endpoint(body_layout), out   its words, from the cycle after `begin`. `valid` is
                  always 1: the user must stop at `last`
    """
    def __init__(self, flags):
        self.node_id = Signal(16)
        self.begin   = Signal()
        self.node    = Signal(16)
        self.token   = Signal(16)
        self.source  = source = stream.Endpoint(body_layout())

        # # #

        node  = Signal(16)
        token = Signal(16)
        index = Signal(max=C.HEADER_WORDS)
        words, assign = header_words(
            target=node, source=self.node_id, kind=PACKET.QUESTION, flags=flags, psn=token)
        self.comb += [
            assign,
            source.valid.eq(1),
            source.last.eq(index == C.HEADER_WORDS - 1),
            source.seal.eq(source.last),
            Case(index, {i: source.data.eq(word) for i, word in enumerate(words)}),
        ]
        self.sync += [
            If(source.ready, index.eq(index + 1)),
            If(self.begin,
                node.eq(self.node),
                token.eq(self.token),
                index.eq(0),
            ),
        ]
