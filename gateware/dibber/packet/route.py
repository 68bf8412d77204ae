"""Source routes: a prefix word for each switch in front of a packet. docs/design/routes.md."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import xor

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.layouts import word_layout
from dibber.packet.crc import crc8_byte

# Layout -------------------------------------------------------------------------------------------

TURN_BITS = 4
HOP_BITS  = 3

def route_write_layout():
    """An entry of the route table, written in a cycle with `strobe`; `route` as constant ROUTE_HOPS
    says.
    """
    return [("strobe", 1), ("node", log2_int(C.NODES)), ("route", 32)]

def hops_of(route):
    """Switches on a route; the highest bit of the four is ignored, for there are no more than
    ROUTE_HOPS.
    """
    return route[:HOP_BITS]

def turn_of(route, hop):
    return route[TURN_BITS*(hop + 1):TURN_BITS*(hop + 2)]

def prefix_crc(turn, behind):
    """Expression of the CRC-8 of a prefix word's first three bytes, (turn, hops behind it, 0);
    linear in each bit.
    """
    def term(value, zeros):
        for _ in range(zeros + 1):
            value = crc8_byte(value)
        return Constant(value, 8)
    return reduce(xor, [Mux(turn[i], term(1 << i, 2), 0) for i in range(TURN_BITS)]
        + [Mux(behind[i], term(1 << i, 1), 0) for i in range(HOP_BITS)])

def prefix_word(turn, behind):
    """Expression of a prefix word."""
    return Cat(turn, Constant(0, 8 - TURN_BITS), behind, Constant(0, 8 - HOP_BITS), Constant(0, 8), prefix_crc(turn, behind))

# Router -------------------------------------------------------------------------------------------

class Router(LiteXModule):
    """Put the route of a channel's packets in front of them.

    The route is looked up before the packet is there, as that and the comparison take long; with
    `given` it is `route` instead. What is not followed by switches passes as it is.

    Attributes
    ----------
    sink   : Endpoint(word_layout), in
    source : Endpoint(word_layout), out   `prefix` counts the words that were put in front
    write  : Record(route_write_layout), in   for packets that start two cycles later, or more
    node   : Signal, in         target of a packet, in the cycle before its first word is seen at
             the sink: before it comes, or
                                before the word in front of it is taken
    given  : Signal(), in       likewise: it takes `route`
    route  : Signal(32), in     likewise

    Cycles: none; one for each prefix word.
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(word_layout())
        self.source = source = stream.Endpoint(word_layout())
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

        # A packet's route must not change between its START, which counts the prefix, and its last
        # hop.
        begun  = Signal()          # its first prefix word has gone
        route  = Signal(32)        # from its next switch on
        hops   = Signal(HOP_BITS)  # that are left
        behind = Signal(HOP_BITS)
        leads  = Signal()          # a prefix word goes
        self.comb += [
            hops.eq(hops_of(route)),
            behind.eq(hops - 1),
            leads.eq(sink.first & (hops != 0)),
            sink.connect(source, omit={"data", "first", "last", "bad", "prefix", "ready"}),
            source.prefix.eq(hops),
            source.first.eq(sink.first & ~begun),
            If(leads,
                source.data.eq(prefix_word(turn_of(route, 0), behind))
            ).Else(
                source.data.eq(sink.data),
                source.last.eq(sink.last),
                source.bad.eq(sink.bad),
                sink.ready.eq(source.ready)
            ),
        ]
        self.sync += [
            If(source.valid & source.ready, begun.eq(leads)),
            If(~(sink.valid & sink.first) | source.ready,
                route.eq(Mux(self.given, self.route, look.dat_r)),
                If(sink.valid & leads, route.eq(Cat(behind, Constant(0, TURN_BITS - HOP_BITS), route[2*TURN_BITS:]))),
            ),
        ]
