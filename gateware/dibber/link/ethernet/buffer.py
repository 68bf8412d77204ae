"""The buffer of a received channel: what a frame brings is in it when the frame proved good."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import fragment_layout, stored_layout, word_layout

# Commit FIFO --------------------------------------------------------------------------------------

class CommitFIFO(LiteXModule):
    """A FIFO in block RAM. Its entries come out after they were committed.

    Parameters
    ----------
    depth : entries, a power of two
    keeps : entries may be kept before they are committed: `keep` and `forget`

    Attributes
    ----------
    sink     : Endpoint(stored_layout), in   `ready`: there is room
    commit   : Signal(), in    entries before this cycle's one may come out
    keep     : Signal(), in    entries before this cycle's one stay in spite of `rollback`
    rollback : Signal(), in    those that are neither committed nor kept are forgotten; `commit` and
               `keep` go first
    forget   : Signal(), in    those that are not committed are forgotten, kept ones too; `commit`
               goes first, and `keep` does not
    source   : Endpoint(stored_layout), out
    level    : Signal(), out   committed entries in the memory
    held     : Signal(), out   these, and the kept ones
    waits    : Signal(), out   a committed entry is in the memory or at `source`

    Cycles: 2 from commit to source; an entry a cycle.
    """
    def __init__(self, depth, keeps=False):
        assert depth & (depth - 1) == 0
        bits = log2_int(depth)
        self.sink     = sink   = stream.Endpoint(stored_layout())
        self.source   = source = stream.Endpoint(stored_layout())
        self.commit   = Signal()
        self.rollback = Signal()
        self.level    = Signal(bits + 1)
        self.waits    = Signal()

        # # #

        # Pointers have one bit more than addresses, so a full memory differs from an empty one.
        written   = Signal(bits + 1)
        committed = Signal(bits + 1)
        kept      = Signal(bits + 1) if keeps else committed
        consumed  = Signal(bits + 1)
        used      = Signal(bits + 1)
        reads     = Signal()
        fields    = [sink.data, sink.half, sink.bad, sink.first, sink.last]
        outputs   = [source.data, source.half, source.bad, source.first, source.last]
        storage   = Memory(68, depth, name="storage")
        write     = storage.get_port(write_capable=True)
        # The entry at `source` is no longer in the memory, so a new one may be written over it.
        read      = storage.get_port(has_re=True, mode=READ_FIRST)
        self.specials += storage, write, read
        self.comb += [
            used.eq(written - consumed),
            sink.ready.eq(~used[bits]),
            write.adr.eq(written[:bits]),
            write.dat_w.eq(Cat(*fields)),
            write.we.eq(sink.valid & sink.ready),
            self.level.eq(committed - consumed),
            reads.eq((self.level != 0) & (~source.valid | source.ready)),
            read.adr.eq(consumed[:bits]),
            read.re.eq(reads),
            Cat(*outputs).eq(read.dat_r),
            self.waits.eq(source.valid | (self.level != 0)),
        ]
        self.held = self.level
        if keeps:
            self.keep   = Signal()
            self.forget = Signal()
            self.held   = Signal(bits + 1)
            self.comb += self.held.eq(kept - consumed)
        self.sync += [
            If(write.we, written.eq(written + 1)),
            If(self.commit,
                committed.eq(written),
                *([kept.eq(written)] if keeps else []),
            ).Elif(self.forget if keeps else self.rollback,
                written.eq(committed),
                *([kept.eq(committed)] if keeps else []),
            ),
            *([
                If(~self.commit & ~self.forget,
                    If(self.keep, kept.eq(written)).Elif(self.rollback, written.eq(kept))
                ),
            ] if keeps else []),
            If(reads,
                consumed.eq(consumed + 1),
                source.valid.eq(1)
            ).Elif(source.ready,
                source.valid.eq(0)
            ),
        ]

# Channel ------------------------------------------------------------------------------------------

class ChannelReceiver(LiteXModule):
    """Fragments of one channel become entries of its packets, with no gap inside a packet.

    Each fragment has the position of its first unit in the channel. `expected` is the position
    behind the last fragment that was taken.

    ==============================  ===============================================================
    position                        the fragment
    ==============================  ===============================================================
    `expected`                      is taken
    behind it, by less than 2¹⁵     is taken. What lies between is lost, so a begun packet gets no
                                    more entries. If it does not start a packet, nothing is stored
    before it                       is dropped: it is late, or came a second time
    ==============================  ===============================================================

    If the last fragments of a channel are lost, no later one shows it, and their units would stay
    taken from the credit. So STATUS frames tell, by `told`, the position where the other end goes
    on. What lies between `expected` and this position is lost.

    A packet that gets no more entries has no last one. The reader sees the first entry of the next
    packet there. A frame that is bad, or that finds no room, changes nothing here: it is a gap when
    the next one comes.

    With `whole`, a packet comes out when all of it is here. So a packet that gets no more entries
    is forgotten, and nothing of it comes out. A fragment that would end a begun packet in this way
    does so when it starts, even if its frame proves bad.

    Parameters
    ----------
    depth : units in the buffer, a power of two
    whole : packets come out whole, or not at all. They have at most `depth` units

    Attributes
    ----------
    clear    : Signal(), in    the session has not begun: the next fragment is at position 0
    start    : Signal(), in    a fragment begins; `fragment` and `position` are valid
    fragment : Record(fragment_layout), in
    position : Signal(16), in
    unit     : Signal(), in    a unit of it, from the cycle after `start` on; `data` is valid
    data     : Signal(64), in
    end      : Signal(), in    it has ended, at the earliest a cycle after its last unit
    good     : Signal(), in    with `end`: the frame has no error
    told     : Signal(), in    `position` is that of the next unit that the other end will send; not
               in a cycle with `start`, `unit` or `end`
    source   : Endpoint(stored_layout), out
    waits    : Signal(), out   an entry is in the buffer
    credit   : Signal(16), out position up to which the other end may send: `expected` and the room
    level    : Signal(), out   units in the buffer
    taken, gap, late, no_room, short : Signal(), out   one cycle with `end`; `gap` also with `told`

    Cycles: 3 from `end` to `source`.
    """
    def __init__(self, depth, whole=False):
        self.clear    = Signal()
        self.start    = Signal()
        self.fragment = fragment = stream.Endpoint(fragment_layout())
        self.position = Signal(16)
        self.unit     = Signal()
        self.data     = Signal(64)
        self.end      = Signal()
        self.good     = Signal()
        self.told     = Signal()
        self.credit   = Signal(16, reset=depth)
        self.taken    = Signal()
        self.gap      = Signal()
        self.late     = Signal()
        self.no_room  = Signal()
        self.short    = Signal()

        # # #

        self.fifo   = fifo = CommitFIFO(depth, keeps=whole)
        self.source = fifo.source
        self.waits  = fifo.waits
        self.level  = fifo.level

        expected = Signal(16)
        begun    = Signal()    # the last entry that was committed has a packet's next one to come
        ahead    = Signal(16)
        active   = Signal()    # between `start` and `end`
        is_late  = Signal()
        is_gap   = Signal()
        keeps    = Signal()    # its units are stored
        failed   = Signal()    # one of them found no room
        at_first = Signal()    # no unit came yet
        left     = Signal(12)  # units to come
        behind   = Signal(16)  # position behind the fragment
        skips    = Signal()    # units in front of the told position are lost
        starts   = Signal()
        ends     = Signal()
        half     = Signal()
        bad      = Signal()
        stores = self.taken & keeps & ~self.clear
        self.comb += [
            ahead.eq(self.position - expected),
            fifo.sink.valid.eq(self.unit & active & keeps & ~failed & (left != 0)),
            fifo.sink.data.eq(self.data),
            fifo.sink.first.eq(at_first & starts),
            fifo.sink.last.eq((left == 1) & ends),
            fifo.sink.half.eq((left == 1) & half),
            fifo.sink.bad.eq((left == 1) & bad),
            self.late.eq(self.end & self.good & active & is_late & (left == 0)),
            self.no_room.eq(self.end & self.good & active & failed & (left == 0)),
            self.short.eq(self.end & self.good & active & (left != 0)),
            self.taken.eq(self.end & self.good & active & ~is_late & ~failed & (left == 0)),
            skips.eq(self.told & ~active & ~ahead[15] & (ahead != 0)),
            self.gap.eq((self.taken & is_gap) | skips),
            fifo.commit.eq(stores & ends if whole else stores),
            fifo.rollback.eq(self.start | self.end | self.clear),
        ]
        ends_begun = self.start & ~ahead[15] & (fragment.starts | (ahead != 0))
        if whole:
            self.comb += [
                fifo.keep.eq(stores),
                fifo.forget.eq(ends_begun | skips | self.clear),
            ]
            self.sync += If(ends_begun, begun.eq(0))
        self.sync += [
            # The fields of one cycle, so the credit never goes back.
            self.credit.eq(expected + depth - fifo.held),
            If(self.start,
                active.eq(1),
                is_late.eq(ahead[15]),
                is_gap.eq(ahead != 0),
                keeps.eq(~ahead[15] & (fragment.starts | (begun & (ahead == 0)))),
                failed.eq(0),
                at_first.eq(1),
                left.eq(fragment.units),
                behind.eq(self.position + fragment.units),
                starts.eq(fragment.starts),
                ends.eq(fragment.ends),
                half.eq(fragment.half),
                bad.eq(fragment.bad),
            ).Elif(self.unit & active & (left != 0),
                at_first.eq(0),
                left.eq(left - 1),
                If(fifo.sink.valid & ~fifo.sink.ready, failed.eq(1)),
            ),
            If(self.end, active.eq(0)),
            If(self.taken,
                expected.eq(behind),
                begun.eq(keeps & ~ends),
            ),
            If(skips,
                expected.eq(self.position),
                begun.eq(0),
            ),
            If(self.clear,
                active.eq(0),
                expected.eq(0),
                begun.eq(0),
                self.credit.eq(depth - fifo.level),
            ),
        ]

# Reader -------------------------------------------------------------------------------------------

class PacketReader(LiteXModule):
    """Entries of a channel become the words of its packets.

    A word is held until the next one shows how its packet goes on. A packet whose next entry is the
    first one of another packet ends as bad with the word that is held. So does a packet that is
    begun when the port is not UP and nothing waits in the buffer.

    Parameters
    ----------
    width : bits of a word, 32 or 64

    Attributes
    ----------
    sink   : Endpoint(stored_layout), in
    waits  : Signal(), in    an entry waits in the buffer, or at `sink`
    up     : Signal(), in
    source : Endpoint(word_layout(width)), out

    Cycles: 2, after the next word came; a word a cycle.
    """
    def __init__(self, width=32):
        self.sink   = sink   = stream.Endpoint(stored_layout())
        self.source = source = stream.Endpoint(word_layout(width))
        self.waits  = Signal()
        self.up     = Signal()

        # # #

        high   = Signal()    # with a width of 32: the next word is the high one of its entry
        first  = Signal()    # of the next word
        last   = Signal()
        holds  = Signal()
        held   = Signal(width)
        held_half  = Signal()  # with a width of 64
        held_first = Signal()
        held_last  = Signal()
        held_bad   = Signal()
        free   = Signal()    # the output register takes a word
        cut    = Signal()    # the held word ends its packet as bad
        goes   = Signal()    # the held word goes into the output register
        takes  = Signal()    # the next word becomes the held one
        self.comb += [
            first.eq(sink.first & ~high if width == 32 else sink.first),
            last.eq(sink.last & (high | sink.half) if width == 32 else sink.last),
            free.eq(~source.valid | source.ready),
            cut.eq(~held_last & Mux(sink.valid, first, ~self.up & ~self.waits)),
            goes.eq(free & holds & (held_last | cut | sink.valid)),
            takes.eq(sink.valid & (~holds | goes)),
            sink.ready.eq(takes & (high | sink.half) if width == 32 else takes),
        ]
        self.sync += [
            If(source.ready, source.valid.eq(0)),
            If(goes,
                source.valid.eq(1),
                source.data.eq(held),
                *([source.half.eq(held_half)] if width == 64 else []),
                source.first.eq(held_first),
                source.last.eq(held_last | cut),
                source.bad.eq((held_last & held_bad) | cut),
                holds.eq(0),
            ),
            If(takes,
                *([high.eq(~high & ~sink.half)] if width == 32 else [held_half.eq(sink.half)]),
                holds.eq(1),
                held.eq(Mux(high, sink.data[32:], sink.data[:32]) if width == 32 else sink.data),
                held_first.eq(first),
                held_last.eq(last),
                held_bad.eq(sink.bad),
            ),
        ]
