"""Packets of the bonded link, in the form in which the receivers of packets read them."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.packet.check import (BLOCK_CRC, HEADER_CRC, BEYOND as BEYOND_WORD, HEADER as HEADER_WORD,
    PAYLOAD as PAYLOAD_WORD, inspected_layout)
from dibber.packet.header import flag, header_fields, header_word, position_after
from dibber.packet.row_unpacker import (HEADER, PAYLOAD, WORDS, LineInspector, inspected_line_layout)

# Spreader -----------------------------------------------------------------------------------------

class LineSpreader(LiteXModule):
    """Give an inspected line as the words that WordInspector would give.

    Each word of a header goes alone, and each CRC. So a HeaderChecker needs no other form. Payload
    goes by words of 32 bits, or a line at once.

    Example at 256 bits, payload of 40 bytes: 6 words HEADER, HEADER_CRC, PAYLOAD with 8 words,
    PAYLOAD with 2 words and `final`, BLOCK_CRC with `final` and `last`.

    A packet without any word is one word HEADER with `last`, so it counts as cut off. A packet that
    is cut off inside its payload may have `final` with `last`; words behind the last CRC may come
    together.

    Parameters
    ----------
    width : bits of payload that leave in a cycle, 32 or 256

    Attributes
    ----------
    sink   : Endpoint(inspected_line_layout()), in
    source : Endpoint(inspected_layout(width)), out

    Cycles: 1 from line to word; then 1 a word of the header, a CRC, and `width` bits of payload.
    A packet of 4096 bytes without an extension takes 151 cycles at 256 bits, if its lines do not
    wait.
    """
    def __init__(self, width):
        assert width in (32, 32*WORDS)
        self.sink   = sink   = stream.Endpoint(inspected_line_layout())
        self.buffer = buffer = stream.PipeValid(inspected_layout(width))
        self.source = buffer.source

        # # #

        word     = buffer.sink
        place    = Signal(max=WORDS + 1)  # of the word in the line; behind the words: its CRC
        behind   = Signal(max=WORDS + 2)  # the place behind it
        position = Signal(len(word.position))
        levels   = Signal(3)
        notice   = Signal()
        single   = Signal()   # words of this line go alone
        sealed   = Signal()   # a CRC follows the line's words
        at_crc   = Signal()
        ends     = Signal()   # this word is the line's last one
        ends_words = Signal()
        taken    = Signal()
        data     = Signal(32)
        follow, _, walk = position_after(position, levels, notice)
        self.comb += [
            walk,
            single.eq((sink.kind == HEADER) | ((sink.kind == PAYLOAD) & (width == 32))),
            sealed.eq(sink.seal & ~sink.cut & ((sink.kind == HEADER) | (sink.kind == PAYLOAD))),
            at_crc.eq(sealed & (place == WORDS)),
            behind.eq(place + 1),
            ends_words.eq(~single | (behind >= sink.words)),
            ends.eq(at_crc | (ends_words & ~sealed)),
            Case(place, {n: data.eq(sink.data[32*n:32*(n + 1)]) for n in range(WORDS)}),

            word.valid.eq(sink.valid),
            word.last.eq(sink.last & ends),
            word.bad.eq(sink.bad & word.last),
            word.match.eq(sink.match),
            word.position.eq(position),
            word.data.eq(Mux(single, data, sink.data)),
            If(at_crc,
                word.kind.eq(Mux(sink.kind == HEADER, HEADER_CRC, BLOCK_CRC)),
                word.final.eq(sink.final)
            ).Elif(sink.kind == HEADER,
                word.kind.eq(HEADER_WORD)
            ).Elif(sink.kind == PAYLOAD,
                word.kind.eq(PAYLOAD_WORD),
                word.final.eq(sink.final & ends_words)
            ).Else(
                word.kind.eq(BEYOND_WORD)
            ),
            *([word.words.eq(sink.words)] if width != 32 else []),
            taken.eq(word.valid & word.ready),
            sink.ready.eq(word.ready & ends),
        ]
        first_word = header_fields([data]*6)
        self.sync += If(taken,
            place.eq(Mux(ends, 0, Mux(ends_words, WORDS, behind))),
            If((sink.kind == HEADER) & ~at_crc,
                position.eq(follow),
                If(position == header_word("levels"),
                    levels.eq(first_word["levels"][:3]),
                    notice.eq(flag(first_word["flags"], "NOTICE"))
                )
            ),
            If(word.last | at_crc, position.eq(0))
        )

# Inspector ----------------------------------------------------------------------------------------

class ChunkInspector(LiteXModule):
    """What WordInspector is for words, for the chunks of a BondedPort.

    Parameters
    ----------
    width : bits of payload that leave in a cycle, 32 or 256

    Attributes
    ----------
    sink   : Endpoint(chunk_layout()), in
    source : Endpoint(inspected_layout(width)), out

    Cycles: 6; see LineSpreader.
    """
    def __init__(self, width):
        self.lines    = lines    = LineInspector()
        self.spreader = spreader = LineSpreader(width)
        self.sink     = lines.sink
        self.source   = spreader.source
        self.comb    += lines.source.connect(spreader.sink)
