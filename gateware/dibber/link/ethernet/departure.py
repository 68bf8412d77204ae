"""The fragments of a channel on their way out, and the packets of several peers on their way in."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.one_hot import lowest_one, value_of
from dibber.layouts import fragment_layout, stored_layout

# A fragment waits so many periods of STATUS frames for credit: 8 ms at 156.25 MHz. This is the limit
# that a switch has for a packet: SWITCH register LIMIT.
WAIT_PERIODS = 320

# Departure ----------------------------------------------------------------------------------------

class Departure(LiteXModule):
    """The next fragment of a channel waits for its peer's credit, returns to this card, or is
    dropped because its peer is not UP.

    A fragment that waits `patience` ticks is dropped, with the rest of its packet. After that, each
    packet to this peer is dropped at once if it has no credit, until a fragment to this peer is
    sent. So a peer that takes nothing costs the others of its channel one wait, not one for each
    packet.

    Parameters
    ----------
    peers    : their number
    patience : ticks that a fragment waits for credit

    Attributes
    ----------
    fragments : Endpoint(fragment_layout(peers + 1)), in   of a Packer
    units     : Endpoint([data]), in         of the same
    ups     : Signal(peers), in
    busy    : Signal(), in   a frame of this channel is being sent
    wants   : Signal(), in   the frame's builder takes a unit
    sends   : Signal(), in   the fragment goes into a frame
    waits   : Signal(), out  it may go if there is credit. It was there in the cycle before
    allowed : Signal(), in   with `waits`: its peer gave the credit for it
    tick    : Signal(), in   pulse, by which waits are counted
    refused : Signal(), out  one cycle for each packet that is dropped for want of credit
    loop    : Endpoint(stored_layout), out   a packet to this card. It has one fragment

    Cycles: 0; a dropped or returned fragment takes a cycle, and one for each unit.
    """
    def __init__(self, peers, patience):
        self.fragments = head  = stream.Endpoint(fragment_layout(peers + 1))
        self.units     = units = stream.Endpoint([("data", 64)])
        self.ups   = Signal(peers)
        self.busy  = Signal()
        self.wants = Signal()
        self.sends = Signal()
        self.waits = Signal()
        self.allowed = Signal()
        self.tick    = Signal()
        self.refused = refused = Signal()
        self.loop  = loop = stream.Endpoint(stored_layout())

        # # #

        settled  = Signal()
        alive    = Signal()
        diverts  = Signal()    # the fragment is dropped, or returns
        moving   = Signal()    # its units do so
        returns  = Signal()
        left     = Signal(12)  # units to come
        at_first = Signal()
        half     = Signal()
        bad      = Signal()
        drops    = Signal()       # the last fragment was dropped, and did not end its packet
        passes   = Signal()
        lacks    = Signal()       # it waits for credit
        age      = Signal(max=patience + 1)  # ticks since it waits
        shut     = Signal(peers)  # peers for whose credit a fragment waited too long
        self.comb += [
            alive.eq((head.target[:peers] & self.ups) != 0),
            passes.eq(alive & ~(drops & ~head.starts)),
            self.waits.eq(~moving & head.valid & passes & settled),
            lacks.eq(self.waits & ~self.allowed & ~self.busy & ~self.sends),
            refused.eq(lacks & ((age == patience) | ((head.target[:peers] & shut) != 0))),
            diverts.eq(~moving & ~self.busy & head.valid & (~passes | refused)),
            head.ready.eq(self.sends | diverts),
            loop.valid.eq(moving & returns & units.valid),
            loop.data.eq(units.data),
            loop.first.eq(at_first),
            loop.last.eq(left == 1),
            loop.half.eq((left == 1) & half),
            loop.bad.eq((left == 1) & bad),
            units.ready.eq(Mux(moving, ~returns | loop.ready, self.busy & self.wants)),
        ]
        self.sync += [
            settled.eq(head.valid & ~head.ready & ~moving),
            If(~lacks | refused,
                age.eq(0)
            ).Elif(self.tick,
                age.eq(age + 1)
            ),
            If(self.sends,
                drops.eq(0),
                shut.eq(shut & self.ups & ~head.target[:peers])
            ).Elif(refused,
                shut.eq((shut & self.ups) | head.target[:peers])
            ).Else(
                shut.eq(shut & self.ups)
            ),
            If(diverts, drops.eq(~head.ends)),
            If(diverts,
                moving.eq(1),
                left.eq(head.units),
                at_first.eq(1),
                half.eq(head.half),
                bad.eq(head.bad),
                returns.eq(head.target[peers] & head.starts & head.ends),
            ),
            If(moving & units.valid & units.ready,
                at_first.eq(0),
                left.eq(left - 1),
                If(left == 1, moving.eq(0)),
            ),
        ]

# Merge --------------------------------------------------------------------------------------------

class PacketMerge(LiteXModule):
    """One packet of each source in turn. Each source has a packet's entries without a gap.

    Attributes
    ----------
    sinks  : list of Endpoint(stored_layout), in   `first` and `last` enclose a packet
    source : Endpoint(stored_layout), out

    Cycles: 0.
    """
    def __init__(self, count):
        self.sinks  = sinks  = [stream.Endpoint(stored_layout()) for _ in range(count)]
        self.source = source = stream.Endpoint(stored_layout())

        # # #

        valid  = Signal(count)
        behind = Signal(count)  # sources behind the last one that had a turn
        turn   = Signal(count)
        begun  = Signal(count)  # one-hot: the source whose packet is under way
        grant  = Signal(count)
        self.comb += [
            valid.eq(Cat(*[sink.valid for sink in sinks])),
            turn.eq(valid & behind),
            grant.eq(Mux(begun != 0, begun,
                Mux(turn != 0, lowest_one(turn), lowest_one(valid)))),
            source.valid.eq((grant & valid) != 0),
            *[getattr(source, name).eq(value_of(grant, [getattr(sink, name) for sink in sinks]))
                for name in ["data", "half", "bad", "first", "last"]],
            *[sink.ready.eq(grant[n] & source.ready) for n, sink in enumerate(sinks)],
        ]
        self.sync += If(source.valid,
            begun.eq(grant),
            If(source.ready & source.last,
                begun.eq(0),
                *[If(grant[n], behind.eq((1 << count) - (2 << n))) for n in range(count)],
            ),
        )
