"""The walker's set-up: the start of a walk that skips one byte more.

Two set-ups run with the same walk, one from byte `skip` on and one from the byte after it. The
place of the second is the one that the loops reach from that of the first. So the proof needs no
product: by induction over `skip`, each place is the one that the loops reach byte by byte.
"""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import and_, or_

from migen import *

from litex.gen import *

from dibber.deposit import skip

from harness import Harness, Mutant, Property, implies, inner
from proofs.walker_runs import Arithmetic

# View ---------------------------------------------------------------------------------------------

class View:
    """A set-up's internal signals. `idle`: it skips nothing, so it has no division to make."""
    def __init__(self, block):
        self.block = block
        for name in ("walk", "index", "base", "quotient", "remainder", "divisor", "step", "level", "total",
                "multiplicand", "multiplier"):
            setattr(self, name, inner(block, name))
        self.inside  = inner(block, "block_offset")
        self.over    = inner(block, "past_end")
        self.begin   = inner(block, "first_entry")
        self.end     = inner(block, "last_entry")
        self.closing = inner(block, "dividing_last")
        self.limited = inner(block, "list_too_short")

    def on(self, *names):
        return reduce(or_, [self.block.fsm.ongoing(name) for name in names])

# One Byte More ------------------------------------------------------------------------------------

class OneByteMore(Harness, Arithmetic):
    """Two set-ups of any walks, one after the other: `former` from byte `skip` on and `latter` from
    the next byte on.

    Both take a walk in the same cycle, and pass on their places in the same cycle. `b` and `a`:
    their internal signals.
    """
    def __init__(self):
        super().__init__()
        self.former = former = CEInserter()(skip.Skip())
        self.latter = latter = CEInserter()(skip.Skip())
        self.b, self.a = View(former), View(latter)
        walk  = former.sink
        self.free_all("sink", walk, omit={"valid", "listed"})
        ready = self.free("ready")
        self.comb += [
            walk.valid.eq(self.free("valid") & self.both("IDLE")),
            latter.sink.valid.eq(walk.valid),
            [getattr(latter.sink, name).eq(getattr(walk, name)) for name, _ in walk.description.payload_layout if name != "skip"],
            latter.sink.skip.eq(walk.skip + 1),
            former.source.ready.eq(ready & self.both("READY")),
            latter.source.ready.eq(ready & self.both("READY")),
        ]
        self.assume("walk", implies(walk.valid, self.whole(walk)))
        self.assume("skip", implies(walk.valid, walk.skip != 2**32 - 1))

    def both(self, *names):
        return self.b.on(*names) & self.a.on(*names)


def only(harness, fields, values):
    """One walk in the first cycle and never again; its `fields` have the given `values`, or 0."""
    walk = harness.former.sink
    for name in fields:
        harness.assume(f"few_{name}", getattr(walk, name) == values.get(name, 0))
    harness.assume("once", walk.valid == ~harness.before(1))


def fields_but(walk, *names):
    """Names of the fields of a walk, except the given ones."""
    return [name for name, _ in walk.description.payload_layout if name not in names]

# Successor ----------------------------------------------------------------------------------------

class Successor(OneByteMore):
    """Any walks, one after the other, each set up from byte `skip` on by one block and from the
    next byte on by the other.
    """
    def __init__(self):
        super().__init__()
        former, latter, b, a, walk = self.former, self.latter, self.b, self.a, self.former.sink
        both = self.both

        # An index of one bit more takes a cycle more, so the other set-up waits.
        self.comb += [
            former.ce.eq(~(both("MULTIPLY") & (b.multiplier == 0) & (a.multiplier != 0))),
            latter.ce.eq(~(both("MULTIPLY") & (a.multiplier == 0) & (b.multiplier != 0))),
        ]
        none = self.named(1, b.walk.skip == 0)

        # Place --------------------------------------------------------------------------------------

        p, n   = former.source, latter.source
        given  = self.named(1, p.valid & n.valid)
        def same(*names):
            return reduce(and_, [getattr(n, name) == getattr(p, name) for name in names], 1)
        nested = self.named(1, b.walk.levels != 0)
        inside = self.named(1, ~nested | (p.run != 1))
        passed = given & ~p.over
        self.prove("same", implies(given, same("low", "high", "block", "length", "stride0", "stride1", "stride2",
            "count0", "count1", "joinable", "listed", "exhausted")), now=True)
        all_left = lambda level: getattr(p, f"left{level}") == self.named(32, getattr(p, f"count{level}") - 1)
        self.prove("first", implies(given & none, reduce(and_, [x == b.walk.address for x in (p.address, p.base0, p.base1, p.base2)])
            & ~p.over & implies(nested, p.run == b.walk.block) & all_left(0) & all_left(1)
            & (p.left2 == Mux(b.walk.levels == 3, self.named(32, b.walk.count2 - 1), 0))), now=True)
        self.prove("over", implies(given & p.over, n.over), now=True)
        self.prove("byte", implies(passed & inside, (n.address == self.named(64, p.address + 1)) & ~n.over
            & (n.run == Mux(nested, self.named(32, p.run - 1), p.run))), now=True)
        self.prove("byte_loops", implies(passed & inside, same("base0", "base1", "base2", "left0", "left1", "left2")), now=True)
        block  = passed & ~inside
        self.prove("block", implies(block & ~n.over, (n.run == n.block) & (n.address == n.base0)), now=True)
        steps  = []
        for level in range(3):
            left  = [getattr(p, f"left{i}") for i in range(level + 1)]
            now   = self.named(1, block & reduce(and_, [x == 0 for x in left[:-1]], 1) & (left[-1] != 0))
            below, above = range(level), range(level + 1, 3)
            steps.append(now)
            self.prove(f"left{level}", implies(now, ~n.over & (getattr(n, f"left{level}") == self.named(32, left[-1] - 1))
                & reduce(and_, [getattr(n, f"left{i}") == self.named(32, getattr(n, f"count{i}") - 1) for i in below], 1)
                & same(*[f"left{i}" for i in above])), now=True)
            self.prove(f"base{level}", implies(now,
                (getattr(n, f"base{level}") == self.named(64, getattr(p, f"base{level}") + getattr(p, f"stride{level}")))
                & reduce(and_, [getattr(n, f"base{i}") == getattr(n, f"base{level}") for i in below], 1)
                & same(*[f"base{i}" for i in above])), now=True)
        self.prove("end", implies(block & ~reduce(or_, steps), n.over), now=True)

        # Lemmas -------------------------------------------------------------------------------------

        names = ("IDLE", "CONTIGUOUS", "DIVIDE", "DIVIDED", "INDEX", "MULTIPLY", "ADDRESS", "READY")
        self.lemma("states", a.on(*names) & b.on(*names))
        self.lemma("together", reduce(or_, [both(name) for name in names]) | (none & b.on("READY") & ~a.on("IDLE")))
        self.lemma("nothing", implies(none & ~b.on("IDLE"), b.on("READY")))
        busy  = self.named(1, ~a.on("IDLE"))
        held  = [name for name, _ in walk.description.payload_layout if name != "skip"]
        for name in held:
            self.lemma(f"walk_{name}", implies(busy, getattr(a.walk, name) == getattr(b.walk, name)), given=["together", "states"])
        self.lemma("walk_skip", implies(busy, a.walk.skip == self.named(33, b.walk.skip + 1)), given=["together", "states"])
        self.lemma("whole", implies(busy, self.whole(b.walk) & ~a.walk.listed), given=["together", "states"])
        walk  = a.walk
        self.lemma("flat",  implies(a.on("CONTIGUOUS"), walk.levels == 0)
            & implies(a.on("DIVIDE", "DIVIDED", "INDEX", "MULTIPLY"), walk.levels != 0))
        self.lemma("flat_inside", implies(busy & (walk.levels == 0), (a.inside == a.walk.skip) & (b.inside == b.walk.skip)))
        self.lemma("plain", ~a.closing & ~b.closing & (a.begin == 0) & (b.begin == 0)
            & implies(busy, ~p.exhausted & ~n.exhausted & (b.block.source.fault == 0) & (a.block.source.fault == 0)))
        fresh = lambda view: reduce(and_, [i == 0 for i in view.index]) & reduce(and_, [x == walk.address for x in view.base])
        self.lemma("zero", implies(busy & none, fresh(b) & (b.inside == 0) & (b.total == walk.address) & ~b.over))

        # Division: the increment is still in the bits to come (`later`), or has increased prefix
        # and remainder by one.
        up      = Signal()  # the dividend is larger by one, too
        divided = self.named(1, a.on("DIVIDED"))
        m_b     = self.named(32, Mux(none, 0, b.multiplier))
        in_div  = self.named(1, a.on("DIVIDE", "DIVIDED"))
        q_b     = self.named(32, Mux(none, 0, b.quotient))
        r_b     = self.named(32, Mux(none, 0, b.remainder))
        self.sync += If(a.on("IDLE"), up.eq(1)).Elif(divided, up.eq(a.quotient != q_b))
        # quotient's bits that are the dividend's still, and the lowest of them
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
        top     = self.named(2, walk.levels - 1)
        self.lemma("steps", implies(a.on("DIVIDE"), a.step < 32) & implies(divided, a.step == 32)
            & implies(in_div & ~none, (b.step == a.step) & (b.level == a.level) & (b.divisor == a.divisor)))
        divisors = [walk.block, walk.count0, walk.count1]
        self.lemma("divisor", implies(in_div, (a.level <= top) & reduce(or_, [(a.level == i) & (a.divisor == d)
            for i, d in enumerate(divisors)])))
        self.lemma("remainder", implies(in_div, (a.remainder < a.divisor) & (r_b < a.divisor)))
        self.lemma("division", implies(in_div, Mux(up, later | here, equal)))

        # Finished divisions: the increment is in one of the digits, and those below it began again.
        digits  = [(a.inside, b.inside, walk.block), (a.index[0], b.index[0], walk.count0), (a.index[1], b.index[1], walk.count1)]
        carried = Constant(1)
        for i, (x, y, limit) in enumerate(digits):
            done  = self.named(1, busy & ~a.on("CONTIGUOUS") & (walk.levels > i) & (~in_div | (a.level > i)))
            below = carried
            carried = self.named(1, below & (x == 0))
            self.lemma(f"digit{i}", implies(done, (x < limit) & (y < limit)
                & Mux(below, (x == self.named(33, y + 1)) | ((x == 0) & (self.named(33, y + 1) == limit)), x == y)))
            self.lemma(f"up{i}", implies(in_div & (a.level == i), up == below))

        # The last quotient is the outermost index, and has no end.
        carries = [self.named(1, a.inside == 0)]
        for i in range(2):
            carries.append(self.named(1, carries[i] & (a.index[i] == 0)))
        summing = self.named(1, a.on("INDEX", "MULTIPLY", "ADDRESS", "READY") & (walk.levels != 0))
        counts  = [walk.count0, walk.count1, walk.count2]
        last    = [self.named(1, walk.levels == i + 1) for i in range(3)]
        for i in range(3):
            x, y = a.index[i], b.index[i]
            self.lemma(f"outermost{i}", implies(summing & last[i],
                Mux(carries[i], x == self.named(33, y + 1), x == y)
                & (a.over == (x >= counts[i])) & (b.over == (y >= counts[i]))))
            self.lemma(f"unused{i}", implies(busy & (walk.levels <= i), (x == 0) & (y == 0)
                & (a.base[i] == walk.address) & (b.base[i] == walk.address)))
        self.lemma("unspent", implies(busy & ~summing, ~a.over & ~b.over))

        # Sums, from the outermost level inwards.
        strides = [walk.stride0, walk.stride1, walk.stride2]
        level   = self.named(2, a.level)
        adding  = self.named(1, a.on("INDEX", "MULTIPLY"))
        self.lemma("levels", implies(adding, (level <= top) & implies(~none, b.level == level)))
        self.lemma("start", implies(in_div | a.on("CONTIGUOUS"), (a.total == walk.address) & (b.total == walk.address)))
        for i in range(3):
            above_a = self.named(64, Mux(last[i], walk.address, a.base[i + 1]) if i < 2 else walk.address)
            above_b = self.named(64, Mux(last[i], walk.address, b.base[i + 1]) if i < 2 else walk.address)
            wrapped = self.named(1, carries[i] & ~last[i] & (a.index[i] == 0))
            goes_on = self.named(1, carries[i] & ~wrapped)
            further = self.named(64, b.base[i] + strides[i])
            done    = self.named(1, summing & (walk.levels > i) & ~(adding & (level >= i)))
            self.lemma(f"begin{i}", implies(done, Mux(wrapped, a.base[i] == above_a,
                a.base[i] == Mux(goes_on, further, b.base[i]))))
            self.lemma(f"index{i}", implies(a.on("INDEX") & (level == i), (a.total == above_a) & (b.total == above_b)))
            carry   = self.named(1, a.multiplier != m_b)
            behind  = self.named(64, b.total + strides[i])
            shifted = self.named(64, a.total + a.multiplicand)
            adds    = self.named(1, a.on("MULTIPLY") & (level == i))
            known   = ["together", "states", "levels", "nothing", "zero", "whole", "flat", "walk_address", "walk_levels", f"walk_stride{i}",
                f"index{i}", f"outermost{i}", *([f"digit{i + 1}", f"begin{i + 1}"] if i < 2 else []),
                *[f"{part}{i}" for part in ("factor", "shift", "stays", "passes", "goes")]]
            self.lemma(f"factor{i}", implies(adds, Mux(wrapped, a.multiplier == 0,
                Mux(goes_on, implies(carry, a.multiplier == self.named(33, m_b + 1)), ~carry))), given=known)
            self.lemma(f"shift{i}",  implies(adds & ~wrapped & (m_b != 0), a.multiplicand == b.multiplicand), given=known)
            self.lemma(f"stays{i}",  implies(adds & ~goes_on, a.total == Mux(wrapped, above_a, b.total)), given=known)
            self.lemma(f"passes{i}", implies(adds & goes_on & carry, shifted == behind), given=known)
            self.lemma(f"goes{i}",   implies(adds & goes_on & ~carry, a.total == behind), given=known)
        for name, view, here_ in (("latter", a, a.on("ADDRESS")), ("former", b, b.on("ADDRESS"))):
            self.lemma(f"address_{name}", implies(here_, (view.total == view.base[0]) & (view.multiplicand == view.inside)))
            self.lemma(f"ready_{name}", implies(view.on("READY"), view.total == self.named(64, view.base[0] + view.inside)))

    def whole(self, walk):
        """Conditions that the engines ensure for each walk."""
        counts = [implies(walk.levels > n, getattr(walk, f"count{n}") != 0) for n in range(3)]
        return ((walk.length != 0) & counts[0] & counts[1] & counts[2] & implies(walk.levels != 0, walk.block != 0))

class FewBytes(Successor):
    """For mutants: one walk of three blocks of two bytes, from any of its bytes on, taken in the
    first cycle and never again.

    The solver only chooses the byte. A search through a division's cycles is short if it need not
    guess when they began.
    """
    def __init__(self):
        super().__init__()
        walk = self.former.sink
        only(self, fields_but(walk, "skip", "listed"),
            {"address": 64, "length": 1, "levels": 1, "block": 2, "count0": 3, "stride0": 5})
        self.assume("few_skip", walk.skip < 8)

# Properties ---------------------------------------------------------------------------------------

SKIP = "dibber.deposit.skip"

PROPERTIES = [
    Property("walker-place", "deposit/skip", "a byte more leads to where the loops go from there",
        "64-bit addresses, 32-bit lengths", "Successor", k=1, apart=True, mutants=[
            Mutant("the first block's byte is not the remainder", SKIP, "If(level == 0, NextValue(block_offset, remainder))",
                "If(level == 1, NextValue(block_offset, remainder))", depth=42, harness="FewBytes"),
            Mutant("a quotient lacks its ones", SKIP, "NextValue(quotient, Cat(1, quotient[:31]))",
                "NextValue(quotient, Cat(0, quotient[:31]))", depth=42, harness="FewBytes"),
            Mutant("a product's strides are not shifted", SKIP, "NextValue(multiplicand, Cat(0, multiplicand[:address_bits - 1]))",
                "NextValue(multiplicand, multiplicand)", depth=42, harness="FewBytes"),
            Mutant("the loops end a block late", SKIP, "NextValue(past_end, quotient >= quotient_limit)",
                "NextValue(past_end, quotient > quotient_limit)", depth=42, harness="FewBytes"),
            Mutant("an index counts what is left", SKIP, "source, f\"left{i}\").eq(getattr(source, f\"count{i}\") + ~index[i])",
                "source, f\"left{i}\").eq(index[i])", depth=42, harness="FewBytes"),
    ]),
]
