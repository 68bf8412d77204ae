"""The walker's set-up: the entries of its list that a walk orders.

Beside the set-up of a walk stands a second one, for the same walk from its last byte on. The order
ends where the second one begins.
"""

# SPDX-License-Identifier: BSD-2-Clause


from migen import *

from litex.gen import *

from dibber.deposit import skip
from dibber.layouts import FAULT_LIST

from harness import Harness, Mutant, Property, implies
from proofs.walker_place import View, fields_but, only
from proofs.walker_runs import Arithmetic

# Order --------------------------------------------------------------------------------------------

class Ordered(Harness, Arithmetic):
    """Any walks with a list, one after the other, any pace of the list's reader and of the nest.

    The second set-up divides in the cycles in which the first one divides the last byte's place,
    and stands still in all others.
    """
    def __init__(self):
        super().__init__()
        self.former = former = skip.Skip()
        self.latter = latter = ResetInserter()(CEInserter()(skip.Skip()))
        f, l  = View(former), View(latter)
        order = former.order

        walk  = former.sink
        self.free_all("sink", walk, omit={"valid", "listed"})
        self.free_all("base", former.base)
        ends  = self.named(34, walk.skip + walk.length - 1)
        self.comb += [
            walk.valid.eq(self.free("valid") & f.on("IDLE")),
            walk.listed.eq(1),
            latter.sink.valid.eq(walk.valid),
            [getattr(latter.sink, name).eq(getattr(walk, name)) for name, _ in walk.description.payload_layout if name != "skip"],
            latter.sink.skip.eq(ends),
            latter.ce.eq(l.on("IDLE") | (l.on("DIVIDE", "DIVIDED") & f.on("DIVIDE", "DIVIDED") & f.closing)),
            order.ready.eq(self.free("order_ready")),
            former.source.ready.eq(self.free("ready")),
            latter.reset.eq(former.source.valid & former.source.ready),
        ]
        self.assume("walk", implies(walk.valid, self.whole(walk)))
        self.assume("ends", implies(walk.valid, ends[32:] == 0))

        # The order: from the entry of the first byte to that of the last one, or to the list's end.
        count   = f.walk.count2
        final   = self.named(32, Mux(l.begin < count, l.begin, count - 1))
        ordered = Signal()
        self.sync += If(order.valid & order.ready, ordered.eq(1)).Elif(f.on("READY") & former.source.ready, ordered.eq(0))
        self.prove("first", implies(order.valid, (order.address == self.named(64, f.walk.stride2 + (f.begin << skip.ENTRY)))
            & (f.begin < count)))
        self.prove("final", implies(order.valid, self.named(32, f.begin + order.more) == final))
        self.prove("whose", implies(order.valid, (order.origin == f.walk.address) & order.last))
        self.prove("once",  implies(order.valid, ~ordered)
            & implies(former.source.valid, ordered == (f.begin < count)))
        self.prove("none",  implies(former.source.valid, (former.source.fault == FAULT_LIST) == (f.begin >= count)))

        # Lemmas -------------------------------------------------------------------------------------

        # before the last byte's place is divided
        early   = f.on("END", "SATURATE") | (f.on("DIVIDE", "DIVIDED") & ~f.closing)
        divides = self.named(1, f.on("DIVIDE", "DIVIDED") & f.closing)
        late    = self.named(1, ~f.on("IDLE") & ~early & ~divides)
        single  = self.named(1, l.walk.skip == 0)
        self.lemma("states", f.on("IDLE", "DIVIDE", "DIVIDED", "END", "SATURATE", "LIMIT", "ORDER", "INDEX", "MULTIPLY",
            "FIRST", "BASE1", "NEXT", "BASE0", "ADDRESS", "READY") & l.on("IDLE", "DIVIDE", "DIVIDED", "END"))
        self.lemma("both", (f.on("IDLE") == l.on("IDLE")) & ~l.closing & implies(single & ~f.on("IDLE"), l.on("END"))
            & implies(early & ~single, l.on("DIVIDE")) & implies(late, l.on("END"))
            & implies(divides & ~single, (f.on("DIVIDE") == l.on("DIVIDE")) & l.on("DIVIDE", "DIVIDED")))
        busy    = self.named(1, ~f.on("IDLE"))
        for name, _ in walk.description.payload_layout:
            if name != "skip":
                self.lemma(f"walk_{name}", implies(busy, getattr(l.walk, name) == getattr(f.walk, name)))
        self.lemma("whole", implies(busy, self.whole(f.walk) & f.walk.listed))
        self.lemma("last",  implies(busy, l.walk.skip == self.named(34, f.walk.skip + f.walk.length - 1)))
        self.lemma("end",   implies(f.on("END") | (early & ~f.on("SATURATE")), ~f.closing & (f.end == self.named(33, f.walk.length - 1)))
            & implies(f.on("SATURATE"), f.closing & (f.end == l.walk.skip)))
        self.lemma("fresh", implies(early & ~single, (l.step == 0) & (l.level == 0) & (l.remainder == 0)
            & (l.quotient == l.walk.skip) & (l.divisor == l.walk.block)) & implies(f.on("END", "SATURATE"), f.step == 0))
        self.lemma("division", implies(divides, Mux(single, (f.quotient == 0) & (f.remainder == 0),
            (f.quotient == l.quotient) & (f.remainder == l.remainder) & (f.divisor == l.divisor) & (f.step == l.step) & (f.level == l.level))))
        self.lemma("divisor", implies(f.on("DIVIDE", "DIVIDED"), (f.divisor != 0) & (f.level <= f.walk.levels)))
        self.lemma("closed", implies(late, f.closing & (f.end == l.begin) & (f.limited == (l.begin >= count))))
        self.lemma("single", implies(busy & single, l.begin == 0))

        # The first entry's, by the division before.
        known   = self.named(1, f.closing | f.on("END"))
        self.lemma("begin", implies(busy & (f.walk.skip == 0), known & (f.begin == 0)))
        self.lemma("over",  implies(known & (f.on("END", "SATURATE", "LIMIT") | divides),
            f.over == ((f.begin >= count) & (f.walk.skip != 0))))
        self.lemma("ordered", implies(f.on("IDLE", "DIVIDE", "DIVIDED", "END", "SATURATE", "LIMIT", "ORDER"), ~ordered)
            & implies(f.on("INDEX", "MULTIPLY", "FIRST", "BASE1", "NEXT", "BASE0", "ADDRESS"), ordered))
        self.lemma("fault", implies(busy & ~late, former.source.fault == 0) & implies(f.on("LIMIT"), former.source.fault == 0))
        self.lemma("some",  implies(f.on("ORDER") | ordered, (f.begin < count)
            & (former.source.fault != FAULT_LIST)))
        self.lemma("ready", implies(f.on("READY") & ~ordered, (f.begin >= count) & (former.source.fault == FAULT_LIST)))

    def whole(self, walk):
        """Conditions that the engines ensure for each walk."""
        counts = [implies(walk.levels > n, getattr(walk, f"count{n}") != 0) for n in range(2)]
        return (walk.length != 0) & (walk.levels != 3) & counts[0] & counts[1] & (walk.block != 0)

class FewEntries(Ordered):
    """For mutants: one walk of blocks of two bytes and a list of two entries, taken in the first
    cycle and never again.
    """
    def __init__(self):
        super().__init__()
        walk = self.former.sink
        only(self, fields_but(walk, "skip", "length", "listed"), {"address": 64, "block": 2, "count2": 2, "stride2": 256})
        self.assume("few_skip", walk.skip < 8)
        self.assume("few_length", walk.length < 8)
        self.assume("paces", self.former.order.ready & self.former.source.ready & ~self.former.base.valid)

# Properties ---------------------------------------------------------------------------------------

SKIP = "dibber.deposit.skip"

PROPERTIES = [
    Property("walker-order", "deposit/skip", "a list is ordered from the first byte's entry to the last byte's",
        "64-bit addresses, 32-bit lengths", "Ordered", k=1, apart=True, mutants=[
            Mutant("the order goes to the byte behind the last", SKIP, "NextValue(last_entry, sink.length - 1)",
                "NextValue(last_entry, sink.length)", depth=75, harness="FewEntries"),
            Mutant("the order begins with the list", SKIP, "walk.stride2 + Cat(Constant(0, ENTRY), first_entry)", "walk.stride2",
                depth=75, harness="FewEntries"),
            Mutant("the order goes one behind the list's end", SKIP, "NextValue(list_too_short, quotient >= quotient_limit)",
                "NextValue(list_too_short, quotient > quotient_limit)", depth=75, harness="FewEntries"),
            Mutant("a list that has no such entry is ordered", SKIP, "NextValue(past_end, quotient >= quotient_limit)",
                "NextValue(past_end, quotient > quotient_limit)", depth=75, harness="FewEntries"),
        ]),
]
