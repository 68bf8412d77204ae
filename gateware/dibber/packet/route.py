"""Source routes: a prefix word for each switch precedes a packet. docs/design/routes.md."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import xor

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.layouts import HOP_BITS, TURN_BITS, word_layout
from dibber.common.crc import crc8_byte

# Layout -------------------------------------------------------------------------------------------

def route_write_layout():
    """An entry of the route table, written in a cycle with `strobe`; `route` as at constant
    ROUTE_HOPS.
    """
    return [("strobe", 1), ("node", log2_int(C.NODES)), ("route", 32)]

def hops_of(route):
    """The number of switches on a route; at most ROUTE_HOPS, so the highest of the four bits is
    ignored.
    """
    return route[:HOP_BITS]

def link_of(route):
    """The link that a route begins at, of a card with two: the highest of these four bits."""
    return route[HOP_BITS]

def turn_of(route, hop):
    return route[TURN_BITS*(hop + 1):TURN_BITS*(hop + 2)]

def prefix_crc(turn, behind):
    """CRC-8 of a prefix word's first three bytes (turn, hops after it, 0), as an expression.

    The CRC is linear, so it is the XOR of one constant for each set bit.
    """
    def term(value, zeros):
        for _ in range(zeros + 1):
            value = crc8_byte(value)
        return Constant(value, 8)
    return reduce(xor, [Mux(turn[i], term(1 << i, 2), 0) for i in range(TURN_BITS)]
        + [Mux(behind[i], term(1 << i, 1), 0) for i in range(HOP_BITS)])

def prefix_word(turn, behind):
    """A prefix word, as an expression; `behind` is the number of hops after this one."""
    return Cat(
        turn, Constant(0, 8 - TURN_BITS), behind, Constant(0, 8 - HOP_BITS), Constant(0, 8),
        prefix_crc(turn, behind))

# Router -------------------------------------------------------------------------------------------

class Router(LiteXModule):
    """Put the route of a channel's packets in front of them.

    The route is looked up before the packet comes, because the lookup and the comparison take long.
    With `given` the route is `route`. A packet whose route has no switch passes unchanged.

    Attributes
    ----------
    sink   : Endpoint(word_layout(width)), in
    source : Endpoint(word_layout(width)), out   `prefix` is the number of prefix words. Each of
             them goes alone
    write  : Record(route_write_layout), in   takes effect for packets that start two or more cycles
             later
    node   : Signal, in         target of a packet, in the cycle before its first word is at the
             sink
    given  : Signal(), in       in the same cycle: use `route`
    route  : Signal(32), in     in the same cycle
    link   : Signal(), out      the link that the packet at the source takes; only if `links` is 2

    Cycles: 0; 1 for each prefix word.
    """
    def __init__(self, width=32, links=1):
        self.sink   = sink   = stream.Endpoint(word_layout(width))
        self.source = source = stream.Endpoint(word_layout(width))
        self.link   = Signal()
        self.write  = write  = Record(route_write_layout())
        self.node   = Signal(log2_int(C.NODES))
        self.given  = Signal()
        self.route  = Signal(32)

        # # #

        table = Memory(32, C.NODES)
        enter = table.get_port(write_capable=True)
        look  = table.get_port(async_read=True)
        self.specials += table, enter, look
        self.comb += [
            enter.adr.eq(write.node),
            enter.dat_w.eq(write.route),
            enter.we.eq(write.strobe),
            look.adr.eq(self.node),
        ]

        # A packet's route must not change between its first word, which has the number of prefix
        # words, and its last hop.
        prefix_sent  = Signal()          # the first prefix word was sent
        route        = Signal(32)        # from the next switch on
        hops         = Signal(HOP_BITS)  # hops that are left
        hops_after   = Signal(HOP_BITS)
        sends_prefix = Signal()          # this word is a prefix word
        self.comb += [
            hops.eq(hops_of(route)),
            hops_after.eq(hops - 1),
            sends_prefix.eq(sink.first & (hops != 0)),
            sink.connect(source, omit={"data", "first", "last", "bad", "prefix", "ready"}),
            source.prefix.eq(hops),
            source.first.eq(sink.first & ~prefix_sent),
            If(sends_prefix,
                source.data.eq(prefix_word(turn_of(route, 0), hops_after)),
                *([source.half.eq(1)] if width == 64 else [])
            ).Else(
                source.data.eq(sink.data),
                source.last.eq(sink.last),
                source.bad.eq(sink.bad),
                sink.ready.eq(source.ready)
            ),
        ]
        self.sync += [
            If(source.valid & source.ready, prefix_sent.eq(sends_prefix)),
            If(~(sink.valid & sink.first) | source.ready,
                route.eq(Mux(self.given, self.route, look.dat_r)),
                If(sink.valid & sends_prefix,
                    route.eq(
                        Cat(hops_after, Constant(0, TURN_BITS - HOP_BITS), route[2*TURN_BITS:]))
                ),
            ),
        ]
        if links > 1:
            inside = Signal()  # words of the packet have gone
            self.sync += [
                If(source.valid & source.ready, inside.eq(~source.last)),
                If(Mux(source.valid, source.ready & source.last, ~inside),
                    self.link.eq(link_of(Mux(self.given, self.route, look.dat_r)))
                ),
            ]
