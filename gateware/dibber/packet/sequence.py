"""Which packets of which flow are executed: exactly the expected one."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.description import C

class Sequencer(LiteXModule):
    """The expected sequence number and incarnation of every source node, for one lane.

    Attributes
    ----------
    node, incarnation, psn, first : Signals, in  of the packet in question; `first` is the flag
                                    FIRST
    execute : Signal(), out  it is the expected packet, or the first of a newer incarnation
    fresh   : Signal(), out  with `execute`: it starts a flow
    stale, duplicate, gap : Signal(), out  why it is not executed
    again   : Signal(), out  with `gap`: this gap was told before
    absent  : Signal(), out  with `stale`: no flow of the node is held, and none may start before
              its source has asked
    asked   : Signal(), in   the packet is a question of `node`: a flow of it may start from now on
    forget  : Signal(), in   one cycle: no flow is held any more, and nobody has asked
    accept  : Signal(), in   the packet is being executed, or starts its flow
    missing : Signal(), in   the gap is being told; also with `accept`, if the flow starts with a
              gap
    complete: Signal(), in   all of the packet was good: the next one is expected. Not before
                             `accept`

    Cycles: 2 from the packet's fields to the verdict; 3 from `complete` to the next packet's.

    A flow starts only where its source has asked in this life of the target. Without a question, a
    source could send the first packet of a flow again that a former life has executed, because the
    acknowledgement was lost with that life.
    """
    def __init__(self):
        self.node        = Signal(log2_int(C.NODES))
        self.incarnation = Signal(8)
        self.psn         = Signal(16)
        self.first       = Signal()
        self.execute     = Signal()
        self.fresh       = Signal()
        self.stale       = Signal()
        self.duplicate   = Signal()
        self.gap         = Signal()
        self.again       = Signal()
        self.absent      = Signal()
        self.asked       = Signal()
        self.forget      = Signal()
        self.accept      = Signal()
        self.missing     = Signal()
        self.complete    = Signal()

        # # #

        # A node is unknown until its first flow, so that a card that was reset takes up with a peer
        # that counts its incarnations from anywhere. The peer must have asked before that.
        known = Signal(C.NODES)
        self.opened = opened = Signal(C.NODES)
        told  = Signal(C.NODES)
        flows = Memory(24, C.NODES)
        write = flows.get_port(write_capable=True)
        read  = flows.get_port(async_read=True)
        self.specials += flows, write, read

        held     = Signal(8)
        expected = Signal(16)
        is_known = Signal()
        is_open  = Signal()
        bit      = Signal(C.NODES)
        following = Signal(16)
        self.comb += [
            following.eq(self.psn + self.complete),
            bit.eq(1 << self.node),
            read.adr.eq(self.node),
            write.adr.eq(self.node),
            write.dat_w.eq(Cat(following, self.incarnation)),
            write.we.eq(self.accept | self.complete),
        ]
        self.sync += [
            Cat(expected, held).eq(read.dat_r),
            is_known.eq((known & bit) != 0),
            is_open.eq((opened & bit) != 0),
            self.again.eq((told & bit) != 0),
            # A verdict may be older than `forget`: what is accepted behind it is held by nobody.
            If(self.accept, known.eq(known | (bit & (known | opened))), told.eq(told & ~bit)),
            If(self.missing, told.eq(told | bit)),
            If(self.asked, opened.eq(opened | bit)),
            If(self.forget, known.eq(0), opened.eq(0)),
        ]

        same   = Signal()
        newer  = Signal()
        age    = Signal(8)
        ahead  = Signal(16)
        start  = Signal()
        self.comb += [
            age.eq(self.incarnation - held),
            same.eq(is_known & (age == 0)),
            newer.eq(Mux(is_known, (age != 0) & ~age[7], is_open)),
            start.eq(self.first & (self.psn == 0) & newer),
            ahead.eq(self.psn - expected),
        ]
        self.sync += [
            self.fresh.eq(start),
            self.execute.eq(start | (same & (ahead == 0))),
            self.stale.eq(~start & ~same),
            self.absent.eq(~is_known & ~is_open),
            self.duplicate.eq(same & ahead[15]),
            self.gap.eq(same & ~ahead[15] & (ahead != 0)),
        ]
