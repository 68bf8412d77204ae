"""Commands that hardware takes: each walk was looked at as far as its levels go, and has bytes."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.fastpath.fast_commands import FastCommands
from dibber.interface.description import C, COMMAND

from harness import Harness, Mutant, Property, implies, inner

MODULE     = "dibber.fastpath.fast_commands"
DATA_WIDTH = 64

class Commands(Harness):
    """The block with any slots, whose owner may write them at any time: each line that is read has
    any value. Contexts and the table of gets under way answer as they like.

    Beside it stand the levels byte as it was read, and what was read of each walk: how many counts,
    and whether any word was 0.
    """
    def __init__(self):
        super().__init__()
        self.block = block = FastCommands(DATA_WIDTH, endpoints=1)
        put, slot, fsm, checks = block.put, block.slot, block.fsm, block.head
        for name, endpoint in (("offer", block.offer), ("request", block.request)):
            self.free_all(name, endpoint, omit=("first", "last"))
            waits = self.before(endpoint.valid & ~endpoint.ready)
            self.assume(f"{name}_stays", implies(waits, endpoint.valid))
        for name, signal in (("slot_ready", slot.ready), ("slot_data", slot.dat_r), ("put_ready", put.ready),
                ("taken", block.taken), ("missed", block.missed), ("full", block.full), ("expect_ready", block.expect.ready),
                ("fast", block.fast), ("node_id", block.node_id), ("generation", block.generation),
                ("enable", block.enable.raw_bits())):
            self.comb += signal.eq(self.free(name, len(signal)))

        # What was read of the slot.
        came, asked, coming = inner(block, "came"), inner(block, "asked"), inner(block, "coming")
        word   = came.valid & came.walks
        head   = came.valid & ~came.walks
        value  = block.product.word
        lines  = inner(block, "head")
        levels = Signal(8)
        first  = lines.index(COMMAND["levels"].offset*8//DATA_WIDTH)
        self.sync += If(head & (came.line == first), levels.eq(slot.dat_r[COMMAND["levels"].offset*8 % DATA_WIDTH:][:8]))
        source, block_next = inner(block, "source"), inner(block, "block")
        sides = []
        for number, side in ((1, levels[:4]), (0, levels[4:])):
            counts, zero, size = Signal(4), Signal(), Signal(32)
            self.sync += If(word & (source == number),
                If(block_next,
                    size.eq(value),
                    counts.eq(0),
                    zero.eq(value == 0)
                ).Else(
                    counts.eq(counts + 1),
                    zero.eq(zero | (value == 0))
                )
            )
            strides = side[:log2_int(C.LIST)]
            sides.append((side, strides, counts, zero, size))

        # No engine gets a walk that cannot be walked. A put without levels is compared in another
        # way: its blocks are the length.
        walk  = put.valid & checks.walked
        other = ~(checks.flat & checks.bulk)
        legal = lambda side: (side <= C.LEVELS) | ((side >= C.LIST) & (side <= C.LIST + C.LIST_LEVELS))
        for name, (side, strides, counts, zero, size) in zip(("source", "target"), sides):
            self.prove(f"{name}_levels", implies(walk, legal(side)))
            self.prove(f"{name}_counts", implies(walk & other, counts == strides))
            self.prove(f"{name}_bytes",  implies(walk & other, ~zero))
            self.prove(f"{name}_length", implies(walk & other & (side == 0), size == put.length))
        self.prove("length", implies(walk, (put.length != 0) & (put.length <= C.FAST_LENGTH)))

        # Which states there are. Head lines come in order, and only while the block looks for them.
        at        = fsm.ongoing
        last_head = len(lines) - 1
        behind    = [c.valid & ~c.walks & (c.line <= last_head) for c in coming]
        self.lemma("apart",  ~(checks.walked & (checks.inline | checks.atomic)) & ~(checks.inline & checks.atomic))
        self.lemma("heads",  implies(~at("HEAD"), ~behind[0] & ~behind[1] & (at("VERDICT") | (asked > last_head))))
        self.lemma("asked",  (asked <= len(inner(block, "lines"))) & implies(at("HEAD"), asked <= len(lines) + len(inner(block, "sides"))))
        self.lemma("orders", implies(behind[0], coming[0].line < asked) & implies(behind[1], came.line < asked)
            & implies(behind[1] & coming[0].valid, coming[0].walks | (came.line < coming[0].line)))
        self.lemma("none",   implies(at("HEAD") & coming[0].valid, ~coming[0].walks & (coming[0].line < asked)))
        walks = [c.valid & c.walks for c in coming]
        self.lemma("words",  Mux(at("WORD"), walks[0] ^ walks[1], ~walks[0] & ~walks[1]))
        self.lemma("read",   (checks.source_levels == levels[:4]) & (checks.target_levels == levels[4:])
            & implies(checks.walked, (checks.flat == (levels == 0)) & legal(levels[:4]) & legal(levels[4:])))
        self.lemma("fits",   implies(checks.fits, (put.length != 0) & (put.length <= C.FAST_LENGTH)))
        inside = at("ASK") | at("WORD") | at("PRODUCT")
        self.lemma("walked", implies(inside | at("SIDES"), checks.walked & checks.fits))
        self.lemma("flat",   implies(inside, other) & implies(at("SIDES"), ~other))
        self.lemma("put",    implies(at("PUT") & checks.walked, checks.fits))
        # The product of a walk with a word of 0 is 0, or was too large before.
        product, level = block.product, inner(block, "level")
        shifts  = inner(product, "shifts")
        (at_source, of_source, source_counts, source_zero, source_size), \
            (at_target, of_target, target_counts, target_zero, target_size) = sides
        zero    = Mux(source, source_zero, target_zero)
        counts  = Mux(source, source_counts, target_counts)
        strides = Mux(source, of_source, of_target)
        self.lemma("busy",   implies(product.busy, at("PRODUCT") & (level != 0)))
        self.lemma("begin",  implies((at("ASK") | at("WORD")) & block_next, level == 0))
        self.lemma("level",  implies(inside & ~block_next, (counts == level) & (level <= strides)
            & implies(zero, (product.result == 0) & (~product.busy | (shifts[:-1] == 0)) | product.over)))
        size = Mux(source, source_size, target_size)
        bits = len(product.result)
        self.lemma("sizes",  implies(inside & ~block_next & (level == 0), (product.result == size[:bits]) & ((size[bits:] == 0) | product.over)))
        self.lemma("before", implies(at("ASK") | at("WORD"), block_next | (level < strides)))
        self.lemma("ready",  implies(at("PRODUCT"), ~block_next))
        self.lemma("target", implies(inside & source, (target_counts == of_target) & ~target_zero
            & implies(at_target == 0, target_size == put.length)))
        self.lemma("both",   implies(at("PUT") & checks.walked & other,
            (source_counts == of_source) & (target_counts == of_target) & ~source_zero & ~target_zero
            & implies(at_source == 0, source_size == put.length) & implies(at_target == 0, target_size == put.length)))


PROPERTIES = [
    Property("fast-walks", "fastpath/fast_commands", "what the fast path takes has walks that can be walked: known levels, all counts read, no word 0",
        f"{DATA_WIDTH} bits, 1 endpoint", "Commands", k=1, quick=True, mutants=[
            Mutant("an index list may have nothing at an entry", MODULE, "Mux(listed, product.result == 0,", "Mux(listed, 0,", depth=40),
            Mutant("an index list may lie over three strides", MODULE, "~side[-1] & (side[:-1] != C.LIST + C.LEVELS)", "~side[-1]", depth=60),
            Mutant("strides below an index list are not read", MODULE, "If(level != levels[:len(level)],",
                "If((level != levels[:len(level)]) & ~listed,", depth=40),
            Mutant("a list on one side excuses the other", MODULE, "listed  = levels[log2_int(C.LIST)]",
                "listed  = checks.source_levels[log2_int(C.LIST)]", depth=40),
        ]),
]
