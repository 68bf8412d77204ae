"""The walker's splitter: its pieces are the bytes of its runs, once, in order, in the region.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.deposit import walker
from dibber.deposit.skip import start_layout
from dibber.deposit.walker import run_layout
from dibber.layouts import list_base_layout, list_order_layout, walk_layout

from harness import Harness, Mutant, Property, implies, inner
from proofs.walker_runs import TURN_BITS, WALKER, WIDTHS, Arithmetic, Bounds, Runs

class NoSkip(LiteXModule):
    """In place of `Skip`, which has no connection to the splitter."""
    def __init__(self, address_bits):
        self.sink   = stream.Endpoint(walk_layout())
        self.source = stream.Endpoint(start_layout())
        self.order  = stream.Endpoint(list_order_layout())
        self.base   = stream.Endpoint(list_base_layout())
        self.begun  = Signal()


class AnyRuns(LiteXModule):
    """In place of `Nest`."""
    def __init__(self, address_bits):
        self.sink      = stream.Endpoint(start_layout())
        self.source    = stream.Endpoint(run_layout())
        self.base      = stream.Endpoint(list_base_layout())
        self.listed    = Signal()
        self.max_piece = Signal(13)
        self.cancel    = Signal()

# Splitter -----------------------------------------------------------------------------------------

class Pieces(Harness, Arithmetic):
    """Any runs that keep `Runs`'s promise, any consumer, any aborts; and any one byte of a
    transfer, by its number.
    """
    def __init__(self):
        super().__init__()
        walker.Skip, walker.Nest = NoSkip, AnyRuns
        self.block = block = walker.Walker()
        run, piece = block.nest.source, block.source
        self.free_all("run", run)
        self.comb += [
            block.abort.eq(self.free("abort")),
            piece.ready.eq(self.free("ready")),
        ]
        size = self.any_max_piece()
        self.comb += block.max_piece.eq(size)
        self.runs = runs = Runs(run, block.nest.cancel, size)
        self.comb += [
            runs.over.eq(self.free("over")),
            *[getattr(runs.bounds, name).eq(self.free(name, bits)) for name, bits in runs.bounds.layout],
        ]
        self.assume("runs", runs.promise)
        self.prove("duty",  runs.duty)
        byte = self.constant("byte", 32)

        # Place of the byte by the runs; and the transfers of the stage's run and of the piece
        # behind it.
        s_valid, drop, rest, address, left, inside, final, room, whole, free, split = (inner(block, name) for name in (
            "valid", "drop", "rest", "address", "left", "inside", "final", "room", "whole", "free", "split"))
        stage, waits = Bounds("stage"), Bounds("waits")
        s_place, place = Signal(64), Signal(64)
        # place of byte 0, if all bytes were contiguous with the held ones
        s_origin = Signal(64)
        s_out    = Signal()                 # the run did not begin in the region
        cause    = Signal()                 # an error is allowed
        s_given  = Signal(33)               # bytes of the transfer before the held ones
        s_end    = Signal(33)               # bytes with the held ones
        due     = Signal(33)   # bytes of the transfer that have left in pieces
        turn    = Signal(TURN_BITS)         # transfers that have left
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
        self.prove("bytes",  implies(good, (piece.length != 0) & (end <= waits.total)
            & (piece.last == (end == waits.total))))
        self.prove("place",  implies(good & (due <= byte) & (byte < end),
            place == self.named(64, self.named(64, piece.address - due) + byte)))
        self.prove("region", implies(good, (piece.address >= waits.low) & (behind <= waits.high)))
        self.prove("size",   implies(good, (self.named(14, piece.length + piece.address[:2]) <= size)
            & (self.named(14, piece.address[:12] + piece.length) <= 4096)))
        self.prove("errors", implies(piece.valid & piece.error, piece.last & (piece.length == 0) & cause))

        # The stage holds the bytes from `s_given` on, up to those that the nest has not yet given.
        held  = self.named(1, s_valid & ~drop)
        s_room = self.named(13, size - (address[:12] & (size - 1)[:12]))
        s_tail = (address[:12] | (size - 1)[:12]) == 0xfff
        there  = self.named(64, stage.high - address)
        self.lemma("total",  implies(s_valid | piece.valid, ~stage.total[32])
            & implies(piece.valid, ~waits.total[32]))
        self.lemma("held",   implies(held, (inside == ~s_out) & (rest != 0)
            & (self.named(34, s_given + rest) == s_end) & (s_end <= stage.total) & (final == (s_end == stage.total))))
        self.lemma("inside", implies(held & inside, (address >= stage.low) & (address <= stage.high)))
        self.lemma("left",   implies(held & inside, (left == there)
            | ((left < there) & (self.named(34, left + s_given) >= 2**32))))
        self.lemma("origin", implies(held & inside, address == self.named(64, s_origin + s_given)))
        self.lemma("line",   implies(held & inside, s_origin == self.named(64, address - s_given)))
        self.lemma("room",   implies(held & inside, (room == s_room)
            & (whole == Mux(s_tail, s_room, self.named(13, size - address[:2])))))
        self.lemma("byte",   implies(held & inside & (s_given <= byte) & (byte < s_end),
            s_place == self.named(64, s_origin + byte)))
        self.lemma("next",   implies(held & ~final, ~runs.fresh & (runs.given == s_end)
            & (runs.of.raw_bits() == stage.raw_bits()) & implies(runs.past, ~inside)))
        self.lemma("tip",    implies(held & ~final & inside, runs.tip == self.named(64, s_origin + runs.given)))
        self.lemma("begins", implies(Mux(s_valid | drop, final, 1), runs.fresh) & implies(drop & ~final, ~runs.fresh))
        self.lemma("fresh",  implies(runs.fresh, runs.given == 0))
        self.lemma("drop",   implies(drop, piece.valid & piece.last))
        p_turn = self.named(TURN_BITS, turn + 1)
        self.lemma("turns",  Mux(held, stage.turn, self.named(TURN_BITS, runs.of.turn + Mux(runs.fresh, 0, 1)))
            == Mux(piece.valid & piece.last, p_turn, turn))
        self.lemma("order",  Mux(held, s_given == Mux(piece.valid, Mux(piece.last, 0, end), due),
            Mux(piece.valid, piece.last, due == 0)))
        self.lemma("counted", implies(held & final, runs.of.turn == self.named(TURN_BITS, stage.turn + 1)))


class FewPieces(Pieces):
    """For mutants: short runs at low addresses."""
    def __init__(self):
        super().__init__()
        self.assume("few", (self.block.nest.source.address[14:] == 0) & (self.block.nest.source.length[9:] == 0)
            & (self.runs.of.high[14:] == 0) & (self.runs.of.total[10:] == 0))


PROPERTIES = [
    Property("walker-pieces", "deposit/walker",
        "pieces are the bytes of the runs, once, in order, in the region, in one page",
        WIDTHS, "Pieces", k=1, apart=True, mutants=[
            Mutant("the bound stays where a run begins", WALKER,
                "left.eq(left - room)", "left.eq(left)", depth=8, harness="FewPieces"),
            Mutant("a joined run is lost while one is split", WALKER,
                "Mux(valid & free & split, rest - room, rest) + Mux(absorb, run.length, 0)",
                "Mux(valid & free & split, rest - room, rest + Mux(absorb, run.length, 0))", depth=8, harness="FewPieces"),
            Mutant("a piece is offered once more", WALKER,
                "source.valid.eq(emit),", "source.valid.eq(emit | source.valid),", depth=8, harness="FewPieces"),
            Mutant("an error takes the next walk with it", WALKER,
                "cancel.eq(drop & ~final)", "cancel.eq(drop)", depth=8, harness="FewPieces"),
            Mutant("what is out of the region is not refused", WALKER,
                "error.eq(~inside | crosses_high | abort)", "error.eq(~inside | abort)", depth=8, harness="FewPieces"),
            Mutant("the next piece begins a byte late", WALKER,
                "address.eq((address | (self.max_piece - 1)) + 1)",
                "address.eq((address | (self.max_piece - 1)) + 2)", depth=8, harness="FewPieces"),
            Mutant("a transfer is aborted behind its end", WALKER,
                "abort.eq(self.abort & ~(source.valid & source.last))",
                "abort.eq(self.abort)", depth=8, harness="FewPieces"),
    ]),
]
