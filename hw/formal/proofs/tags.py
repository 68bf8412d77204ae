"""Read tags: no tag is handed out while a completion for it may still come, and a completion of a
former use of a tag is not taken for one of its present use.
"""

# SPDX-License-Identifier: BSD-2-Clause

import inspect

from migen import *

from dibber.deposit.gather import Gather
from dibber.deposit.tags import Tags

from harness import Harness, Mutant, Property, implies, inner, inner_all

# Times as the card is built; it has 64 tags.
DEFAULTS   = {name: p.default for name, p in inspect.signature(Gather).parameters.items()}
TIMEOUT    = DEFAULTS["timeout"]
QUARANTINE = DEFAULTS["quarantine"]

class Once(Harness):
    """One tag of the solver's choice, all others free.

    It is in use from the cycle that hands it out until it is answered, or until `quarantine` cycles
    have gone by. Then no completion can come for it any more. A completion is taken for this use only
    if it has the phase with which the tag was handed out last. That is never the phase of the use
    before.
    """
    tags, timeout, quarantine = 8, TIMEOUT, QUARANTINE

    def __init__(self):
        super().__init__()
        bits = log2_int(self.tags)
        self.block = block = Tags(self.tags, self.timeout, self.quarantine)
        source     = block.source
        tag        = self.constant("tag", bits)
        returning  = Signal()   # it comes back in this cycle
        alive      = Signal()   # the block holds it in use
        busy       = Signal()
        free, which = inner(block, "tag_returns"), inner(block, "returned_tag")
        self.comb += [
            source.ready.eq(self.free("ready")),
            block.extended.eq(self.free("extended")),
            block.release.eq(self.free("release")),
            block.fail.eq(self.free("fail")),
            block.answered.eq(self.free("answered", 8)),
            block.answered_phase.eq(self.free("answered_phase")),
            busy.eq((inner(block, "busy") >> tag)[0]),
            returning.eq(free & (which == tag)),
            alive.eq(busy & ~returning),
        ]

        self.assume("one_end", ~(block.release & block.fail))
        handed   = Signal()
        answered = Signal()
        agrees   = Signal()
        last     = Signal(reset=1)  # phase of the tag's last use
        in_use   = Signal()
        cycles   = Signal(max=4*self.quarantine)  # since it was handed out
        self.comb += [
            handed.eq(source.valid & source.ready & (source.tag == tag)),
            agrees.eq((block.answered == tag) & (block.answered_phase == last)),
            answered.eq(block.release & agrees),
        ]
        self.sync += [
            If(cycles != 2**len(cycles) - 1, cycles.eq(cycles + 1)),
            If(handed,
                last.eq(source.phase),
                in_use.eq(1),
                cycles.eq(1),
            ).Elif(answered,
                in_use.eq(0)
            )
        ]
        self.prove("not_twice", implies(handed, ~in_use | (cycles > self.quarantine)))
        self.prove("known",     implies(block.answered == tag, implies(block.known, in_use & agrees)
            & implies(in_use & agrees & (cycles <= self.quarantine), block.known)))
        self.prove("turns",     implies(handed, source.phase != last))
        lost = Signal()   # the tag's read has failed
        self.sync += If(handed, lost.eq(0)).Elif(block.fail & agrees & block.live, lost.eq(1))
        self.prove("failed",    implies((block.answered == tag) & lost & in_use, ~block.live))
        self.lemma("set_aside", implies(lost & alive, (block.expired >> tag)[0]))

        # The tag is not filled in yet, or in flight, or in one entry of the FIFO of its group.
        NEW, FLYING, WAITING = range(3)
        where = Signal(2, reset=NEW)
        slot  = Signal(bits)
        fills = inner_all(block, "fill")
        first = 0
        self.sync += If(handed, where.eq(FLYING))
        for n, (fifo, fill) in enumerate(zip(inner(block, "fifos"), fills)):
            core, depth = fifo.fifo, fifo.depth
            consume, produce, storage = (inner(core, name) for name in ("consume", "produce", "storage"))
            mine  = Signal()
            # in Verilog the carry of a sum inside a comparison would be lost
            start = Signal(bits + 1)
            self.comb += [
                mine.eq((tag >= first) & (tag < first + depth) if first else tag < depth),
                start.eq(first + fill),
            ]
            self.sync += If(fifo.sink.valid & fifo.sink.ready & (fifo.sink.tag == tag),
                where.eq(WAITING), slot.eq(produce))
            self.lemma(f"pointers{n}", (core.level <= depth) & ((consume + core.level)[:len(consume)] == produce))
            self.lemma(f"fill{n}",     (fill <= depth) & implies(mine & (tag >= start), where == NEW))
            for i in range(depth):
                port = storage.get_port(async_read=True)
                self.specials += port
                distance = Signal(max=depth)
                held     = port.dat_r[:8]
                held_phase = port.dat_r[8]
                self.comb += [port.adr.eq(i), distance.eq(i - consume)]
                self.lemma(f"entry{n}_{i}", implies(distance < core.level, (held >= first) & (held < first + depth)
                    & implies(held == tag,
                        (where == WAITING) & (slot == i) & (held_phase != last))))
            first += depth
        phases = inner(block, "phases").get_port(async_read=True)
        self.specials += phases
        self.comb += phases.adr.eq(tag)
        self.lemma("flying",  implies(busy, where == FLYING))
        self.lemma("phase",   implies(busy, phases.dat_r == last) & implies(where == NEW, last))
        self.lemma("returns", implies(returning, busy) & implies(free, which < self.tags)
            & implies(free, (inner(block, "busy") >> which)[0]))

        # The scan rests only while no tag is in use. Sums have signals of their own, because Verilog
        # loses the carry of a sum inside a comparison.
        resting, busy_tags, count = (inner(block, name) for name in ("resting", "busy", "tags_in_use"))
        busy_count, filled, counted = (Signal(bits + 3) for _ in range(3))
        self.comb += [
            busy_count.eq(sum(busy_tags[n] for n in range(self.tags))),
            filled.eq(sum(fills)),
            counted.eq(count + sum(fifo.fifo.level for fifo in inner(block, "fifos"))),
        ]
        self.prove("awake",   implies(resting, busy_tags == 0))
        self.lemma("counted", (busy_count <= count) & (counted == filled))

        # Age. `now` counts rounds, in which each tag has 3 cycles or more; `position` counts the
        # cycles.
        now, scan, stamps, look, watched, over = (inner(block, name) for name in (
            "now", "scan", "stamps", "look", "watched", "quarantine_ended"))
        port  = stamps.get_port(async_read=True)
        self.specials += port
        stamp = port.dat_r
        fsm   = block.fsm
        phase = Signal(2)
        lag   = Signal(len(now))
        # of `position`, from the start of the round of the stamp on
        since = Signal(len(now) + bits + 4)
        position, least = Signal(len(since)), Signal(len(since))
        mine  = watched & (scan == tag)
        self.comb += [
            port.adr.eq(tag),
            lag.eq(now - stamp),
            phase.eq(Mux(fsm.ongoing("JUDGE"), 2, fsm.ongoing("COMPARE"))),
            position.eq((lag*self.tags + scan)*3 + phase),
            least.eq(cycles + 3*self.tags - 1),
        ]
        begin = Signal(len(since))
        steps = Signal()
        self.comb += [
            begin.eq(scan*3 + phase),
            steps.eq(~(fsm.ongoing("JUDGE") & (block.release | block.fail)) & ~(fsm.ongoing("LOOK") & resting)),
        ]
        wraps = steps & (begin == 3*self.tags - 1) & (lag == 2**len(lag) - 1)
        self.sync += If(handed, since.eq(begin + steps)).Elif(wraps, since.eq(0)).Else(since.eq(since + steps))
        rounds = inner(block, "quarantine_rounds")
        self.lemma("in_use",  implies(in_use, alive | (cycles > self.quarantine)) & implies(alive, in_use))
        self.lemma("since",   implies(alive, since == position))
        self.lemma("age",     implies(alive, least >= since))
        self.lemma("watched", implies(watched & ~fsm.ongoing("LOOK"), (busy_tags >> scan)[0]))
        self.lemma("look",    implies(mine & fsm.ongoing("COMPARE"), look.dat_r == stamp))
        self.lemma("over",    implies(mine & fsm.ongoing("JUDGE") & over, lag >= rounds))
        self.lemma("fsm",     fsm.ongoing("LOOK") | fsm.ongoing("COMPARE") | fsm.ongoing("JUDGE"))


class OnceSmall(Once):
    """For mutants: two tags, a short time, and no completion, so a long run is checked quickly.
    """
    tags, timeout, quarantine = 2, 0, 30

    def __init__(self):
        super().__init__()
        self.assume("no_completion", ~self.block.release)
        self.assume("taken",         self.block.source.ready)


class OnceAnswered(Once):
    """For a mutant: two tags, and completions come, so that a tag is soon used again."""
    tags, timeout, quarantine = 2, 0, 30

    def __init__(self):
        super().__init__()
        self.assume("taken", self.block.source.ready)


PROPERTIES = [
    Property("tags-once", "deposit/tags", "no tag is handed out while it is in use",
        f"8 tags, quarantine {QUARANTINE:,} cycles", "Once", k=1, mutants=[
            Mutant("quarantine as short as the timeout", "dibber.deposit.tags", "quarantine_ended, age >= quarantine_rounds",
                "quarantine_ended, age >= timeout_rounds", depth=48, harness="OnceSmall"),
            Mutant("a timeout frees the tag", "dibber.deposit.tags",
                "tag_returns.eq((self.release & self.known) | quarantine_over)",
                "tag_returns.eq((self.release & self.known) | quarantine_over | self.expire)", depth=40, harness="OnceSmall"),
            Mutant("a failed read frees the tag", "dibber.deposit.tags",
                "tag_returns.eq((self.release & self.known) | quarantine_over)",
                "tag_returns.eq(((self.release | self.fail) & self.known) | quarantine_over)", depth=40, harness="OnceSmall"),
            Mutant("the scan rests with a tag in use", "dibber.deposit.tags", "(tags_in_use == 0)",
                "(tags_in_use <= 1)", depth=40, harness="OnceSmall"),
            Mutant("a failed read's tag stays live", "dibber.deposit.tags", "(self.fail & self.live & (self.answered == i))",
                "0", depth=40, harness="OnceSmall"),
            Mutant("each use has the same phase", "dibber.deposit.tags",
                "fifo.sink.phase.eq(tag_returns & ~phase_of_returned.dat_r)",
                "fifo.sink.phase.eq(0)", depth=40, harness="OnceAnswered"),
            Mutant("a completion for a former use is known", "dibber.deposit.tags",
                "(self.answered_phase == phase_of_answered.dat_r)", "1", depth=40, harness="OnceSmall"),
    ]),
]
