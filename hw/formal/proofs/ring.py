"""The ring node: its bypass FIFO, what passes it, each packet's one end, and the waiting at a full
receiver.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.fabric.ring import numbers as numbers_design
from dibber.fabric.ring import output as output_design
from dibber.fabric.ring import reservation as reservation_design
from dibber.fabric.ring import transit as transit_design
from dibber.fabric.ring.words import ACCEPTED, GRANT, OLD_MASK
from dibber.link.symbols import K_END, K_END_BAD, K_NONCE, K_PING, K_PONG, K_RESUME, K_START

from harness import Harness, Mutant, Property, implies, inner

# Bypass -------------------------------------------------------------------------------------------

DEPTH  = 12  # of the bypass FIFO
LENGTH = 4   # words of the longest own packet, START to END
STALLS = 1   # cycles in which the transmitter takes no word
HELD   = LENGTH + 4

class Bypass(Harness):
    """The output with any own packets and any words that pass. Each packet that passes is followed
    by an idle, as its source ensures. The transmitter stalls STALLS times. Of each word, the solver
    chooses the first symbol; the block looks at no other.

    Beside it stands one word that passes, of the solver's choice.
    """
    depth = DEPTH

    def __init__(self):
        super().__init__()
        self.block = block = output_design.RingOutput(self.depth)
        own, push, source = block.own, block.push, block.source
        self.comb += [
            push.valid.eq(self.free("push")),
            push.data.eq(self.free("data", 8)),
            push.k.eq(self.free("k")),
            own.valid.eq(self.free("own")),
            own.data.eq(self.free("own_data", 8)),
            own.k.eq(self.free("own_k")),
            block.urgent.eq(self.free("urgent")),
            block.idle.eq(self.free("idle")),
            block.go.eq(self.free("go")),
            block.up.eq(1),
            source.ready.eq(self.free("ready")),
        ]

        # The ring: an idle comes behind each END, and no word together with an idle.
        is_k    = lambda word, code: word.k & (word.data[:8] == code)
        ends    = push.valid & (is_k(push, K_END) | is_k(push, K_END_BAD))
        ended   = self.before(ends)
        stalls  = Signal(max=STALLS + 2)
        self.sync += If(~source.ready, stalls.eq(stalls + 1))
        self.assume("idle_behind_end", implies(ended, ~push.valid))
        self.assume("stalls", implies(~source.ready, stalls < STALLS))

        # The own packet: START, words, END within LENGTH words, one in each cycle.
        begun = Signal()
        count = Signal(max=LENGTH + 1)
        own_end = is_k(own, K_END)
        self.sync += If(own.valid & own.ready,
            begun.eq(~own_end),
            count.eq(Mux(own_end, 0, count + 1))
        )
        self.assume("own_begins", implies(own.valid & ~begun, is_k(own, K_START)))
        self.assume("own_goes_on", implies(begun, own.valid & (own_end | ~own.k)))
        self.assume("own_ends", implies(begun & (count == LENGTH - 1), own_end))

        self.prove("no_overflow", ~block.overflow)
        self.prove("held", block.level <= HELD + STALLS)

        # The word with any number that came is the word with that number that leaves.
        word   = Signal(33)
        left   = Signal(33)
        leaves = Signal()
        taken, gone = Signal(8), Signal(8)
        self.comb += [
            word.eq(Cat(push.data, push.k)),
            leaves.eq(inner(block, "from_fifo") | inner(block, "direct")),
            left.eq(Cat(inner(block, "word").data, inner(block, "word").k)),
        ]
        self.sync += [taken.eq(taken + push.valid), gone.eq(gone + leaves)]
        at, mine = self.constant("at", 8), Signal(33)
        seen = Signal()
        self.sync += If(push.valid & (taken == at), mine.eq(word), seen.eq(1))
        self.prove("order", implies(leaves & (gone == at),
            (left == Mux(seen, mine, word)) & (seen | (push.valid & (taken == at)))))
        self.prove("all", taken - gone == block.level)

class SmallBypass(Bypass):
    """For the mutants: an overflow is near."""
    depth = LENGTH + 1

# Transit ------------------------------------------------------------------------------------------

CHANNELS = 4

class Words:
    """What WordDecoder offers, as free signals: in each cycle at most one kind of word."""
    KINDS = ("data", "start", "resume", "end", "end_bad", "flow", "nonce", "ping", "pong", "wrong")

    CODES = dict(start=K_START, resume=K_RESUME, end=K_END, end_bad=K_END_BAD, nonce=K_NONCE, ping=K_PING,
        pong=K_PONG)

    def __init__(self, harness):
        self.data    = harness.free("word", 32)
        self.valid   = harness.free("valid")
        self.channel = harness.free("channel", CHANNELS)
        kinds = Cat(*[harness.free(name) for name in self.KINDS])
        for n, name in enumerate(self.KINDS):
            setattr(self, f"is_{name}", kinds[n])
        for name, code in self.CODES.items():
            harness.assume(f"code_{name}", implies(getattr(self, f"is_{name}"), self.data[:8] == code))
        harness.assume("one_kind", Mux(self.valid, (kinds != 0) & ((kinds & (kinds - 1)) == 0), kinds == 0))

class Passing(Harness):
    """Any words while the node is UP; beside it a plain reading of them.

    A packet for another node passes: its START, its prefix with at most OLD added, each of its
    words, and its END. If a wrong word comes, END BAD takes its place.
    """
    def __init__(self):
        super().__init__()
        words = Words(self)
        self.block = block = transit_design.RingTransit(words, (8,)*CHANNELS)
        push = block.push
        self.comb += [
            block.up.eq(1),
            block.address.eq(self.constant("address", 4)),
            block.scrubber.eq(self.constant("scrubber")),
            block.accept.eq(self.free("accept")),
            block.refusal.eq(self.free("refusal", 3)),
            block.keep.valid.eq(self.free("keep")),
            block.keep.data.eq(self.free("keep_data", 32)),
        ]
        self.assume("keeps", (block.keep.data[:8] == K_NONCE) | (block.keep.data[:8] == K_PING))
        passes, second, marks, full, held, cuts = (inner(block, name) for name in (
            "passes", "second", "marks", "full", "held", "cuts"))
        process, now = inner(block, "process"), inner(block, "now")
        is_data, is_end, is_start, is_resume = (
            inner(block, name) for name in ("is_data", "is_end", "is_start", "is_resume"))
        takes, refuses, pair, echoes = (inner(block, name) for name in ("takes", "refuses", "pair", "echoes"))

        inside = Signal()  # START was passed on, and no END yet
        self.sync += [
            If(push.valid & push.k & (push.data[:8] == K_START), inside.eq(1)),
            If(push.valid & push.k & ((push.data[:8] == K_END) | (push.data[:8] == K_END_BAD)), inside.eq(0)),
        ]
        # No word is made: one leaves only for one that came.
        came, left = Signal(8), Signal(8)
        self.sync += [came.eq(came + now), left.eq(left + process)]
        self.prove("one_for_one", implies(push.valid, process))
        self.prove("none_waits", (came - left)[:8] == full)
        # While a packet passes, each of its words leaves unchanged, but for OLD in the prefix.
        self.prove("each_word", implies(process & is_data & passes & ~inner(block, "now_begins"),
            push.valid & ~push.k & (push.data == Mux(second & marks, held ^ OLD_MASK, held))))
        self.prove("its_end", implies(process & is_end & passes, push.valid & (push.data == held)))
        # And it ends before the next one begins.
        self.prove("ends", implies(inside & push.valid & push.k,
            (push.data[:8] == K_END) | (push.data[:8] == K_END_BAD)))
        at_most_one = lambda bits: (bits & (bits - 1)) == 0
        modes, kinds = Signal(6), Signal(5)
        self.comb += [
            modes.eq(Cat(passes, takes, refuses, pair, echoes, cuts)),
            kinds.eq(Cat(is_data, is_end, is_start, is_resume, inner(block, "is_keeper"))),
        ]
        self.prove("one_mode", at_most_one(modes))
        self.lemma("inside", implies(inside, passes | cuts))
        self.lemma("passes", implies(passes, inside))
        self.lemma("cuts", implies(cuts, inside & full & ~is_data & ~is_start & ~is_resume))
        self.lemma("echoes", implies(echoes, full & ~is_data & ~is_start & ~is_resume))
        self.lemma("stays", implies(passes, full & (is_data | is_end)))
        self.lemma("strips", implies(takes | refuses | pair, full & is_data))
        self.lemma("kinds", at_most_one(kinds))
        self.lemma("begins", implies(full & (is_start | is_resume), ~echoes & ~cuts))
        self.lemma("data_k", implies(is_data, ~inner(block, "held_k")))
        self.lemma("end_word", implies(full & is_end,
            inner(block, "held_k") & ((held[:8] == K_END) | (held[:8] == K_END_BAD))))
        self.lemma("start_word", implies(full & is_start, inner(block, "held_k") & (held[:8] == K_START)))
        self.lemma("resume_word", implies(full & is_resume, inner(block, "held_k") & (held[:8] == K_RESUME)))

# Numbers ------------------------------------------------------------------------------------------

class Once(Harness):
    """Any answers, any packets that leave while they may, a ring that comes and goes.

    Beside it stands one packet of the solver's choice: it gets exactly one end. It is the answer
    with its number, or LOST.
    """
    def __init__(self):
        super().__init__()
        self.block = block = numbers_design.RingNumbers(silence=8)
        answer, event = block.answer, block.event
        for name in ("valid", "status", "number", "source", "channel"):
            signal = getattr(answer, name)
            self.comb += signal.eq(self.free(f"answer_{name}", len(signal)))
        self.comb += [
            block.begin.eq(self.free("begin")),
            block.channel.eq(self.free("channel", 2)),
            block.slot.eq(self.free("slot", 2)),
            block.up.eq(self.free("up")),
        ]
        self.assume("free", implies(block.begin, block.free))
        oldest, count = inner(block, "oldest"), inner(block, "count")
        places  = inner(block, "places")
        reader  = places.get_port(async_read=True)
        self.specials += reader
        chosen  = self.free("chosen")
        follows = Signal()  # the packet is on its way
        number, place, passed = Signal(5), Signal(4), Signal(5)
        ends    = Signal()
        self.comb += [
            reader.adr.eq(number),
            ends.eq(event.valid & (event.status != GRANT)),
        ]
        self.sync += [
            # Packets that left before it and have not ended: then it is its turn.
            If(block.begin & chosen & ~follows,
                follows.eq(1),
                number.eq(block.number),
                place.eq(Cat(block.channel, block.slot)),
                passed.eq(count - ends),
            ).Elif(follows & ends,
                passed.eq(passed - 1),
                If(passed == 0, follows.eq(0)),
            ),
        ]
        self.prove("its_end", implies(follows & ends & (passed == 0),
            (Cat(event.channel, event.slot) == place) & (oldest == number)))
        self.prove("accepted", implies(follows & ends & (passed == 0) & (event.status == ACCEPTED),
            block.fifo.source.valid & (block.fifo.source.number == number) & (block.fifo.source.status == ACCEPTED)))
        self.prove("not_more", implies(ends, count != 0))
        # While the node is UP, only an answer of a packet that is on its way ends packets, or silence.
        head = block.fifo.source
        self.prove("known", implies(ends & block.up & head.valid,
            (head.status != GRANT) & ((head.number - oldest)[:5] < count)))
        self.prove("window", count <= numbers_design.OUTSTANDING)
        self.lemma("ahead", implies(follows, (passed == (number - oldest)[:5]) & (passed < count)))
        self.lemma("kept", implies(follows, reader.dat_r == place))

# Reservation --------------------------------------------------------------------------------------

WORDS, ROOM, NODES = 4, 20, 4

class Waiting(Harness):
    """Any asks, any level of the receive FIFO. Two sources of the solver's choice: while one has a
    reservation, the other is accepted at most twice.
    """
    nodes, expiry = NODES, 64

    def __init__(self):
        super().__init__()
        self.block = block = reservation_design.RingReservation(WORDS, ROOM, self.nodes, self.expiry)
        self.comb += [
            block.level.eq(self.free("level", len(block.level))),
            block.ask.eq(self.free("ask")),
            block.source.eq(self.free("source", 4)),
            block.head.eq(self.free("head")),
            block.taking.eq(self.free("taking")),
            block.grant.ready.eq(self.free("ready")),
        ]
        self.one   = one   = self.constant("one", 2)
        self.other = other = self.constant("other", 2)
        self.assume("nodes", (block.source < self.nodes) & (one < self.nodes) & (other < self.nodes))
        self.assume("two", one != other)
        older, younger, granted, grants = (
            inner(block, name) for name in ("older", "younger", "granted", "grants"))
        bit = lambda group, node: ((group >> node) & 1) != 0
        self.reserved = Signal()
        served = Signal(2)
        self.comb += self.reserved.eq(bit(older, one) | bit(younger, one))
        self.sync += If(~self.reserved,
            served.eq(0)
        ).Elif(block.ask & block.accept & (block.source == other) & (served != 3),
            served.eq(served + 1)
        )
        asks_one = block.ask & (block.source == one)
        self.prove("at_most_two", implies(self.reserved, served <= 2))
        # What has a grant is accepted, and nothing else while others wait for longer.
        self.prove("granted", implies(asks_one & block.head & bit(granted, one), block.accept))
        self.prove("order", implies(asks_one & ~block.head & self.reserved, ~block.accept))
        # Room that was granted is kept.
        self.prove("room", implies(asks_one & block.accept & ~bit(granted, one),
            block.level + WORDS*(grants + 1) + 4 <= ROOM))
        self.prove("no_overtaking", implies(block.ask & block.accept & (block.source == other) & bit(older, one),
            bit(older, other)))
        self.lemma("apart", (older & younger) == 0)
        self.lemma("part", (granted & ~older) == 0)
        self.lemma("grants", grants == sum([granted[n] for n in range(1, self.nodes)], granted[0]))
        self.lemma("young", implies(bit(younger, one) & bit(older, other), served == 0))
        self.lemma("younger", implies(bit(younger, one), served <= 1))
        self.lemma("old", implies(bit(older, one) & bit(older, other), served <= 1))

# A source with a grant comes back within so many cycles, and the FIFO has room at least so often.
BACK, EMPTY = 4, 3
# Then a source with a reservation is accepted within so many cycles.
FEW, PATIENCE = 3, 32

class Progress(Waiting):
    """A small ring that works: a source with a grant sends again within BACK cycles, the receive
    FIFO is empty at least every EMPTY cycles, grants leave at once.
    """
    nodes = FEW

    def __init__(self):
        super().__init__()
        block   = self.block
        granted = inner(block, "granted")
        for n in range(FEW):
            late = Signal(max=BACK + 1, name=f"late{n}")
            self.sync += If(granted[n], late.eq(late + 1)).Else(late.eq(0))
            self.assume(f"back{n}", implies(late == BACK, block.ask & block.head & (block.source == n)))
        full = Signal(max=EMPTY + 1)
        empty = (block.level == 0) & ~block.taking & ~block.ask
        self.sync += If(empty, full.eq(0)).Else(full.eq(full + 1))
        self.assume("empty", implies(full == EMPTY, empty))
        self.assume("sent", block.grant.ready)
        # Asks leave room for grants: a packet takes longer than one cycle.
        self.assume("rest", implies(self.before(block.ask), ~block.ask))
        waits = Signal(max=64)
        self.sync += If(self.reserved & (waits != 63), waits.eq(waits + 1)).Elif(~self.reserved, waits.eq(0))
        self.prove("progress", waits < PATIENCE)


PROPERTIES = [
    Property("ring-bypass", "fabric/ring/output",
        "the bypass FIFO holds an own packet and 4 words at most, and loses none",
        f"own packets of {LENGTH} words, FIFO of {DEPTH}, {STALLS} stalls", "Bypass", bound=16, mutants=[
            Mutant("the FIFO gives every other word", "dibber.fabric.ring.output",
                "from_fifo.eq(step & fifo.source.valid)", "from_fifo.eq(step & fifo.source.valid & idled)",
                depth=18, harness="SmallBypass"),
            Mutant("a word goes past the FIFO", "dibber.fabric.ring.output",
                "fifo.sink.valid.eq(push.valid & ~direct),", "fifo.sink.valid.eq(push.valid & ~direct & ~rests),",
                depth=12),
            Mutant("a word that comes overtakes those that wait", "dibber.fabric.ring.output",
                ").Elif(~empty,\n                from_fifo", ").Elif(~empty & ~push.valid,\n                from_fifo", depth=12),
    ]),
    Property("ring-passing", "fabric/ring/transit",
        "each word of a packet for another node leaves unchanged, in its place, to its end",
        f"{CHANNELS} channels × 32", "Passing", k=1, quick=True, mutants=[
            Mutant("the last word is dropped", "dibber.fabric.ring.transit",
                "push.valid.eq(passes | pair),", "push.valid.eq((passes & ~now_ends) | pair),", depth=8),
            Mutant("a wrong word ends nothing", "dibber.fabric.ring.transit",
                "passes.eq(0),\n                    cuts.eq(1),", "passes.eq(0),", depth=10),
            Mutant("a START inside a packet is let pass", "dibber.fabric.ring.transit",
                ").Elif(is_data & passes & now_begins,", ").Elif(is_data & passes & now_begins & 0,", depth=10),
    ]),
    Property("ring-once", "fabric/ring/numbers",
        "each packet that leaves gets one end: the answer with its number, or LOST",
        f"{numbers_design.OUTSTANDING} packets, any answers", "Once", k=1, quick=True, mutants=[
            Mutant("an answer counts for the oldest packet", "dibber.fabric.ring.numbers",
                "If(self.up & head.valid & ((head.status == GRANT) | (ahead == 0)),", "If(self.up & head.valid,",
                depth=12),
            Mutant("an answer behind the last packet counts", "dibber.fabric.ring.numbers",
                "known.eq(ahead < count),", "known.eq(1),", depth=8),
            Mutant("a packet more than numbers tell apart", "dibber.fabric.ring.numbers",
                "self.free.eq(count < OUTSTANDING),", "self.free.eq(1),", depth=24),
    ]),
    Property("ring-waiting", "fabric/ring/reservation",
        "a source with a reservation waits for at most two packets of each other one",
        f"{NODES} sources, room for {ROOM//WORDS} packets", "Waiting", k=1, quick=True, mutants=[
            Mutant("a refused source enters the older set", "dibber.fabric.ring.reservation",
                "younger.eq(younger | one_hot)", "older.eq(older | one_hot)", depth=16),
            Mutant("room is given without regard to grants", "dibber.fabric.ring.reservation",
                "fits.eq(reduce(or_, [(grants == n) & rooms[n] for n in range(GRANTS + 1)])),", "fits.eq(1),", depth=14),
            Mutant("a later packet is accepted before the retry", "dibber.fabric.ring.reservation",
                "blocked.eq(reserved & ~self.head),", "blocked.eq(0),", depth=10),
    ]),
    Property("ring-progress", "fabric/ring/reservation",
        f"on a ring that works, a reservation ends within {PATIENCE} cycles",
        f"{FEW} sources, retry within {BACK} cycles, room within {EMPTY}", "Progress", bound=48, mutants=[
            Mutant("a younger set stays young", "dibber.fabric.ring.reservation",
                "older.eq(younger),\n                younger.eq(0),", "older.eq(0),", depth=45),
            Mutant("one source has no grant", "dibber.fabric.ring.reservation",
                "wants.eq(older & ~granted),", "wants.eq(older & ~granted & ~1),", depth=45),
    ]),
]
