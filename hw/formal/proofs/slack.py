"""The slack buffer: it has room for what its length formula says, and drops packets whole if not.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.link import slack as design
from dibber.link.port import SLACK_WORDS

from harness import Harness, Mutant, Property, implies, inner

DEPTHS   = sorted(set(SLACK_WORDS), reverse=True)  # two: BULK's and that of the others
WORDS    = DEPTHS[0]
HEADROOM = design.HEADROOM_WORDS

# Words that may come from the cycle on in which `stop` is seen. The level passes the high mark by
# one before it is looked at and by another one before `stop` rises, and one entry is kept for the
# end of a packet that is dropped.
SPARE = 3

class Slack(Harness):
    """The block with a free sender and a free consumer.

    `words` and `headroom` are the shipped ones, but for mutants: from an empty buffer, a full one
    is hundreds of cycles away.
    """
    words    = WORDS
    headroom = HEADROOM

    def __init__(self):
        super().__init__()
        design.HEADROOM_WORDS = self.headroom
        self.slack = slack = design.SlackBuffer(self.words)
        self.sink  = sink  = slack.sink
        self.level = slack.fifo.level
        self.core  = core = slack.fifo.fifo.fifo.fifo
        self.free_all("sink", sink)
        self.comb += slack.source.ready.eq(self.free("ready"))

        # LinkReceiver: `first` is the first word after a `last`.
        self.inside = inside = Signal()
        self.sync += If(sink.valid, inside.eq(~sink.last))
        self.assume("framed", implies(sink.valid, sink.first == ~inside))
        self.lemma("level", core.level <= self.words)


class Obeyed(Slack):
    """No overflow while at most `headroom` - SPARE words come after a STOP. Idle words may lie
    between them.
    """
    def __init__(self):
        super().__init__()
        limit = self.headroom - SPARE
        after = Signal(max=self.words)
        self.sync += If(~self.slack.stop, after.eq(0)).Elif(self.sink.valid, after.eq(after + 1))
        self.assume("obeyed", implies(self.sink.valid & self.slack.stop, after < limit))
        self.prove("no_overflow", ~self.slack.overflow)
        high = self.words - self.headroom
        self.lemma("going",    implies(~self.slack.stop, self.level <= high + 1))
        self.lemma("stopping", implies(self.slack.stop, (self.level <= high + 2 + after) & (after <= limit)))


class Disobeyed(Slack):
    """What enters the memory when nobody obeys: packets, each whole, or cut off as bad and counted
    once.
    """
    def __init__(self):
        super().__init__()
        slack, sink = self.slack, self.sink
        entry   = slack.fifo.sink
        begun   = Signal()  # a packet in the memory has no last word yet
        lost    = Signal()  # a word of the offered packet is not in the memory
        counted = Signal()  # the offered packet was counted
        written = Signal()
        self.comb += written.eq(entry.valid)
        self.sync += [
            If(written, begun.eq(~entry.last)),
            If(sink.valid,
                lost.eq((lost | ~written) & ~sink.last),
                counted.eq((counted | slack.overflow) & ~sink.last),
            )
        ]
        self.prove("memory_takes_it",  implies(written, entry.ready))
        self.prove("not_invented",     implies(written, sink.valid))
        self.prove("not_merged",       implies(written, entry.first == ~begun))
        self.prove("begins_as_given",  implies(written & entry.first, sink.first))
        self.prove("no_hole",          implies(written, ~lost & (entry.data == sink.data)))
        self.prove("good_is_whole",    implies(written & entry.last & ~entry.bad, sink.last & ~sink.bad))
        self.prove("last_is_kept",     implies(written & sink.last, entry.last))
        self.prove("bad_is_kept",      implies(written & sink.bad, entry.bad))
        self.prove("cut_is_counted",   implies(written & entry.last & ~sink.last, slack.overflow))
        self.prove("drop_is_counted",  implies(sink.valid & ~written, counted | slack.overflow))
        self.prove("counted_once",     implies(slack.overflow, sink.valid & ~counted))
        self.prove("ended",            implies(begun, self.inside))

        dropping = inner(slack, "dropping")
        self.lemma("dropping",  dropping == counted)
        self.lemma("lost",      implies(lost, counted))
        self.lemma("inside",    implies(counted, self.inside) & implies(lost, self.inside))
        self.lemma("open",      begun == (self.inside & ~dropping))
        self.lemma("one_kept",  (self.level <= self.words) & implies(begun, self.level < self.words))


class Carried(Slack):
    """Any two words that enter the memory one after the other leave it one after the other,
    unchanged.
    """
    def __init__(self):
        super().__init__()
        fifo   = self.slack.fifo
        source = self.slack.source
        level  = self.level
        entry, exit_ = Signal(36), Signal(36)
        put, get     = Signal(), Signal()
        self.comb += [
            entry.eq(Cat(fifo.sink.data, fifo.sink.bad, fifo.sink.first, fifo.sink.last)),
            exit_.eq(Cat(source.data, source.bad, source.first, source.last)),
            put.eq(fifo.sink.valid & fifo.sink.ready),
            get.eq(source.valid & source.ready),
        ]
        # The solver marks a word; it and the one behind it are remembered, and how many are before
        # them.
        mark   = self.free("mark")
        one    = Signal(36)
        two    = Signal(36)
        n      = Signal(2)               # how many of them were put
        out    = Signal(2)               # and got
        ahead  = Signal(max=self.words + 2)
        self.sync += [
            If((n == 0) & put & mark,
                one.eq(entry), n.eq(1), ahead.eq(level - get)
            ).Elif(n != 0,
                If((n == 1) & put, two.eq(entry), n.eq(2)),
                If(get, If(ahead != 0, ahead.eq(ahead - 1)).Elif(out != 2, out.eq(out + 1))),
            )
        ]
        here = Signal()
        self.comb += here.eq(get & (n != 0) & (ahead == 0))
        self.prove("first_of_two",  implies(here & (out == 0), exit_ == one))
        self.prove("second_of_two", implies(here & (out == 1), (n == 2) & (exit_ == two)))

        # Where they lie, once marked: the oldest is in the last register, which it comes to past
        # the memory or through it and the register behind it.
        core     = self.core
        bits     = log2_int(self.words)
        produce  = inner(core, "produce")
        consume  = inner(core, "consume")
        middle   = fifo.fifo.source
        between  = Signal(36)
        store    = inner(core, "storage")
        places   = [Signal(bits), Signal(bits)]
        look     = [store.get_port(async_read=True) for _ in range(2)]
        self.specials += look
        self.sync += [If((n == index) & put, place.eq(produce)) for index, place in enumerate(places)]
        self.comb += [
            between.eq(Cat(middle.data, middle.bad, middle.first, middle.last)),
            *[port.adr.eq(place) for port, place in zip(look, places)],
        ]
        self.lemma("pointers", (consume + core.level)[:bits] == produce)
        self.lemma("counts",   (n != 3) & (out <= n))
        def stored(index, value, port):
            far   = Signal(bits + 2)
            depth = Signal(bits + 2)
            self.comb += [far.eq(ahead + index - out), depth.eq(far - source.valid)]
            waits = (n > index) & (out <= index)
            self.lemma(f"depth{index}", implies(waits, far < level))
            self.lemma(f"value{index}", implies(waits, Mux(source.valid & (far == 0), exit_ == value,
                Mux(middle.valid & (depth == 0), between == value,
                    (port.dat_r == value) & (port.adr == (consume + depth - middle.valid)[:bits])))))
        self.lemma("newest", implies((n == 1) & (out == 0), (ahead + 1) == level))
        self.lemma("passed", implies((n == 1) & (out == 1), level == 0) & implies(out != 0, ahead == 0))
        stored(0, one, look[0])
        stored(1, two, look[1])


def of_depth(harness, words, headroom=HEADROOM):
    return type(f"{harness.__name__}{words}", (harness,), {"words": words, "headroom": headroom})

# For mutants: 16 words, 8 of them headroom. And the shallower of the shipped buffers.
ObeyedSmall    = of_depth(Obeyed,    16, 8)
DisobeyedSmall = of_depth(Disobeyed, 16, 8)
CarriedSmall   = of_depth(Carried,   16, 8)
ObeyedShallow    = of_depth(Obeyed,    DEPTHS[-1])
DisobeyedShallow = of_depth(Disobeyed, DEPTHS[-1])
CarriedShallow   = of_depth(Carried,   DEPTHS[-1])

OBEYED    = f"never overflows if ≤ {HEADROOM - SPARE} words follow STOP"
DISOBEYED = "an overflow drops a whole packet, counted once"
CARRIED   = "words leave as they came, none lost"

PROPERTIES = [
    Property("slack-obeyed", "link/slack", OBEYED,
        f"{WORDS} words", "Obeyed", k=2, quick=True, mutants=[
            Mutant("STOP a word late", "dibber.link.slack", "fifo.level > high,", "fifo.level > high + 1,",
                depth=24, harness="ObeyedSmall"),
            Mutant("half the headroom", "dibber.link.slack", "words - headroom\n", "words - headroom//2\n",
                depth=24, harness="ObeyedSmall"),
    ]),
    Property("slack-obeyed-shallow", "link/slack", OBEYED, f"{DEPTHS[-1]} words", "ObeyedShallow", k=2),
    Property("slack-disobeyed", "link/slack", DISOBEYED,
        f"{WORDS} words × 32", "Disobeyed", k=2, quick=True, mutants=[
            Mutant("no entry kept for the end", "dibber.link.slack", "words - 1)", "words + 2)",
                depth=24, harness="DisobeyedSmall"),
            Mutant("forgets that it drops", "dibber.link.slack", "(dropping | ~room) & ~sink.last",
                "~room & ~sink.last", depth=24, harness="DisobeyedSmall"),
    ]),
    Property("slack-disobeyed-shallow", "link/slack", DISOBEYED, f"{DEPTHS[-1]} words × 32", "DisobeyedShallow", k=2),
    Property("slack-order", "link/slack", CARRIED,
        f"{WORDS} words × 32", "Carried", k=2, arrays=True, mutants=[
            Mutant("bad marks stay behind", "dibber.link.slack", "fifo.source.connect(source)",
                'fifo.source.connect(source, omit={"bad"})', depth=10, harness="CarriedSmall"),
            Mutant("a word goes past those that wait", "dibber.common.places", "fifo.source.valid | fifo.fifo.fifo.readable", "fifo.source.valid",
                depth=10, harness="CarriedSmall"),
            Mutant("a word goes both ways", "dibber.common.places", "sink.valid & ~(empty & front.sink.ready)", "sink.valid",
                depth=10, harness="CarriedSmall"),
    ]),
    Property("slack-order-shallow", "link/slack", CARRIED, f"{DEPTHS[-1]} words × 32", "CarriedShallow", k=2, arrays=True),
]
