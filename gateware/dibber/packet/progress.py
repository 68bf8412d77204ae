"""What the control program's timers need to know of packets: what has left, and what is being
stored at the target.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.packet.flow_table import flow_reset_layout, flow_rewind_layout

# cycles; less than half of the 100 us after which a source repeats, on a card of 62.5 MHz too
BEAT     = 2048
# packets of one lane whose payload is not stored: receiver and ScatterEngine have places for fewer
ARRIVING = 16

# What Has Left ------------------------------------------------------------------------------------

class Departed(LiteXModule):
    """The last packet of each flow of a lane whose last word the link has taken.

    A packet's header leaves while its payload is still read from host memory. So the time in which
    an acknowledgement is due begins at the packet's end, which this module sees.

    A rewind or a reset makes a flow's entry invalid. A packet that is under way then is not counted
    when it ends: the program queues it again, and time counts from the end of that.

    Attributes
    ----------
    begin  : Record, in     in a cycle with `strobe`: a packet passes its gate. `counts` is 0 for a
             question
    ended  : Signal(), in   the link takes a packet's last word
    bad    : Signal(), in   and that packet is to be dropped
    reset  : Record(flow_reset_layout), in     of this lane, in the cycle in which FlowTable has it
    rewind : Record(flow_rewind_layout), in    likewise
    node   : Signal, in     whose flow is shown
    psn    : Signal(16), out    of its last packet that left, in the same cycle
    valid  : Signal(), out      there is one since its last reset or rewind

    Cycles: 2 from `ended` to `valid`; 2 from a reset or rewind, as many as its gate needs.
    """
    def __init__(self):
        bits = log2_int(C.NODES)
        packet = [("node", bits), ("psn", 16), ("counts", 1)]
        self.begin  = begin  = Record([("strobe", 1)] + packet)
        self.ended  = Signal()
        self.bad    = Signal()
        self.reset  = reset  = Record(flow_reset_layout())
        self.rewind = rewind = Record(flow_rewind_layout())
        self.node   = Signal(bits)
        self.psn    = Signal(16)
        self.valid  = Signal()

        # # #

        # A gate hears of a reset or rewind a cycle late, and what passes it is registered here. So
        # two cycles late nothing can come any more that is older.
        began  = Record([("strobe", 1)] + packet)
        ended  = Signal()
        bad    = Signal()
        change = [Record([("strobe", 1), ("node", bits)]) for _ in range(2)]
        self.sync += [
            began.eq(begin),
            ended.eq(self.ended),
            bad.eq(self.bad),
            change[0].strobe.eq(reset.strobe | rewind.strobe),
            change[0].node.eq(Mux(reset.strobe, reset.flow[:bits], rewind.flow[:bits])),
            change[1].eq(change[0]),
        ]
        change = change[1]

        # The packet whose last word comes next, and the one behind it. A third one does not begin
        # before the first has left, because there is one place between the sealer and the link.
        first, second = [Record([("valid", 1)] + packet) for _ in range(2)]
        moved  = Record([("valid", 1)] + packet)  # the first, when the one that ends is gone
        behind = Signal()
        self.comb += [
            moved.eq(first),
            behind.eq(second.valid),
            If(ended,
                moved.eq(second),
                behind.eq(0),
            ),
        ]
        self.sync += [
            first.eq(moved),
            second.valid.eq(behind),
            If(began.strobe,
                If(moved.valid,
                    second.valid.eq(1),
                    *[getattr(second, name).eq(getattr(began, name)) for name, _ in packet],
                ).Else(
                    first.valid.eq(1),
                    *[getattr(first, name).eq(getattr(began, name)) for name, _ in packet],
                )
            ),
            If(change.strobe,
                If(Mux(began.strobe & ~moved.valid, began.node, moved.node) == change.node, first.counts.eq(0)),
                If(Mux(began.strobe & moved.valid, began.node, second.node) == change.node, second.counts.eq(0)),
            ),
        ]

        # What has left.
        lasts = Memory(16, C.NODES)
        write = lasts.get_port(write_capable=True)
        show  = lasts.get_port(async_read=True)
        valid = Signal(C.NODES)
        of    = lambda strobe, node: strobe << node
        self.specials += lasts, write, show
        self.comb += [
            write.adr.eq(first.node),
            write.dat_w.eq(first.psn),
            write.we.eq(ended & first.valid & first.counts & ~bad),
            show.adr.eq(self.node),
            self.psn.eq(show.dat_r),
            self.valid.eq((valid >> self.node)[0]),
        ]
        self.sync += valid.eq((valid | of(write.we, first.node)) & ~of(change.strobe, change.node))

# What Is Being Stored -----------------------------------------------------------------------------

class Storing(LiteXModule):
    """The nodes that have a packet here whose payload is not all stored, and whether any payload
    was stored of late.

    A target whose elements are small may need longer to store a packet than its source waits for
    the acknowledgement. So while payload moves and the same packet is stored for BEAT cycles and
    more, its source is told what was acknowledged last once more; see FlowTable's `works`.

    Attributes
    ----------
    entered : Record, in          in a cycle with `strobe`: a packet of `node` with payload is to be
              executed
    line    : Signal(), in        a line of payload is stored, in the order of the packets
    last    : Signal(), in        and it is its packet's last one
    moves   : Signal(NODES), out  nodes with packets here, 2 cycles after a line was taken
    alive   : Signal(NODES), out  the same, each BEAT cycles: they are to be told
    """
    def __init__(self):
        bits = log2_int(C.NODES)
        self.entered = entered = Record([("strobe", 1), ("node", 16)])
        self.line    = Signal()
        self.last    = Signal()
        self.moves   = Signal(C.NODES)
        self.alive   = Signal(C.NODES)

        # # #

        self.order = order = stream.SyncFIFO([("node", bits)], ARRIVING)
        line   = Signal()    # what is told, in registers, because it is known late in its cycle
        last   = Signal()
        leaves = Signal()
        enters = Signal()
        here   = Signal(C.NODES)
        self.sync += [
            order.sink.valid.eq(entered.strobe),
            order.sink.node.eq(entered.node),
            line.eq(self.line),
            last.eq(self.line & self.last),
        ]
        self.comb += [
            order.source.ready.eq(last),
            enters.eq(order.sink.valid & order.sink.ready),
            leaves.eq(order.source.valid & order.source.ready),
        ]
        for node in range(C.NODES):
            count = Signal(max=ARRIVING + 1, name=f"count{node}")
            more  = Signal(name=f"more{node}")
            less  = Signal(name=f"less{node}")
            self.comb += [
                more.eq(enters & (order.sink.node == node)),
                less.eq(leaves & (order.source.node == node)),
                here[node].eq(count != 0),
            ]
            self.sync += If(more & ~less, count.eq(count + 1)).Elif(less & ~more, count.eq(count - 1))

        age   = Signal(max=BEAT)
        moved = Signal()  # a line was taken since the last beat
        same  = Signal()  # and no packet's last one
        self.sync += [
            self.moves.eq(Mux(line, here, 0)),
            self.alive.eq(0),
            age.eq(age + 1),
            If(line, moved.eq(1)),
            If(leaves, same.eq(0)),
            If(age == BEAT - 1,
                If(moved & same, self.alive.eq(here)),
                moved.eq(line),
                same.eq(~leaves),
            ),
        ]
