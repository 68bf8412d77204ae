"""A FIFO whose entries become readable only when they are committed."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

class CommitFIFO(LiteXModule):
    """Entries are written ahead, then committed together or taken back together.

    Parameters
    ----------
    width : bits of an entry
    depth : entries, a power of two

    Attributes
    ----------
    writable : Signal(), out       there is room for an entry; a register, for who writes here often
               waits for it in a long chain
    we, din  : Signal, in          write `din`; ignored unless `writable`
    commit   : Signal(), in        everything written, this cycle's entry included, becomes readable
    rollback : Signal(), in        everything written since the last commit is forgotten, this
               cycle's
                                   entry included
    readable : Signal(), out       `dout` is valid
    re, dout : Signal, in and out  take it

    Cycles: 2 from `commit` to `dout`, then an entry a cycle; 2 from `re` to `writable`. Block RAM
    with its output register.
    """
    def __init__(self, width, depth):
        assert depth & (depth - 1) == 0
        self.writable = Signal(reset=1)
        self.we       = Signal()
        self.din      = Signal(width)
        self.commit   = Signal()
        self.rollback = Signal()
        self.readable = Signal()
        self.re       = Signal()
        self.dout     = Signal(width)

        # # #

        bits      = log2_int(depth)
        produce   = Signal(bits + 1)  # one bit more than the address tells full from empty
        committed = Signal(bits + 1)
        consume   = Signal(bits + 1)
        following = Signal(bits + 1)

        memory = Memory(width, depth)
        write  = memory.get_port(write_capable=True)
        # holds its line when the place is written anew
        read   = memory.get_port(has_re=True, mode=READ_FIRST)
        self.specials += memory, write, read

        # Whether it is full is known before `we` is, for both cases, and from where the reader was:
        # a place that it leaves is found 1 cycle later.
        def room(place):
            return (place[:bits] != consume[:bits]) | (place[bits] == consume[bits])

        one = Signal(bits + 1)
        self.comb += [
            one.eq(produce + 1),
            following.eq(produce + (self.we & self.writable)),
            write.adr.eq(produce[:bits]),
            write.dat_w.eq(self.din),
            write.we.eq(self.we & self.writable),
            read.adr.eq(consume[:bits]),
            read.re.eq((consume != committed) & (~self.readable | self.re)),
            self.dout.eq(read.dat_r),
        ]
        self.sync += [
            self.writable.eq(Mux(self.rollback, room(committed), Mux(self.we & self.writable, room(one), room(produce)))),
            produce.eq(following),
            If(self.commit, committed.eq(following)),
            If(self.rollback, produce.eq(committed)),
            consume.eq(consume + read.re),
            If(read.re,
                self.readable.eq(1)
            ).Elif(self.re,
                self.readable.eq(0)
            ),
        ]
