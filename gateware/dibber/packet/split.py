"""Packets of a card with two links: each goes to the transmitter of its link.
docs/design/two-links.md.
"""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import payload_layout, send_layout

LINKS = 2

def linked_send_layout():
    """A packet to send, and the number of the link that it takes."""
    return stream.EndpointDescription([*send_layout().payload_layout, ("link", log2_int(LINKS))])

# Packet Splitter ----------------------------------------------------------------------------------

class PacketSplitter(LiteXModule):
    """Give each packet and its payload to the transmitter of its link.

    A packet takes a place in its transmitter's buffer. The place is reserved before the packet's
    payload is read from host memory. So each packet that comes has its place, and a link that is
    stopped stops no packet of the other link (no head-of-line blocking).

        reserve ──▶ packet and lines ──▶ left          the place is taken from `reserve` to `left`
           └──────▶ cancel                             no packet came of it

    Parameters
    ----------
    data_width : bits of a payload line
    places     : packets that the buffer of a transmitter holds

    Attributes
    ----------
    packets  : Endpoint(linked_send_layout), in   before the packet's payload
    payload  : Endpoint(payload_layout), in
    sources  : list of 2 Endpoint(send_layout), out      by link
    payloads : list of 2 Endpoint(payload_layout), out   by link
    room     : Signal(2), out   by link: a place can be reserved
    reserve  : Signal(2), in    pulse: a packet of this link will come. Only with `room`
    cancel   : Signal(2), in    pulse: a packet with a place will not come
    left     : Signal(2), in    pulse: a packet has left its transmitter's buffer

    Cycles: 0. A packet's first line passes one cycle behind the packet or later. A packet passes
    one cycle behind the last line of the packet before it or later.
    """
    def __init__(self, data_width, places=2):
        self.packets  = packets  = stream.Endpoint(linked_send_layout())
        self.payload  = payload  = stream.Endpoint(payload_layout(data_width))
        self.sources  = sources  = [stream.Endpoint(send_layout()) for _ in range(LINKS)]
        self.payloads = payloads = [
            stream.Endpoint(payload_layout(data_width)) for _ in range(LINKS)]
        self.room     = Signal(LINKS)
        self.reserve  = Signal(LINKS)
        self.cancel   = Signal(LINKS)
        self.left     = Signal(LINKS)

        # # #

        # Lines ------------------------------------------------------------------------------------
        lines_come = Signal()  # of the last packet, lines are still to come
        link       = Signal(log2_int(LINKS))  # of this packet
        for n in range(LINKS):
            packet, lines = sources[n], payloads[n]
            self.comb += [
                packets.connect(packet, omit={"valid", "ready", "link"}),
                packet.valid.eq(packets.valid & ~lines_come & (packets.link == n)),
                payload.connect(lines, omit={"valid", "ready"}),
                lines.valid.eq(payload.valid & lines_come & (link == n)),
            ]
        self.comb += [
            packets.ready.eq(reduce(or_, [packet.valid & packet.ready for packet in sources])),
            payload.ready.eq(reduce(or_, [lines.valid & lines.ready for lines in payloads])),
        ]
        self.sync += [
            If(payload.ready & payload.last, lines_come.eq(0)),
            If(packets.ready,
                lines_come.eq(packets.length != 0),
                link.eq(packets.link)
            ),
        ]

        # Places -----------------------------------------------------------------------------------
        used = [Signal(max=places + 1, name=f"used{n}") for n in range(LINKS)]
        for n in range(LINKS):
            self.comb += self.room[n].eq(used[n] != places)
            self.sync += used[n].eq(used[n] + self.reserve[n] - self.cancel[n] - self.left[n])
