"""Rows of the bonded link become lines whose CRCs are compared; see docs/design/bonded-link.md."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.layouts import chunk_layout, line_layout
from dibber.packet.header import field_of, flag, header_word
from dibber.packet.line_crc import LineCRC

WORDS = 8          # of a line and of a row: 256 bits
PIECE = WORDS + 1  # words of a line and its CRC
PLACE = PIECE + WORDS  # words that are held: a piece whose successor is awaited, and a chunk

HEADER, PAYLOAD, BEYOND = range(3)

# Layouts ------------------------------------------------------------------------------------------

def unpacked_layout():
    """A line of a packet with its `kind`: HEADER, PAYLOAD, or BEYOND what the header promised.

    words : words of the packet in it, from the low end on; the places above them are 0
    seal  : header or block ends here; `crc` is the CRC that came behind it
    final : with `seal`: the packet should end here
    cut   : the packet ends before the line, or its CRC, is whole. Such a line is the `last` one

    Kinds, `seal` and `final` are right if the header is.
    """
    return line_layout(32*WORDS) + [("kind", 2), ("final", 1), ("cut", 1), ("crc", 32)]

def inspected_line_layout():
    """As unpacked_layout, but `match` in place of `crc`: with `seal` and without `cut`, the CRC is
    right.
    """
    return line_layout(32*WORDS) + [("kind", 2), ("final", 1), ("cut", 1), ("match", 1)]

# Unpacker -----------------------------------------------------------------------------------------

class RowUnpacker(LiteXModule):
    """Undo RowPacker: take the CRCs out and give the lines as the packet's sender had them.

    Header and blocks begin at the low end of a line. How long they are stands in the header. Its
    first line tells its own length: 6 words without an extension, else 8. A line leaves when the
    word behind it has come, or the packet's end, because only then it is known whether the line is
    the last one.

    A chunk without `first` at the start of a packet belongs to a packet whose start was lost in a
    reset; it is skipped.

    Example: a header of 6 words, its CRC and 8 words of payload with their CRC come as chunks of 7,
    8 and 1 words. Lines: 6 words HEADER with `seal`, then 8 words PAYLOAD with `seal`, `final` and
    `last`.

    Attributes
    ----------
    sink   : Endpoint(chunk_layout()), in
    source : Endpoint(unpacked_layout()), out

    Cycles: 1; a chunk a cycle, and a line a cycle. The last chunk of a packet is followed by the
    next packet's first one in the cycle in which its last line leaves.
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(chunk_layout())
        self.source = source = stream.Endpoint(unpacked_layout())

        # # #

        held      = Signal(32*PLACE)       # the words above `level` are 0
        level     = Signal(max=PLACE + 1)
        final     = Signal()               # the packet's last word is among them
        bad       = Signal()               # with `final`: it ends as bad
        in_packet = Signal()               # the packet's first chunk was taken
        words     = [held[32*n:32*(n + 1)] for n in range(PLACE)]
        taken     = Signal()

        # The line ---------------------------------------------------------------------------------
        kind    = Signal(2)
        first   = Signal(reset=1)        # the next line is the packet's first one
        planned = Signal(max=WORDS + 1)  # words of any line but the first
        seals   = Signal()               # likewise: its part ends with it
        want    = Signal(max=WORDS + 1)
        seal    = Signal()
        piece   = Signal(max=PIECE + 1)  # words that the line takes along, if it is whole
        plain   = Signal()               # the header has no extension
        levels  = field_of(words[header_word("levels")], "levels")[:log2_int(2*C.LIST)]
        notice  = flag(field_of(words[header_word("flags")], "flags"), "NOTICE")
        self.comb += [
            plain.eq((levels == 0) & ~notice),
            If(first,
                want.eq(Mux(plain, C.HEADER_WORDS, WORDS)),
                seal.eq(plain)
            ).Else(
                want.eq(planned),
                seal.eq(seals)
            ),
            piece.eq(want + seal),
            source.valid.eq(final | (level > piece)),
            source.first.eq(first),
            source.last.eq(final & (level <= piece)),
            source.data.eq(held[:32*WORDS]),
            source.words.eq(Mux(level < want, level, want)),
            source.kind.eq(kind),
            source.seal.eq(seal),
            source.cut.eq((kind != BEYOND) & (level < piece)),
            source.bad.eq(bad),
            Case(want, {n: source.crc.eq(words[n]) for n in range(1, WORDS + 1)}),
            # Where the CRC stands, the packet has no word of this line.
            If(seal,
                Case(want, {n: source.data[32*n:].eq(0) for n in range(1, WORDS)})
            ),
            taken.eq(source.valid & source.ready),
        ]

        # The next line ----------------------------------------------------------------------------
        # `left` counts words of the present part that come behind this line.
        extension    = Signal(max=2 + 3*C.LEVELS + 3 + 1)
        left         = Signal(max=C.BLOCK_BYTES//4 + 1)
        payload_left = Signal(15)        # behind the present part; a header can claim 65535 bytes
        length       = field_of(words[header_word("length")], "length")
        behind       = Signal(15)        # payload words behind this line, if its part ends here
        next_left    = Signal(max=C.BLOCK_BYTES//4 + 1)  # words from the next line on, in its part
        next_payload = Signal(15)
        self.comb += [
            # dibber.packet.header: skip and block, three words for each level; three of a notice.
            Case(Cat(levels, notice), {
                n | with_notice << len(levels): extension.eq(words_of_walk(n) + 3*with_notice)
                for n in range(2*C.LIST) for with_notice in range(2)}),
            behind.eq(Mux(first, (length + 3)[2:], payload_left)),
            source.final.eq(seal & (behind == 0)),
            next_payload.eq(behind),
            If(seal,
                If(behind > C.BLOCK_BYTES//4,
                    next_left.eq(C.BLOCK_BYTES//4)
                ).Else(
                    next_left.eq(behind)
                ),
                next_payload.eq(behind - next_left)
            ).Elif(first,
                next_left.eq(extension - (WORDS - C.HEADER_WORDS))
            ).Else(
                next_left.eq(left)
            ),
        ]
        self.sync += If(taken,
            first.eq(source.last),
            payload_left.eq(next_payload),
            If(next_left > WORDS,
                planned.eq(WORDS),
                seals.eq(0),
                left.eq(next_left - WORDS)
            ).Else(
                planned.eq(next_left),
                seals.eq(1),
                left.eq(0)
            ),
            If(seal, kind.eq(PAYLOAD)),
            If((seal & (behind == 0)) | (kind == BEYOND),
                kind.eq(BEYOND),
                planned.eq(WORDS),
                seals.eq(0)
            ),
            If(source.last, kind.eq(HEADER))
        )

        # Chunks -----------------------------------------------------------------------------------
        kept  = Signal(max=PLACE + 1)
        stays = Signal(32*PLACE)
        comes = Signal(32*WORDS)
        loads = Signal()
        added = Signal(32*PLACE)
        self.comb += [
            If(~taken,
                kept.eq(level),
                stays.eq(held)
            ).Else(
                If(~source.last, kept.eq(level - piece)),
                Case(piece, {n: stays.eq(held[32*n:]) for n in range(1, PIECE + 1)})
            ),
            *[If(sink.words > n, comes[32*n:32*(n + 1)].eq(sink.data[32*n:32*(n + 1)]))
            for n in range(WORDS)],
            Case(kept, {n: added.eq(comes << 32*n) for n in range(PIECE + 1)}),
            sink.ready.eq((kept <= PIECE) & (~final | (taken & source.last))),
            loads.eq(sink.valid & sink.ready & (sink.first | in_packet)),
        ]
        self.sync += [
            level.eq(kept),
            held.eq(stays),
            If(taken & source.last,
                final.eq(0),
                bad.eq(0)
            ),
            If(loads,
                level.eq(kept + sink.words),
                held.eq(stays | added),
                final.eq(sink.last),
                bad.eq(sink.bad & sink.last),
                in_packet.eq(~sink.last)
            ),
        ]

def words_of_walk(levels):
    """Words of a header's extension without its notice; `levels` is the field's low bits. What
    cannot stand there is read as WordInspector reads it.
    """
    if levels == 0:
        return 0
    whole = levels - (C.LIST - 1) if levels & C.LIST else levels
    return 2 + 3*min(whole, C.LEVELS)

# Inspector ----------------------------------------------------------------------------------------

class LineInspector(LiteXModule):
    """Unpack rows and compare the CRC of each header and block: what WordInspector is for words.

    Attributes
    ----------
    sink   : Endpoint(chunk_layout()), in
    source : Endpoint(inspected_line_layout()), out

    Cycles: 5; a line a cycle. The lines stand while the first one is not taken.
    """
    def __init__(self):
        self.unpacker = unpacker = RowUnpacker()
        self.line_crc = line_crc = LineCRC(32*WORDS)
        self.sink   = unpacker.sink
        self.source = source = stream.Endpoint(inspected_line_layout())

        # # #

        # What LineCRC does not carry goes beside it, at its pace.
        lines, sums = unpacker.source, line_crc.source
        beside = [("kind", 2), ("final", 1), ("cut", 1), ("crc", 32)]
        stages = [Record(beside, name=f"stage_{n}") for n in range(4)]
        names  = [name for name, _ in beside]
        step   = line_crc.sink.ready
        self.comb += [
            lines.connect(line_crc.sink, omit=set(names)),
            sums.connect(source, omit={"crc"}),
            source.match.eq(sums.crc == stages[-1].crc),
            *[getattr(source, name).eq(getattr(stages[-1], name)) for name in names[:-1]],
        ]
        for before, stage in zip([lines, *stages], stages):
            self.sync += If(step, *[getattr(stage, n).eq(getattr(before, n)) for n in names])
