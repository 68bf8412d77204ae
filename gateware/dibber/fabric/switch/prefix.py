"""The first prefix word of a packet: it is checked, and becomes an order for the switch."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import word_layout
from dibber.packet.route import HOP_BITS, TURN_BITS, prefix_crc

# What is wrong with a packet's route.
FAULT_NONE      = 0
FAULT_ROUTE_END = 1  # it has no prefix word
FAULT_PREFIX    = 2  # its prefix word is wrong
FAULT_BITS      = 2

def order_layout():
    """An order, in the low bits of a packet's first word.

    turn   : of the prefix word
    behind : number of prefix words behind it
    fault  : FAULT_*; with a fault, the other fields have no meaning

    Above the order, bits 31:16 are those of the packet's first word. If the packet has no prefix,
    this is the node that sent it (struct packet_header).
    """
    return [("turn", TURN_BITS), ("behind", HOP_BITS), ("fault", FAULT_BITS)]

# Prefix Check -------------------------------------------------------------------------------------

class PrefixCheck(LiteXModule):
    """Replace the first word of each packet by an order. All other words pass as they are.

    A prefix word is right if its CRC-8 is right, its unused bits are 0, and as many prefix words
    are behind it as START announced.

    Attributes
    ----------
    sink   : Endpoint(word_layout), in   without backpressure, `prefix` as START announced
    source : Endpoint(word_layout), out

    Cycles: 0.
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(word_layout())
        self.source = source = stream.Endpoint(word_layout())

        # # #

        order  = Record(order_layout())
        turn   = sink.data[0:TURN_BITS]
        behind = sink.data[8:8 + HOP_BITS]
        right  = Signal()
        self.comb += [
            right.eq(
                (sink.data[TURN_BITS:8] == 0) & (sink.data[8 + HOP_BITS:24] == 0) &
                (sink.data[24:32] == prefix_crc(turn, behind)) & (sink.prefix == behind + 1)),
            order.turn.eq(turn),
            order.behind.eq(behind),
            If(sink.prefix == 0,
                order.fault.eq(FAULT_ROUTE_END)
            ).Elif(~right,
                order.fault.eq(FAULT_PREFIX)
            ),
            sink.connect(source, omit={"data"}),
            source.data.eq(Cat(Mux(sink.first, order.raw_bits(), sink.data[:16]), sink.data[16:])),
        ]
