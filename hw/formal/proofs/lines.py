"""Packets that leave by lines: no word is lost, moved or doubled, and what died ends as bad."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from dibber.link.row_packer import WORDS
from dibber.packet.line_seal import LineGatherer, LineSealer

from harness import Harness, Mutant, Property, implies, inner

COUNT = 5  # bits of the numbers of words

# Gatherer -----------------------------------------------------------------------------------------

class Gather(Harness):
    """Any packets. One word of any item is watched until it leaves."""
    width = 32*WORDS

    def __init__(self):
        super().__init__()
        self.block = block = LineGatherer(self.width)
        sink, source = block.sink, block.source
        self.free_all("item", sink)
        self.comb += source.ready.eq(self.free("ready"))
        taken  = Signal()
        left   = Signal()
        header = Signal(reset=1)  # of the next item
        words  = Signal(4)        # of the item
        lines  = Signal()         # the item is a line of payload
        self.comb += [
            taken.eq(sink.valid & sink.ready),
            left.eq(source.valid & source.ready),
            lines.eq(~header & (self.width != 32)),
            words.eq(1),
        ]
        if self.width != 32:
            self.comb += If(lines, words.eq(sink.words))
            self.assume("words", implies(lines, (sink.words >= 1) & (sink.words <= WORDS)))
            self.assume("whole", implies(lines & (sink.words != WORDS), sink.seal))
        self.assume("end", implies(sink.last, sink.seal))

        # How many came and went, of the words and of the packet's lines.
        came, went = Signal(COUNT), Signal(COUNT)
        seal, last = Signal(), Signal()   # of the newest item
        of_header  = Signal()
        both       = Signal()             # the line has words of header and payload
        begun      = Signal()             # a line of the packet has left
        held       = Signal(COUNT)
        self.comb += held.eq(came - went)
        self.sync += [
            If(left, went.eq(went + source.words), begun.eq(~source.last)),
            If(taken,
                came.eq(came + words),
                seal.eq(sink.seal),
                last.eq(sink.last),
                of_header.eq(header),
                both.eq((held != 0) & ~left & (both | (header != of_header))),
                If(sink.seal, header.eq(0)),
                If(sink.last, header.eq(1))
            ),
        ]
        self.prove("all_words",  implies(source.valid, source.words == held))
        self.prove("flags",      implies(source.valid, (source.seal == seal) & (source.last == last)))
        self.prove("begins",     implies(source.valid, source.first == ~begun))
        self.prove("full_lines", implies(source.valid & ~source.seal, source.words == WORDS))
        self.prove("apart",      implies(source.valid, ~both))
        self.prove("at_once",    implies(self.before(taken & sink.seal), source.valid))
        self.prove("never_over", implies(~source.valid, sink.ready))

        # The watched word.
        lane    = self.constant("lane", log2_int(WORDS))
        watched = Signal()
        begin   = Signal()
        number  = Signal(COUNT)
        value   = Signal(32)
        slot    = Signal(COUNT)
        shown   = Signal(32)
        at_sink = Array([sink.data[32*n:32*(n + 1)] for n in range(self.width//32)])
        at_line = Array([source.data[32*n:32*(n + 1)] for n in range(WORDS)])
        item    = Signal(log2_int(WORDS))  # the watched word's place in the item
        self.comb += [
            item.eq(Mux(lines, lane, 0)),
            begin.eq(taken & (item < words) & ~watched & self.free("watch")),
            slot.eq(number - went),
            shown.eq(at_line[slot[:log2_int(WORDS)]]),
        ]
        self.sync += [
            If(left & (slot < source.words), watched.eq(0)),
            If(begin, watched.eq(1), number.eq(came + item), value.eq(at_sink[item])),
        ]
        self.prove("the_word", implies(watched & source.valid, (slot < source.words) & (shown == value)))

        place = inner(block, "place")
        self.lemma("place",   place == Mux(source.valid, 0, held[:log2_int(WORDS)]))
        self.lemma("few",     held <= Mux(source.valid, WORDS, WORDS - 1))
        self.lemma("header",  inner(block, "in_payload") == ~header)
        self.lemma("first",   implies(~source.valid, source.first == ~begun))
        self.lemma("watched", implies(watched, (slot < held) & (shown == value)))
        self.lemma("open",    implies(~source.valid & (held != 0), ~seal & ~both & (of_header == header)))
        self.lemma("end",     implies(source.valid & last, seal))
        self.lemma("between", implies(~source.valid & ~begun & (held == 0), header))
        self.lemma("next",    implies(source.valid, header == Mux(seal, last, of_header)))
        if self.width != 32:
            self.lemma("alone", implies(~source.valid & ~header, held == 0))

class GatherWords(Gather):
    """The same where payload comes word by word."""
    width = 32

# Sealer -------------------------------------------------------------------------------------------

class Seal(Harness):
    """Any packets, and a flow that dies at any time. One line is watched from the gatherer on."""
    def __init__(self):
        super().__init__()
        self.block = block = LineSealer(32)
        sink, source = block.sink, block.source
        self.free_all("item", sink)
        self.assume("end", implies(sink.last, sink.seal))
        self.comb += [
            source.ready.eq(self.free("ready")),
            block.dead.eq(self.free("dead")),
        ]
        left   = Signal()
        middle = Signal()  # a packet has left in part
        self.comb += left.eq(source.valid & source.ready)
        self.sync += If(left, middle.eq(~source.last))
        self.prove("framed",      implies(source.valid, source.first == ~middle))
        self.prove("dead_is_bad", implies(source.valid & block.dead, source.last & source.bad & (source.words == 0)))
        self.prove("only_dead",   implies(source.valid & source.bad, block.dead))
        self.prove("sent",        block.sent == (left & source.last & ~source.bad))

        # Each packet that comes ends once, in its order.
        crc      = block.line_crc
        gathered = block.gatherer.source
        sealed   = crc.source
        enters   = Signal()
        leaves   = Signal()
        inside   = Signal(3)
        self.comb += [
            enters.eq(gathered.valid & gathered.ready),
            leaves.eq(sealed.valid & sealed.ready),
        ]
        self.sync += inside.eq(inside + enters - leaves)
        self.prove("begins", implies(sealed.valid & sealed.first, source.valid))
        self.prove("ended", block.ended == (leaves & sealed.last))
        self.prove("rest_is_dropped", implies(leaves & ~left, middle == 0))

        # The watched line, by the number of lines before it.
        kept    = Cat(gathered.data, gathered.words, gathered.seal, gathered.last, gathered.first)
        line    = Signal(len(kept))
        ahead   = Signal(3)
        watched = Signal()
        begin   = Signal()
        self.comb += begin.eq(enters & ~watched & self.free("watch"))
        self.sync += [
            If(begin,
                watched.eq(1), line.eq(kept), ahead.eq(inside - leaves)
            ).Elif(watched & leaves,
                If(ahead == 0, watched.eq(0)),
                ahead.eq(ahead - 1)
            ),
        ]
        parts = lambda at: Cat(at.data, at.words, at.seal, at.last, at.first)
        self.prove("the_line", implies(watched & sealed.valid & (ahead == 0), parts(sealed) == line))

        # From the oldest stage to the newest: packets one behind the other.
        forgets = inner(block, "forgets")
        open_   = Signal()  # a line that was not the last has passed the CRCs
        self.sync += If(leaves, open_.eq(~sealed.last))
        # A packet goes on when the lanes take it, and the rest of a dead one at once.
        self.prove("moves", implies(source.ready | (open_ & ~middle), gathered.ready))
        self.lemma("open",    middle == (open_ & ~forgets))
        self.lemma("forgets", implies(forgets, open_))
        stages = [sealed, *reversed(inner(crc, "stages"))]
        passed, number = open_, 0
        found = []
        for n, stage in enumerate(stages):
            self.lemma(f"order{n}", implies(stage.valid, stage.first == ~passed))
            found.append(stage.valid & (ahead == number) & (parts(stage) == line))
            passed = Mux(stage.valid, ~stage.last, passed)
            number = number + stage.valid
        self.lemma("gathered", gathered.first == ~passed)
        self.lemma("inside",   inside == number)
        self.lemma("watched",  implies(watched, reduce(or_, found)))


PROPERTIES = [
    Property("lines-gather", "packet/line_seal",
        "each word once, in its order, at its place; header and payload in lines of their own",
        "256 bits", "Gather", k=1, quick=True, mutants=[
            Mutant("a header that ends inside a line waits", "dibber.packet.line_seal",
                "whole | sink.seal | (place", "whole | (place", depth=10),
            Mutant("a line is offered a word early", "dibber.packet.line_seal",
                "(place == WORDS - 1)", "(place == WORDS - 2)", depth=10),
            Mutant("payload is taken for a header", "dibber.packet.line_seal",
                "If(sink.seal, in_payload.eq(1))", "If(sink.last, in_payload.eq(1))", depth=10),
            Mutant("the next line begins behind the last one", "dibber.packet.line_seal",
                "place.eq(Mux(complete, 0, place + 1))", "place.eq(place + 1)", depth=14),
            Mutant("a line is written while it waits", "dibber.packet.line_seal",
                "sink.ready.eq(~source.valid | source.ready)", "sink.ready.eq(1)", depth=10),
    ]),
    Property("lines-gather-words", "packet/line_seal", "the same for payload word by word", "32 bits",
        "GatherWords", k=1, mutants=[
            Mutant("the first flag stays", "dibber.packet.line_seal",
                "source.first.eq(source.last)", "source.first.eq(1)", depth=20),
    ]),
    Property("lines-seal", "packet/line_seal",
        "lines in order; a packet whose flow died ends as bad once, and nothing of it follows",
        "32 bits", "Seal", k=1, mutants=[
            Mutant("the rest of a dead packet leaves", "dibber.packet.line_seal",
                "forgets.eq(self.dead)", "forgets.eq(0)", depth=16),
            Mutant("a dead packet leaves with words", "dibber.packet.line_seal",
                "If(~self.dead,", "If(1,", depth=12),
            Mutant("a dead packet counts as sent", "dibber.packet.line_seal",
                "self.ended & ~forgets & ~self.dead", "self.ended & ~forgets", depth=12),
            Mutant("what is discarded waits for the lanes", "dibber.packet.line_seal",
                "sealed.ready.eq(source.ready | forgets)", "sealed.ready.eq(source.ready)", depth=18),
            Mutant("the next packet is discarded too", "dibber.packet.line_seal",
                "                forgets.eq(0),", "                forgets.eq(forgets),", depth=20),
            Mutant("a line is lost at a stop", "dibber.packet.line_crc",
                "sink.ready.eq(step)", "sink.ready.eq(1)", depth=16),
    ]),
]
