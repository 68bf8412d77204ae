"""The walker's nest: its runs are the blocks of the loops.

`Runs` is the interface between nest and splitter. The nest's side of it is proven here, and is the
only assumption about runs in walker_pieces.py.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.deposit import walker
from dibber.deposit.skip import start_layout

from harness import Harness, Mutant, Property, implies, inner

TURN_BITS = 3

class Arithmetic:
    def any_max_piece(self):
        """A legal size: a power of two from 128 to 4096."""
        log = self.constant("log_max_piece", 4)
        self.assume("max_piece", (log >= 7) & (log <= 12))
        return self.named(13, 1 << log)

    def named(self, bits, value):
        """A sum in a signal of its own, because inside a comparison Verilog would lose its carry.
        """
        signal = Signal(bits)
        self.comb += signal.eq(value)
        return signal

# Runs ---------------------------------------------------------------------------------------------

class Bounds(Record):
    """Values of a transfer for all its runs: its bytes, the region, and its number, modulo.
    """
    def __init__(self, name):
        super().__init__([("total", 33), ("low", 64), ("high", 64), ("turn", TURN_BITS)], name=name)


def whole_run(module, run, of, over, end, size):
    """One run: some bytes of its transfer, up to `end`, and values that the splitter need not
    compute.
    """
    inside = (run.address >= of.low) & (run.address <= of.high)
    left   = module.named(64, of.high - run.address)
    room   = module.named(13, size - (run.address[:12] & (size - 1)[:12]))
    tail   = (run.address[:12] | (size - 1)[:12]) == 0xfff
    return ((run.length != 0) & (end <= of.total) & (run.last == (end == of.total))
        & (of.low <= of.high) & ~of.total[32]
        & (run.inside == (~over & inside))
        & implies(run.inside, (run.left == module.named(33, Cat(left[:32], left[32:] != 0))) & (run.room == room)
            & (run.whole == Mux(tail, room, module.named(13, size - run.address[:2])))))


def sound(module, start):
    """The result of a set-up. The first run ends where its block does."""
    ends = module.named(64, start.address + start.run) == module.named(64, start.base0 + start.block)
    return ((start.length != 0) & (start.run != 0) & ((start.block != 0) | (start.run == 2**32 - 1))
        & (start.low <= start.high) & (start.joinable == (start.stride0 == start.block))
        & (start.spent == ((start.left0 == 0) & (start.left1 == 0))) & implies((start.left0 != 0) & ~start.over, ends))


class Runs(LiteXModule, Arithmetic):
    """The interface between nest and splitter.

    Attributes
    ----------
    bounds  : Bounds, in        of the transfer of the run that is shown; used when the transfer
              begins
    over    : Signal(), in      the loops had ended before it
    of      : Bounds, out       of the transfer of the run that is shown, or of the next one
    fresh   : Signal(), out     the next run is a transfer's first
    given   : Signal(), out     bytes of the transfer before it
    tip     : Signal(64), out   behind the last byte of the run before
    past    : Signal(), out     the loops had ended before that one
    promise : Signal(), out     the nest's side: runs of a transfer follow each other until its
              last byte, or until `cancel`
    duty    : Signal(), out     the splitter's side: `cancel` only inside of a transfer, and only
              with `ready`
    """
    def __init__(self, run, cancel, size):
        self.bounds  = Bounds("run")
        self.over    = Signal()
        self.of      = of = Bounds("of")
        self.fresh   = fresh = Signal(reset=1)
        self.given   = given = Signal(33)
        self.tip     = tip   = Signal(64)
        self.past    = past  = Signal()
        self.promise = Signal()
        self.duty    = Signal()

        # # #

        self.kept = kept = Bounds("kept")
        taken  = self.named(1, run.valid & run.ready)
        end    = self.named(34, given + run.length)
        self.comb += [
            of.eq(kept),
            If(fresh, of.total.eq(self.bounds.total), of.low.eq(self.bounds.low), of.high.eq(self.bounds.high)),
            self.promise.eq(implies(run.valid, whole_run(self, run, of, self.over, end, size)
                & (self.bounds.raw_bits() == of.raw_bits())
                & implies(run.joined, ~fresh & Mux(self.over, past, run.address == tip)))),
            self.duty.eq(implies(cancel, run.ready & ~fresh)),
        ]
        self.sync += [
            kept.total.eq(of.total), kept.low.eq(of.low), kept.high.eq(of.high),
            If(taken,
                fresh.eq(run.last),
                given.eq(Mux(run.last, 0, end)),
                tip.eq(run.address + run.length),
                past.eq(self.over),
                kept.turn.eq(kept.turn + run.last),
            ),
            If(cancel, fresh.eq(1), given.eq(0), kept.turn.eq(kept.turn + 1)),
        ]


# Nest ---------------------------------------------------------------------------------------------

class Blocks(Harness, Arithmetic):
    """Any starts that a set-up can leave, any bases of a list, any pace of the splitter, any walks
    that it cancels.

    The loops run beside the nest; their values for a run go through the pipeline beside it.
    """
    def __init__(self):
        super().__init__()
        self.block = nest = walker.Nest()
        start, run, base = nest.sink, nest.source, nest.base
        self.free_all("start", start)
        self.free_all("base", base)
        size = self.any_max_piece()
        self.comb += [
            nest.max_piece.eq(size),
            nest.cancel.eq(self.free("cancel")),
            run.ready.eq(self.free("ready")),
        ]
        self.runs = runs = Runs(run, nest.cancel, size)
        self.assume("duty",  runs.duty)
        self.assume("start", implies(start.valid, sound(self, start)))
        self.prove("runs",   runs.promise)

        # Loops: a level goes on from where it was last, and the levels below it begin there.
        state, valid, move, joined, free, shown, held = (inner(nest, name) for name in (
            "state", "valid", "move", "joined", "free", "run", "held"))
        walk  = Record([(name, bits) for name, bits in start_layout().payload_layout
            if name not in ("spent", "joinable", "fault", "length")], name="walk")
        rows  = [getattr(walk, f"base{n}") for n in range(3)]
        left  = [getattr(walk, f"left{n}") for n in range(3)]
        of    = Bounds("nest")
        of.turn.reset = Constant(2**TURN_BITS - 1)
        given = Signal(33)
        load  = self.named(1, start.valid & start.ready)
        whole = self.named(34, given + walk.run)
        end   = self.named(33, Mux(whole >= of.total, of.total, whole))
        def begin(level, where):
            return [walk.address.eq(where), *[rows[n].eq(where) for n in range(level + 1)],
                *[left[n].eq(getattr(walk, f"count{n}") - 1) for n in range(level)]]
        self.sync += [
            If(move,
                given.eq(end), walk.run.eq(walk.block),
                If(left[0] != 0,
                    begin(0, rows[0] + walk.stride0), left[0].eq(left[0] - 1)
                ).Elif(left[1] != 0,
                    begin(1, rows[1] + walk.stride1), left[1].eq(left[1] - 1)
                ).Elif(walk.listed & ~walk.exhausted,
                    begin(2, base.base), walk.exhausted.eq(base.last), If(base.error, walk.over.eq(1))
                ).Elif(left[2] != 0,
                    begin(2, rows[2] + walk.stride2), left[2].eq(left[2] - 1)
                ).Else(
                    walk.over.eq(1)
                )
            ),
            If(load,
                [getattr(walk, name).eq(getattr(start, name)) for name, *_ in walk.layout],
                given.eq(0), of.total.eq(start.length), of.low.eq(start.low), of.high.eq(start.high),
                of.turn.eq(of.turn + 1),
            )
        ]
        # A base is taken only where the loops need one.
        needs = (left[0] == 0) & (left[1] == 0) & walk.listed & ~walk.exhausted
        self.prove("bases", (base.valid & base.ready) == (move & needs))

        # With each run go the start and end of its block by the loops.
        tag  = [("address", 64), ("given", 33), ("end", 33), ("over", 1)] + of.layout
        here = Record(tag, name="tag_here")
        runs_tag, held_tag, out = (Record(tag, name=f"tag_{name}") for name in ("run", "held", "out"))
        self.comb += [
            here.address.eq(walk.address), here.given.eq(given), here.end.eq(end), here.over.eq(walk.over),
            [getattr(here, name).eq(getattr(of, name)) for name, _ in of.layout],
            out.eq(runs_tag), If(held.valid, out.eq(held_tag)),
            [getattr(runs.bounds, name).eq(getattr(out, name)) for name, _ in of.layout],
            runs.over.eq(out.over),
        ]
        self.sync += [
            If(~held.valid, held_tag.eq(runs_tag)),
            If(free, runs_tag.eq(here)),
        ]
        self.prove("place", implies(run.valid & ~out.over, run.address == out.address))
        self.prove("bytes", implies(run.valid, (out.given == runs.given)
            & (self.named(34, out.given + run.length) == out.end)))

        # Each run in the nest follows the one before it: a run, a held run, or the last one that
        # was taken.
        def behind(shown, tag):
            """(bounds, fresh, given, tip, over) of a run, for its successor."""
            next_ = Bounds("next")
            self.comb += [[getattr(next_, name).eq(getattr(tag, name)) for name, _ in of.layout],
                next_.turn.eq(tag.turn + shown.last)]
            return next_, shown.last, Mux(shown.last, 0, tag.end), self.named(64, shown.address + shown.length), tag.over
        def follows(before, bounds, given, joined, address, over):
            expected, fresh, bytes_, tip, past = before
            return ((bounds.turn == expected.turn) & (given == bytes_)
                & implies(joined, ~fresh & Mux(over, past, address == tip))
                & implies(~fresh, (bounds.total == expected.total) & (bounds.low == expected.low)
                    & (bounds.high == expected.high)))
        taken = runs.kept, runs.fresh, runs.given, runs.tip, runs.past
        last  = behind(shown, runs_tag)
        older = behind(held, held_tag)
        before = Bounds("before"), Signal(), Signal(33), Signal(64), Signal()
        self.comb += If(shown.valid, [a.eq(b) for a, b in zip(before, last)]
            ).Elif(held.valid, [a.eq(b) for a, b in zip(before, older)]
            ).Else([a.eq(b) for a, b in zip(before, taken)])
        self.lemma("free",  free == ~(shown.valid & held.valid))
        self.lemma("fresh", implies(runs.fresh, runs.given == 0))
        def stands(run, tag):
            return (whole_run(self, run, tag, tag.over, tag.end, size) & (tag.address == run.address)
                & (tag.end == self.named(34, tag.given + run.length)))
        def after(before, run, tag):
            return follows(before, tag, tag.given, run.joined, run.address, tag.over)
        self.lemma("held",  implies(held.valid, stands(held, held_tag) & after(taken, held, held_tag)))
        self.lemma("shown", implies(shown.valid, stands(shown, runs_tag)
            & Mux(held.valid, after(older, shown, runs_tag), after(taken, shown, runs_tag))))
        self.lemma("valid", Mux(valid, follows(before, of, given, joined, state.address, walk.over),
            before[1] & (before[0].turn == self.named(TURN_BITS, of.turn + 1))))
        self.lemma("state", implies(valid, (state.joinable == (state.stride0 == state.block))
            & implies(state.listed & ~state.exhausted, state.spent == ((left[0] == 0) & (left[1] == 0)))))
        for name, *_ in walk.layout:
            self.lemma(f"state_{name}", implies(valid, getattr(state, name) == getattr(walk, name)))
        self.lemma("bytes_left", implies(valid, (self.named(34, given + state.length) == of.total) & (state.length != 0)
            & ~of.total[32] & (state.run != 0) & ((state.block != 0) | (state.run == 2**32 - 1))))
        self.lemma("region", implies(valid, (of.low == state.low) & (of.high == state.high) & (of.low <= of.high)))
        self.lemma("final", implies(valid, inner(nest, "final") == (state.length <= state.run)))
        self.lemma("touch", implies(valid & (state.left0 != 0) & ~state.over,
            self.named(64, state.address + state.run) == self.named(64, state.base0 + state.block)))

class FewBlocks(Blocks):
    """For mutants: short walks at low addresses."""
    def __init__(self):
        super().__init__()
        start = self.block.sink
        few   = {"address": 12, "low": 12, "high": 12, "length": 3, "block": 3, "run": 3, "count0": 1, "count1": 1,
            **{f"base{n}": 12 for n in range(3)}, **{f"stride{n}": 4 for n in range(3)}, **{f"left{n}": 1 for n in range(3)}}
        for name, bits in few.items():
            self.assume(f"few_{name}", getattr(start, name)[bits:] == 0)
        self.assume("one_size", self.block.max_piece == 128)


WALKER = "dibber.deposit.walker"
WIDTHS = "64-bit addresses, 32-bit lengths, any max_piece"

PROPERTIES = [
    Property("walker-runs", "deposit/walker",
        "runs are the blocks of the loops, once, in order; a cancelled walk ends, no other one does",
        WIDTHS, "Blocks", k=1, apart=True, mutants=[
            Mutant("a level does not begin again", WALKER,
                "for i in range(level + 1)]", "for i in range(level, level + 1)]", depth=8, harness="FewBlocks"),
            Mutant("blocks apart are joined", WALKER,
                "joined.eq(state.joinable)", "joined.eq(1)", depth=8, harness="FewBlocks"),
            Mutant("a cancelled walk goes on", WALKER,
                "forget.eq(self.cancel & ~(held.valid & held.last) & ~(run.valid & run.last))",
                "forget.eq(0)", depth=8, harness="FewBlocks"),
            Mutant("a run is offered twice", WALKER, "held.valid.eq(source.valid & ~source.ready)",
                "held.valid.eq(source.valid & (~source.ready | ~run.valid))", depth=8, harness="FewBlocks"),
            Mutant("the list goes on behind its end", WALKER,
                "needs_base.eq(state.listed & state.spent & ~state.exhausted)",
                "needs_base.eq(state.listed & state.spent)", depth=8, harness="FewBlocks"),
            Mutant("a walk goes on behind its end", WALKER,
                "~state.over & (state.address >= state.low)", "(state.address >= state.low)", depth=8, harness="FewBlocks"),
            Mutant("a piece may cross 4 KiB", WALKER,
                "Mux(\n                        (state.address[:12] | mask) == 0xfff, piece_room,\n"
                "                        self.max_piece - state.address[:2])",
                "self.max_piece - state.address[:2]", depth=8, harness="FewBlocks"),
    ]),
]
