# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Read tags: none is handed out while a completion for it may still come."""

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

    It is in use from the cycle that hands it out until it is answered, or until `quarantine` cycles have
    gone by; then nothing can come for it any more.
    """
    tags, timeout, quarantine = 8, TIMEOUT, QUARANTINE

    def __init__(self):
        super().__init__()
        bits = log2_int(self.tags)
        self.block = block = Tags(self.tags, self.timeout, self.quarantine)
        source     = block.source
        tag        = self.constant("tag", bits)
        busy       = Signal()
        expired    = Signal()
        self.comb += [
            source.ready.eq(self.free("ready")),
            block.extended.eq(self.free("extended")),
            block.release.eq(self.free("release")),
            block.released.eq(self.free("released", bits)),
            block.hold.eq(self.free("hold")),
            busy.eq((block.busy >> tag)[0]),
            expired.eq((block.expired >> tag)[0]),
        ]
        # Gather releases what it knows to be in flight.
        self.assume("in_flight", implies(block.release, (block.busy >> block.released)[0]))

        handed   = Signal()
        answered = Signal()
        in_use   = Signal()
        cycles   = Signal(max=4*self.quarantine)  # since it was handed out
        self.comb += [
            handed.eq(source.valid & source.ready & (source.tag == tag)),
            answered.eq(block.release & (block.released == tag)),
        ]
        self.sync += [
            If(cycles != 2**len(cycles) - 1, cycles.eq(cycles + 1)),
            If(handed,
                in_use.eq(1),
                cycles.eq(1),
            ).Elif(answered,
                in_use.eq(0)
            )
        ]
        self.prove("not_twice", implies(handed, ~in_use | (cycles > self.quarantine)))
        self.prove("in_range",  implies(source.valid & source.ready & ~block.extended, source.tag < 32))

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
            start = Signal(bits + 1)  # in Verilog the carry of a sum inside a comparison would be lost
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
                self.comb += [port.adr.eq(i), distance.eq(i - consume)]
                self.lemma(f"entry{n}_{i}", implies(distance < core.level, (held >= first) & (held < first + depth)
                    & implies(held == tag, (where == WAITING) & (slot == i))))
            first += depth
        self.lemma("flying", implies(busy, where == FLYING))

        # Age. `now` counts rounds of `tags` cycles or more.
        now, scan, stamps, look, seen, seen_busy = (inner(block, name) for name in (
            "now", "scan", "stamps", "look", "seen", "seen_busy"))
        port  = stamps.get_port(async_read=True)
        self.specials += port
        stamp = port.dat_r
        lag   = Signal(len(now))
        rounds, least = Signal(len(now) + bits + 2), Signal(len(now) + bits + 2)
        self.comb += [
            port.adr.eq(tag),
            lag.eq(now - stamp),
            rounds.eq(self.tags*lag + scan),
            least.eq(cycles + self.tags - 1),
        ]
        self.lemma("in_use",  implies(in_use, busy | (cycles > self.quarantine)) & implies(busy, in_use))
        self.lemma("expired", implies(expired, busy))
        self.lemma("age",     implies(busy, least >= rounds))
        # In the cycle behind the one that hands it out, the stamp of the use before may still be read.
        fresh = self.before(handed)
        self.lemma("look",    implies(busy & seen_busy & (seen == tag) & ~fresh, look.dat_r == stamp))
        self.lemma("fresh",   implies(fresh, ~expired))


class OnceSmall(Once):
    """For mutants: two tags and a short time."""
    tags, timeout, quarantine = 2, 0, 8


PROPERTIES = [
    Property("tags-once", "deposit/tags", "no tag is handed out while it is in use",
        f"8 tags, quarantine {QUARANTINE:,} cycles", "Once", k=1, mutants=[
            Mutant("quarantine as short as the timeout", "dibber.deposit.tags", "(age >= quarantine_rounds)",
                "(age >= timeout_rounds)", depth=18, harness="OnceSmall"),
            Mutant("a timeout frees the tag", "dibber.deposit.tags", "free.eq(self.release | late)",
                "free.eq(self.release | late | self.expire)", depth=18, harness="OnceSmall"),
    ]),
]
