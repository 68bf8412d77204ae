# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The walker's two halves: the nest's runs are the blocks of the loops, and the pieces are the bytes of the runs.

Between them stands `Runs`: what the nest keeps to is proven of it, and is all that the splitter is told of its runs.
"""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.deposit import walker
from dibber.deposit.skip import start_layout
from dibber.deposit.walker import run_layout
from dibber.layouts import list_base_layout, list_order_layout, walk_layout

from harness import Harness, Mutant, Property, implies, inner

# What is above these bits is more of the same adders.
ADDRESS_BITS, LENGTH_BITS, TURN_BITS = 64, 32, 3

class Arithmetic:
    """Sums in signals of their own: in Verilog the carry of a sum inside a comparison would be lost."""
    def named(self, bits, value):
        signal = Signal(bits)
        self.comb += signal.eq(value)
        return signal

# Runs ---------------------------------------------------------------------------------------------

class Bounds(Record):
    """What a transfer says of all its runs: its bytes, the region, and which one it is, counted round."""
    def __init__(self, name):
        super().__init__([("total", LENGTH_BITS + 1), ("low", ADDRESS_BITS), ("high", ADDRESS_BITS), ("turn", TURN_BITS)], name=name)


def whole_run(module, run, of, over, end, size):
    """Each run by itself: some bytes of its transfer, up to `end`, and what the splitter need not work out."""
    inside = (run.address >= of.low) & (run.address <= of.high)
    room   = module.named(13, size - (run.address[:12] & (size - 1)[:12]))
    tail   = (run.address[:12] | (size - 1)[:12]) == 0xfff
    return ((run.length != 0) & (end <= of.total) & (run.last == (end == of.total))
        & (of.low <= of.high) & ~of.total[LENGTH_BITS]
        & (run.inside == (~over & inside))
        & implies(run.inside, (run.left == module.named(64, of.high - run.address)) & (run.room == room)
            & (run.whole == Mux(tail, room, module.named(13, size - run.address[:2])))))


def sound(module, start):
    """What a set-up leaves."""
    return ((start.length != 0) & (start.run != 0) & ((start.block != 0) | (start.run == 2**32 - 1)) & (start.low <= start.high)
        & (start.joinable == (start.stride0 == start.block)) & (start.spent == ((start.left0 == 0) & (start.left1 == 0)))
        & implies(start.left0 != 0, module.named(64, start.address + start.run) == module.named(64, start.base0 + start.block)))


class Runs(LiteXModule, Arithmetic):
    """What passes between nest and splitter.

    Attributes
    ----------
    bounds  : Bounds, in        of the transfer of the run that is shown; used when the transfer begins
    over    : Signal(), in      the loops had ended before that run
    of      : Bounds, out       of the transfer of the run that is shown, or of the next one
    fresh   : Signal(), out     the next run is a transfer's first
    given   : Signal(), out     bytes of the transfer before it
    tip     : Signal(64), out   behind the last byte of the run before
    promise : Signal(), out     the nest's: runs of a transfer follow each other until its last byte, or until `cancel`
    duty    : Signal(), out     the splitter's: `cancel` only inside of a transfer, and not without `ready`
    """
    def __init__(self, run, cancel, size):
        self.bounds  = Bounds("run")
        self.over    = Signal()
        self.of      = of = Bounds("of")
        self.fresh   = fresh = Signal(reset=1)
        self.given   = given = Signal(LENGTH_BITS + 1)
        self.tip     = tip   = Signal(64)
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
                & (self.bounds.raw_bits() == of.raw_bits()) & implies(run.joined, ~fresh & (run.address == tip)))),
            self.duty.eq(implies(cancel, run.ready & ~fresh)),
        ]
        self.sync += [
            kept.total.eq(of.total), kept.low.eq(of.low), kept.high.eq(of.high),
            If(taken,
                fresh.eq(run.last),
                given.eq(Mux(run.last, 0, end)),
                tip.eq(run.address + run.length),
                kept.turn.eq(kept.turn + run.last),
            ),
            If(cancel, fresh.eq(1), given.eq(0), kept.turn.eq(kept.turn + 1)),
        ]


class Anywhere(LiteXModule):
    """In the place of `Skip`: walks that start in any state that a set-up can leave them in."""
    def __init__(self):
        self.sink   = stream.Endpoint(walk_layout())
        self.source = stream.Endpoint(start_layout())
        self.order  = stream.Endpoint(list_order_layout())
        self.base   = stream.Endpoint(list_base_layout())
        self.begun  = Signal()


class AnyRuns(LiteXModule):
    """In the place of `Nest`."""
    def __init__(self):
        self.sink      = stream.Endpoint(start_layout())
        self.source    = stream.Endpoint(run_layout())
        self.base      = stream.Endpoint(list_base_layout())
        self.listed    = Signal()
        self.max_piece = Signal(13)
        self.cancel    = Signal()

# Nest ---------------------------------------------------------------------------------------------

class Blocks(Harness, Arithmetic):
    """Any starts that a set-up can leave, any bases of a list, any pace of the splitter, any walks that it cancels.

    The loops are run beside the nest; what they say of a run goes through the pipeline beside it.
    """
    def __init__(self):
        super().__init__()
        self.block = nest = walker.Nest()
        start, run, base = nest.sink, nest.source, nest.base
        self.free_all("start", start)
        self.free_all("base", base)
        log  = self.constant("log_max_piece", 4)
        size = self.named(13, 1 << log)
        self.assume("max_piece", (log >= 7) & (log <= 12))
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
        state, valid, move, joined, waits, final, forget, shown, held = (inner(nest, name) for name in (
            "state", "valid", "move", "joined", "waits", "final", "forget", "run", "held"))
        walk  = Record([(name, bits) for name, bits in start_layout().payload_layout if name not in ("spent", "joinable", "fault")], name="walk")
        rows  = [getattr(walk, f"base{n}") for n in range(3)]
        left  = [getattr(walk, f"left{n}") for n in range(3)]
        of    = Bounds("nest")
        of.turn.reset = Constant(2**TURN_BITS - 1)
        given = Signal(LENGTH_BITS + 1)
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
        # A base is taken where the loops need one, and nowhere else.
        needs = (left[0] == 0) & (left[1] == 0) & walk.listed & ~walk.exhausted
        self.prove("bases", (base.valid & base.ready) == (move & needs))

        # With a run goes where the loops say that its block begins and ends.
        tag  = [("address", 64), ("given", LENGTH_BITS + 1), ("end", LENGTH_BITS + 1), ("over", 1)] + of.layout
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
            If(~shown.valid | shown.ready, runs_tag.eq(here)),
        ]
        self.prove("place", implies(run.valid & ~out.over, run.address == out.address))
        self.prove("bytes", implies(run.valid, (out.given == runs.given) & (self.named(34, out.given + run.length) == out.end)))

        # What stands in the nest follows what stands before it: a run, one that is held, or what was taken last.
        def behind(shown, tag):
            """(bounds, fresh, given, tip) of what follows a run."""
            next_ = Bounds("next")
            self.comb += [[getattr(next_, name).eq(getattr(tag, name)) for name, _ in of.layout],
                next_.turn.eq(tag.turn + shown.last)]
            return next_, shown.last, Mux(shown.last, 0, tag.end), self.named(64, shown.address + shown.length)
        def follows(before, bounds, given, joined, address):
            expected, fresh, bytes_, tip = before
            return ((bounds.turn == expected.turn) & (given == bytes_) & implies(joined, ~fresh & (address == tip))
                & implies(~fresh, (bounds.total == expected.total) & (bounds.low == expected.low) & (bounds.high == expected.high)))
        taken = runs.kept, runs.fresh, runs.given, runs.tip
        last  = behind(shown, runs_tag)
        older = behind(held, held_tag)
        before = (Bounds("before"), *(Signal(n, name=name) for n, name in ((1, "before_fresh"), (33, "before_given"), (64, "before_tip"))))
        self.comb += If(shown.valid, [a.eq(b) for a, b in zip(before, last)]
            ).Elif(held.valid, [a.eq(b) for a, b in zip(before, older)]
            ).Else([a.eq(b) for a, b in zip(before, taken)])
        self.lemma("fresh", implies(runs.fresh, runs.given == 0))
        self.lemma("held",  implies(held.valid, whole_run(self, held, held_tag, held_tag.over, held_tag.end, size) & (held_tag.address == held.address) & (held_tag.end == self.named(34, held_tag.given + held.length))
            & follows(taken, held_tag, held_tag.given, held.joined, held.address)))
        self.lemma("shown", implies(shown.valid, whole_run(self, shown, runs_tag, runs_tag.over, runs_tag.end, size) & (runs_tag.address == shown.address) & (runs_tag.end == self.named(34, runs_tag.given + shown.length))
            & Mux(held.valid, follows(older, runs_tag, runs_tag.given, shown.joined, shown.address),
                follows(taken, runs_tag, runs_tag.given, shown.joined, shown.address))))
        self.lemma("valid", Mux(valid, follows(before, of, given, joined, state.address),
            before[1] & (before[0].turn == self.named(TURN_BITS, of.turn + 1))))
        self.lemma("state", implies(valid, implies(state.listed & ~state.exhausted, state.spent == ((left[0] == 0) & (left[1] == 0))) & (state.joinable == (state.stride0 == state.block))))
        for name, *_ in walk.layout:
            if name != "length":
                self.lemma(f"state_{name}", implies(valid, getattr(state, name) == getattr(walk, name)))
        self.lemma("bytes_left", implies(valid, (self.named(34, given + state.length) == of.total) & (state.length != 0) & ~of.total[LENGTH_BITS]
            & (state.run != 0) & ((state.block != 0) | (state.run == 2**32 - 1))))
        self.lemma("region", implies(valid, (of.low == state.low) & (of.high == state.high) & (of.low <= of.high)))
        self.lemma("touch", implies(valid & (state.left0 != 0), self.named(64, state.address + state.run) == self.named(64, state.base0 + state.block)))

# Splitter -----------------------------------------------------------------------------------------

class Pieces(Harness, Arithmetic):
    """Any runs that keep `Runs`'s promise, any consumer, any aborts; and any one byte of a transfer, by its number."""
    size = None

    def __init__(self):
        super().__init__()
        walker.Skip, walker.Nest = Anywhere, AnyRuns
        self.block = block = walker.Walker()
        run, piece = block.nest.source, block.source
        self.free_all("run", run)
        self.comb += [
            block.abort.eq(self.free("abort")),
            piece.ready.eq(self.free("ready")),
        ]
        size = self.named(13, self.size or 1 << self.log2_size())
        self.comb += block.max_piece.eq(size)
        self.runs = runs = Runs(run, block.nest.cancel, size)
        self.comb += [
            runs.over.eq(self.free("over")),
            *[getattr(runs.bounds, name).eq(self.free(name, bits)) for name, bits in runs.bounds.layout],
        ]
        self.assume("runs", runs.promise)
        self.prove("duty",  runs.duty)
        byte = self.constant("byte", LENGTH_BITS)

        # Where the byte is, by the runs; and the transfer, of what the stage holds and of the piece behind it.
        s_valid, drop, rest, address, left, inside, final, room, whole, free, split = (inner(block, name) for name in (
            "valid", "drop", "rest", "address", "left", "inside", "final", "room", "whole", "free", "split"))
        stage, waits = Bounds("stage"), Bounds("waits")
        s_place, place = Signal(64), Signal(64)
        s_origin = Signal(64)
        s_out, cause = Signal(), Signal()   # the run was not in the region; why there is an error
        s_given = Signal(LENGTH_BITS + 1)
        s_end   = Signal(LENGTH_BITS + 1)
        due     = Signal(LENGTH_BITS + 1)   # bytes of the transfer that have left in pieces
        turn    = Signal(TURN_BITS)         # transfers that have
        taken   = self.named(1, run.valid & run.ready & ~block.nest.cancel)
        r_end   = self.named(34, runs.given + run.length)
        origin  = self.named(64, run.address - runs.given)
        end     = self.named(34, due + piece.length)
        leaves  = self.named(1, piece.valid & piece.ready)
        would   = self.named(65, address + Mux(split, room, rest))
        self.sync += [
            If(free, waits.eq(stage), place.eq(s_place),
                cause.eq(s_out | (would > stage.high) | (block.abort & ~(piece.valid & piece.last)))),
            If(s_valid & free & split, s_given.eq(s_given + room)),
            If(taken,
                stage.eq(runs.of),
                s_end.eq(r_end),
                If((runs.given <= byte) & (byte < r_end), s_place.eq(origin + byte)),
                If(~run.joined, s_given.eq(runs.given), s_origin.eq(origin), s_out.eq(~run.inside)),
            ),
            If(leaves,
                due.eq(Mux(piece.last, 0, end)),
                turn.eq(turn + piece.last),
            )
        ]
        good   = self.named(1, piece.valid & ~piece.error)
        behind = self.named(65, piece.address + piece.length)
        self.prove("turn",   implies(piece.valid, waits.turn == turn))
        self.prove("bytes",  implies(good, (piece.length != 0) & (end <= waits.total) & (piece.last == (end == waits.total))))
        self.prove("place",  implies(good & (due <= byte) & (byte < end), place == self.named(64, piece.address + (byte - due))))
        self.prove("region", implies(good, (piece.address >= waits.low) & (behind <= waits.high)))
        self.prove("size",   implies(good, (self.named(14, piece.length + piece.address[:2]) <= size)
            & (self.named(14, piece.address[:12] + piece.length) <= 4096)))
        self.prove("errors", implies(piece.valid & piece.error, piece.last & (piece.length == 0) & cause))

        # The stage holds the bytes from `s_given` on, up to those that the nest has not yet given.
        held  = self.named(1, s_valid & ~drop)
        s_room = self.named(13, size - (address[:12] & (size - 1)[:12]))
        s_tail = (address[:12] | (size - 1)[:12]) == 0xfff
        self.lemma("total",  implies(s_valid | piece.valid, ~stage.total[LENGTH_BITS]) & implies(piece.valid, ~waits.total[LENGTH_BITS]))
        self.lemma("held",   implies(held, (inside == ~s_out) & (rest != 0) & (self.named(34, s_given + rest) == s_end) & (s_end <= stage.total) & (final == (s_end == stage.total))))
        self.lemma("inside", implies(held & inside, (address >= stage.low) & (address <= stage.high)
            & (left == self.named(64, stage.high - address)) & (address == self.named(64, s_origin + s_given))
            & (room == s_room) & (whole == Mux(s_tail, s_room, self.named(13, size - address[:2])))))
        self.lemma("byte",   implies(held & inside & (s_given <= byte) & (byte < s_end), s_place == self.named(64, s_origin + byte)))
        self.lemma("next",   implies(held & ~final, ~runs.fresh & (runs.given == s_end) & (runs.of.raw_bits() == stage.raw_bits())
            & implies(inside, runs.tip == self.named(64, s_origin + runs.given))))
        self.lemma("begins", implies(Mux(s_valid | drop, final, 1), runs.fresh) & implies(drop & ~final, ~runs.fresh))
        self.lemma("fresh",  implies(runs.fresh, runs.given == 0))
        self.lemma("drop",   implies(drop, piece.valid & piece.last))
        p_turn = self.named(TURN_BITS, turn + 1)
        self.lemma("turns",  Mux(held, stage.turn, self.named(TURN_BITS, runs.of.turn + Mux(runs.fresh, 0, 1)))
            == Mux(piece.valid & piece.last, p_turn, turn))
        self.lemma("order",  Mux(held, s_given == Mux(piece.valid, Mux(piece.last, 0, end), due),
            Mux(piece.valid, piece.last, due == 0)))
        self.lemma("counted", implies(held & final, runs.of.turn == self.named(TURN_BITS, stage.turn + 1)))

    def log2_size(self):
        log = self.constant("log_max_piece", 4)
        self.assume("max_piece", (log >= 7) & (log <= 12))
        return log


class FewBlocks(Blocks):
    """For mutants: short walks at low addresses."""
    def __init__(self):
        super().__init__()
        start = self.block.sink
        for name, bits in (("address", 12), ("low", 12), ("high", 12), ("length", 6), ("block", 4), ("run", 4),
                *((f"base{n}", 12) for n in range(3)), *((f"stride{n}", 10) for n in range(3)), *((f"left{n}", 2) for n in range(3)),
                ("count0", 2), ("count1", 2)):
            self.assume(f"few_{name}", getattr(start, name)[bits:] == 0)


class FewPieces(Pieces):
    """For mutants: short runs at low addresses."""
    def __init__(self):
        super().__init__()
        self.assume("few", (self.block.nest.source.address[14:] == 0) & (self.block.nest.source.length[9:] == 0)
            & (self.runs.of.high[14:] == 0) & (self.runs.of.total[10:] == 0))


WALKER = "dibber.deposit.walker"
WIDTHS = "64-bit addresses, 32-bit lengths, any max_piece"

PROPERTIES = [
    Property("walker-runs", "deposit/walker", "runs are the blocks of the loops, in order, each once; cancelled walks end, others do not",
        WIDTHS, "Blocks", k=1, quick=True, apart=True, mutants=[
            Mutant("a level does not begin again", WALKER, "for i in range(level + 1)]", "for i in range(level, level + 1)]", depth=8, harness="FewBlocks"),
            Mutant("blocks apart are joined", WALKER, "joined.eq(state.joinable)", "joined.eq(1)", depth=8, harness="FewBlocks"),
            Mutant("an error takes the next walk with it", WALKER,
                "Elif(self.cancel & ~held.last,", "Elif(self.cancel,", depth=8, harness="FewBlocks"),
            Mutant("a run is offered twice", WALKER, "held.valid.eq(source.valid & ~source.ready)",
                "held.valid.eq(source.valid & (~source.ready | ~run.valid))", depth=8, harness="FewBlocks"),
            Mutant("the list goes on behind its end", WALKER, "waits.eq(state.listed & state.spent & ~state.exhausted)",
                "waits.eq(state.listed & state.spent)", depth=8, harness="FewBlocks"),
            Mutant("a walk goes on behind its end", WALKER, "~state.over & (state.address >= state.low)", "(state.address >= state.low)", depth=8, harness="FewBlocks"),
    ]),
    Property("walker-pieces", "deposit/walker", "pieces are the bytes of the runs, once, in order, in the region, in one page",
        WIDTHS, "Pieces", k=1, apart=True, mutants=[
            Mutant("a piece may cross 4 KiB", WALKER,
                "Mux((state.address[:12] | mask) == 0xfff, room, self.max_piece - state.address[:2])",
                "self.max_piece - state.address[:2]", depth=8, harness="FewBlocks"),
            Mutant("the bound stays where a run begins", WALKER, "left.eq(left - room)", "left.eq(left)", depth=8, harness="FewPieces"),
            Mutant("a joined run is lost while one is split", WALKER, "Mux(valid & free & split, rest - room, rest) + Mux(absorb, run.length, 0)",
                "Mux(valid & free & split, rest - room, rest + Mux(absorb, run.length, 0))", depth=8, harness="FewPieces"),
            Mutant("a piece is offered once more", WALKER, "source.valid.eq(emit),", "source.valid.eq(emit | source.valid),", depth=8, harness="FewPieces"),
            Mutant("an error takes the next walk with it, again", WALKER, "cancel.eq(drop & ~final)", "cancel.eq(drop)", depth=8, harness="FewPieces"),
            Mutant("what is out of the region is not refused", WALKER, "error.eq(~inside | beyond | abort)", "error.eq(~inside | abort)", depth=8, harness="FewPieces"),
            Mutant("the next piece begins a byte late", WALKER, "address.eq((address | (self.max_piece - 1)) + 1)", "address.eq((address | (self.max_piece - 1)) + 2)", depth=8, harness="FewPieces"),
            Mutant("a transfer is aborted behind its end", WALKER, "abort.eq(self.abort & ~(source.valid & source.last))", "abort.eq(self.abort)", depth=8, harness="FewPieces"),
    ]),
]
