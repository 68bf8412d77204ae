"""Which ring of a pair carries a packet. docs/design/ring-pair.md."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import add, or_

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.one_hot import lowest_one
from dibber.fabric.ring.send import SLOTS, nodes_onward
from dibber.fabric.ring.words import ADDRESS_BITS, LOST
from dibber.layouts import word_layout
from dibber.packet.route import TURN_BITS

# Slots --------------------------------------------------------------------------------------------

def way_slots_layout():
    """The send buffer of one channel in one ring.

    open  : slots whose packet has no end yet
    turn* : of each slot, how many cards onward its target is
    begun : it has words of a packet, and not its last one
    """
    return [("open", SLOTS), *[(f"turn{n}", TURN_BITS) for n in range(SLOTS)], ("begun", 1)]

# A Ring That Is Cut -------------------------------------------------------------------------------

class RingRest(LiteXModule):
    """Packets that may still be on their way in a ring that has left UP.

    Such a packet has no end that is known. Its target may accept it until it has come through the
    bypass FIFO of each node.

    Parameters
    ----------
    channels   : of the port
    word_cycles: a power of two; so many cycles for each node and one more

    Attributes
    ----------
    up       : Signal(), in
    size     : Signal(5), in     nodes of the ring, while `up`
    event    : Record(valid, channel, status, slot), in   as RingNumbers
    other_up : Signal(), in      the other ring carries packets
    gone     : list of Signal(SLOTS), out   by channel: slots whose packet may be on its way
    flush    : Signal(), out     what has not left is dropped
    """
    def __init__(self, channels, word_cycles):
        self.up       = Signal()
        self.size     = Signal(5)
        self.event    = event = Record([("valid", 1), ("channel", 2), ("status", 3), ("slot", 2)])
        self.other_up = Signal()
        self.gone     = [Signal(SLOTS, name=f"gone{n}") for n in range(channels)]
        self.flush    = Signal()

        # # #

        bits   = log2_int(word_cycles)
        cycles = Signal(bits + 5)
        limit  = Signal(5)  # one more than the nodes of the ring when it was UP
        over   = Signal(reset=1)
        self.comb += self.flush.eq(over & ~self.up & self.other_up)
        self.sync += [
            If(self.up,
                limit.eq(self.size + 1),
                cycles.eq(0),
                over.eq(0)
            ).Elif(~over,
                cycles.eq(cycles + 1),
                over.eq(cycles[bits:] == limit)
            ),
        ]
        for n, gone in enumerate(self.gone):
            self.sync += [
                If(event.valid & (event.status == LOST) & (event.channel == n) & ~self.up,
                    gone.eq(gone | (1 << event.slot))
                ),
                If(self.up | over, gone.eq(0)),
            ]

# Ways ---------------------------------------------------------------------------------------------

class RingWay(LiteXModule):
    """Give each packet to one of two rings.

    A flow is a target and a channel. While a packet of a flow is open in one ring, none of it goes
    to the other.

    Parameters
    ----------
    channels : of the port

    Attributes
    ----------
    sinks   : list of Endpoint(word_layout), in
    sources : list of 2 lists of Endpoint(word_layout), out   by ring and channel
    slots   : list of 2 lists of Record(way_slots_layout), in
    gone    : list of 2 lists of Signal(SLOTS), in   as RingRest
    ups     : Signal(2), in   rings that carry packets
    address, size, folded, last : Signal, in   as RingView
    moves   : Signal(), out   pulse: a packet takes another ring than the last packet of its channel
    waits   : Signal(channels), out   a packet waits until its flow may change its ring

    Cycles: 1 from a packet's first word to its offer at a source; 0 for other words. One of the
    channels decides in each cycle.
    """
    def __init__(self, channels):
        self.sinks   = sinks = [stream.Endpoint(word_layout()) for _ in range(channels)]
        self.sources = sources = [
            [stream.Endpoint(word_layout()) for _ in range(channels)] for _ in range(2)]
        self.slots   = slots = [
            [Record(way_slots_layout(), name=f"slots{ring}_{n}") for n in range(channels)]
            for ring in range(2)]
        self.gone    = gone = [
            [Signal(SLOTS, name=f"gone{ring}_{n}") for n in range(channels)] for ring in range(2)]
        self.ups     = ups = Signal(2)
        self.address = Signal(ADDRESS_BITS)
        self.size    = Signal(5)
        self.folded  = Signal()
        self.last    = Signal(ADDRESS_BITS)
        self.moves   = Signal()
        self.waits   = Signal(channels)

        # # #

        inside = Signal(channels)  # the packet's first word was taken
        chosen = Signal(channels)  # its ring is known, its first word was not taken
        way    = Signal(channels)
        self.inside, self.chosen, self.way = inside, chosen, way

        # Load -------------------------------------------------------------------------------------
        enters = [Signal(channels, name=f"enters{ring}") for ring in range(2)]
        loads  = [Signal(max=channels*(SLOTS + 1) + 1, name=f"load{ring}") for ring in range(2)]
        for ring in range(2):
            opens = [slots[ring][n].open[slot] for n in range(channels) for slot in range(SLOTS)]
            mine  = [enters[ring][n] for n in range(channels)]
            self.comb += [
                enters[ring].eq((inside | chosen) & (way if ring else ~way)),
                loads[ring].eq(reduce(add, opens + mine)),
            ]

        # Choice -----------------------------------------------------------------------------------
        asks    = Signal(channels)
        decides = Signal(channels)  # one-hot
        moved   = Signal(channels)
        self.comb += [
            asks.eq(Cat(*[
                sink.valid & sink.first & ~inside[n] & ~chosen[n]
                for n, sink in enumerate(sinks)])),
            self.moves.eq((decides & moved) != 0),
        ]
        may = Signal(channels)
        self.comb += [
            may.eq(0),
            decides.eq(lowest_one(may)),
        ]
        for n, sink in enumerate(sinks):
            turn     = Signal(TURN_BITS)  # cards from this one to the target, as ring 0 goes
            sums     = Signal(6)
            target   = Signal(6)
            ahead    = Signal(6)
            behind   = Signal(6)
            place    = Signal(6)  # of the target in the row of cards between the ends of a fold
            here     = Signal(6)  # of this card
            shorter  = Signal(2)  # one-hot; 0: both ways are equal
            bound    = Signal(2)
            rest     = Signal(2)  # the ring has other packets of this card
            leaves   = Signal(2)  # a bound flow wants to leave this ring
            best     = Signal()
            usable   = Signal()
            row      = lambda address: Mux(address <= self.last, address + self.size, address)
            to_nodes, nodes = nodes_onward(sink.data[:TURN_BITS], self.size)
            self.comb += [
                *to_nodes,
                turn.eq(Mux(sink.prefix == 0, 1, nodes)),
                ahead.eq(turn),
                sums.eq(self.address + turn),
                target.eq(Mux(sums >= self.size, sums - self.size, sums)),
                behind.eq(self.size - ahead),
                place.eq(row(target)),
                here.eq(row(self.address)),
                If(self.folded,
                    shorter.eq(Mux(place < here, 0b10, 0b01))
                ).Else(
                    shorter.eq(Cat(ahead < behind, behind < ahead))
                ),
            ]
            for ring in range(2):
                record = slots[ring][n]
                same   = [getattr(record, f"turn{slot}") == turn for slot in range(SLOTS)]
                others = loads[ring] != reduce(add, [
                    record.open[slot] & same[slot] for slot in range(SLOTS)])
                self.comb += [
                    bound[ring].eq(reduce(or_, [
                        (record.open[slot] | gone[ring][n][slot]) & same[slot]
                        for slot in range(SLOTS)])),
                    rest[ring].eq(others),
                    leaves[ring].eq(ups[1 - ring] & (shorter[1 - ring] |
                        ((shorter == 0) & (loads[1 - ring] == 0) & rest[ring]))),
                ]
            self.comb += [
                best.eq(shorter[1] |
                    (~shorter[0] & ((loads[1] < loads[0]) | ((loads[1] == loads[0]) & (n & 1))))),
                usable.eq(ups != 0),
                If(bound[0],
                    may[n].eq(asks[n] & ups[0] & ~leaves[0])
                ).Elif(bound[1],
                    may[n].eq(asks[n] & ups[1] & ~leaves[1])
                ).Else(
                    may[n].eq(asks[n] & usable)
                ),
                self.waits[n].eq(asks[n] & ((bound & leaves) != 0)),
            ]
            choice = Signal()
            self.comb += [
                choice.eq(Mux(Mux(best, ups[1], ups[0]), best, ~best)),
                If(bound[0], choice.eq(0)).Elif(bound[1], choice.eq(1)),
                moved[n].eq(choice != way[n]),
            ]

            # The Packet ---------------------------------------------------------------------------
            offers = Signal()  # the sink's word goes to the ring
            cuts   = Signal()  # a packet begins inside a packet: its ring ends the old part
            ready  = Signal()
            begun  = Signal()
            self.comb += [
                offers.eq(Mux(sink.first, chosen[n], inside[n])),
                cuts.eq(sink.valid & sink.first & inside[n]),
                ready.eq(Mux(way[n], sources[1][n].ready, sources[0][n].ready)),
                begun.eq(Mux(way[n], slots[1][n].begun, slots[0][n].begun)),
                # A word outside a packet is dropped.
                sink.ready.eq((offers & ready) | (~sink.first & ~inside[n])),
            ]
            for ring in range(2):
                source = sources[ring][n]
                self.comb += [
                    sink.connect(source, omit={"valid", "ready"}),
                    source.valid.eq(sink.valid & (way[n] == ring) & (offers | (cuts & begun))),
                ]
            self.sync += [
                If(decides[n],
                    chosen[n].eq(1),
                    way[n].eq(choice),
                ),
                If(chosen[n] & (sink.ready | ~Mux(way[n], ups[1], ups[0])), chosen[n].eq(0)),
                If(sink.valid & sink.ready & offers, inside[n].eq(~sink.last)),
                If(cuts, inside[n].eq(0)),
            ]
