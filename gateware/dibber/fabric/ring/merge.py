"""Packets of both rings of a pair, in the order in which they were accepted."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.places import BypassedFIFO
from dibber.layouts import word_layout

class RingMerge(LiteXModule):
    """Give the packets of one channel from two receive FIFOs, oldest first.

    The ring of each packet is noted when its first word goes into its receive FIFO. A source sends
    on the other ring only when the echo of its last packet is there. So that packet is noted first.

    Parameters
    ----------
    depth : most packets in both receive FIFOs

    Attributes
    ----------
    begins : list of 2 Signal(), in   pulse: a packet begins in the receive FIFO of this ring. Two
             packets of one ring begin at least 3 cycles apart
    sinks  : list of 2 Endpoint(word_layout), in
    source : Endpoint(word_layout), out

    Cycles: 0; 1 from a packet's begin to its first word.
    """
    def __init__(self, depth):
        self.begins = [Signal(name=f"begins{ring}") for ring in range(2)]
        self.sinks  = sinks = [stream.Endpoint(word_layout()) for _ in range(2)]
        self.source = source = stream.Endpoint(word_layout())

        # # #

        self.order = order = BypassedFIFO([("ring", 1)], depth)
        late = Signal(2)  # begun and not noted yet
        due  = Signal(2)
        self.comb += [
            due.eq(late | Cat(*self.begins)),
            order.sink.valid.eq(due != 0),
            order.sink.ring.eq(~due[0]),
        ]
        self.sync += late.eq(due & ~Cat(order.sink.ready, order.sink.ready & ~due[0]))
        for ring, sink in enumerate(sinks):
            self.comb += If(order.source.valid & (order.source.ring == ring),
                sink.connect(source)
            )
        self.comb += order.source.ready.eq(source.valid & source.ready & source.last)
