"""EXPRESS packets of two links: one receiver takes them, a packet at a time.
docs/design/two-links.md.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import word_layout
from dibber.packet.split import LINKS

# Cycles without a word inside a packet. A word of EXPRESS waits for no PCIe read of its sender. So
# only a switch on the way, whose output is stopped, can hold it so long.
PATIENCE = 2048

# Packet Merger ------------------------------------------------------------------------------------

class PacketMerger(LiteXModule):
    """Give the packets of both links to one receiver, in turns.

    If a link stops inside a packet, the packet ends as bad after `patience` cycles, and its rest is
    dropped. So no link stops the other one for longer.

    Parameters
    ----------
    patience : cycles

    Attributes
    ----------
    sinks  : list of 2 Endpoint(word_layout), in   by link
    source : Endpoint(word_layout), out

    Cycles: 0.
    """
    def __init__(self, patience=PATIENCE):
        self.sinks  = sinks  = [stream.Endpoint(word_layout()) for _ in range(LINKS)]
        self.source = source = stream.Endpoint(word_layout())

        # # #

        busy     = Signal()  # the packet of `last_link` is at the source
        last     = Signal()  # link of this or the last packet
        link     = Signal()
        rest     = Signal(LINKS)  # the rest of this link's packet is dropped
        waited   = Signal(max=patience + 1)
        gives_up = Signal()
        offers   = [Signal(name=f"offers{n}") for n in range(LINKS)]
        self.comb += [
            gives_up.eq(busy & (waited == patience)),
            *[offers[n].eq(sinks[n].valid & ~rest[n]) for n in range(LINKS)],
            # The link whose turn it is not goes first.
            link.eq(Mux(busy, last, Mux(last, ~offers[0], offers[1]))),
            If(gives_up,
                source.valid.eq(1),
                source.last.eq(1),
                source.bad.eq(1),
            ).Elif(link,
                sinks[1].connect(source, omit={"valid", "ready"}),
                source.valid.eq(offers[1])
            ).Else(
                sinks[0].connect(source, omit={"valid", "ready"}),
                source.valid.eq(offers[0])
            ),
            *[
                sinks[n].ready.eq(rest[n] | (source.ready & (link == n) & ~gives_up))
                for n in range(LINKS)],
        ]
        self.sync += [
            If(source.valid,
                busy.eq(~(source.ready & source.last)),
                last.eq(link)
            ),
            If(~busy | offers[0] & ~last | offers[1] & last,
                waited.eq(0)
            ).Elif(~gives_up,
                waited.eq(waited + 1)
            ),
            *[
                If(sinks[n].valid & rest[n] & sinks[n].last, rest[n].eq(0))
                for n in range(LINKS)],
            If(gives_up & source.ready, *[If(last == n, rest[n].eq(1)) for n in range(LINKS)]),
        ]
