"""Interrupt hold-off: one message for several interrupts of a vector."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.description import C, HOST

# Layouts ------------------------------------------------------------------------------------------

def hold_off_layout():
    """In a cycle with `strobe`: the fields of register HOLD_OFF are written."""
    return [("strobe", 1), *[(f.name, f.bits) for f in HOST["HOLD_OFF"].fields]]

# Hold-off -----------------------------------------------------------------------------------------

class HoldOff(LiteXModule):
    """Decide whether an interrupt is sent at once or held, and when the held ones are due.

    The first interrupt that is held starts its vector's time. The vector is due when its time has
    passed. An interrupt that makes the number `count` is not held, and its message covers all that
    were held before. With `count` 0 only the time counts. With `time` 0 the vector has no hold-off.

    Nothing that is held is lost. A write of HOLD_OFF makes its vector due at once if interrupts of
    it are held. So does a queue that is opened with this vector, which also ends the vector's
    hold-off: the settings of a former user do not survive.

    Time is counted in units. Once a unit each vector is visited, in a cycle of its own. So a vector
    is due at most `time` units and 2 cycles after its first interrupt was held, and at least
    `time` - 1 units after it.

    Parameters
    ----------
    unit       : cycles, a power of two, at least 2*VECTORS
    time_bits  : bits of HOLD_OFF.time that are used
    count_bits : bits of HOLD_OFF.count that are used

    Attributes
    ----------
    set     : Record(hold_off_layout()), in    a vector beyond the table is ignored
    open    : `strobe`, `vector`, in           a queue was opened with this vector
    request : Signal(), in                     an interrupt is to be sent; never in two cycles
              in succession
    vector  : Signal(max=VECTORS), in          its vector
    keep    : Signal(), out                    in the same cycle: it is held
    due     : Signal(VECTORS), out             one cycle for each vector whose interrupts are due

    Cycles: 0 from `request` to `keep`; a visit waits one cycle for a request.
    """
    def __init__(self, unit=C.HOLD_OFF_UNIT, time_bits=12, count_bits=8):
        vector_bits  = log2_int(C.VECTORS)
        unit_bits    = log2_int(unit)
        window_bits  = unit_bits - vector_bits  # each vector has so many cycles of a unit
        assert window_bits >= 1
        self.set     = Record(hold_off_layout())
        self.open    = Record([("strobe", 1), ("vector", vector_bits)])
        self.request = Signal()
        self.vector  = Signal(vector_bits)
        self.keep    = Signal()
        self.due     = Signal(C.VECTORS)

        # # #

        # `limit` is what a vector was set to, `state` what is held of it.
        limit  = Record([("count", count_bits), ("time", time_bits)])
        state  = Record([("seen",  count_bits), ("left", time_bits)])
        after  = Record(state.layout)
        limits = Memory(len(limit.raw_bits()), C.VECTORS, name="hold_limits")
        states = Memory(len(state.raw_bits()), C.VECTORS, name="hold_states")
        enter, look  = limits.get_port(write_capable=True), limits.get_port(async_read=True)
        write, read  = states.get_port(write_capable=True), states.get_port(async_read=True)
        self.specials += limits, states, enter, look, write, read

        on       = Signal(C.VECTORS)  # `time` is not 0
        held     = Signal(C.VECTORS)  # interrupts are held
        holds    = Signal(C.VECTORS)  # the same after this cycle's request or visit
        expired  = Signal(C.VECTORS)
        released = Signal(C.VECTORS)  # its settings change
        clock    = Signal(unit_bits)
        late     = Signal()           # the visit of this window waits for a request
        visit    = Signal()
        about    = Signal(vector_bits)
        is_on    = Signal()
        is_held  = Signal()
        reached  = Signal()
        valid    = Signal()           # of `set`
        self.comb += [
            visit.eq(((clock[:window_bits] == 0) | late) & ~self.request),
            about.eq(Mux(self.request, self.vector, clock[window_bits:])),
            look.adr.eq(about),
            read.adr.eq(about),
            write.adr.eq(about),
            limit.raw_bits().eq(look.dat_r),
            state.raw_bits().eq(read.dat_r),
            write.dat_w.eq(after.raw_bits()),
            is_on.eq((on >> about)[0]),
            is_held.eq((held >> about)[0]),
            reached.eq((limit.count != 0) & (after.seen == limit.count)),
            self.keep.eq(is_on & ~reached),
            write.we.eq(self.request | visit),
            holds.eq(held),
            after.eq(state),
            If(self.request,
                after.seen.eq(Mux(is_held, state.seen, 0) + 1),
                If(~is_held, after.left.eq(limit.time)),
                If(self.keep,
                    holds.eq(held | (1 << about))
                ).Else(
                    holds.eq(held & ~(1 << about))
                )
            ).Elif(visit & is_held,
                after.left.eq(state.left - 1),
                If(state.left == 1,
                    expired.eq(1 << about),
                    holds.eq(held & ~(1 << about))
                )
            ),

            # Settings.
            valid.eq(self.set.strobe & (self.set.vector < C.VECTORS)),
            enter.adr.eq(self.set.vector),
            enter.dat_w.eq(Cat(self.set.count[:count_bits], self.set.time[:time_bits])),
            enter.we.eq(valid),
            released.eq((valid << self.set.vector[:vector_bits]) | (self.open.strobe << self.open.vector)),
        ]
        self.sync += [
            clock.eq(clock + 1),
            late.eq(((clock[:window_bits] == 0) | late) & self.request),
            held.eq(holds & ~released),
            self.due.eq(expired | (holds & released)),
            # A queue that is opened comes last, because its user has not set anything yet.
            [
                If(self.open.strobe & (self.open.vector == n),
                    on[n].eq(0)
                ).Elif(valid & (self.set.vector[:vector_bits] == n),
                    on[n].eq(self.set.time[:time_bits] != 0)
                )
                for n in range(C.VECTORS)],
        ]
