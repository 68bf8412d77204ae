"""The receiver's sequence check: of each flow, only the expected packet is executed."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from dibber.interface.description import C
from dibber.packet.split import LINKS

class SequencerPort(LiteXModule):
    """The signals of a Sequencer, and its verdict from what is held of a packet's source."""
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

    def judge(self, held, expected, is_known, is_open):
        """Drive the verdict, one cycle after these: incarnation and PSN that are held of the
        packet's source, and its bits of `known` and `opened`.
        """
        same        = Signal()
        newer       = Signal()
        age         = Signal(8)
        ahead       = Signal(16)
        starts_flow = Signal()
        self.comb += [
            age.eq(self.incarnation - held),
            same.eq(is_known & (age == 0)),
            newer.eq(Mux(is_known, (age != 0) & ~age[7], is_open)),
            starts_flow.eq(self.first & (self.psn == 0) & newer),
            ahead.eq(self.psn - expected),
        ]
        self.sync += [
            self.fresh.eq(starts_flow),
            self.execute.eq(starts_flow | (same & (ahead == 0))),
            self.stale.eq(~starts_flow & ~same),
            self.absent.eq(~is_known & ~is_open),
            self.duplicate.eq(same & ahead[15]),
            self.gap.eq(same & ~ahead[15] & (ahead != 0)),
        ]

class Sequencer(SequencerPort):
    """The expected sequence number and incarnation of each source node, for one lane (go-back-N).

    A flow starts only if its source has asked since the target's reset. Otherwise, a source whose
    acknowledgement was lost in that reset could send the first packet of a flow again, although the
    target had already executed it.

    Attributes
    ----------
    node, incarnation, psn, first : Signals, in  of the packet; `first` is the flag FIRST
    execute : Signal(), out  it is the expected packet, or the first one of a newer incarnation
    fresh   : Signal(), out  with `execute`: it starts a flow
    stale, duplicate, gap : Signal(), out  why it is not executed
    again   : Signal(), out  with `gap`: this gap was reported before
    absent  : Signal(), out  with `stale`: no flow of the node is held, and none may start before
              its source has asked
    asked   : Signal(), in   the packet is a question of `node`: from now on a flow may start
    forget  : Signal(), in   one cycle: forget all flows and questions
    accept  : Signal(), in   the packet is executed, or starts its flow
    missing : Signal(), in   the gap is reported; also with `accept`, if the flow starts with a gap
    complete: Signal(), in   the whole packet was good: expect the next one. Not before `accept`

    Cycles: 2 from the packet's fields to the verdict; 3 from `complete` to the next packet's
    verdict.
    """
    def __init__(self):
        super().__init__()

        # # #

        # A node is unknown until its first flow. So after a reset this card accepts a peer whose
        # incarnation count is at any value. The peer must have asked before.
        known = Signal(C.NODES)
        self.opened = opened = Signal(C.NODES)
        gap_told = Signal(C.NODES)
        flows    = Memory(24, C.NODES)
        write    = flows.get_port(write_capable=True)
        read     = flows.get_port(async_read=True)
        self.specials += flows, write, read

        held          = Signal(8)
        expected      = Signal(16)
        is_known      = Signal()
        is_open       = Signal()
        node_bit      = Signal(C.NODES)
        next_expected = Signal(16)
        self.comb += [
            next_expected.eq(self.psn + self.complete),
            node_bit.eq(1 << self.node),
            read.adr.eq(self.node),
            write.adr.eq(self.node),
            write.dat_w.eq(Cat(next_expected, self.incarnation)),
            write.we.eq(self.accept | self.complete),
        ]
        self.sync += [
            Cat(expected, held).eq(read.dat_r),
            is_known.eq((known & node_bit) != 0),
            is_open.eq((opened & node_bit) != 0),
            self.again.eq((gap_told & node_bit) != 0),
            # A verdict may be older than `forget`; then its packet's node stays unknown.
            If(self.accept,
                known.eq(known | (node_bit & (known | opened))),
                gap_told.eq(gap_told & ~node_bit)
            ),
            If(self.missing, gap_told.eq(gap_told | node_bit)),
            If(self.asked, opened.eq(opened | node_bit)),
            If(self.forget, known.eq(0), opened.eq(0)),
        ]

        self.judge(held, expected, is_known, is_open)

class SequencerPair(LiteXModule):
    """One memory of flows for the receivers of two links.

    Each receiver writes what it holds of a source into a memory of its own, because a memory has
    one write port. The receiver that wrote last is right. At most one receiver has packets of a
    source (`FlowTurns`).

    Attributes
    ----------
    ports  : list of 2 SequencerPort, by link: each is as a Sequencer for its receiver, whose
             submodule it is. Its `forget` is not used
    forget : Signal(), in   one cycle: forget all flows and questions
    """
    def __init__(self):
        self.ports  = ports = [SequencerPort() for _ in range(LINKS)]
        self.forget = Signal()

        # # #

        known       = Signal(C.NODES)
        self.opened = opened = Signal(C.NODES)
        gap_told    = Signal(C.NODES)
        by_one      = Signal(C.NODES)  # by source: receiver 1 wrote last
        bits        = [Signal(C.NODES, name=f"node_bit{n}") for n in range(LINKS)]
        writes      = [Signal(name=f"writes{n}") for n in range(LINKS)]
        memories    = [Memory(24, C.NODES) for _ in range(LINKS)]
        sources     = lambda name: reduce(or_, [
            Mux(getattr(port, name), bit, 0) for port, bit in zip(ports, bits)])
        for port, bit, we, memory in zip(ports, bits, writes, memories):
            write = memory.get_port(write_capable=True)
            reads = [every.get_port(async_read=True) for every in memories]
            self.specials += [write, *reads]
            next_expected = Signal(16)
            self.comb += [
                next_expected.eq(port.psn + port.complete),
                bit.eq(1 << port.node),
                we.eq(port.accept | port.complete),
                write.adr.eq(port.node),
                write.dat_w.eq(Cat(next_expected, port.incarnation)),
                write.we.eq(we),
                *[read.adr.eq(port.node) for read in reads],
            ]
            held     = Signal(8)
            expected = Signal(16)
            is_known = Signal()
            is_open  = Signal()
            self.sync += [
                Cat(expected, held).eq(
                    Mux((by_one & bit) != 0, reads[1].dat_r, reads[0].dat_r)),
                is_known.eq((known & bit) != 0),
                is_open.eq((opened & bit) != 0),
                port.again.eq((gap_told & bit) != 0),
            ]
            port.judge(held, expected, is_known, is_open)
        self.specials += memories
        self.sync += [
            by_one.eq((by_one & ~Mux(writes[0], bits[0], 0)) | Mux(writes[1], bits[1], 0)),
            known.eq(known | (sources("accept") & (known | opened))),
            gap_told.eq((gap_told & ~sources("accept")) | sources("missing")),
            opened.eq(opened | sources("asked")),
            If(self.forget, known.eq(0), opened.eq(0)),
        ]
