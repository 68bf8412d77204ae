"""Counters of events, whose high bits are in block RAM."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

LOW  = 6  # bits of a counter that are registers, or one more where there are many lines
WAKE = 8  # cycles from the first mark to the scanner's first line, and for a line that is being read

# Counters -----------------------------------------------------------------------------------------

class Counters(LiteXModule):
    """32-bit counters that are read a line at a time. A value is exact for the cycle of its read.

    The low bits of each counter are registers. When they wrap they set a mark. A scanner adds the
    marks to the high bits, which are in block RAM, a line in a word. The scanner rests while there
    is no mark. It starts at the first line with a mark, and then visits all lines in as many cycles
    until no mark is left, long before the low bits wrap again.

    Parameters
    ----------
    pulses     : dict of word number -> Signal: how many events happen in this cycle, 0 to 15
    data_width : bits of a line

    Attributes
    ----------
    adr   : Signal, in              line, in a cycle with `re`
    re    : Signal(), in
    here  : Signal(), in            with `re`: the line is one of these counters; else `dat_r` is 0.
            1 if it is not driven
    dat_r : Signal(data_width), out 2 cycles later; 0 in other cycles

    Cycles: a line a cycle. They are 0 after reset, which takes as many cycles as there are lines.
    """
    def __init__(self, pulses, data_width):
        lanes = data_width//32
        first = min(pulses)//lanes
        depth = max(pulses)//lanes + 1
        # A mark is in memory before the low bits wrap again.
        most  = 2**max(len(pulse) for pulse in pulses.values()) - 1
        assert most <= 15
        bits  = max(LOW, log2_int(most*(depth - first + WAKE), need_pow2=False))
        self.adr   = Signal(max=depth)
        self.re    = Signal()
        self.here  = Signal(reset=1)
        self.dat_r = Signal(data_width)

        # # #

        high  = 32 - bits
        # No line is read in the cycle in which it is written, see `wait`.
        memory = Memory(high*lanes, 2**len(self.adr), name="block_counts")
        write  = memory.get_port(write_capable=True)
        scan   = memory.get_port(mode=READ_FIRST)
        look   = memory.get_port(mode=READ_FIRST)
        self.specials += memory, write, scan, look

        # Low Bits ---------------------------------------------------------------------------------

        nothing = (Constant(0, bits), Constant(0))
        lows    = [[nothing]*lanes for _ in range(depth)]
        added   = Signal(depth)  # the marks of this line are in memory
        marked  = Signal(depth)  # this line has marks; one cycle late
        for word, pulse in pulses.items():
            line, lane = divmod(word, lanes)
            low, mark  = Signal(bits), Signal()
            wraps      = pulse & (low == 2**bits - 1) if len(pulse) == 1 else low + pulse >= 2**bits
            self.sync += [
                low.eq(low + pulse),
                If(added[line], mark.eq(0)),
                If(wraps, mark.eq(1)),
            ]
            lows[line][lane] = low, mark
        self.sync += [marked[n].eq(Reduce("OR", [mark for _, mark in lane])) for n, lane in enumerate(lows)]

        # Scanner ----------------------------------------------------------------------------------

        # A line is read in one cycle and written in the next, unless it is being looked at.
        line    = Signal(max=depth, reset=first)
        after   = Signal(max=depth)
        second  = Signal()
        wiping  = Signal(reset=1)
        resting = Signal()
        wait    = Signal()
        marks   = Signal(lanes)
        nearest = Signal(max=depth)  # the first line with marks
        self.comb += [
            *[If(marked[n], nearest.eq(n)) for n in reversed(range(first, depth))],
            after.eq(Mux(line == depth - 1, first, line + 1)),
            # `here` is late in the cycle, so it is not used: the scanner also waits for reads of
            # other registers.
            wait.eq(~second | resting | (self.re & (self.adr == line))),
            scan.adr.eq(Mux(wait, line, after)),
            Case(line, {n: marks.eq(Cat(*[mark for _, mark in lane])) for n, lane in enumerate(lows)}),
            write.adr.eq(line),
            write.we.eq(~wait),
            *[write.dat_w[high*n:high*(n + 1)].eq(
                Mux(wiping, 0, scan.dat_r[high*n:high*(n + 1)]) + marks[n]) for n in range(lanes)],
            If(~wait, added.eq(1 << line)),
        ]
        self.sync += [
            second.eq(1),
            If(~wait,
                line.eq(after),
                If(line == depth - 1, wiping.eq(0)),
            ),
            If(resting,
                If(marked != 0,
                    resting.eq(0),
                    second.eq(0),
                    line.eq(nearest)
                )
            ).Elif((marked == 0) & ~wiping,
                resting.eq(1)
            ),
        ]

        # Read -------------------------------------------------------------------------------------

        asked = Signal()
        held  = Signal((bits + 1)*lanes)
        self.comb += look.adr.eq(self.adr)
        self.sync += [
            asked.eq(self.re & self.here),
            Case(self.adr, {n: held.eq(Cat(*[Cat(low, mark) for low, mark in lane])) for n, lane in enumerate(lows)}),
            self.dat_r.eq(0),
            If(asked,
                *[self.dat_r[32*n:32*(n + 1)].eq(Cat(held[(bits + 1)*n:(bits + 1)*n + bits],
                    look.dat_r[high*n:high*(n + 1)] + held[(bits + 1)*n + bits])) for n in range(lanes)],
            ),
        ]
