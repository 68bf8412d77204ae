"""Words of 64 bits: no 32-bit word is lost, doubled or moved to another packet."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.packet.pairs import PairJoiner, PairSplitter

from harness import Harness, Mutant, Property, implies, inner

FILE = "dibber.packet.pairs"
BITS = 6  # of a word's number: words are counted modulo 64

class Marked(Harness):
    """The solver marks a number; the last word with this number is compared when it comes out."""
    def __init__(self, block):
        super().__init__()
        self.block = block
        sink, source = block.sink, block.source
        self.free_all("sink", sink)
        self.comb += source.ready.eq(self.free("ready"))
        self.mark = self.constant("mark", BITS)
        self.kept = Signal(32)  # the word with this number
        self.came = Signal(BITS, name="came")  # number of the next word at the sink
        self.gone = Signal(BITS, name="gone")  # and at the source
        self.inside = Signal()  # a packet has begun at the sink
        self.takes  = Signal()
        self.gives  = Signal()
        self.amount = Signal(2)  # words at the sink
        self.shown  = Signal(2)  # and at the source
        self.comb += [
            self.takes.eq(sink.valid & sink.ready & (sink.first | self.inside)),
            self.gives.eq(source.valid & source.ready),
            self.amount.eq(Mux(sink.half, 1, 2)),
            self.shown.eq(Mux(source.half, 1, 2)),
        ]
        self.sync += If(self.takes, self.inside.eq(~sink.last))

# Joiner -------------------------------------------------------------------------------------------

class Joined(Marked):
    """Words are counted from the beginning of their packet."""
    def __init__(self):
        super().__init__(PairJoiner())
        block, mark = self.block, self.mark
        sink, source = block.sink, block.source
        holds = inner(block, "holds")
        begin, out = Signal(BITS), Signal(BITS)  # numbers of the present words
        high, shown = Signal(BITS), Signal(32)
        begun = Signal()  # a word of the packet was given
        self.comb += [
            begin.eq(Mux(sink.first, 0, self.came)),
            out.eq(Mux(sink.first, 0, self.gone)),
            shown.eq(self.kept),
            If(begin == mark, shown.eq(sink.data[:32])),
            high.eq(begin + 1),
            If(~sink.half & (high == mark), shown.eq(sink.data[32:])),
        ]
        self.assume("begins", implies(sink.valid, sink.first | self.inside))
        self.assume("alone",  implies(sink.valid & sink.last & ~sink.half & holds & ~sink.first, sink.bad))
        self.sync += [
            If(self.takes, self.kept.eq(shown), self.came.eq(Mux(sink.last, 0, begin + self.amount))),
            If(self.gives,
                self.gone.eq(Mux(source.last, 0, out + self.shown)), begun.eq(~source.last)
            ).Elif(self.takes, self.gone.eq(out), If(sink.first, begun.eq(0))),
        ]
        place = Signal(BITS)  # of the high word at the source
        self.comb += place.eq(out + 1)
        self.prove("low",   implies(source.valid & (out == mark), source.data[:32] == shown))
        self.prove("high",  implies(source.valid & ~source.half & (place == mark) & ~(source.last & source.bad),
            source.data[32:] == shown))
        total, ended = Signal(BITS), Signal(BITS)
        self.comb += [total.eq(begin + self.amount), ended.eq(out + self.shown)]
        self.prove("all",   implies(source.valid & source.last & ~source.bad, total == ended))
        self.prove("dense", implies(source.valid & source.half, source.last))
        self.prove("first", implies(source.valid, source.first == (sink.first | ~begun)))
        self.prove("ends",  implies(self.takes & sink.last, self.gives & source.last & (source.bad == sink.bad)))
        self.prove("moves", implies(sink.valid & source.ready, sink.ready))
        behind = Signal(BITS)
        self.comb += behind.eq(self.came - self.gone)
        self.lemma("is_behind", behind == holds)
        self.lemma("is_low",    implies(holds & (self.gone == mark), inner(block, "low") == self.kept))
        self.lemma("is_begun",  inner(block, "begun") == begun)
        self.lemma("is_idle",   implies(~self.inside, ~holds & ~begun & (self.came == 0)))

# Splitter -----------------------------------------------------------------------------------------

class Split(Marked):
    """Words of all packets are counted. Words in front of a first one are skipped."""
    def __init__(self):
        super().__init__(PairSplitter())
        block, mark, came, gone = self.block, self.mark, self.came, self.gone
        sink, source = block.sink, block.source
        pair = block.pair
        self.comb += pair.eq(self.free("pair"))
        level, held, final = [inner(block, name) for name in ("level", "held", "final")]
        high = Signal(BITS)
        self.comb += high.eq(came + 1)
        starts, start = Signal(), Signal(BITS)  # the begun packet's first word has not come out
        ending, end   = Signal(), Signal(BITS)  # its last word is here; number behind it
        bad = Signal()
        behind, out, left = Signal(BITS), Signal(BITS), Signal(BITS)
        second = Signal(BITS)
        self.comb += [
            behind.eq(came - gone),
            out.eq(gone + self.shown),
            left.eq(end - gone),
            second.eq(gone + 1),
        ]
        self.sync += [
            If(self.gives, gone.eq(out), starts.eq(0), If(out == end, ending.eq(0))),
            If(self.takes,
                came.eq(came + self.amount),
                If(came == mark, self.kept.eq(sink.data[:32])),
                If(~sink.half & (high == mark), self.kept.eq(sink.data[32:])),
                If(sink.first, starts.eq(1), start.eq(came)),
                ending.eq(sink.last),
                end.eq(came + self.amount),
                bad.eq(sink.bad & sink.last),
            ),
        ]
        # The port's framing: a packet's first word comes behind the last one of the packet before.
        self.assume("framed", implies(sink.valid & sink.first, ~self.inside))
        shows = source.valid
        self.prove("low",   implies(shows & (gone == mark), source.data[:32] == self.kept))
        self.prove("high",  implies(shows & ~source.half & (second == mark), source.data[32:] == self.kept))
        self.prove("here",  implies(shows, self.shown <= behind))
        self.prove("first", implies(shows, source.first == (starts & (gone == start))))
        self.prove("last",  implies(shows, source.last == (ending & (out == end))))
        self.prove("bad",   implies(shows, source.bad == (source.last & bad)))
        self.prove("wish",  implies(shows, source.half == (~pair | (ending & (left == 1)))))
        self.prove("comes", implies((behind >= 2) | (ending & (left != 0)), shows))
        self.prove("room",  implies((behind <= 1) & ~ending, sink.ready))
        self.lemma("is_level", (behind == level) & (level <= 3))
        for n in range(3):
            number = Signal(BITS, name=f"number{n}")
            self.comb += number.eq(gone + n)
            self.lemma(f"is_held{n}", implies((level > n) & (number == mark), held[32*n:32*(n + 1)] == self.kept))
        self.lemma("is_first",  (inner(block, "first") == starts) & implies(starts, (gone == start) & (level != 0)))
        self.lemma("is_final",  (final == ending) & implies(ending, (end == came) & (level != 0) & ~self.inside))
        self.lemma("is_bad",    inner(block, "bad") == bad)
        self.lemma("is_inside", inner(block, "inside") == self.inside)
        self.lemma("is_open",   implies(~self.inside & ~ending, level == 0))

PROPERTIES = [
    Property("pairs-joined", "packet/pairs", "words fill words of 64 bits in order; none is lost, doubled or another packet's",
        "64 bits", "Joined", k=1, quick=True, mutants=[
            Mutant("a word of a packet that was cut off goes on", FILE, "keeps.eq(holds & ~sink.first)", "keeps.eq(holds)", depth=8),
            Mutant("the high word is not kept", FILE, "Mux(sink.half, sink.data[:32], sink.data[32:])", "sink.data[:32]", depth=8),
            Mutant("a word waits behind the last one", FILE, "full.eq(keeps | ~sink.half | sink.last)", "full.eq(keeps | ~sink.half)", depth=8),
    ]),
    Property("pairs-split", "packet/pairs", "each word once, in order, one or two as they are wanted; a packet ends where it ended",
        "64 bits", "Split", k=1, mutants=[
            Mutant("a full queue takes a word", FILE, "sink.ready.eq((left <= 1) &", "sink.ready.eq((left <= 2) &", depth=8),
            Mutant("two packets mix", FILE, " & (~final | (taken & source.last)))", ")", depth=8),
            Mutant("one word of two is dropped", FILE, "Mux(single, held[32:], held[64:])", "held[64:]", depth=8),
            Mutant("a single last word waits for another", FILE, "single.eq(~self.pair | (final & (level == 1)))", "single.eq(~self.pair)", depth=8),
    ]),
]
