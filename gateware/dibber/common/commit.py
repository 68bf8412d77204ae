"""A FIFO whose entries become readable only when they are committed."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

class CommitFIFO(LiteXModule):
    """A FIFO in which several entries are written, then committed together or rolled back together.

    Parameters
    ----------
    width : bits of an entry
    depth : entries, a power of two

    Attributes
    ----------
    writable : Signal(), out       there is room for an entry; registered, because the writers use
               it in long timing paths
    we, din  : Signal, in          write `din`; ignored unless `writable`
    commit   : Signal(), in        all entries written, including this cycle's, become readable
    rollback : Signal(), in        all entries since the last commit, including this cycle's, are
               dropped
    readable : Signal(), out       `dout` is valid
    re       : Signal(), in        take `dout`
    dout     : Signal, out

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
        produced  = Signal(bits + 1)

        memory = Memory(width, depth)
        write  = memory.get_port(write_capable=True)
        # `re` holds the output while its place is written again.
        read   = memory.get_port(has_re=True, mode=READ_FIRST)
        self.specials += memory, write, read

        # `writable` is computed one cycle ahead, for both values of `we`. It uses the reader's old
        # position, so a place that becomes free is seen one cycle later.
        def room(place):
            return (place[:bits] != consume[:bits]) | (place[bits] == consume[bits])

        produce_next = Signal(bits + 1)
        self.comb += [
            produce_next.eq(produce + 1),
            produced.eq(produce + (self.we & self.writable)),
            write.adr.eq(produce[:bits]),
            write.dat_w.eq(self.din),
            write.we.eq(self.we & self.writable),
            read.adr.eq(consume[:bits]),
            read.re.eq((consume != committed) & (~self.readable | self.re)),
            self.dout.eq(read.dat_r),
        ]
        self.sync += [
            self.writable.eq(
                Mux(
                    self.rollback, room(committed),
                    Mux(self.we & self.writable, room(produce_next), room(produce)))),
            produce.eq(produced),
            If(self.commit, committed.eq(produced)),
            If(self.rollback, produce.eq(committed)),
            consume.eq(consume + read.re),
            If(read.re,
                self.readable.eq(1)
            ).Elif(self.re,
                self.readable.eq(0)
            ),
        ]
