"""The last stage of each packet that leaves by lines: its CRCs, and its early end if its flow was
reset. docs/design/bonded-link.md.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.layouts import line_layout
from dibber.link.row_packer import WORDS, sealed_line_layout
from dibber.packet.line_crc import LineCRC
from dibber.packet.route import hops_of, route_write_layout
from dibber.packet.seal import body_layout

# Gatherer -----------------------------------------------------------------------------------------

class LineGatherer(LiteXModule):
    """Gather the words of a header into lines. Header and blocks begin at a line's low end.

    Example, header A to F and 40 bytes of payload by lines: (A to F) with `seal`, the 8 words of a
    line, then 2 words with `seal` and `last`.

    Parameters
    ----------
    width : of the payload at the sink: 32, one word that is gathered as the header's, or 256

    Attributes
    ----------
    sink   : Endpoint(body_layout(width)), in
    source : Endpoint(line_layout(256)), out

    Cycles: 1; an item of the sink a cycle.
    """
    def __init__(self, width):
        self.sink   = sink   = stream.Endpoint(body_layout(width))
        self.source = source = stream.Endpoint(line_layout(32*WORDS))

        # # #

        place      = Signal(max=WORDS)  # of the next word in the line
        in_payload = Signal()
        whole      = Signal()           # the item is a line of payload
        complete   = Signal()           # the line is complete with this item
        self.comb += [
            whole.eq(in_payload & (width != 32)),
            complete.eq(whole | sink.seal | (place == WORDS - 1)),
            sink.ready.eq(~source.valid | source.ready),
        ]
        self.sync += [
            If(source.valid & source.ready,
                source.valid.eq(0),
                source.first.eq(source.last)
            ),
            If(sink.valid & sink.ready,
                Case(place, {
                    n: source.data[32*n:32*(n + 1)].eq(sink.data[:32]) for n in range(WORDS)}),
                source.words.eq(place + 1),
                *([If(whole,
                    source.data.eq(sink.data),
                    source.words.eq(sink.words)
                )] if width != 32 else []),
                source.valid.eq(complete),
                source.seal.eq(sink.seal),
                source.last.eq(sink.last),
                place.eq(Mux(complete, 0, place + 1)),
                If(sink.seal, in_payload.eq(1)),
                If(sink.last, in_payload.eq(0))
            ),
        ]
        source.first.reset = 1

# Sealer -------------------------------------------------------------------------------------------

class LineSealer(LiteXModule):
    """What PacketSealer is for words: the CRCs of packets, for a BondedPort.

    With `dead` the packet ends as bad at its next line, which then has no words. The rest of it is
    discarded, so that it cannot reach the target, however long the link is stopped.

    Parameters
    ----------
    width : as of LineGatherer

    Attributes
    ----------
    sink      : Endpoint(body_layout(width)), in
    source    : Endpoint(sealed_line_layout()), out   without `prefix`: see LineRouter
    dead      : Signal(), in    as of PacketSealer
    sent      : Signal(), out   one cycle: a whole packet has left
    word_sent : Signal(4), out  number of payload words that leave in this cycle
    ended     : Signal(), out   one cycle: a packet has left or was discarded

    Cycles: 5 from the line's last item at `sink` to `source`.
    """
    def __init__(self, width=32):
        self.gatherer  = gatherer = LineGatherer(width)
        self.line_crc  = line_crc = LineCRC(32*WORDS)
        self.sink      = gatherer.sink
        self.source    = source = stream.Endpoint(sealed_line_layout())
        self.dead      = Signal()
        self.sent      = Signal()
        self.word_sent = Signal(max=WORDS + 1)
        self.ended     = Signal()

        # # #

        sealed     = line_crc.source
        forgets    = Signal()  # the packet ended as bad, and its rest is discarded
        in_payload = Signal()
        taken      = Signal()
        self.comb += [
            gatherer.source.connect(line_crc.sink),
            sealed.connect(source, omit={"valid", "ready", "last", "bad", "words", "seal"}),
            source.valid.eq(sealed.valid & ~forgets),
            source.last.eq(sealed.last | self.dead),
            source.bad.eq(self.dead),
            If(~self.dead,
                source.words.eq(sealed.words),
                source.seal.eq(sealed.seal)
            ),
            sealed.ready.eq(source.ready | forgets),
            taken.eq(source.valid & source.ready),
            self.ended.eq(sealed.valid & sealed.ready & sealed.last),
            self.sent.eq(self.ended & ~forgets & ~self.dead),
            If(taken & in_payload, self.word_sent.eq(source.words)),
        ]
        self.sync += [
            If(taken,
                forgets.eq(self.dead),
                If(source.seal, in_payload.eq(1))
            ),
            If(self.ended,
                forgets.eq(0),
                in_payload.eq(0)
            ),
        ]

# Router -------------------------------------------------------------------------------------------

class LineRouter(LiteXModule):
    """Put the number of prefix words at a packet's first line, from the route to its target.

    The prefix words themselves are absent, so the other end of the link counts such a packet and
    does not begin it: no bonded port sends through a switch.

    Attributes
    ----------
    sink   : Endpoint(sealed_line_layout()), in    from LineSealer; the header's first word names
             the target
    source : Endpoint(sealed_line_layout()), out
    write  : Record(route_write_layout), in   takes effect for packets that start in a later cycle
    given  : Signal(), in       with a packet's first line: use `route`
    route  : Signal(32), in     likewise

    Cycles: 0.
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(sealed_line_layout())
        self.source = source = stream.Endpoint(sealed_line_layout())
        self.write  = write  = Record(route_write_layout())
        self.given  = Signal()
        self.route  = Signal(32)

        # # #

        table = Memory(len(hops_of(self.route)), C.NODES)
        enter = table.get_port(write_capable=True)
        look  = table.get_port(async_read=True)
        self.specials += table, enter, look
        self.comb += [
            enter.adr.eq(write.node),
            enter.dat_w.eq(hops_of(write.route)),
            enter.we.eq(write.strobe),
            look.adr.eq(sink.data[:log2_int(C.NODES)]),
            sink.connect(source, omit={"prefix"}),
            source.prefix.eq(Mux(self.given, hops_of(self.route), look.dat_r)),
        ]
