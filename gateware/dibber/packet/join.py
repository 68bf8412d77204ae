"""Packets of a card with two links: two receivers, one scatter engine. docs/design/two-links.md."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.layouts import deposit_layout, payload_layout
from dibber.packet.split import LINKS

# Packet Joiner ------------------------------------------------------------------------------------

class PacketJoiner(LiteXModule):
    """Give the deposits of two receivers to one engine, in turns, a packet at a time.

    A packet is taken when its receiver has all of it. So a link that stops inside a packet stops no
    packet of the other link.

    Parameters
    ----------
    data_width   : bits of a payload line
    address_bits : see DepositReceiver
    waiting      : most packets of a receiver that are whole and not taken yet

    Attributes
    ----------
    deposits : list of 2 Endpoint(deposit_layout), in   by link
    payloads : list of 2 Endpoint(payload_layout), in   by link
    whole    : Signal(2), in    pulse: a receiver has a packet's last line in its buffer, or a
               deposit without payload. In the order of its deposits
    left     : Signal(2), out   pulse: the last word of a packet of this link is taken
    deposit  : Endpoint(deposit_layout), out
    payload  : Endpoint(payload_layout), out
    link     : Signal(), out    of the packet at `deposit` and `payload`

    Cycles: 1 between packets; then a line a cycle. 2 from `whole` to the packet's offer.
    """
    def __init__(self, data_width, address_bits=64, waiting=7):
        self.deposits = deposits = [
            stream.Endpoint(deposit_layout(address_bits)) for _ in range(LINKS)]
        self.payloads = payloads = [
            stream.Endpoint(payload_layout(data_width)) for _ in range(LINKS)]
        self.whole    = Signal(LINKS)
        self.left     = Signal(LINKS)
        self.deposit  = deposit = stream.Endpoint(deposit_layout(address_bits))
        self.payload  = payload = stream.Endpoint(payload_layout(data_width))

        # # #

        # Whole Packets ----------------------------------------------------------------------------
        holds = Signal(LINKS)
        count = [Signal(max=waiting + 1, name=f"count{n}") for n in range(LINKS)]
        for n in range(LINKS):
            self.comb += holds[n].eq(deposits[n].valid & (count[n] != 0))
            self.sync += count[n].eq(count[n] + self.whole[n] - self.left[n])

        # Turns ------------------------------------------------------------------------------------
        busy         = Signal()  # a packet passes
        self.link = link = Signal()  # its link, or that of the last packet
        announced    = Signal()  # its deposit was taken
        lines_passed = Signal()  # its payload was taken, or it has none
        announces    = Signal()
        lines_end    = Signal()
        ends         = Signal()
        self.comb += [
            announces.eq(deposit.valid & deposit.ready),
            lines_end.eq(payload.valid & payload.ready & payload.last),
            ends.eq(busy & (announced | announces) & (lines_passed | lines_end)),
            self.left.eq(Cat(ends & ~link, ends & link)),
        ]
        self.sync += [
            If(~busy,
                busy.eq(holds != 0),
                # The link whose turn it is not goes first.
                If(Mux(link, holds[0], holds[1]), link.eq(~link)),
                announced.eq(0),
                lines_passed.eq(0)
            ).Else(
                If(announces,
                    announced.eq(1),
                    If(deposit.length == 0, lines_passed.eq(1))
                ),
                If(lines_end, lines_passed.eq(1)),
                If(ends, busy.eq(0))
            ),
        ]

        # Streams ----------------------------------------------------------------------------------
        # A deposit goes before its lines, as a receiver's does.
        for n in range(LINKS):
            mine = busy & (link == n)
            self.comb += If(mine,
                deposits[n].connect(deposit, omit={"valid", "ready"}),
                payloads[n].connect(payload, omit={"valid", "ready"}),
                deposit.valid.eq(deposits[n].valid & ~announced),
                payload.valid.eq(payloads[n].valid & announced & ~lines_passed),
                deposits[n].ready.eq(deposit.ready & ~announced),
                payloads[n].ready.eq(payload.ready & announced & ~lines_passed)
            )

# Flow Turns ---------------------------------------------------------------------------------------

class FlowTurns(LiteXModule):
    """Keep the packets of a source in order when they come in by both links.

    A source changes its link when its route changes. Its next packet may then be here before its
    last one has passed the joiner. So a header waits for its verdict while the other receiver has a
    packet of the same source. For this, it waits for all packets that the other receiver has. The
    sequence number then says what the packet is: the next one, a duplicate, or behind a gap.

    Parameters
    ----------
    most : packets of a receiver from their verdict to the joiner's end

    Attributes
    ----------
    asks  : Signal(2), in    by link: a header waits for its verdict, until it is taken or dropped
    nodes : list of 2 Signal, in   by link: its source; stays while it `asks`
    may   : Signal(2), out   this header may be judged. One of both in a cycle, if they are of one
            source
    enters: Signal(2), in    pulse, with `asks` and `may`: the packet will be executed
    left  : Signal(2), in    pulse: a packet of this link has passed, as PacketJoiner

    Cycles: 0 for a source that stays on its link; 2 and more for one that changes it.
    """
    def __init__(self, most=7):
        self.asks   = asks  = Signal(LINKS)
        self.nodes  = nodes = [Signal(log2_int(C.NODES), name=f"node{n}") for n in range(LINKS)]
        self.may    = Signal(LINKS)
        self.enters = Signal(LINKS)
        self.left   = Signal(LINKS)

        # # #

        home   = Signal(C.NODES)  # by source: the link of its last packet
        bits   = [Signal(C.NODES, name=f"bits{n}") for n in range(LINKS)]  # one-hot: `nodes`
        inside = [Signal(max=most + 1, name=f"inside{n}") for n in range(LINKS)]
        # `inside` from the next cycle on.
        after  = [Signal(max=most + 1, name=f"after{n}") for n in range(LINKS)]
        rest   = [Signal(max=most + 1, name=f"rest{n}") for n in range(LINKS)]  # to be waited for
        waits  = Signal(LINKS)    # `rest` is valid
        same   = Signal()
        self.comb += same.eq((asks == 3) & (nodes[0] == nodes[1]))
        for n in range(LINKS):
            other  = 1 - n
            at_one = Signal(name=f"at_one{n}")  # the source's last packet came by link 1
            self.comb += [
                bits[n].eq(1 << nodes[n]),
                at_one.eq((home & bits[n]) != 0),
                after[n].eq(inside[n] + self.enters[n] - self.left[n]),
                self.may[n].eq(asks[n] & ((at_one == n) | (waits[n] & (rest[n] == 0)))),
            ]
            if n == 1:
                self.comb += If(same, self.may[n].eq(0))
            self.sync += [
                inside[n].eq(after[n]),
                waits[n].eq(asks[n]),
                # A packet of the same source that enters meanwhile goes first, too.
                If(~waits[n] | (same & self.enters[other]),
                    rest[n].eq(after[other])
                ).Elif(self.left[other] & (rest[n] != 0),
                    rest[n].eq(rest[n] - 1)
                ),
            ]
        self.sync += home.eq(
            (home & ~Mux(self.enters[0], bits[0], 0)) | Mux(self.enters[1], bits[1], 0))
