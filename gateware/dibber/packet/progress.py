"""Progress of packets, for the control program's timers: packets that left or are being stored."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.one_hot import lowest_one, value_of
from dibber.interface.description import C
from dibber.packet.flow_table import flow_reset_layout, flow_rewind_layout

# Cycles; less than half of the 100 us after which a source repeats, also at 62.5 MHz.
BEAT     = 2048
# Largest number of packets of one lane whose payload is not stored; receiver and ScatterEngine hold
# fewer.
ARRIVING = 16

# What Has Left ------------------------------------------------------------------------------------

class Departed(LiteXModule):
    """The last packet of each flow of a lane whose last word the link has taken.

    A packet's header leaves while its payload is still read from host memory. So the time limit of
    its acknowledgement starts at the packet's end, which this module observes.

    A rewind or reset invalidates a flow's entry. A packet that is leaving then does not count when
    it ends: the program queues it again, and the time starts at the end of the second copy.

    Some ports keep whole packets, which wait for their turn on the wire: a ring's does. Such a
    packet has left when the port says that it is gone.

    Parameters
    ----------
    places : packets of the lane that the port keeps at most; 0 for a port that keeps none

    Attributes
    ----------
    begin  : Record, in     in a cycle with `strobe`: a packet passes its gate. `counts` is 0 for a
             question
    ended  : Signal(), in   the link takes a packet's last word
    bad    : Signal(), in   with `ended`: the receiver will drop this packet
    keeps  : Signal(places), in   with `ended`: where the port keeps the packet, one-hot; 0: nowhere
    gone   : Signal(places), in   pulse: the packet in this place has left the card, or is dropped
    reset  : Record(flow_reset_layout), in     of this lane, in the same cycle as in FlowTable
    rewind : Record(flow_rewind_layout), in    as `reset`
    node   : Signal, in     the node whose flow is shown
    psn    : Signal(16), out    of its last packet that left, in the same cycle
    valid  : Signal(), out      a packet has left since the last reset or rewind

    Cycles: 2 from `ended` to `valid`, 3 from `gone`; 2 from a reset or rewind, as in the gate.
    """
    def __init__(self, places=0):
        bits = log2_int(C.NODES)
        packet = [("node", bits), ("psn", 16), ("counts", 1)]
        self.begin  = begin  = Record([("strobe", 1)] + packet)
        self.ended  = Signal()
        self.bad    = Signal()
        self.keeps  = Signal(max(1, places))
        self.gone   = Signal(max(1, places))
        self.reset  = reset  = Record(flow_reset_layout())
        self.rewind = rewind = Record(flow_rewind_layout())
        self.node   = Signal(bits)
        self.psn    = Signal(16)
        self.valid  = Signal()

        # # #

        # A gate sees a reset or rewind one cycle late, and `begin` is registered here. So after two
        # cycles no older packet can come.
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

        # The packet whose last word comes next, and the one after it. There are no more, because
        # there is one place between the sealer and the link.
        first, second = [Record([("valid", 1)] + packet) for _ in range(2)]
        # `first`, after the packet that ends has left
        first_left   = Record([("valid", 1)] + packet)
        second_valid = Signal()
        self.comb += [
            first_left.eq(first),
            second_valid.eq(second.valid),
            If(ended,
                first_left.eq(second),
                second_valid.eq(0),
            ),
        ]
        self.sync += [
            first.eq(first_left),
            second.valid.eq(second_valid),
            If(began.strobe,
                If(first_left.valid,
                    second.valid.eq(1),
                    *[getattr(second, name).eq(getattr(began, name)) for name, _ in packet],
                ).Else(
                    first.valid.eq(1),
                    *[getattr(first, name).eq(getattr(began, name)) for name, _ in packet],
                )
            ),
            If(change.strobe,
                If(Mux(
                       began.strobe & ~first_left.valid, began.node,
                       first_left.node) == change.node,
                    first.counts.eq(0)
                ),
                If(Mux(began.strobe & first_left.valid, began.node, second.node) == change.node,
                    second.counts.eq(0)
                ),
            ),
        ]

        # What has left.
        lasts     = Memory(16, C.NODES)
        write     = lasts.get_port(write_capable=True)
        show      = lasts.get_port(async_read=True)
        valid     = Signal(C.NODES)
        node_mask = lambda strobe, node: strobe << node
        leaves    = ended & first.valid & first.counts & ~bad  # the link has taken `first`
        last_left, writes = first, leaves
        self.specials += lasts, write, show
        if places:
            self.kept = kept = Kept(places)
            keeps     = Signal(places)
            before    = lasts.get_port(async_read=True)
            ahead     = Signal(16)
            self.specials += before
            last_left = Record(packet)
            writes    = Signal()
            self.sync += [
                keeps.eq(self.keeps),
                kept.gone.eq(self.gone),
            ]
            self.comb += [
                If(ended, kept.keeps.eq(keeps)),
                kept.node.eq(first.node),
                kept.psn.eq(first.psn),
                kept.counts.eq(leaves),
                kept.change.eq(change),
                before.adr.eq(kept.source.node),
                ahead.eq(kept.source.psn - before.dat_r),
                # What is not kept goes first.
                If(leaves & (keeps == 0),
                    last_left.node.eq(first.node),
                    last_left.psn.eq(first.psn),
                    writes.eq(1)
                ).Else(
                    last_left.node.eq(kept.source.node),
                    last_left.psn.eq(kept.source.psn),
                    kept.source.ready.eq(1),
                    # An older packet of the flow may be gone later.
                    writes.eq(kept.source.valid &
                        (~(valid >> kept.source.node)[0] | ~ahead[15]))
                ),
            ]
        self.comb += [
            write.adr.eq(last_left.node),
            write.dat_w.eq(last_left.psn),
            write.we.eq(writes),
            show.adr.eq(self.node),
            self.psn.eq(show.dat_r),
            self.valid.eq((valid >> self.node)[0]),
        ]
        self.sync += valid.eq(
            (valid | node_mask(write.we, last_left.node)) & ~node_mask(change.strobe, change.node))

class Kept(LiteXModule):
    """Packets of a lane that the port keeps, and which of them is gone.

    At most one packet comes in a cycle, but several may be gone in one. The next packet takes a
    place some cycles later at the earliest, because no packet has fewer than seven words.

    Parameters
    ----------
    places : of the port

    Attributes
    ----------
    keeps  : Signal(places), in   one-hot: a packet comes to this place
    node, psn, counts : Signal, in   of this packet; `counts` is 0 if the time does not matter
    gone   : Signal(places), in   pulse: the packet in this place is gone
    change : Record(strobe, node), in   packets of this node do not count any more
    source : Record(valid, ready, node, psn), out   a packet that is gone and counts
    """
    def __init__(self, places):
        bits = log2_int(C.NODES)
        self.keeps  = Signal(places)
        self.node   = Signal(bits)
        self.psn    = Signal(16)
        self.counts = Signal()
        self.gone   = Signal(places)
        self.change = change = Record([("strobe", 1), ("node", bits)])
        self.source = source = Record([("valid", 1), ("ready", 1), ("node", bits), ("psn", 16)])

        # # #

        nodes   = [Signal(bits, name=f"node{n}") for n in range(places)]
        psns    = [Signal(16, name=f"psn{n}") for n in range(places)]
        held    = Signal(places)  # it counts, and is in the card
        due     = Signal(places)  # it counts, and is gone
        choice  = Signal(places)
        changed = Signal(places)
        self.comb += [
            choice.eq(lowest_one(due)),
            source.valid.eq(choice != 0),
            source.node.eq(value_of(choice, nodes)),
            source.psn.eq(value_of(choice, psns)),
            changed.eq(Cat(*[change.strobe & (node == change.node) for node in nodes])),
        ]
        for n in range(places):
            self.sync += [
                If(source.ready & choice[n], due[n].eq(0)),
                If(self.gone[n],
                    held[n].eq(0),
                    due[n].eq(held[n])
                ),
                If(changed[n],
                    held[n].eq(0),
                    due[n].eq(0)
                ),
                If(self.keeps[n],
                    nodes[n].eq(self.node),
                    psns[n].eq(self.psn),
                    held[n].eq(self.counts & ~(change.strobe & (self.node == change.node)))
                ),
            ]

# What Is Being Stored -----------------------------------------------------------------------------

class Storing(LiteXModule):
    """The nodes with a packet here whose payload is not completely stored, and their repeated signs
    of life.

    If elements are small, storing a packet may take longer than its source waits for the
    acknowledgement. So while payload moves, and the same packet is stored for BEAT cycles or more,
    its source gets the last acknowledgement again; see `works` of FlowTable.

    Attributes
    ----------
    entered : Record, in          in a cycle with `strobe`: a packet of `node` with payload will be
              stored
    line    : Signal(), in        a line of payload is stored, in the order of the packets
    last    : Signal(), in        this line is its packet's last one
    moves   : Signal(NODES), out  nodes with packets here, 2 cycles after a line was taken
    alive   : Signal(NODES), out  the same, every BEAT cycles: acknowledge these nodes again
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
        line        = Signal()    # inputs are registered, because they are late in their cycle
        last        = Signal()
        leaves      = Signal()
        enters      = Signal()
        has_packets = Signal(C.NODES)
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
                has_packets[node].eq(count != 0),
            ]
            self.sync += If(more & ~less,
                count.eq(count + 1)
            ).Elif(less & ~more, count.eq(count - 1))

        age         = Signal(max=BEAT)
        line_moved  = Signal()  # a line was taken since the last beat
        same_packet = Signal()  # no packet ended since the last beat
        self.sync += [
            self.moves.eq(Mux(line, has_packets, 0)),
            self.alive.eq(0),
            age.eq(age + 1),
            If(line, line_moved.eq(1)),
            If(leaves, same_packet.eq(0)),
            If(age == BEAT - 1,
                If(line_moved & same_packet, self.alive.eq(has_packets)),
                line_moved.eq(line),
                same_packet.eq(~leaves),
            ),
        ]
