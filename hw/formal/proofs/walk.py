# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The walker's pieces: exactly the bytes that the walk names, once, in order, within the bounds; in a box."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.deposit import walker
from dibber.deposit.skip import start_layout
from dibber.layouts import walk_layout

from harness import Harness, Mutant, Property, implies, inner

# The box: docs/proofs.md says what it leaves out.
WINDOW  = 13                     # low bits of an address that are free
UPPER   = 0x5a5a                 # those above them
BORDER  = 4096                   # of a page, in the middle of the window
AROUND  = 7                      # bits of the distance from it at which a walk starts, signed
RUNS    = 5                      # blocks that a transfer touches
BYTES   = 40
STALLS  = 2
CYCLES  = 30

class AnyStart(LiteXModule):
    """In place of Skip: the walks, wherever they start, come from the proof."""
    def __init__(self):
        self.sink   = stream.Endpoint(walk_layout())
        self.source = stream.Endpoint(start_layout())


class Pieces(Harness):
    """Two transfers back to back, of the solver's choice, and of each one byte that it watches.

    The byte has a number in the transfer and, worked out by multiplication, a place in memory.
    """
    def __init__(self):
        super().__init__()
        walker.Skip = AnyStart
        self.block = block = walker.Walker()
        source, start = block.source, block.skip.source

        def named(bits, value):
            signal = Signal(bits)
            self.comb += signal.eq(value)
            return signal

        # The walk.
        near    = self.constant("address", AROUND)
        strides = [self.constant(f"stride{n}", 5) for n in range(3)]
        counts  = [self.constant(f"count{n}", 2) for n in range(3)]
        begin   = [self.constant(f"begin{n}", 2) for n in range(3)]
        target  = [self.constant(f"target{n}", 2) for n in range(3)]
        size    = self.constant("block", 4)
        offset  = self.constant("begin_byte", 4)
        wanted  = self.constant("target_byte", 4)
        total   = self.constant("total", 6)
        flat    = self.constant("flat")      # no levels: one run
        over    = self.constant("over")      # the nest ended before its start
        watched = self.constant("watched", 6)
        large   = self.constant("large")
        low, high = (self.constant(name, WINDOW) for name in ("low", "high"))
        wide    = self.constant("wide")      # bounds that hold nothing up

        def extended(signal, bits=WINDOW):
            return Cat(signal, Replicate(signal[-1], bits - len(signal)))
        def place(index):
            at = named(WINDOW, BORDER + extended(near))
            for stride, i in zip(strides, index):
                at = named(WINDOW, at + Mux(i[0], extended(stride), 0) + Mux(i[1], Cat(0, extended(stride))[:WINDOW], 0))
            return at
        def number(index, byte):
            outer  = named(8, index[2]*counts[1] + index[1])
            blocks = named(8, outer*counts[0] + index[0])
            return blocks, named(12, blocks*size + byte)
        none  = Signal(2)
        bases = [place([none, none, begin[2]]), place([none, begin[1], begin[2]]), place(begin)][::-1]
        first = named(WINDOW, bases[0] + Mux(flat, 0, offset))
        block_of_begin, begins = number(begin, offset)
        block_of_target, aims  = number(target, wanted)
        _, ends_ = number([named(2, count - 1) for count in counts], 0)
        byte   = named(WINDOW, Mux(flat, first + watched, place(target) + wanted))
        bound  = lambda value: Cat(value, Constant(UPPER, 64 - WINDOW))
        self.assume("block", (size != 0) & (size <= 8) & (offset < size) & (wanted < size))
        for n in range(3):
            self.assume(f"level{n}", (counts[n] != 0) & (begin[n] < counts[n]) & (target[n] < counts[n])
                & implies(flat, counts[n] == 1))
        self.assume("short",   (total != 0) & (total <= BYTES) & (watched < total))
        self.assume("few",     flat | (named(12, offset + total) <= named(12, RUNS*size)))
        self.assume("watched", flat | (aims == named(12, begins + watched)))
        self.assume("wide",    implies(wide, (low == 0) & (high == 2**WINDOW - 1)))

        # Two of them, the second as soon as it is taken.
        begun, ended, stalls = Signal(2), Signal(2), Signal(max=STALLS + 2)
        ready = self.free("ready")
        abort = self.free("abort")
        self.comb += [
            block.abort.eq(abort),
            block.max_piece.eq(Mux(large, 32, 16)),
            source.ready.eq(ready),
            start.valid.eq(begun != 2),
            start.last.eq(1),
            start.low.eq(bound(low)), start.high.eq(bound(high)), start.block.eq(size), start.length.eq(total),
            *[getattr(start, f"stride{n}").eq(extended(strides[n], 64)) for n in range(3)],
            start.count0.eq(counts[0]), start.count1.eq(counts[1]),
            start.address.eq(bound(first)), start.over.eq(over),
            start.run.eq(Mux(flat, 2**32 - 1, size - offset)),
            start.joinable.eq(strides[0] == size),
            *[getattr(start, f"base{n}").eq(bound(bases[n])) for n in range(3)],
            *[getattr(start, f"left{n}").eq(counts[n] - 1 - begin[n]) for n in range(3)],
        ]
        aborted = Signal()
        before  = Signal(7)      # bytes of the transfer before this piece
        age     = Signal(6)
        taken   = named(1, source.valid & source.ready)
        self.sync += [
            begun.eq(begun + (start.valid & start.ready)),
            ended.eq(ended + (taken & source.last)),
            aborted.eq(aborted | abort),
            stalls.eq(stalls + ~ready),
            age.eq(age + (age != 63)),
            If(taken, before.eq(Mux(source.last, 0, before + source.length))),
        ]
        self.assume("stalls", implies(~ready, stalls < STALLS))

        after = named(14, before + source.length)
        into  = named(WINDOW, watched - before)
        good  = named(1, source.valid & ~source.error)
        end   = named(65, source.address + source.length)
        self.prove("the_byte",   implies(good & (watched >= before) & (watched < after),
            named(64, source.address + into) == bound(byte)))
        self.prove("all",        implies(good & source.last, after == total))
        self.prove("no_more",    implies(source.valid, (after < total) | ((after == total) & source.last) | source.error))
        self.prove("some",       implies(good, source.length != 0))
        self.prove("in_bounds",  implies(good, (source.address >= bound(low)) & (end <= bound(high))))
        self.prove("page",       implies(good, named(14, source.address[:12] + source.length) <= 4096))
        self.prove("max_piece",  implies(good, source.length <= block.max_piece))
        self.prove("error_ends", implies(source.valid & source.error, source.last & (source.length == 0)))
        self.prove("no_error",   implies(source.valid & source.error & wide & ~aborted,
            over | (~flat & (named(12, begins + total) > named(12, ends_ + size)))))
        self.prove("ended",      implies(age == CYCLES - 1, ended == 2))

        # The upper bits stay what they are, which spares the solver the carries.
        nest, state = block.nest, inner(block.nest, "state")
        for name, value, valid in [(f"base{n}", getattr(state, f"base{n}"), inner(nest, "valid")) for n in range(3)] + [
                ("address", state.address, inner(nest, "valid")), ("run", nest.source.address, nest.source.valid),
                ("split", inner(block, "address"), inner(block, "valid"))]:
            self.lemma(f"upper_{name}", implies(valid, value[WINDOW:] == UPPER))


PROPERTIES = [
    Property("walk-pieces", "deposit/walker", "pieces cover the named bytes, once, in order, in bounds",
        f"{RUNS} blocks of ≤ 8, 3 levels of ≤ 3, at a page's end", "Pieces", bound=CYCLES, mutants=[
            Mutant("bounds off by one", "dibber.deposit.walker", "Mux(split, room > left, rest > left)", "Mux(split, room > left, rest > left + 1)", depth=8),
            Mutant("an inner level does not start again", "dibber.deposit.walker", "for i in range(level)],", "for i in range(0)],", depth=12),
            Mutant("any following run is joined", "dibber.deposit.walker", "joined.eq(state.joinable)", "joined.eq(1)", depth=10),
    ]),
]
