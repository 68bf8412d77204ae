"""Checks that each packet must pass before its contents are used."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.layouts import word_layout
from dibber.common.crc import block_seed, crc32c_after_two, crc32c_next
from dibber.packet.pairs import PairSplitter
from dibber.packet.header import NOTICE, STRIDE_HIGH, flag, header_fields, header_word, position_after

# Layout -------------------------------------------------------------------------------------------

HEADER, HEADER_CRC, PAYLOAD, BLOCK_CRC, BEYOND = range(5)

def inspected_layout(width=32):
    """A packet's words with their `kind`: HEADER, HEADER_CRC, PAYLOAD, BLOCK_CRC, or BEYOND.

    The kinds are right if the header is. `position` of a HEADER word is as in header.py. `match` of
    a CRC: it is the CRC of the words before it. `final` marks the packet's last PAYLOAD word and
    its last BLOCK_CRC. Words after these are BEYOND.

    With a `width` of 64, PAYLOAD comes in pairs of words, and all other words alone: with `half`.
    With 256, PAYLOAD comes in lines of `words` words, and all other words alone.
    """
    amount = {32: [], 64: [("half", 1)], 256: [("words", 4)]}[width]
    return stream.EndpointDescription(
        [("data", width), ("bad", 1), ("kind", 3), ("position", 5), ("match", 1), ("final", 1),
         *amount])

# Word Inspector -----------------------------------------------------------------------------------

class WordInspector(LiteXModule):
    """Classify each word and compare CRCs, one cycle before the packet is judged.

    A word without `first` at the start of a packet belongs to a packet whose start was lost in a
    reset; it is skipped.

    Parameters
    ----------
    extended : whether the headers of this channel may have an extension
    width    : bits of a word at the sink, 32 or 64

    Attributes
    ----------
    sink   : Endpoint(word_layout(width)), in
    source : Endpoint(inspected_layout(width)), out

    Cycles: 1, with a width of 64 two; one word a cycle, and of payload `width` bits.
    """
    def __init__(self, extended, width=32):
        self.sink   = sink   = stream.Endpoint(word_layout(width))
        self.source = source = stream.Endpoint(inspected_layout(width))

        # # #

        if width == 64:
            self.splitter = splitter = PairSplitter()
            self.sink, sink = splitter.sink, splitter.source
            amount = Mux(sink.half, 1, 2)  # words at the sink
            data   = Signal(32)            # the first of them
            self.comb += data.eq(sink.data[:32])
        else:
            amount, data = 1, sink.data
        block_words = C.BLOCK_BYTES//4
        kind        = Signal(3)
        position    = Signal(max=NOTICE + 3)
        levels      = Signal(3)
        notice      = Signal()
        words_left  = Signal(15)  # payload words; a header can claim up to 65535 bytes
        word        = Signal(max=block_words)
        block       = Signal(9)
        header_crc  = Signal(32)  # the header's CRC
        state       = Signal(32, reset=0xffffffff)
        crc         = Signal(32)  # CRC of the words so far
        seed        = Signal(32)
        in_packet   = Signal()    # the packet's first word was taken
        taken       = Signal()
        ends_part   = words_left == amount  # with PAYLOAD: the packet's last word of it
        length      = header_fields([data]*C.HEADER_WORDS)["length"]
        follow, ends, extension_walk = position_after(position, levels, notice)
        mix, advanced = crc32c_next(state, data)
        if width == 64:
            advanced = Mux(sink.half, advanced, crc32c_after_two(state, sink.data))
            self.comb += splitter.pair.eq((kind == PAYLOAD) & (words_left != 1))
        self.comb += [
            extension_walk,
            mix,
            crc.eq(~state),
            sink.ready.eq(~source.valid | source.ready),
            taken.eq(sink.valid & sink.ready & (sink.first | in_packet)),
            seed.eq(Mux(kind == HEADER_CRC, crc, block_seed(header_crc, block))),
        ]
        # `taken` is late in the cycle, so these registers have it only as their clock enable. After
        # the last CRC no CRC is compared.
        self.sync += [
            If(taken,
                in_packet.eq(~sink.last),
                state.eq(Mux((kind == HEADER_CRC) | (kind == BLOCK_CRC), seed, advanced)),
                If(sink.last, state.eq(0xffffffff)),
                Case(kind, {
                    HEADER: [
                        position.eq(follow),
                        If(position == header_word("length"), words_left.eq((length + 3)[2:])),
                        If(ends, kind.eq(HEADER_CRC)),
                    ],
                    HEADER_CRC: [
                        header_crc.eq(crc),
                        block.eq(1),
                        word.eq(0),
                        kind.eq(Mux(words_left == 0, BEYOND, PAYLOAD)),
                    ],
                    PAYLOAD: [
                        words_left.eq(words_left - amount),
                        word.eq(word + amount),
                        If(ends_part | (word == block_words - amount), kind.eq(BLOCK_CRC)),
                    ],
                    BLOCK_CRC: [
                        block.eq(block + 1),
                        word.eq(0),
                        kind.eq(Mux(words_left == 0, BEYOND, PAYLOAD)),
                    ],
                }),
                If(sink.last,
                    kind.eq(HEADER),
                    position.eq(0),
                ),
            ),
            If(sink.ready,
                source.valid.eq(taken),
                source.first.eq(sink.first),
                source.last.eq(sink.last),
                source.data.eq(sink.data),
                source.bad.eq(sink.bad),
                source.kind.eq(kind),
                source.position.eq(position),
                source.match.eq(data == crc),
                source.final.eq(Mux(kind == PAYLOAD, ends_part, words_left == 0)),
                *([source.half.eq(sink.half)] if width == 64 else []),
            ),
        ]
        if extended:
            # Both fields are in word 1; they are needed from the header's sixth word on.
            first_word = header_fields([data]*C.HEADER_WORDS)
            self.sync += If(taken & (kind == HEADER) & (position == header_word("levels")),
                levels.eq(first_word["levels"][:3]),
                notice.eq(flag(first_word["flags"], "NOTICE")),
            )

# Header Checker -----------------------------------------------------------------------------------

class HeaderChecker(LiteXModule):
    """Watch the inspected words of a channel, keep each packet's header, and judge it at its CRC.

    It drives nothing of the stream. A header word that waits is stored in each cycle of its wait,
    which does no harm. So only the verdict depends on the stream's `ready`.

    Parameters
    ----------
    word     : Endpoint(inspected_layout), only observed
    extended : whether the headers of this channel may have an extension
    address_bits : 64 or 32; with 32, two bits replace the high word of each stride

    Attributes
    ----------
    node_id   : Signal(16), in
    anybody   : Signal(), in   from the receiver: a packet with `fields` may go to the node ANYBODY
    malformed : Signal(), in   from the receiver: `fields` contradict each other
    fields    : dict of header fields, valid with `at_crc` and until the next packet
    extension : dict position -> Signal(32), valid as `fields`; positions as in header.py. A high
                word that is not kept is Signal(2): bit 0, it is not the sign of the low word; bit
                1, it is not 0
    at_length : Signal(), out  the present word is the header's word with the length, whose fields
                are `coming`. Results that are needed at `at_crc` are registered here
    coming    : dict of header fields, as if the present word were each header word
    at_crc    : Signal(), out  the present word is the header's CRC
    room      : Signal(), in   this word is taken if it is there; 1 if not driven
    good      : Signal(), out  this word is taken, and header and node are right; then the packet
                continues exactly if its length is not 0
    crc_error, truncated, wrong_node : Signal(), out  one cycle: why the packet is not good
    """
    def __init__(self, word, extended, address_bits=64):
        self.node_id    = Signal(16)
        self.anybody    = Signal()
        self.malformed  = Signal()
        self.at_length  = Signal()
        self.at_crc     = Signal()
        self.room       = Signal(reset=1)
        self.good       = Signal()
        self.crc_error  = Signal()
        self.truncated  = Signal()
        self.wrong_node = Signal()

        # # #

        # Header.
        data           = word.data
        if len(data) > 32:
            data = Signal(32)
            self.comb += data.eq(word.data[:32])
        words          = [Signal(32, name=f"header{n}") for n in range(C.HEADER_WORDS)]
        self.fields    = fields = header_fields(words)
        self.coming    = coming = header_fields([data]*C.HEADER_WORDS)
        self.extension = {}
        if extended:
            self.extension = {
                p: Signal(32, name=f"extension{p}") for p in range(C.HEADER_WORDS, NOTICE + 3)}
        header = Signal()
        self.comb += [
            header.eq(word.valid & (word.kind == HEADER)),
            self.at_length.eq(header & (word.position == header_word("length"))),
            self.at_crc.eq(word.valid & (word.kind == HEADER_CRC)),
        ]
        taken_as = {p: data for p in [*range(C.HEADER_WORDS), *self.extension]}
        if extended and address_bits == 32:
            for p in STRIDE_HIGH:
                self.extension[p] = Signal(2, name=f"extension{p}")
                taken_as[p] = Cat(
                    data != Replicate(self.extension[p - 1][31], 32), data != 0)
        self.sync += If(header,
            Case(word.position, {p: register.eq(taken_as[p]) for p, register in
                                 [*enumerate(words), *self.extension.items()]}))

        # Verdict. Slow comparisons are registered before the CRC comes.
        not_for_us   = Signal()
        ours         = Signal()
        empty        = Signal()
        judge        = Signal()
        length_wrong = Signal()
        self.comb += ours.eq(
            (fields["target"] == self.node_id) | (self.anybody & (fields["target"] == C.ANYBODY)))
        self.sync += [
            not_for_us.eq(~ours | (fields["source"] >= C.NODES)),
            If(self.at_length, empty.eq(coming["length"] == 0)),
        ]
        self.comb += [
            judge.eq(self.at_crc & self.room),
            # A packet has words after its header exactly if its length is not 0.
            length_wrong.eq(Mux(word.last, word.bad | ~empty, empty)),
            self.crc_error.eq(judge & ~word.match),
            self.wrong_node.eq(judge & word.match & not_for_us),
            self.truncated.eq((judge & word.match & ~not_for_us & (length_wrong | self.malformed))
                | (header & word.last & word.ready)),
            self.good.eq(judge & word.match & ~not_for_us & ~length_wrong & ~self.malformed),
        ]
