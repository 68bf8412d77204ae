"""Read-back of written registers from block RAM."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

# Read Back ----------------------------------------------------------------------------------------

class ReadBack(LiteXModule):
    """Words of a register bank as they were written, in block RAM; 0 after reset.

    After a reset of `sys` all words are cleared, one line a cycle. The reset also affects the
    host's side, whose first access comes long after that; a write during these cycles is lost.

    Parameters
    ----------
    words : numbers of the words that are kept, none in line 0; all others read as 0
    port  : line_port, in

    Attributes
    ----------
    dat   : Signal(data_width), out   the data written in the previous cycle
    dat_r : Signal(data_width), out   2 cycles after a read, with all earlier writes; 0 in other
            cycles
    """
    def __init__(self, words, port):
        data_width = len(port.dat_w)
        self.lanes = lanes = data_width//32
        lines      = sorted({word//lanes for word in words})
        self.depth = depth = 2**bits_for(lines[-1])
        # The clearing starts at the line before the first one.
        self.adr   = adr   = Signal(max=depth, reset=lines[0] - 1)
        self.dat   = dat   = Signal(data_width)
        self.we    = we    = Signal(data_width//8)
        self.dat_r = Signal(data_width)

        # # #

        # A reset does not clear the memory, so it must start the clearing, not stop it.
        wiping  = Signal(reset_less=True)
        no_read = Signal(reset=1)
        hits    = [
            reduce(or_, [port.adr == word//lanes for word in words if word % lanes == lane], 0)
            for lane in range(lanes)]
        self.sync += [
            adr.eq(port.adr),
            dat.eq(port.dat_w),
            we.eq(port.be & Cat(*[Replicate(port.we & hit, 4) for hit in hits])),
            no_read.eq(~(port.re & ~port.we & (port.adr < depth))),
            If(wiping & (adr != lines[-1]),
                adr.eq(adr + 1),
                dat.eq(0),
                we.eq(2**len(we) - 1),
                no_read.eq(1),
            ).Else(
                wiping.eq(0)
            ),
            If(ResetSignal(allow_reset_less=True), wiping.eq(1)),
        ]

        # In a cycle without a read, a line that is never written is read.
        self.memory = memory = Memory(data_width, 2*depth, name="block_readback")
        read        = memory.get_port(mode=READ_FIRST)
        self.specials += memory, read
        self.write_to(memory)
        self.comb += [
            read.adr.eq(Cat(adr, no_read)),
            self.dat_r.eq(read.dat_r),
        ]

    def write_to(self, memory):
        write = memory.get_port(write_capable=True, we_granularity=8)
        self.specials += write
        self.comb += [write.adr.eq(self.adr), write.dat_w.eq(self.dat), write.we.eq(self.we)]

    def look_up(self, words):
        """A second read port, in its own LUT memory: (index, value).

        `index` is a Signal to drive, an index into `words`; `value` is this word, in the same
        cycle.
        """
        index, value = Signal(max=len(words)), Signal(32)
        memory = Memory(len(self.dat), self.depth, name="looked_up")
        read   = memory.get_port(async_read=True)
        self.specials += memory, read
        self.write_to(memory)
        places = [divmod(word, self.lanes) for word in words]
        cases  = {
            n: [read.adr.eq(line), value.eq(read.dat_r[32*lane:32*lane + 32])]
            for n, (line, lane) in enumerate(places)}
        self.comb += Case(index, {**cases, "default": cases[len(words) - 1]})
        return index, value
