"""What is written to registers, in memory, for those who read it back."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

# Read Back ----------------------------------------------------------------------------------------

class ReadBack(LiteXModule):
    """Words of a register bank as they were written, in block RAM; 0 after reset.

    A reset of `sys` has them wiped, a line a cycle when it has ended. It resets the host's side
    too, whose first access comes long after that: what is written in these cycles is lost.

    Parameters
    ----------
    words : numbers of the words that are kept, none in line 0; others read as 0
    port  : line_port, in

    Attributes
    ----------
    dat   : Signal(data_width), out   what was written in the cycle before
    dat_r : Signal(data_width), out   2 cycles after a read, with all that was written before it; 0
            in other cycles
    """
    def __init__(self, words, port):
        data_width = len(port.dat_w)
        self.lanes = lanes = data_width//32
        lines      = sorted({word//lanes for word in words})
        self.depth = depth = 2**bits_for(lines[-1])
        # The wiper comes from the line in front of the first one.
        self.adr   = adr   = Signal(max=depth, reset=lines[0] - 1)
        self.dat   = dat   = Signal(data_width)
        self.we    = we    = Signal(data_width//8)
        self.dat_r = Signal(data_width)

        # # #

        # Of this memory a reset does not touch the contents, so it must not end what wipes them.
        wiping = Signal(reset_less=True)
        quiet  = Signal(reset=1)
        hits   = [reduce(or_, [port.adr == word//lanes for word in words if word % lanes == lane], 0) for lane in range(lanes)]
        self.sync += [
            adr.eq(port.adr),
            dat.eq(port.dat_w),
            we.eq(port.be & Cat(*[Replicate(port.we & hit, 4) for hit in hits])),
            quiet.eq(~(port.re & ~port.we & (port.adr < depth))),
            If(wiping & (adr != lines[-1]),
                adr.eq(adr + 1),
                dat.eq(0),
                we.eq(2**len(we) - 1),
                quiet.eq(1),
            ).Else(
                wiping.eq(0)
            ),
            If(ResetSignal(allow_reset_less=True), wiping.eq(1)),
        ]

        # Where nothing is asked it reads a line that is never written.
        self.memory = memory = Memory(data_width, 2*depth, name="block_readback")
        read        = memory.get_port(mode=READ_FIRST)
        self.specials += memory, read
        self.write_to(memory)
        self.comb += [
            read.adr.eq(Cat(adr, quiet)),
            self.dat_r.eq(read.dat_r),
        ]

    def write_to(self, memory):
        write = memory.get_port(write_capable=True, we_granularity=8)
        self.specials += write
        self.comb += [write.adr.eq(self.adr), write.dat_w.eq(self.dat), write.we.eq(self.we)]

    def look_up(self, words):
        """(index, value): Signal of a place in `words`, to drive, and the word there, in the same
        cycle. In LUT memory of its own.
        """
        index, value = Signal(max=len(words)), Signal(32)
        memory = Memory(len(self.dat), self.depth, name="looked_up")
        read   = memory.get_port(async_read=True)
        self.specials += memory, read
        self.write_to(memory)
        places = [divmod(word, self.lanes) for word in words]
        cases  = {n: [read.adr.eq(line), value.eq(read.dat_r[32*lane:32*lane + 32])] for n, (line, lane) in enumerate(places)}
        self.comb += Case(index, {**cases, "default": cases[len(words) - 1]})
        return index, value
