"""Lines and their CRCs become rows of the bonded link; see docs/design/bonded-link.md."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import line_layout

WORDS = 8   # of a row: 256 bits
PIECE = 9   # words of a line and its CRC
PLACE = 16  # words that are held: 7 that wait for a row, and a piece

def sealed_line_layout():
    """A line of a packet with the CRC behind it, as LineCRC gives it.

    A line may have no words, to end a packet. `prefix`: the number of prefix words, valid on the
    first line.
    """
    return stream.EndpointDescription(
        line_layout(32*WORDS) + [("crc", 32)], [("prefix", 3)])

class RowPacker(LiteXModule):
    """Join a packet's words without gaps, the CRC behind each line with `seal`, and cut them into
    rows.

    A row has 8 words, or 7 behind a control word in place 0. The next layer says by `front` that it
    puts a control word there: START or RESUME. The last row always has one, END if not another, so
    it has up to 7 words. A packet whose words end with a full row has an empty last row.

    Example: 8 words, the first row with START: a row of START and words 0 to 6, then a row of END
    and word 7.

    Attributes
    ----------
    sink   : Endpoint(sealed_line_layout()), in
    clear  : Signal(), in   drop what is held; `sink` is not taken
    front  : Signal(), in   the row at `source` has a control word in place 0; may change while the
             row waits
    source : Endpoint([("data", 256), ("words", 4), ("bad", 1)], [("prefix", 3)]), out   `words` of
             the packet in this row, from place 0 on, or from place 1 on with `front` or `last`; the
             other places are 0. `bad` on `last`; `prefix` as that of the packet's first line

    Cycles: 1; a row a cycle, and a line a cycle while rows leave. The first line of a packet may
    come in the cycle in which the last row of the packet before it leaves.
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(sealed_line_layout())
        self.source = source = stream.Endpoint(stream.EndpointDescription(
            [("data", 32*WORDS), ("words", bits_for(WORDS)), ("bad", 1)], [("prefix", 3)]))
        self.front  = Signal()
        self.clear  = Signal()

        # # #

        held   = [Signal(32, name=f"held_{n}") for n in range(PLACE)]
        level  = Signal(max=PLACE + 1)  # words that are held
        final  = Signal()               # the packet's last word is among them
        begun  = Signal()               # a row of this packet left
        leaves = Signal(max=WORDS + 1)  # words of the row, if it is taken now
        kept   = Signal(max=PLACE + 1)  # words that stay
        bad    = Signal()               # the packet ends as bad
        prefix = Signal(3)
        taken  = Signal()
        shown  = Signal()               # place 0 is for a control word

        # Rows -------------------------------------------------------------------------------------
        self.comb += [
            source.last.eq(final & (level < WORDS)),
            source.first.eq(~begun),
            source.bad.eq(source.last & bad),
            source.prefix.eq(prefix),
            shown.eq(self.front | source.last),
            source.valid.eq(final | (level >= WORDS) | (self.front & (level == WORDS - 1))),
            If(source.last,
                source.words.eq(level)
            ).Elif(self.front,
                source.words.eq(WORDS - 1)
            ).Else(
                source.words.eq(WORDS)
            ),
            taken.eq(source.valid & source.ready),
            If(taken, leaves.eq(source.words)),
            kept.eq(level - leaves),
            *[source.data[32*n:32*(n + 1)].eq(Mux(shown,
                Mux(source.words >= n, held[n - 1], 0) if n else 0, held[n]))
            for n in range(WORDS)],
        ]

        # Pieces -----------------------------------------------------------------------------------
        piece = [Signal(32, name=f"piece_{n}") for n in range(PIECE)]
        count = Signal(max=PIECE + 1)
        loads = Signal()
        self.comb += [
            *[word.eq(Mux(sink.seal & (sink.words == n), sink.crc,
                sink.data[32*n:32*(n + 1)] if n < WORDS else 0))
            for n, word in enumerate(piece)],
            count.eq(sink.words + sink.seal),
            sink.ready.eq((kept < WORDS) & (~final | (taken & source.last)) & ~self.clear),
            loads.eq(sink.valid & sink.ready),
        ]

        # What stays moves down by 0, 7 or 8 words, and the piece goes behind it.
        at = [Signal(name=f"at_{n}") for n in range(WORDS)]
        for n, is_at in enumerate(at):
            self.comb += is_at.eq(kept == n)
        for n, word in enumerate(held):
            stays = Mux(taken,
                Mux(shown, held[n + WORDS - 1] if n + WORDS - 1 < PLACE else 0,
                    held[n + WORDS] if n + WORDS < PLACE else 0), word)
            comes = reduce(or_, [
                Mux(at[place], piece[n - place], 0)
                for place in range(WORDS) if 0 <= n - place < PIECE])
            self.sync += If(loads & (kept <= n), word.eq(comes)).Else(word.eq(stays))
        self.sync += [
            level.eq(kept),
            If(taken, begun.eq(~source.last), If(source.last, final.eq(0))),
            If(loads,
                level.eq(kept + count),
                final.eq(sink.last),
                bad.eq(sink.bad),
                If(sink.first, prefix.eq(sink.prefix))
            ),
            If(self.clear,
                level.eq(0),
                final.eq(0),
                begun.eq(0)
            ),
        ]
