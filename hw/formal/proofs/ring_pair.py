"""A pair of rings: the order of a flow's packets while they change their ring."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.fabric.ring import merge as merge_design
from dibber.fabric.ring import way as way_design

from harness import Harness, Mutant, Property, implies

NUMBER = 2  # bits: a run has at most 4 packets of the flow
SIZE   = 4  # cards

class Journey(Harness):
    """One channel from its sink to its source at a target. Packets have one word.

    Two flows, of which the first is watched; its turn is of the solver's choice. Between the choice
    of a ring and the merge stand two rings without any detail. Each has room for a packet on its
    way, and for one in its receive FIFO. A packet is accepted after any time, and its echo comes
    after any time. If a ring falls, its packet ends for its source. It may still be accepted, until
    it comes through at any later time.
    """
    def __init__(self):
        super().__init__()
        self.way   = way   = way_design.RingWay(1)
        self.merge = merge = merge_design.RingMerge(4)
        sink = way.sinks[0]
        turn  = self.constant("turn", 2)
        self.assume("turn", turn > 1)
        flow  = self.free("flow")  # 1: the watched one
        sent  = Signal(NUMBER + 1)
        ups   = self.free("ups", 2)
        offer = self.free("offer")
        self.comb += [
            way.address.eq(0),
            way.size.eq(SIZE),
            way.ups.eq(ups),
            sink.valid.eq(offer),
            sink.first.eq(1),
            sink.last.eq(1),
            sink.prefix.eq(1),
            sink.data.eq(Cat(Mux(flow, turn, Constant(1, 2)), Constant(0, 2), sent[:NUMBER], flow)),
        ]
        self.sync += If(sink.valid & sink.ready & flow, sent.eq(sent + 1))
        self.assume("few", ~sent[NUMBER])
        # An offer stands.
        waits, flow_before = self.before(sink.valid & ~sink.ready), self.before(flow)
        self.assume("stands", implies(waits, offer & (flow == flow_before)))

        accepted, came = Signal(NUMBER + 1), Signal(NUMBER + 1)
        rings = [self._ring(ring, ups[ring]) for ring in range(2)]
        self.sync += accepted.eq(accepted + rings[0][0] + rings[1][0])

        out = merge.source
        self.comb += out.ready.eq(self.free("ready"))
        comes  = Signal()
        number = Signal(NUMBER)
        last   = Signal(NUMBER)
        some   = Signal()
        self.comb += [
            comes.eq(out.valid & out.ready & out.data[4 + NUMBER]),
            number.eq(out.data[4:4 + NUMBER]),
        ]
        self.sync += If(comes, last.eq(number), some.eq(1), came.eq(came + 1))
        self.prove("order", implies(comes & some, number > last))
        self.prove("sent", implies(comes, number < sent))
        self.prove("all", (accepted - came)[:NUMBER + 1] == rings[0][1] + rings[1][1])
        one, other = way.sources[0][0], way.sources[1][0]
        self.prove("one_ring", ~(one.valid & other.valid))

    def _ring(self, ring, up):
        """(a packet of the watched flow is accepted, one is in the receive FIFO)."""
        way, merge = self.way, self.merge
        source, slots, gone = way.sources[ring][0], way.slots[ring][0], way.gone[ring][0]
        word    = Signal(4 + NUMBER + 1)  # the packet on its way
        opened  = Signal()
        lost    = Signal()  # its source knows no end of it, and it may still be accepted
        begun   = Signal()  # the target has it
        stock   = Signal(4 + NUMBER + 1)  # the packet in the receive FIFO
        full    = Signal()
        rests   = Signal(2)  # cycles since a packet was accepted
        accepts = self.free(f"accepts{ring}")
        echoes  = self.free(f"echoes{ring}")
        through = self.free(f"through{ring}")
        self.assume(f"accepts{ring}", implies(accepts, (opened | lost) & ~begun & (rests == 0) & ~full))
        self.assume(f"echoes{ring}", implies(echoes, opened & begun))
        sink = merge.sinks[ring]
        self.comb += [
            source.ready.eq(~opened & ~lost & up),
            slots.open.eq(opened),
            gone.eq(lost),
            slots.turn0.eq(word[:4]),
            merge.begins[ring].eq(accepts),
            sink.valid.eq(full),
            sink.first.eq(1),
            sink.last.eq(1),
            sink.data.eq(stock),
        ]
        self.sync += [
            If(rests != 0, rests.eq(rests - 1)),
            If(full & sink.ready, full.eq(0)),
            If(accepts,
                rests.eq(2),
                begun.eq(1),
                stock.eq(word),
                full.eq(1)
            ),
            If(through, lost.eq(0)),
            If(echoes | ~up, opened.eq(0)),
            If(opened & ~echoes & ~up, lost.eq(1)),
            If(source.valid & source.ready,
                word.eq(source.data),
                opened.eq(1),
                begun.eq(0)
            ),
        ]
        watched = lambda word: word[4 + NUMBER]
        return accepts & watched(word), full & watched(stock)

PROPERTIES = [
    Property("ring-pair-order", "fabric/ring/way, merge",
        "packets of a flow come once and in order, whichever rings carry them and fall",
        f"1 packet in each ring, {SIZE} cards, 2 flows", "Journey", bound=14, mutants=[
            Mutant("a packet that may still come does not hold its flow", "dibber.fabric.ring.way",
                "(record.open[slot] | gone[ring][n][slot]) & same[slot]", "record.open[slot] & same[slot]", depth=14),
            Mutant("a flow changes its ring while its packets are open", "dibber.fabric.ring.way",
                "If(bound[0], choice.eq(0)).Elif(bound[1], choice.eq(1)),", "If(bound[0], choice.eq(0)),", depth=14),
            Mutant("the merge takes the ring that has a packet", "dibber.fabric.ring.merge",
                "If(order.source.valid & (order.source.ring == ring),", "If(sink.valid,", depth=14),
    ]),
]
