"""The walker's set-up: the start of a walk with a list that skips one byte more.

As walker_place.py. The digit above the strides is the entry of the list at which the walk begins,
and the sums are made from 0 on before the first base is added to each.
"""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import and_, or_

from migen import *

from litex.gen import *

from dibber.layouts import FAULT_LIST

from harness import Mutant, Property, implies
from proofs.walker_place import OneByteMore, fields_but, only

LATE = ("BASE1", "NEXT", "BASE0", "ADDRESS")  # behind the first base

# Successor ----------------------------------------------------------------------------------------

class ListSuccessor(OneByteMore):
    """Any walks with a list, one after the other, each set up from byte `skip` on by one block and
    from the next byte on by the other.

    Both get the same first base if they begin in the same entry, else any two.
    """
    def __init__(self):
        super().__init__()
        former, latter, b, a, walk = self.former, self.latter, self.b, self.a, self.former.sink
        both = self.both

        # A set-up without an entry waits at its end for the other one.
        ordered, based = self.free("ordered"), self.free("based")
        bases = [self.free("base_former", 64), self.free("base_latter", 64)]
        alike = self.named(1, a.begin == b.begin)
        self.comb += [
            walk.listed.eq(1),
            former.order.ready.eq(ordered & b.on("ORDER") & a.on("ORDER", "READY")),
            latter.order.ready.eq(ordered & both("ORDER")),
            former.base.valid.eq(based & b.on("FIRST") & a.on("FIRST", "READY")),
            latter.base.valid.eq(based & both("FIRST")),
            former.base.base.eq(bases[0]),
            latter.base.base.eq(Mux(alike, bases[0], bases[1])),
            former.base.last.eq(self.free("last_former")),
            latter.base.last.eq(self.free("last_latter")),
        ]

        # An index of one bit more takes a cycle more, so the other set-up waits. A set-up without a
        # division waits too.
        none = self.named(1, b.walk.skip == 0)
        self.comb += [
            former.ce.eq(~(both("MULTIPLY") & (b.multiplier == 0) & (a.multiplier != 0)) & ~(b.on("END") & ~a.on("END"))),
            latter.ce.eq(~(both("MULTIPLY") & (a.multiplier == 0) & (b.multiplier != 0))),
        ]
        firsts = [Signal(64), Signal(64)]  # first base of each
        lasts  = [Signal(), Signal()]
        for block, base, last in zip((former, latter), firsts, lasts):
            self.sync += If(block.base.valid & block.base.ready, base.eq(block.base.base), last.eq(block.base.last))

        # Place --------------------------------------------------------------------------------------

        p, n   = former.source, latter.source
        given  = self.named(1, p.valid & n.valid)
        def same(*names):
            return reduce(and_, [getattr(n, name) == getattr(p, name) for name in names], 1)
        inside = self.named(1, p.run != 1)
        passed = given & ~p.over
        count  = b.walk.count2
        all_left = lambda start, level: getattr(start, f"left{level}") == self.named(32, getattr(start, f"count{level}") - 1)
        self.prove("same", implies(given, same("low", "high", "block", "length", "stride0", "stride1", "stride2",
            "count0", "count1", "joinable")), now=True)
        self.prove("first", implies(given & none, (p.over == (count == 0)) & implies(~p.over, (p.run == p.block) & (b.begin == 0)
            & reduce(and_, [x == firsts[0] for x in (p.address, p.base0, p.base1, p.base2)])
            & all_left(p, 0) & all_left(p, 1))), now=True)
        for name, view, start, last in (("former", b, p, lasts[0]), ("latter", a, n, lasts[1])):
            self.prove(f"list_{name}", implies(given, (start.over == (view.begin >= count)) & (start.listed == ~start.over)
                & ((start.fault == FAULT_LIST) == start.over) & (start.left2 == 0)
                & implies(~start.over, start.exhausted == last)), now=True)
        self.prove("over", implies(given & p.over, n.over), now=True)
        self.prove("byte", implies(passed & inside, (n.address == self.named(64, p.address + 1)) & ~n.over
            & (n.run == self.named(32, p.run - 1))), now=True)
        self.prove("byte_loops", implies(passed & inside, same("base0", "base1", "base2", "left0", "left1") & alike), now=True)
        block  = passed & ~inside
        self.prove("block", implies(block & ~n.over, (n.run == n.block) & (n.address == n.base0)), now=True)
        for level in range(2):
            left  = [getattr(p, f"left{i}") for i in range(level + 1)]
            now   = self.named(1, block & reduce(and_, [x == 0 for x in left[:-1]], 1) & (left[-1] != 0))
            below, above = range(level), range(level + 1, 2)
            self.prove(f"left{level}", implies(now, ~n.over & alike & (getattr(n, f"left{level}") == self.named(32, left[-1] - 1))
                & reduce(and_, [all_left(n, i) for i in below], 1) & same(*[f"left{i}" for i in above])), now=True)
            self.prove(f"base{level}", implies(now,
                (getattr(n, f"base{level}") == self.named(64, getattr(p, f"base{level}") + getattr(p, f"stride{level}")))
                & reduce(and_, [getattr(n, f"base{i}") == getattr(n, f"base{level}") for i in below], 1)
                & same("base2", *[f"base{i}" for i in above])), now=True)
        entry  = self.named(1, block & (p.left0 == 0) & (p.left1 == 0))
        self.prove("entry", implies(entry, a.begin == self.named(33, b.begin + 1)), now=True)
        self.prove("entry_loops", implies(entry & ~n.over, all_left(n, 0) & all_left(n, 1)
            & reduce(and_, [x == firsts[1] for x in (n.base0, n.base1, n.base2)])), now=True)

        # Lemmas -------------------------------------------------------------------------------------

        states = ("IDLE", "DIVIDE", "DIVIDED", "END", "SATURATE", "LIMIT", "ORDER", "INDEX", "MULTIPLY", "FIRST", *LATE, "READY")
        absent = self.named(1, a.begin >= count)
        self.lemma("states", a.on(*states) & b.on(*states))
        self.lemma("together", reduce(or_, [both(name) for name in states])
            | (none & b.on("END") & a.on("DIVIDE", "DIVIDED") & ~a.closing) | (none & b.on("FIRST") & a.on("INDEX", "MULTIPLY"))
            | (a.on("READY") & absent & b.on("ORDER", "INDEX", "MULTIPLY", "FIRST", *LATE)))
        busy   = self.named(1, ~a.on("IDLE"))
        in_div = self.named(1, a.on("DIVIDE", "DIVIDED"))
        first  = self.named(1, in_div & ~a.closing)
        behind = self.named(1, busy & ~first)
        self.lemma("closing", implies(busy, a.closing == b.closing) & implies(a.on("END"), ~a.closing)
            & implies(busy & ~in_div & ~a.on("END"), a.closing) & implies(none & b.on("DIVIDE", "DIVIDED"), b.closing))
        self.lemma("nothing", implies(none, ~b.on("INDEX", "MULTIPLY")))
        held  = [name for name, _ in walk.description.payload_layout if name != "skip"]
        for name in held:
            self.lemma(f"walk_{name}", implies(busy, getattr(a.walk, name) == getattr(b.walk, name)), given=["together", "states"])
        self.lemma("walk_skip", implies(busy, a.walk.skip == self.named(33, b.walk.skip + 1)), given=["together", "states"])
        self.lemma("whole", implies(busy, self.whole(b.walk) & a.walk.listed), given=["together", "states"])
        walk  = a.walk
        self.lemma("flat",  implies(a.on("INDEX", "MULTIPLY") | b.on("INDEX", "MULTIPLY"), walk.levels != 0))
        early = ("END", "SATURATE", "DIVIDE", "DIVIDED", "LIMIT", "ORDER", "FIRST")
        self.lemma("zero", implies(busy & none, reduce(and_, [i == 0 for i in b.index]) & (b.inside == 0) & (b.begin == 0)
            & implies(b.on(*early), reduce(and_, [x == 0 for x in (*b.base[:2], b.total)]))))

        # Division, as in walker_place.py.
        up      = Signal()
        divided = self.named(1, a.on("DIVIDED"))
        m_b     = self.named(32, Mux(none, 0, b.multiplier))
        q_b     = self.named(32, Mux(none, 0, b.quotient))
        r_b     = self.named(32, Mux(none, 0, b.remainder))
        self.sync += If(a.on("IDLE"), up.eq(1)).Elif(divided, up.eq(a.quotient != q_b))
        mask, one = Signal(32), Signal(32)
        self.sync += If(a.on("DIVIDE"), mask.eq(mask << 1), one.eq(one << 1)).Else(mask.eq(2**32 - 1), one.eq(1))
        self.lemma("mask", implies(in_div, (mask == self.named(32, Constant(2**32 - 1, 32) << a.step))
            & (one == self.named(32, Constant(1, 32) << a.step))))
        high_a, low_a = self.named(32, a.quotient & mask), self.named(32, a.quotient & ~mask)
        high_b, low_b = self.named(32, q_b & mask),        self.named(32, q_b & ~mask)
        further = (a.remainder == self.named(33, r_b + 1)) & (low_a == low_b)
        wraps   = (a.remainder == 0) & (self.named(33, r_b + 1) == a.divisor) & (low_a == self.named(33, low_b + 1))
        later   = (high_b != mask) & (high_a == self.named(33, high_b + one)) & (low_a == low_b) & (a.remainder == r_b)
        here    = (high_b == mask) & (high_a == 0) & (further | wraps)
        equal   = (a.quotient == q_b) & (a.remainder == r_b)
        self.lemma("steps", implies(a.on("DIVIDE"), a.step < 32) & implies(divided, a.step == 32)
            & implies(in_div & (~none | a.closing), (b.step == a.step) & (b.level == a.level) & (b.divisor == a.divisor))
            & reduce(and_, [implies(view.on("END", "SATURATE"), view.step == 0) for view in (a, b)]))
        divisors = [walk.block, walk.count0, walk.count1]
        self.lemma("divisor", implies(in_div, (a.level <= walk.levels) & reduce(or_, [(a.level == i) & (a.divisor == d)
            for i, d in enumerate(divisors)])))
        self.lemma("remainder", implies(first, (a.remainder < a.divisor) & (r_b < a.divisor)))
        self.lemma("division", implies(first, Mux(up, later | here, equal)))

        # Finished divisions; the last quotient is the entry, and has no end.
        digits  = [(a.inside, b.inside, walk.block), (a.index[0], b.index[0], walk.count0), (a.index[1], b.index[1], walk.count1)]
        carries = [self.named(1, a.inside == 0)]
        for i in range(2):
            carries.append(self.named(1, carries[i] & (a.index[i] == 0)))
        for i, (x, y, limit) in enumerate(digits):
            done  = self.named(1, busy & (walk.levels >= i) & (~first | (a.level > i)))
            below = carries[i - 1] if i else Constant(1)
            self.lemma(f"digit{i}", implies(done, (x < limit) & (y < limit)
                & Mux(below, (x == self.named(33, y + 1)) | ((x == 0) & (self.named(33, y + 1) == limit)), x == y)))
            self.lemma(f"up{i}", implies(first & (a.level == i), up == below))
        self.lemma("unindexed", reduce(and_, [implies(busy & (walk.levels <= i), (a.index[i] == 0) & (b.index[i] == 0))
            for i in range(3)]))
        self.lemma("begin", implies(behind, Mux(carries[2], a.begin == self.named(33, b.begin + 1), alike)))
        for name, view in (("latter", a), ("former", b)):
            fault = view.block.source.fault
            beyond = self.named(1, view.begin >= walk.count2)
            self.lemma(f"fault_{name}", implies(busy, Mux(view.on("READY"), (fault == FAULT_LIST) == beyond, fault == 0))
                & implies(view.on("ORDER", "INDEX", "MULTIPLY", "FIRST", *LATE), ~beyond & ~view.over)
                & implies(view.on("READY"), view.over == beyond)
                & implies(busy & (view.on("END", "SATURATE", "LIMIT") | (view.on("DIVIDE", "DIVIDED") & view.closing)),
                    view.over == (beyond & (view.walk.skip != 0))))

        # Sums from 0 on, from the outermost stride inwards.
        strides = [walk.stride0, walk.stride1]
        last    = [self.named(1, walk.levels == i + 1) for i in range(2)]
        level   = self.named(2, a.level)
        adding  = self.named(1, a.on("INDEX", "MULTIPLY"))
        summing = self.named(1, a.on("INDEX", "MULTIPLY", "FIRST"))
        self.lemma("levels", implies(adding, (level < walk.levels) & implies(~none, b.level == level))
            & implies(a.on("ORDER"), implies(~none, b.on("ORDER"))))
        self.lemma("start", reduce(and_, [implies(view.on(*early[:-1]), reduce(and_, [x == 0 for x in (*view.base, view.total)]))
            for view in (a, b)]))
        self.lemma("unused", reduce(and_, [implies(summing & (walk.levels <= i), (a.base[i] == 0) & (b.base[i] == 0)) for i in range(2)]))
        wrapped = [self.named(1, carries[i + 1]) for i in range(2)]
        goes_on = [self.named(1, carries[i] & (a.index[i] != 0)) for i in range(2)]
        for i in range(2):
            above_a = self.named(64, Mux(last[i], 0, a.base[1])) if i == 0 else Constant(0, 64)
            above_b = self.named(64, Mux(last[i], 0, b.base[1])) if i == 0 else Constant(0, 64)
            further = self.named(64, b.base[i] + strides[i])
            done    = self.named(1, summing & (walk.levels > i) & ~(adding & (level >= i)))
            self.lemma(f"begin{i}", implies(done, Mux(wrapped[i], a.base[i] == above_a,
                a.base[i] == Mux(goes_on[i], further, b.base[i]))))
            self.lemma(f"index{i}", implies(a.on("INDEX") & (level == i), (a.total == above_a) & (b.total == above_b)))
            carry   = self.named(1, a.multiplier != m_b)
            next_   = self.named(64, b.total + strides[i])
            shifted = self.named(64, a.total + a.multiplicand)
            adds    = self.named(1, a.on("MULTIPLY") & (level == i))
            known   = ["together", "states", "levels", "nothing", "zero", "whole", "flat", "walk_levels", "walk_listed", f"walk_stride{i}",
                f"index{i}", f"digit{i + 1}", *(["digit2", "begin1"] if i == 0 else []),
                *[f"{part}{i}" for part in ("factor", "shift", "stays", "passes", "goes")]]
            self.lemma(f"factor{i}", implies(adds, Mux(wrapped[i], a.multiplier == 0,
                Mux(goes_on[i], implies(carry, a.multiplier == self.named(33, m_b + 1)), ~carry))), given=known)
            self.lemma(f"shift{i}",  implies(adds & ~wrapped[i] & (m_b != 0), a.multiplicand == b.multiplicand), given=known)
            self.lemma(f"stays{i}",  implies(adds & ~goes_on[i], a.total == Mux(wrapped[i], above_a, b.total)), given=known)
            self.lemma(f"passes{i}", implies(adds & goes_on[i] & carry, shifted == next_), given=known)
            self.lemma(f"goes{i}",   implies(adds & goes_on[i] & ~carry, a.total == next_), given=known)

        # Then each gets its first base. `with_base`: the sum with the base.
        for name, view, base, end in (("latter", a, firsts[1], lasts[1]), ("former", b, firsts[0], lasts[0])):
            late = self.named(1, view.on(*LATE) | (view.on("READY") & ~view.over))
            self.lemma(f"base_{name}", implies(late, (view.base[2] == base) & (view.block.source.exhausted == end)))
            self.lemma(f"adds_{name}", implies(view.on("BASE1", "NEXT", "BASE0"), view.multiplicand == base)
                & implies(view.on("BASE1"), view.total == view.base[1])
                & implies(view.on("NEXT"), view.total == self.named(64, view.base[1] + base))
                & implies(view.on("BASE0"), view.total == view.base[0])
                & implies(view.on("ADDRESS"), (view.total == self.named(64, view.base[0] + base)) & (view.multiplicand == view.inside))
                & implies(view.on("READY") & ~view.over, view.total == self.named(64, view.base[0] + view.inside)))
            view.with_base = [self.named(64, Mux(view.on(*states_), view.base[i] + base, view.base[i]))
                for i, states_ in enumerate((LATE, ("BASE1", "NEXT")))]
            view.late = late
        self.lemma("late", implies(a.late, b.late & implies(alike, firsts[0] == firsts[1])))
        self.lemma("zero_base", implies(b.late & none, (b.with_base[0] == firsts[0]) & (b.with_base[1] == firsts[0])))
        for i in range(2):
            above   = Mux(last[i], firsts[1], a.with_base[1]) if i == 0 else firsts[1]
            further = self.named(64, b.with_base[i] + strides[i])
            self.lemma(f"sum{i}", implies(a.late, Mux(walk.levels > i,
                Mux(wrapped[i], a.with_base[i] == above, a.with_base[i] == Mux(goes_on[i], further, b.with_base[i])),
                (a.with_base[i] == firsts[1]) & (b.with_base[i] == firsts[0]))))

    def whole(self, walk):
        """Conditions that the engines ensure for each walk."""
        counts = [implies(walk.levels > n, getattr(walk, f"count{n}") != 0) for n in range(2)]
        return (walk.length != 0) & (walk.levels != 3) & counts[0] & counts[1] & (walk.block != 0)

class FewEntries(ListSuccessor):
    """For mutants: one walk of a list's blocks of two bytes, from the second byte on, taken in the
    first cycle and never again.

    Two divisions take 70 cycles; the solver has nothing to choose in them.
    """
    def __init__(self):
        super().__init__()
        only(self, fields_but(self.former.sink, "listed"), {"address": 64, "length": 2, "block": 2, "count2": 3, "skip": 1})
        for name, value in (("ready", 1), ("ordered", 1), ("based", 1), ("base_former", 1024), ("base_latter", 2048),
                ("last_former", 0), ("last_latter", 0)):
            self.assume(f"few_{name}", next(s for s in self.frees if s.name_override == f"free_{name}") == value)

# Properties ---------------------------------------------------------------------------------------

SKIP = "dibber.deposit.skip"

PROPERTIES = [
    Property("walker-listed", "deposit/skip", "a byte more leads to where the loops go from there, also over a list",
        "64-bit addresses, 32-bit lengths", "ListSuccessor", k=1, apart=True, mutants=[
            Mutant("the sums begin at the origin", SKIP, "start.eq(Mux(sink.listed, 0, sink.address))", "start.eq(sink.address)",
                depth=90, harness="FewEntries"),
            Mutant("the last byte's place is taken for the first's", SKIP, "If(~dividing_last,\n", "If(1,\n", depth=90, harness="FewEntries"),
            Mutant("the base is not added to the blocks", SKIP, "fsm.act(\"BASE0\",\n            NextValue(total, sum_)",
                "fsm.act(\"BASE0\",\n            NextValue(total, total)", depth=90, harness="FewEntries"),
        ]),
]
