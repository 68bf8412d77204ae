"""Which peer a packet goes to: its prefix word names one of several peers."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.one_hot import lowest_one
from dibber.layouts import TURN_BITS, word_layout

# Targets ------------------------------------------------------------------------------------------

class PeerTable(LiteXModule):
    """What the table of peers says of each turn, for all channels.

    Attributes
    ----------
    number  : Signal(TURN_BITS), in   own number
    ups     : Signal(peers), in       the peers that are UP
    named   : Signal(peers), in       the peers whose number is no other's
    numbers : list of Signal(TURN_BITS), in   of the peers
    up      : Signal(), out           one of them is UP
    only    : Signal(peers), out      one-hot: the only peer that is UP; 0 if there are more
    """
    def __init__(self, peers):
        self.number  = Signal(TURN_BITS)
        self.ups     = Signal(peers)
        self.named   = Signal(peers)
        self.numbers = [Signal(TURN_BITS, name=f"number{n}") for n in range(peers)]
        self.up      = Signal()
        self.only    = Signal(peers)

        # # #

        first = Signal(peers)
        self.comb += [
            self.up.eq(self.ups != 0),
            first.eq(lowest_one(self.ups)),
            self.only.eq(Mux(first == self.ups, first, 0)),
        ]

# Steer --------------------------------------------------------------------------------------------

class Steer(LiteXModule):
    """Take the prefix word off a packet, and say which peer the packet goes to.

    A packet with a wrong route is dropped as it comes. So is the rest of a packet whose peer leaves
    UP. While no peer is UP, the first word of a packet waits.

    Parameters
    ----------
    table : PeerTable
    peers : their number
    loops : turn 0 is this card; else a packet with turn 0 is dropped
    width : bits of a word, 32 or 64

    Attributes
    ----------
    sink    : Endpoint(word_layout(width)), in
    source  : Endpoint(word_layout(width)), out   without prefix
    target  : Signal(peers + 1), out   one-hot, with the first word; the highest bit is this card
    open    : Signal(), in     a packet has begun behind the source, and has not ended
    abandon : Signal(), out    end that packet as bad
    misrouted : Signal(), out  one cycle for each packet with a wrong route

    Cycles: 0; 1 for the prefix word.
    """
    def __init__(self, table, peers, loops, width=32):
        self.sink      = sink   = stream.Endpoint(word_layout(width))
        self.source    = source = stream.Endpoint(word_layout(width))
        self.target    = target = Signal(peers + 1)
        self.open      = Signal()
        self.abandon   = Signal()
        self.misrouted = Signal()

        # # #

        chosen  = Signal(peers + 1)  # of the packet that is under way
        named   = Signal()  # the prefix word was taken: the next word is the packet's first
        drops   = Signal()  # the rest of the packet is dropped
        begins  = Signal()  # the packet's first word is offered, which may be its prefix
        prefix  = Signal()
        by_turn = Signal(peers + 1)
        wanted  = Signal(TURN_BITS)
        matches = Signal(peers)
        first   = Signal()  # the first word behind the prefix
        wrong   = Signal()
        gone    = Signal()  # the begun packet's peer is not UP
        takes   = Signal()  # a first word is judged
        turn    = sink.data[:TURN_BITS]
        self.comb += [
            begins.eq(sink.valid & sink.first),
            prefix.eq(begins & (sink.prefix != 0)),
            wanted.eq(table.number + turn),
            matches.eq(Cat(*[table.ups[n] & table.named[n] & (number == wanted)
                for n, number in enumerate(table.numbers)])),
            If(turn == 0,
                by_turn.eq(Constant(1 if loops else 0, 1) << peers)
            ).Else(
                by_turn.eq(matches)
            ),
            first.eq(sink.valid & Mux(sink.first, ~prefix, named)),
            target.eq(Mux(sink.first, table.only, chosen)),
            gone.eq(self.open & ~chosen[peers] & ((chosen[:peers] & table.ups) == 0)),
            self.abandon.eq(gone),
            wrong.eq(Mux(prefix, (sink.prefix != 1) | (by_turn == 0), table.only == 0)),
            takes.eq(begins & table.up & ~gone),
            self.misrouted.eq(takes & wrong & sink.ready),
            If(gone,
                sink.ready.eq(0)
            ).Elif(begins,
                sink.ready.eq(table.up & (prefix | wrong | source.ready)),
                source.valid.eq(table.up & ~prefix & ~wrong)
            ).Elif(drops,
                sink.ready.eq(1)
            ).Else(
                sink.ready.eq(source.ready),
                source.valid.eq(sink.valid)
            ),
            source.data.eq(sink.data),
            *([source.half.eq(sink.half)] if width == 64 else []),
            source.first.eq(first),
            source.last.eq(sink.last),
            source.bad.eq(sink.bad),
        ]
        self.sync += [
            If(sink.valid & sink.ready,
                named.eq(prefix & ~wrong & ~sink.last),
                If(sink.first,
                    drops.eq(wrong & ~sink.last),
                    chosen.eq(Mux(prefix, by_turn, table.only)),
                ),
                If(sink.last, drops.eq(0)),
            ),
            If(gone, drops.eq(1)),
        ]
