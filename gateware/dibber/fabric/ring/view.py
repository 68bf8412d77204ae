"""How a node of a pair of rings numbers the cards. docs/design/ring-pair.md."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.fabric.ring.words import ADDRESS_BITS

# Sums and differences of two places; a size is at most 16.
SUM_BITS = ADDRESS_BITS + 2

class RingView(LiteXModule):
    """Common numbers of the cards, whichever ring carries a packet.

    A card's common address is its address on ring 0. Ring 1 goes the other way from the same
    scrubber, so there it is size - address. In a folded ring a card has two addresses. They add up
    to 2*`last` + 1, where `last` is the last common address before the fold.

    Example: 4 cards, the cable between cards 1 and 2 is cut. The folded ring has 8 nodes. The cards
    0, 1, 2, 3 have the addresses 0, 1, 6, 7 in ring 0, and 3, 2, 5, 4 in ring 1. `last` is 1.

    Parameters
    ----------
    ring : 0 or 1

    Attributes
    ----------
    own, other : RingElection of this node, and of the other node of the card, in
    own_up, other_up : Signal(), in
    agrees  : Signal(), out   the node may be UP: the addresses fit those of the other node
    address : Signal(ADDRESS_BITS), out   common address of this card
    size    : Signal(5), out              cards
    folded  : Signal(), out
    last    : Signal(ADDRESS_BITS), out   in a folded ring
    card, place    : Signal(ADDRESS_BITS), in, out   common address to address on this ring
    source, sender : Signal(ADDRESS_BITS), in, out   address on this ring to common address

    Cycles: 0 from `card` to `place`; 1 from an election to the others.
    """
    def __init__(self, ring):
        self.agrees  = Signal()
        self.address = Signal(ADDRESS_BITS)
        self.size    = Signal(5)
        self.folded  = Signal()
        self.last    = Signal(ADDRESS_BITS)
        self.card    = Signal(ADDRESS_BITS)
        self.place   = Signal(ADDRESS_BITS)
        self.source  = Signal(ADDRESS_BITS)
        self.sender  = Signal(ADDRESS_BITS)
        self.ring    = ring
        self.total   = Signal(5)              # nodes of the ring
        self.sum     = Signal(ADDRESS_BITS)   # of a card's addresses in a folded ring

        # # #

        self.comb += [
            *self._convert(self.card, self.place, to_ring=True),
            *self._convert(self.source, self.sender, to_ring=False),
        ]

    def _convert(self, value, result, to_ring):
        """Statements. The common address and that on ring 0 differ in a folded ring only."""
        total, cards = self.total, self.size
        zero, turned, unfolded = Signal(SUM_BITS), Signal(SUM_BITS), Signal(SUM_BITS)
        def turn(values, place):
            """Between the addresses of both rings."""
            return If(self.folded,
                values.eq(Mux(self.sum >= place, self.sum - place, self.sum + total - place))
            ).Else(
                values.eq(Mux(place == 0, 0, total - place))
            )
        if to_ring:
            spread = [zero.eq(value), If(self.folded & (value > self.last), zero.eq(value + cards))]
            if self.ring == 0:
                return [*spread, result.eq(zero)]
            return [*spread, turn(turned, zero), result.eq(turned)]
        first = [turned.eq(value)] if self.ring == 0 else [turn(turned, value)]
        return [
            *first,
            unfolded.eq(turned),
            If(self.folded & (turned > self.last), unfolded.eq(turned - cards)),
            result.eq(unfolded),
        ]

    def connect(self, own, other, own_up, other_view, other_up):
        """Statements in self.comb and self.sync; after both views are made.

        own, other : RingElection
        """
        sums   = Signal(SUM_BITS)
        joint  = Signal(SUM_BITS)  # the sum, less than the size
        zero   = Signal(ADDRESS_BITS)
        spread = Signal(SUM_BITS)
        sound  = Signal()          # a folded ring's numbers fit
        known  = Signal()
        same   = Signal()          # the other ring has the same numbers
        fits   = Signal()
        half   = own.size[1:]
        self.comb += [
            sums.eq(own.address + other.address),
            joint.eq(Mux(sums >= own.size, sums - own.size, sums)),
            zero.eq((own if self.ring == 0 else other).address),
            spread.eq(zero - half),
            sound.eq(other.known & other.marked & (own.size == other.size) & ~own.size[0] &
                (own.size >= 4) & joint[0]),
            same.eq((self.address == other_view.address) & (self.size == other_view.size)),
            # Ring 0 has the right of way.
            If(self.folded,
                fits.eq(sound)
            ).Else(
                fits.eq(~other_up | (~other_view.folded & (same if self.ring else 1)))
            ),
            self.agrees.eq(known & fits),
        ]
        self.sync += [
            # What is below is a cycle old.
            known.eq(own.known),
            self.total.eq(own.size),
            self.folded.eq(own.marked),
            self.sum.eq(joint),
            self.last.eq(joint[1:]),
            If(own.marked,
                self.size.eq(half),
                self.address.eq(Mux(zero <= joint[1:], zero, spread))
            ).Else(
                self.size.eq(own.size),
                self.address.eq(
                    own.address if self.ring == 0 else
                    Mux(own.address == 0, 0, own.size - own.address))
            ),
        ]
