"""Interrupt hold-off: what is held is sent within its time, and no count is exceeded."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.host.hold_off import HoldOff
from dibber.interface.description import C

from harness import Harness, Mutant, Property, implies, inner, memory_of

UNIT, TIME_BITS, COUNT_BITS = 16, 2, 2
MODULE = "dibber.host.hold_off"

def bit(word, n):
    return (word >> n)[0]

class Held(Harness):
    """The block with free requests and settings. The solver chooses one vector.

    `owes`: interrupts of this vector were held, and nothing has stood for them yet. `age`: cycles
    since the first of them. `number`: how many they are.
    """
    def __init__(self):
        super().__init__()
        self.hold = hold = HoldOff(UNIT, TIME_BITS, COUNT_BITS)
        self.comb += [
            hold.request.eq(self.free("request")),
            hold.vector.eq(self.free("vector", len(hold.vector))),
            hold.set.strobe.eq(self.free("set")),
            hold.set.vector.eq(self.free("set_vector", len(hold.set.vector))),
            hold.set.count.eq(self.free("set_count", len(hold.set.count))),
            hold.set.time.eq(self.free("set_time", len(hold.set.time))),
            hold.open.strobe.eq(self.free("open")),
            hold.open.vector.eq(self.free("open_vector", len(hold.open.vector))),
        ]
        self.assume("apart", ~(hold.request & self.before(hold.request)))
        mine   = self.constant("mine", len(hold.vector))
        here   = hold.request & (hold.vector == mine)
        time   = Signal(TIME_BITS)   # as the vector was set last
        count  = Signal(COUNT_BITS)
        sets   = Signal()
        opens  = Signal()
        self.comb += [
            sets.eq(hold.set.strobe & (hold.set.vector == mine)),
            opens.eq(hold.open.strobe & (hold.open.vector == mine)),
        ]
        # `due` stands for what was held up to the cycle before.
        due    = bit(hold.due, mine)
        kept   = self.before(here & hold.keep)
        sent   = self.before(here & ~hold.keep)
        debt   = Signal()
        owes   = Signal()
        age    = Signal(10)
        before = Signal(COUNT_BITS)
        number = Signal(COUNT_BITS)
        self.comb += [
            owes.eq((debt | kept) & ~sent & ~due),
            number.eq(Mux(debt, before, 0) + kept),
        ]
        self.sync += [
            debt.eq(owes),
            age.eq(Mux(owes, age + 1, 0)),
            before.eq(number),
            If(opens,
                time.eq(0)
            ).Elif(sets,
                time.eq(hold.set.time[:TIME_BITS]),
            ),
            If(sets, count.eq(hold.set.count[:COUNT_BITS])),
        ]
        self.prove("in_time",  implies(owes, age <= time*UNIT + 1))
        self.prove("counted",  implies(owes & (count != 0), number < count))
        self.prove("off",      implies(here & (time == 0), ~hold.keep))
        self.prove("settings", implies(self.before(sets | opens), ~owes))
        self.prove("of_use",   implies(due, debt | kept))

        # Which states there are.
        clock, late = inner(hold, "clock"), inner(hold, "late")
        window = len(clock) - len(mine)
        limits, states = memory_of(hold, "hold_limits"), memory_of(hold, "hold_states")
        limit, state = (memory.get_port(async_read=True) for memory in (limits, states))
        self.specials += limit, state
        self.comb += [limit.adr.eq(mine), state.adr.eq(mine)]
        seen, left = state.dat_r[:COUNT_BITS], state.dat_r[COUNT_BITS:]
        # Cycles since this vector's window began; a whole unit more if its visit is still to come.
        phase   = Signal(len(clock))
        behind  = Signal(10)
        waiting = Signal()
        self.comb += [
            phase.eq(clock - Cat(Constant(0, window), mine)),
            waiting.eq((phase == 0) | ((phase < 2**window) & late)),
            behind.eq(phase + Mux(waiting, UNIT, 0)),
        ]
        held = bit(inner(hold, "held"), mine)
        self.lemma("held",  held == owes)
        self.lemma("on",    bit(inner(hold, "on"), mine) == (time != 0))
        self.lemma("time",  implies(time != 0, limit.dat_r == Cat(count, time)))
        self.lemma("some",  implies(owes, (time != 0) & (left != 0) & (left <= time)))
        self.lemma("seen",  implies(owes, seen == number))
        self.lemma("few",   implies(owes & (count != 0), number != 0))
        self.lemma("late",  implies(late, clock[:window] == 1) & implies(late, self.before(hold.request)))
        self.lemma("age",   implies(owes, age <= (time - left)*UNIT + behind))


PROPERTIES = [
    Property("hold-off", "host/hold_off", "a held interrupt is sent within its time, and no count is exceeded; without time none is held",
        f"{C.VECTORS} vectors, units of {UNIT} cycles, times and counts of {TIME_BITS} bits", "Held", k=1, quick=True, mutants=[
            Mutant("a write of the settings forgets what is held", MODULE, "self.due.eq(expired | (holds & released))",
                "self.due.eq(expired)", depth=8),
            Mutant("a vector is due a unit late", MODULE, "If(state.left == 1,", "If(state.left == 0,", depth=40),
            Mutant("a request takes a visit away", MODULE, "| late) & self.request)", "& late) & self.request)", depth=60),
            Mutant("the count is one too high", MODULE, "(after.seen == limit.count)", "(state.seen == limit.count)", depth=16),
            Mutant("a queue that is opened keeps the hold-off", MODULE, "on[n].eq(0)\n", "on[n].eq(on[n])\n", depth=8),
            Mutant("a vector that is due stays held", MODULE, "expired.eq(1 << about),\n                    holds.eq(held & ~(1 << about))",
                "expired.eq(1 << about)", depth=40),
        ]),
]
