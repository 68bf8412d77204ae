"""One channel to send: words become fragments, which wait for credit."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.layouts import fragment_layout, word_layout

# Fragments of a channel that may wait. EXPRESS and CONTROL have one for each packet.
FRAGMENTS = 16

# Packer -------------------------------------------------------------------------------------------

class Packer(LiteXModule):
    """Words of packets become fragments: units in a FIFO, and what the header says of them.

    A fragment ends with its packet, or when it has `limit` units and another word comes. A word
    with `first` inside a packet shows that its sender was reset: the old packet ends as bad. If the
    link is not UP, all that waits is forgotten, and so is the rest of a begun packet as it comes.

    Parameters
    ----------
    limit : units of a fragment, at most; a fragment has at least one
    depth : units that may wait, at least `limit`
    targets : bits of `target`, one for each place that a packet may go to; 0: there is one place
    width : bits of a word, 32 or 64

    Attributes
    ----------
    sink      : Endpoint(word_layout(width)), in
    target    : Signal(targets), in   with the first word: one-hot. `fragments` shows it
    abandon   : Signal(), in    end the begun packet as bad, and take no word. With `targets`, its
                last fragment goes nowhere
    open      : Signal(), out   a packet has begun
    up        : Signal(), in
    busy      : Signal(), in    a fragment is being sent; its units are not forgotten
    units     : Endpoint([data]), out
    fragments : Endpoint(fragment_layout), out   all units of a fragment are in the FIFO before it
    stale     : Signal(), out   what `fragments` shows is being forgotten

    Cycles: a word a cycle; one more for a fragment that does not end its packet.
    """
    def __init__(self, limit, depth, targets=0, width=32):
        assert 2 <= limit <= depth
        self.sink = sink = stream.Endpoint(word_layout(width))
        self.up   = Signal()
        self.busy = Signal()
        self.abandon = abandon = Signal()

        # # #

        self.unit_fifo = unit_fifo = ResetInserter()(
            stream.SyncFIFO([("data", 64)], depth, buffered=True))
        self.fragment_fifo = fragment_fifo = ResetInserter()(
            stream.SyncFIFO(fragment_layout(targets), FRAGMENTS, buffered=False))
        self.units     = unit_fifo.source
        self.fragments = fragment_fifo.source

        self.open = open_ = Signal()
        fresh  = Signal()    # none of its fragments has ended
        low    = Signal(32)  # with a width of 32: first word of the next unit
        has_low = Signal()   # always 0 with a width of 64
        count  = Signal(12)  # units of this fragment in the FIFO
        self.stale = stale = Signal()
        works  = Signal()
        cut    = Signal()    # the packet ends as bad, because another one begins
        full   = Signal()    # the fragment ends here, the packet goes on
        takes  = Signal()    # a word of a packet is taken
        pushes = Signal()    # a unit is complete
        closes = Signal()    # a fragment is complete
        fragment = fragment_fifo.sink
        ends_early = Signal()
        if targets:
            self.target = Signal(targets)
            present     = Signal(targets)  # of the begun packet
            self.sync  += If(takes & sink.first, present.eq(self.target))
            self.comb  += fragment.target.eq(Mux(abandon, 0, Mux(open_, present, self.target)))
        self.comb += [
            ends_early.eq(sink.first | abandon),
            works.eq(self.up & ~stale & (sink.valid | abandon) & unit_fifo.sink.ready &
                fragment.ready),
            cut.eq(works & open_ & ends_early),
            full.eq(works & open_ & ~ends_early & (count == limit)),
            takes.eq(works & ~abandon & ~cut & ~full & (open_ | sink.first)),
            pushes.eq((takes & (has_low | sink.last)) | (cut & has_low) if width == 32 else takes),
            # A fragment has at least one unit. If all units of the cut packet are in fragments, the
            # other end ends it as bad when the next packet begins.
            closes.eq((takes & sink.last) | (cut & (has_low | (count != 0))) | full),
            # A word that belongs to no packet is the rest of one that was lost.
            sink.ready.eq(takes | (~open_ & ~sink.first & ~abandon)),
            unit_fifo.sink.valid.eq(pushes),
            unit_fifo.sink.data.eq(
                Mux(has_low, Cat(low, sink.data), sink.data) if width == 32 else sink.data),
            fragment.valid.eq(closes),
            fragment.units.eq(count + pushes),
            fragment.half.eq(pushes & (cut | ~has_low) if width == 32 else pushes & sink.half),
            fragment.starts.eq(fresh | ~open_),
            fragment.ends.eq(~full),
            fragment.bad.eq(cut | (takes & sink.bad)),
            unit_fifo.reset.eq(stale & ~self.busy),
            fragment_fifo.reset.eq(stale & ~self.busy),
        ]
        self.sync += [
            If(takes,
                open_.eq(~sink.last),
                If(sink.first, fresh.eq(1)),
                *([
                    has_low.eq(~has_low & ~sink.last),
                    If(~has_low, low.eq(sink.data)),
                ] if width == 32 else []),
            ),
            If(pushes, count.eq(count + 1)),
            If(closes,
                count.eq(0),
                fresh.eq(0),
            ),
            If(cut,
                open_.eq(0),
                *([has_low.eq(0)] if width == 32 else []),
            ),
            If(stale & ~self.busy, stale.eq(0)),
            If(~self.up,
                stale.eq(1),
                open_.eq(0),
                fresh.eq(0),
                *([has_low.eq(0)] if width == 32 else []),
                count.eq(0),
            ),
        ]

# Credit -------------------------------------------------------------------------------------------

class Credit(LiteXModule):
    """How far a channel may send, and how far it has sent, in units since the session began.

    The other end gives credit as a position, which grows. So a lost frame of credits costs nothing
    but time. An older position, or one that no buffer can stand for, is not believed.

    Attributes
    ----------
    clear    : Signal(), in       the session has not begun
    came     : Signal(), in       `offered` came from the other end
    offered  : Signal(16), in     position up to which the other end has room
    sends    : Signal(), in       a fragment of `units` units is sent
    units    : Signal(12), in     of the next fragment
    position : Signal(16), out    of the next unit
    allowed  : Signal(), out      the next fragment may be sent; valid if neither `sends` nor a new
               `units` came in the last two cycles
    """
    def __init__(self):
        self.clear    = Signal()
        self.came     = Signal()
        self.offered  = Signal(16)
        self.sends    = Signal()
        self.units    = Signal(12)
        self.position = position = Signal(16)
        self.allowed  = Signal()

        # # #

        limit   = Signal(16)
        left    = Signal(16)  # units that may be sent
        newer   = Signal(16)
        beyond  = Signal(16)
        judged  = Signal()
        value   = Signal(16)
        self.comb += [
            newer.eq(value - limit),
            beyond.eq(value - position),
            left.eq(limit - position),
        ]
        self.sync += [
            judged.eq(self.came),
            value.eq(self.offered),
            If(judged & ~newer[15] & (beyond <= C.ETHERNET_CREDIT_MAX), limit.eq(value)),
            If(self.sends, position.eq(position + self.units)),
            self.allowed.eq(self.units <= left),
            If(self.clear,
                judged.eq(0),
                limit.eq(0),
                position.eq(0),
                self.allowed.eq(0),
            ),
        ]
