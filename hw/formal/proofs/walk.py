# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The walker's pieces: exactly the bytes that the walk names, once, in order, within the bounds."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.deposit import walker
from dibber.deposit.skip import start_layout
from dibber.layouts import walk_layout

from harness import Harness, Mutant, Property, implies, inner

class AnyStart(LiteXModule):
    """In place of Skip: the walks, wherever they start, come from the proof."""
    def __init__(self):
        self.sink   = stream.Endpoint(walk_layout())
        self.source = stream.Endpoint(start_layout())


# What the proof knows of a transfer, stage by stage: one of its bytes, of the solver's choice, is number
# `byte` and lies at `place`.
GHOST = [("byte", 12), ("place", 64), ("total", 12), ("low", 64), ("high", 64)]

class Pieces(Harness):
    """Transfers back to back, each with a walk of its own, up to 3 blocks of 15 bytes at each level.

    Addresses, strides and bounds have all their 64 bits.
    """
    address_bits, stride_bits, size_bits, longest = 64, 64, 4, 2047

    def __init__(self):
        super().__init__()
        walker.Skip = AnyStart
        self.block = block = walker.Walker()
        nest, run, source = block.nest, block.nest.source, block.source
        start = block.skip.source
        self.comb += [
            block.abort.eq(self.free("abort")),
            source.ready.eq(self.free("ready")),
            start.valid.eq(self.free("valid")),
            start.last.eq(1),
        ]
        log2 = self.constant("max_piece", 3)
        self.assume("max_piece", log2 <= 5)
        self.comb += block.max_piece.eq(128 << log2)

        def named(name, bits, value):
            signal = Signal(bits, name=name)
            self.comb += signal.eq(value)
            return signal

        def steps(name, begin, stride, count):
            """`begin` and `count` strides; a chain, so that a step of the walk is a step of the formula."""
            one = named(f"{name}_one", 64, begin + stride)
            two = named(f"{name}_two", 64, one + stride)
            return named(name, 64, Mux(count == 0, begin, Mux(count == 1, one, two)))

        # A walk: where it starts in its nest, and the byte that is watched.
        def signed(signal):
            return Cat(signal, Replicate(signal[-1], 64 - len(signal))) if len(signal) < 64 else signal
        address_in = self.free("address", self.address_bits)
        strides_in = [self.free(f"stride{n}", self.stride_bits) for n in range(3)]
        address    = named("address", 64, address_in)
        strides    = [named(f"stride{n}", 64, signed(stride)) for n, stride in enumerate(strides_in)]
        low, high  = (named(n, 64, self.free(n, self.address_bits)) for n in ("low", "high"))
        counts  = [self.free(f"count{n}", 2) for n in range(3)]
        begin   = [self.free(f"begin{n}", 2) for n in range(3)]
        target  = [self.free(f"target{n}", 2) for n in range(3)]
        size    = named("size", 4, self.free("block", self.size_bits))
        offset  = self.free("begin_byte", 4)
        wanted  = self.free("target_byte", 4)
        flat    = self.free("flat")          # no levels: one run
        total   = self.free("total", 12)
        flat_to = self.free("flat_byte", 12)

        def number(name, index, byte, counts, size):
            outer = named(f"{name}_outer", 4, Mux(counts[1] == 1, index[2], Mux(counts[1] == 2, index[2] << 1,
                named(f"{name}_triple", 4, (index[2] << 1) + index[2]))) + index[1])
            blocks = named(f"{name}_blocks", 6, Mux(counts[0] == 1, outer, Mux(counts[0] == 2, outer << 1,
                named(f"{name}_triples", 6, (outer << 1) + outer))) + index[0])
            terms = [named(f"{name}_term{n}", 12, Mux(size[n], blocks << n, 0)) for n in range(4)]
            return named(name, 12, named(f"{name}_low", 12, terms[0] + terms[1])
                + named(f"{name}_high", 12, terms[2] + terms[3]) + byte)

        def place(name, address, strides, index):
            at = address
            bases = []
            for n in (2, 1, 0):
                at = steps(f"{name}{n}", at, strides[n], index[n])
                bases.insert(0, at)
            return bases

        bases      = place("base_in", address, strides, begin)
        begins     = number("begins", begin, offset, counts, size)
        targets    = number("targets", target, wanted, counts, size)
        target_at  = place("target_at", address, strides, target)[0]
        first      = named("first", 64, bases[0] + offset)
        self.assume("block", implies(start.valid,
            (size != 0) & (offset < size) & (wanted < size) & (total != 0) & (total <= self.longest)))
        for n in range(3):
            self.assume(f"level{n}", implies(start.valid, (counts[n] != 0) & (begin[n] < counts[n]) & (target[n] < counts[n])))
            self.assume(f"flat{n}",  implies(start.valid & flat, (counts[n] == 1)))
        byte = named("byte", 12, Mux(flat, flat_to, targets - begins))
        self.assume("watched", implies(start.valid, (byte < total) & (flat | (targets >= begins))))
        self.assume("flat",    implies(start.valid & flat, offset == 0))
        over = self.free("over")             # the nest ended before its start
        self.comb += [
            start.low.eq(low), start.high.eq(high), start.block.eq(size), start.length.eq(total),
            *[getattr(start, f"stride{n}").eq(strides[n]) for n in range(3)],
            start.count0.eq(counts[0]), start.count1.eq(counts[1]),
            start.address.eq(first), start.over.eq(over),
            start.run.eq(Mux(flat, 2**32 - 1, size - offset)),
            start.joinable.eq(strides[0] == size),
            *[getattr(start, f"base{n}").eq(bases[n]) for n in range(3)],
            *[getattr(start, f"left{n}").eq(counts[n] - 1 - begin[n]) for n in range(3)],
        ]

        # The stages, each with the transfer that it is in.
        valid, state, joined, move, final = (inner(nest, n) for n in ("valid", "state", "joined", "move", "final"))
        at_nest, at_run, at_split, at_exit = (Record(GHOST, name=n) for n in ("at_nest", "at_run", "at_split", "at_exit"))
        address_k = Signal(self.address_bits)
        strides_k = [Signal(self.stride_bits, name=f"stride_k{n}") for n in range(3)]
        address_n = named("address_n", 64, address_k)
        strides_n = [named(f"stride_n{n}", 64, signed(stride)) for n, stride in enumerate(strides_k)]
        size_k, flat_n, begins_n = Signal(self.size_bits), Signal(), Signal(12)
        size_n    = named("size_n", 4, size_k)
        counts_n  = [Signal(2, name=f"count_n{n}") for n in range(3)]
        target_n  = [Signal(2, name=f"target_n{n}") for n in range(3)]
        wanted_n  = Signal(4)
        n_run     = Signal(12)
        over_run  = Signal()
        split     = {n: inner(block, n) for n in ("valid", "address", "rest", "left", "inside", "final", "room",
            "whole", "emit", "load", "free", "split", "error", "absorb")}
        n_split   = Signal(12)
        n_exit    = Signal(12)               # bytes of the transfer before the piece at the exit
        n_nest    = named("n_nest", 12, at_nest.total - state.length)
        taken     = named("taken", 1, source.valid & source.ready)
        self.sync += [
            If(start.valid & start.ready,
                at_nest.byte.eq(byte), at_nest.total.eq(total), at_nest.low.eq(low), at_nest.high.eq(high),
                at_nest.place.eq(Mux(flat, first + flat_to, target_at + wanted)),
                address_k.eq(address_in), size_k.eq(size), flat_n.eq(flat), begins_n.eq(begins), wanted_n.eq(wanted),
                *[a.eq(b) for a, b in zip(strides_k + counts_n + target_n, strides_in + counts + target)],
            ),
            If(move, at_run.eq(at_nest), n_run.eq(n_nest), over_run.eq(state.over)),
            If(split["load"], at_split.eq(at_run), n_split.eq(n_run)
            ).Elif(split["emit"] & split["split"], n_split.eq(n_split + split["room"])),
            If(split["emit"], at_exit.eq(at_split)),
            If(taken, n_exit.eq(Mux(source.last, 0, n_exit + source.length))),
        ]

        # What must hold of every piece.
        end  = named("end", 65, source.address + source.length)
        ends = named("ends", 14, n_exit + source.length)
        page = named("page", 14, source.address[:12] + source.length)
        hits = named("hits", 1, (at_exit.byte >= n_exit) & (at_exit.byte < ends))
        self.prove("the_byte",   implies(source.valid & ~source.error & hits,
            source.address == (at_exit.place - named("into", 12, at_exit.byte - n_exit))[:64]))
        self.prove("all",        implies(source.valid & source.last & ~source.error, ends == at_exit.total))
        self.prove("no_more",    implies(source.valid, ends <= at_exit.total))
        self.prove("some",       implies(source.valid & ~source.error, source.length != 0))
        self.prove("in_bounds",  implies(source.valid & ~source.error, (source.address >= at_exit.low) & (end <= at_exit.high)))
        self.prove("page",       implies(source.valid, page <= 4096))
        self.prove("max_piece",  implies(source.valid, source.length <= block.max_piece))
        self.prove("error_ends", implies(source.valid & source.error, source.last & (source.length == 0)))

        # Nest: its state is the formula's, and its bytes are counted from the start.
        index = [named(f"index{n}", 2, counts_n[n] - 1 - getattr(state, f"left{n}")) for n in range(3)]
        byte_n = named("byte_n", 4, Mux(flat_n, 0, size_n - state.run))
        here   = place("here", address_n, strides_n, index)
        for n in range(3):
            self.lemma(f"nest_base{n}", implies(valid, getattr(state, f"base{n}") == here[n]))
            self.lemma(f"nest_left{n}", implies(valid, (getattr(state, f"left{n}") < counts_n[n]) & (counts_n[n] != 0)
                & (getattr(state, f"stride{n}") == strides_n[n]) & (target_n[n] < counts_n[n])
                & implies(flat_n, counts_n[n] == 1)))
        self.lemma("nest_counts", implies(valid, (state.count0 == counts_n[0]) & (state.count1 == counts_n[1])
            & (state.block == size_n) & (state.joinable == (strides_n[0] == size_n)) & (size_n != 0)
            & (state.low == at_nest.low) & (state.high == at_nest.high) & (wanted_n < size_n)))
        self.lemma("nest_address", implies(valid & ~state.over, state.address == (here[0] + byte_n)[:64]))
        self.lemma("nest_run",    implies(valid, Mux(flat_n, state.run == 2**32 - 1,
            (state.run != 0) & (state.run <= size_n))))
        self.lemma("nest_length", implies(valid, (state.length != 0) & (state.length <= at_nest.total)
            & (at_nest.total < 2048) & (at_nest.byte < at_nest.total)))
        self.lemma("nest_number", implies(valid & ~state.over & ~flat_n,
            named("so_far", 12, begins_n + n_nest) == number("so_far_is", index, byte_n, counts_n, size_n)))
        self.lemma("nest_flat", implies(valid & ~state.over & flat_n, n_nest == 0))
        self.lemma("nest_target", implies(valid, Mux(flat_n, at_nest.place == (address_n + at_nest.byte)[:64],
            (at_nest.place == (place("aim", address_n, strides_n, target_n)[0] + wanted_n)[:64])
            & (named("aims", 12, begins_n + at_nest.byte) == number("aims_is", target_n, wanted_n, counts_n, size_n)))))
        nest_end = named("nest_end", 14, n_nest + Mux(final, state.length, state.run))
        self.lemma("nest_hits", implies(valid & ~state.over & (at_nest.byte >= n_nest) & (at_nest.byte < nest_end),
            at_nest.place == (state.address + named("nest_into", 12, at_nest.byte - n_nest))[:64]))

        # Run, and what is left of it in the splitter.
        mask = named("mask", 12, block.max_piece - 1)
        run_end   = named("run_end", 14, n_run + run.length)
        split_end = named("split_end", 14, n_split + split["rest"])
        same      = lambda a, b: a.raw_bits() == b.raw_bits()
        def is_aligned(name, address, room, whole):
            distance = named(f"{name}_distance", 13, block.max_piece - (address[:12] & mask))
            return (room == distance) & (whole == Mux((address[:12] | mask) == 0xfff, distance, block.max_piece))
        def watches(name, ghost, number, end, address):
            return implies((ghost.byte >= number) & (ghost.byte < end),
                ghost.place == (address + named(f"{name}_into", 12, ghost.byte - number))[:64])
        bounds = lambda ghost, inside, address, left: implies(inside,
            (address >= ghost.low) & (address <= ghost.high) & (left == (ghost.high - address)[:64]))
        self.lemma("run",   implies(run.valid, (run.length != 0) & (run.length < 2048) & (run_end <= at_run.total)
            & (run.last == (run_end == at_run.total)) & (at_run.total < 2048) & (at_run.byte < at_run.total)))
        self.lemma("run_byte",   implies(run.valid & ~over_run, watches("run", at_run, n_run, run_end, run.address)))
        self.lemma("run_bounds", implies(run.valid, bounds(at_run, run.inside, run.address, run.left)))
        self.lemma("run_room",   implies(run.valid, is_aligned("run", run.address, run.room, run.whole)))
        sv, sf = split["valid"], split["final"]
        self.lemma("split", implies(sv, (split["rest"] != 0) & (split["rest"] < 2048) & (split_end <= at_split.total)
            & (sf == (split_end == at_split.total)) & (at_split.total < 2048) & (at_split.byte < at_split.total)))
        self.lemma("split_byte",   implies(sv & split["inside"], watches("split", at_split, n_split, split_end, split["address"])))
        self.lemma("split_bounds", implies(sv, bounds(at_split, split["inside"], split["address"], split["left"])))
        self.lemma("split_room",   implies(sv, is_aligned("split", split["address"], split["room"], split["whole"])))
        self.lemma("exit", implies(source.valid, (at_exit.total < 2048) & (source.last == (source.error | (ends == at_exit.total)))))

        # From stage to stage: the next byte of the same transfer, or the first of another one.
        mid_exit = named("mid_exit", 1, Mux(source.valid, ~source.last, n_exit != 0))
        next_exit = named("next_exit", 12, Mux(source.valid, Mux(source.last, 0, ends), n_exit))
        after_exit = named("after_exit", 12, Mux(sv, Mux(sf, 0, split_end), next_exit))
        mid_split  = named("mid_split", 1, Mux(sv, ~sf, mid_exit))
        after_split = named("after_split", 12, Mux(run.valid, Mux(run.last, 0, run_end), after_exit))
        mid_run    = named("mid_run", 1, Mux(run.valid, ~run.last, mid_split))
        self.lemma("to_split", implies(sv, n_split == next_exit))
        self.lemma("to_run",   implies(run.valid, n_run == after_exit))
        self.lemma("to_nest",  implies(valid, n_nest == after_split))
        self.lemma("goes_on",  implies(mid_split & ~run.valid, valid) & implies(mid_run, valid))
        self.lemma("same_exit",  implies(mid_exit, Mux(sv, same(at_exit, at_split),
            Mux(run.valid, same(at_exit, at_run), same(at_exit, at_nest)))))
        self.lemma("same_split", implies(sv & ~sf & run.valid, same(at_split, at_run)))
        self.lemma("same_run",   implies(run.valid & ~run.last & valid, same(at_run, at_nest)))
        self.lemma("same_far",   implies(sv & ~sf & ~run.valid & valid, same(at_split, at_nest)))
        self.lemma("run_joined", implies(run.valid & run.joined, sv & ~sf
            & (over_run | (run.address == (split["address"] + split["rest"])[:64]))))
        self.lemma("run_over",  implies(run.valid & over_run, ~run.inside & implies(run.joined, ~split["inside"])))
        self.lemma("over_stays", implies(run.valid & ~run.last & valid & over_run, state.over))
        self.lemma("nest_joined", implies(valid & joined, Mux(run.valid,
            ~run.last & (state.over | (state.address == (run.address + run.length)[:64])),
            sv & ~sf & (state.over | (state.address == (split["address"] + split["rest"])[:64])))))
        self.lemma("nest_over", implies(valid & joined & state.over, Mux(run.valid, over_run, ~split["inside"])))


class PiecesNarrow(Pieces):
    """A smaller box, for a machine that is in a hurry."""
    address_bits, stride_bits, size_bits, longest = 13, 5, 2, 511


PROPERTIES = [
    Property("walk-pieces", "deposit/walker", "pieces cover the named bytes, once, in order, in bounds",
        "addresses 64 bits, blocks ≤ 15, counts ≤ 3", "Pieces", k=1, mutants=[
            Mutant("bounds off by one", "dibber.deposit.walker", "Mux(split, room, rest) > left)", "Mux(split, room, rest) > left + 1)", depth=10),
            Mutant("pages are not looked at", "dibber.deposit.walker", "Mux((state.address[:12] | mask) == 0xfff, room, self.max_piece)", "self.max_piece", depth=10),
            Mutant("an inner level does not start again", "dibber.deposit.walker", "for i in range(level)],", "for i in range(0)],", depth=16),
            Mutant("a joined run may be of another walk", "dibber.deposit.walker", "joined.eq(state.joinable)", "joined.eq(1)", depth=12),
    ]),
]
