"""Packets as words of 64 bits: two 32-bit words become one word, and one word becomes one or two."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import word_layout

# Joiner -------------------------------------------------------------------------------------------

class PairJoiner(LiteXModule):
    """Fill up words of 64 bits: only the last word of a packet may have `half`.

    A word with `first` inside a packet shows that its sender was reset. Then the word that is kept
    of the old packet is forgotten. A last word may be whole behind an odd number of 32-bit words
    only if it is bad; its high half is dropped.

    Attributes
    ----------
    sink   : Endpoint(word_layout(64)), in    any word may have `half`
    source : Endpoint(word_layout(64)), out

    Cycles: 0; a word a cycle.
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(word_layout(64))
        self.source = source = stream.Endpoint(word_layout(64))

        # # #

        low   = Signal(32)  # a 32-bit word that waits for the next one
        holds = Signal()
        begun = Signal()    # a word of the packet was given
        keeps = Signal()    # the waiting word is of the packet at the sink
        full  = Signal()
        self.comb += [
            keeps.eq(holds & ~sink.first),
            full.eq(keeps | ~sink.half | sink.last),
            sink.connect(source, keep={"bad", "last", "channel", "prefix"}),
            source.valid.eq(sink.valid & full),
            source.first.eq(sink.first | ~begun),
            source.data.eq(Mux(keeps, Cat(low, sink.data[:32]), sink.data)),
            source.half.eq(~keeps & sink.half),
            sink.ready.eq(source.ready | ~full),
        ]
        self.sync += If(sink.valid & sink.ready,
            low.eq(Mux(sink.half, sink.data[:32], sink.data[32:])),
            holds.eq((keeps ^ sink.half) & ~sink.last),
            begun.eq((full | (begun & ~sink.first)) & ~sink.last),
        )

# Splitter -----------------------------------------------------------------------------------------

class PairSplitter(LiteXModule):
    """Give one or two 32-bit words of a packet, as its reader wants.

    Words in front of a packet's first one are skipped: their packet's start was lost in a reset.

    Attributes
    ----------
    sink   : Endpoint(word_layout(64)), in    any word may have `half`
    pair   : Signal(), in    two words are wanted; may change when a word is taken
    source : Endpoint(word_layout(64)), out   with `half` exactly if one word is wanted, or only one
             is left of the packet

    Cycles: 1; a word of the sink a cycle, if two are wanted.
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(word_layout(64))
        self.pair   = Signal()
        self.source = source = stream.Endpoint(word_layout(64))

        # # #

        held   = Signal(96)       # words behind `level` mean nothing
        level  = Signal(2)        # 32-bit words that are here
        first  = Signal()         # the packet's first one is among them
        final  = Signal()         # likewise its last one
        bad    = Signal()
        inside = Signal()         # words of the packet at the sink came
        single = Signal()
        taken  = Signal()
        left   = Signal(2)        # words that stay
        stays  = Signal(96)
        loads  = Signal()
        self.comb += [
            single.eq(~self.pair | (final & (level == 1))),
            source.valid.eq(Mux(single, level != 0, level >= 2)),
            source.half.eq(single),
            source.data.eq(held[:64]),
            source.first.eq(first),
            source.last.eq(final & (level == Mux(single, 1, 2))),
            source.bad.eq(source.last & bad),
            taken.eq(source.valid & source.ready),
            left.eq(level),
            stays.eq(held),
            If(taken,
                left.eq(level - Mux(single, 1, 2)),
                stays.eq(Mux(single, held[32:], held[64:])),
            ),
            sink.ready.eq((left <= 1) & (~final | (taken & source.last))),
            loads.eq(sink.valid & sink.ready & (sink.first | inside)),
        ]
        self.sync += [
            level.eq(left),
            held.eq(stays),
            If(taken,
                first.eq(0),
                If(source.last, final.eq(0)),
            ),
            If(loads,
                level.eq(left + Mux(sink.half, 1, 2)),
                held.eq(Mux(left[0], Cat(stays[:32], sink.data), sink.data)),
                final.eq(sink.last),
                bad.eq(sink.bad & sink.last),
                inside.eq(~sink.last),
                If(sink.first, first.eq(1)),
            ),
        ]
