"""The output of a ring node: bypass FIFO, own packets, go bits."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.places import BypassedFIFO
from dibber.fabric.ring.transit import ring_symbols_layout
from dibber.fabric.ring.words import GO_BIT
from dibber.layouts import serial_tx_layout
from dibber.link.symbols import FIRST_IS_K, HEAR_BIT, K_END, K_END_BAD, K_RESUME, K_START, flow_word

# Cycles without a GO after which the scrubber sets it.
GO_CYCLES = 65536

class RingOutput(LiteXModule):
    """Send one word a cycle: what passes, own packets, or idles with the go bit.

    An own packet may begin if nothing passes, and the last word was an idle with GO; one that is
    urgent needs no GO. What comes while it is sent waits in the bypass FIFO. Until this FIFO is
    empty again, the node is in recovery: it begins nothing, and its idles have no GO.

    Parameters
    ----------
    bypass_words : depth of the bypass FIFO
    go_cycles    : as GO_CYCLES

    Attributes
    ----------
    push     : Record(valid, data, k), in   a word that passes, or an echo's
    own      : Endpoint(ring_symbols_layout), in   an own packet from START to END; after its first
               word was taken, it offers one in each cycle
    urgent   : Signal(), in       with the first word of `own`: this packet needs no GO
    pairs    : Endpoint(ring_symbols_layout), in   a grant: two words. It needs no GO
    single   : Endpoint(ring_symbols_layout), in   a nonce, ping or pong
    idle, go : Signal(), in       an idle came, with GO
    scrubber : Signal(), in
    whole    : Signal(), in       for the idles
    up       : Signal(), in
    source   : Endpoint(serial_tx_layout), out
    told     : Signal(8), out     flags of the last idle that was sent
    mine     : Signal(), out      an own packet is being sent
    level    : Signal, out        words in the bypass FIFO
    overflow : Signal(), out      pulse: the bypass FIFO was full
    stalled  : Signal(), out      an own packet waits for GO or for the bypass FIFO
    go_set   : Signal(), out      pulse: the scrubber set a lost GO

    Cycles: 1 from `push` or `own` to `source`.
    """
    def __init__(self, bypass_words, go_cycles=GO_CYCLES):
        self.push     = push   = Record([("valid", 1)] + ring_symbols_layout())
        self.own      = own    = stream.Endpoint(ring_symbols_layout())
        self.urgent   = Signal()
        self.pairs    = pairs  = stream.Endpoint(ring_symbols_layout())
        self.single   = single = stream.Endpoint(ring_symbols_layout())
        self.idle     = Signal()
        self.go       = Signal()
        self.scrubber = Signal()
        self.whole    = Signal()
        self.up       = Signal()
        self.source   = source = stream.Endpoint(serial_tx_layout())
        self.told     = told   = Signal(8)
        self.mine     = mine   = Signal()
        self.overflow = Signal()
        self.stalled  = Signal()
        self.go_set   = Signal()

        # # #

        self.fifo = fifo = ResetInserter()(BypassedFIFO(ring_symbols_layout(), bypass_words))
        self.level = fifo.level

        # What Goes --------------------------------------------------------------------------------
        step     = Signal()
        empty    = Signal()
        full     = Signal()  # idles between packets are left out
        passing  = Signal()  # a packet or an echo that passes has begun and has not ended
        in_pair  = Signal()  # the second word of a grant comes next
        idled    = Signal()  # the last word was an idle
        went_go  = Signal()  # and it had GO
        rests    = Signal()  # an own packet ended: an idle comes next
        direct   = Signal()  # `push` goes past the FIFO
        from_fifo, from_own, from_pair, from_single = Signal(), Signal(), Signal(), Signal()
        was_up   = Signal()
        lull     = Signal()  # nothing of the ring's is sent in this cycle, and nothing is inside
        self.comb += [
            step.eq(~source.valid | source.ready),
            empty.eq(fifo.level == 0),
            full.eq(fifo.level >= bypass_words*3//4),
            # After an idle, a word that passes may wait in the FIFO.
            lull.eq(step & empty & ~passing & idled),
            If(mine,
                from_own.eq(step)
            ).Elif(in_pair,
                from_pair.eq(step)
            ).Elif(rests,
                # The scrubber's words must go even if there is never a lull.
                from_single.eq(step & single.valid & ~passing & ~full)
            ).Elif(lull & pairs.valid,
                from_pair.eq(1)
            ).Elif(lull & own.valid & (went_go | self.urgent) & self.up,
                from_own.eq(1)
            ).Elif(~empty,
                from_fifo.eq(step & fifo.source.valid)
            ).Elif(push.valid,
                direct.eq(step)
            ).Elif(lull & single.valid,
                from_single.eq(1)
            ),
            own.ready.eq(from_own),
            pairs.ready.eq(from_pair),
            single.ready.eq(from_single),
            fifo.source.ready.eq(from_fifo),
            fifo.sink.valid.eq(push.valid & ~direct),
            fifo.sink.data.eq(push.data),
            fifo.sink.k.eq(push.k),
            fifo.reset.eq(was_up & ~self.up),
            self.overflow.eq(fifo.sink.valid & ~fifo.sink.ready),
            self.stalled.eq(own.valid & ~mine & ~from_own),
        ]

        self.sync += was_up.eq(self.up)

        # Go Bits ----------------------------------------------------------------------------------
        came    = Signal()         # an idle came since the last idle that counts was sent
        came_go = Signal()         # one of these had GO
        last_go = Signal(reset=1)  # of the last idle that counts
        go_now  = Signal()         # of the idle that is sent now
        recover = Signal()
        timer   = Signal(max=go_cycles)
        flags   = Signal(8)
        sends_idle = Signal()
        self.comb += [
            recover.eq(~empty | (push.valid & ~direct)),
            go_now.eq(~recover & (Mux(came, came_go, last_go) | (idled & went_go))),
            flags[GO_BIT].eq(go_now),
            flags[HEAR_BIT].eq(self.whole),
            sends_idle.eq(step & ~(from_own | from_pair | from_single | from_fifo | direct)),
            self.go_set.eq(self.scrubber & (timer == go_cycles - 1)),
        ]
        self.sync += [
            If(sends_idle & ~recover,
                came.eq(0),
                came_go.eq(0),
                last_go.eq(go_now)
            ),
            If(self.idle,
                came.eq(1),
                came_go.eq(self.go | (came_go & ~(sends_idle & ~recover)))
            ),
            timer.eq(timer + 1),
            If((self.idle & self.go) | ~self.up, timer.eq(0)),
            If(self.go_set | ~self.up,
                came.eq(0),
                last_go.eq(1),
                timer.eq(0)
            ),
        ]

        # The Register -----------------------------------------------------------------------------
        word = Record(ring_symbols_layout())
        is_begin, is_end = Signal(), Signal()
        second = Signal()  # the echo word of a RESUME that passes comes next
        self.comb += [
            word.data.eq(flow_word(flags)),
            word.k.eq(1),
            If(from_fifo, word.data.eq(fifo.source.data), word.k.eq(fifo.source.k)),
            If(direct, word.data.eq(push.data), word.k.eq(push.k)),
            If(from_own, word.data.eq(own.data), word.k.eq(own.k)),
            If(from_pair, word.data.eq(pairs.data), word.k.eq(pairs.k)),
            If(from_single, word.data.eq(single.data), word.k.eq(single.k)),
            is_begin.eq(word.k & ((word.data[:8] == K_START) | (word.data[:8] == K_RESUME))),
            is_end.eq(word.k & ((word.data[:8] == K_END) | (word.data[:8] == K_END_BAD))),
        ]
        self.sync += [
            If(step,
                source.valid.eq(1),
                source.data.eq(word.data),
                source.k.eq(Mux(word.k, FIRST_IS_K, 0)),
                idled.eq(sends_idle),
                rests.eq((from_fifo | direct) & (is_end | second) & ~full | from_single
                    | (from_pair & in_pair)),
                If(sends_idle,
                    told.eq(flags),
                    went_go.eq(go_now)
                ),
                If(from_own,
                    mine.eq(~is_end),
                    rests.eq(is_end)
                ),
                If(from_pair, in_pair.eq(~in_pair)),
                If(from_fifo | direct,
                    second.eq(word.k & (word.data[:8] == K_RESUME)),
                    If(is_begin, passing.eq(1)),
                    If(is_end | second, passing.eq(0)),
                ),
            ),
            If(~self.up,
                passing.eq(0),
                second.eq(0),
                mine.eq(0),
                in_pair.eq(0),
            ),
        ]
