"""The checks that every packet must pass before anything of it is believed."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.layouts import word_layout
from dibber.common.crc import block_seed, crc32c_next
from dibber.packet.header import NOTICE, STRIDE_HIGH, flag, header_fields, header_word, position_after

# Layout -------------------------------------------------------------------------------------------

HEADER, HEADER_CRC, PAYLOAD, BLOCK_CRC, BEYOND = range(5)

def inspected_layout():
    """A packet's words, each with what it is (`kind`) if the header can be believed.

    `position` of a HEADER word is that of header.py; `match` of a CRC tells that it is the one of
    the words before it; `final` marks the packet's last PAYLOAD word and last BLOCK_CRC. What
    follows that is BEYOND.
    """
    return stream.EndpointDescription(
        [("data", 32), ("bad", 1), ("kind", 3), ("position", 5), ("match", 1), ("final", 1)])

# Word Inspector -----------------------------------------------------------------------------------

class WordInspector(LiteXModule):
    """Tell of each word what it is and compare CRCs, one cycle before anybody judges the packet.

    A word without `first` where a packet should begin is the rest of one whose beginning was lost
    to a reset, and is passed over.

    Parameters
    ----------
    extended : whether the headers of this channel may have an extension

    Attributes
    ----------
    sink   : Endpoint(word_layout), in
    source : Endpoint(inspected_layout), out

    Cycles: 1, a word a cycle.
    """
    def __init__(self, extended):
        self.sink   = sink   = stream.Endpoint(word_layout())
        self.source = source = stream.Endpoint(inspected_layout())

        # # #

        block_words = C.BLOCK_BYTES//4
        kind     = Signal(3)
        position = Signal(max=NOTICE + 3)
        levels   = Signal(3)
        notice   = Signal()
        left     = Signal(15)  # payload words, of the 65535 bytes that a header can claim
        word     = Signal(max=block_words)
        block    = Signal(9)
        base     = Signal(32)  # the header's CRC
        state    = Signal(32, reset=0xffffffff)
        value    = Signal(32)  # CRC of the words so far
        seed     = Signal(32)
        inside   = Signal()    # a packet, behind its first word
        taken    = Signal()
        length   = header_fields([sink.data]*C.HEADER_WORDS)["length"]
        follow, ends, walk = position_after(position, levels, notice)
        mix, advanced = crc32c_next(state, sink.data)
        self.comb += [
            walk,
            mix,
            value.eq(~state),
            sink.ready.eq(~source.valid | source.ready),
            taken.eq(sink.valid & sink.ready & (sink.first | inside)),
            seed.eq(Mux(kind == HEADER_CRC, value, block_seed(base, block))),
        ]
        # Whether a word is taken is known last, so it is all that these registers wait for: no CRC
        # is compared behind the last one.
        self.sync += [
            If(taken,
                inside.eq(~sink.last),
                state.eq(Mux((kind == HEADER_CRC) | (kind == BLOCK_CRC), seed, advanced)),
                If(sink.last, state.eq(0xffffffff)),
                Case(kind, {
                    HEADER: [
                        position.eq(follow),
                        If(position == header_word("length"), left.eq((length + 3)[2:])),
                        If(ends, kind.eq(HEADER_CRC)),
                    ],
                    HEADER_CRC: [
                        base.eq(value),
                        block.eq(1),
                        word.eq(0),
                        kind.eq(Mux(left == 0, BEYOND, PAYLOAD)),
                    ],
                    PAYLOAD: [
                        left.eq(left - 1),
                        word.eq(word + 1),
                        If((left == 1) | (word == block_words - 1), kind.eq(BLOCK_CRC)),
                    ],
                    BLOCK_CRC: [
                        block.eq(block + 1),
                        word.eq(0),
                        kind.eq(Mux(left == 0, BEYOND, PAYLOAD)),
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
                source.match.eq(sink.data == value),
                source.final.eq(Mux(kind == PAYLOAD, left == 1, left == 0)),
            ),
        ]
        if extended:
            # Word 1 holds both; they are first of use at the header's sixth word.
            first_word = header_fields([sink.data]*C.HEADER_WORDS)
            self.sync += If(taken & (kind == HEADER) & (position == header_word("levels")),
                levels.eq(first_word["levels"][:3]),
                notice.eq(flag(first_word["flags"], "NOTICE")),
            )

# Header Checker -----------------------------------------------------------------------------------

class HeaderChecker(LiteXModule):
    """Watch a channel's inspected words, keep each packet's header, and judge it at its CRC.

    It drives nothing of the stream. A header word that waits is kept while it does: it is the same
    when it is taken. So nothing but the verdict depends on who takes the words.

    Parameters
    ----------
    word     : Endpoint(inspected_layout), watched
    extended : whether the headers of this channel may have an extension
    address_bits : 64, or 32: of the high words of strides is kept how they extend the low ones

    Attributes
    ----------
    node_id   : Signal(16), in
    anybody   : Signal(), in   the receiver's opinion of `fields`: the packet may be for ANYBODY
    malformed : Signal(), in   the receiver's opinion of `fields`: they contradict themselves
    fields    : dict of header fields, valid with `at_crc` and until the next packet
    extension : dict position -> Signal(32), likewise; positions as in header.py. A high word that
                is not kept is Signal(2): it is not the sign of the low word, it is not 0
    at_length : Signal(), out  the word in the stream is the header's word that has the length,
                whose fields are `coming`:
                               what is to be registered before `at_crc`
    coming    : dict of header fields, as if the word in the stream were each header word
    at_crc    : Signal(), out  the word in the stream is the header's CRC
    room      : Signal(), in   that is being taken if it is there, 1 if not driven
    good      : Signal(), out  and it is being taken, and header and node are right; then the packet
                               goes on exactly if its length is not 0
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
        words          = [Signal(32, name=f"header{n}") for n in range(C.HEADER_WORDS)]
        self.fields    = fields = header_fields(words)
        self.coming    = coming = header_fields([word.data]*C.HEADER_WORDS)
        self.extension = {}
        if extended:
            self.extension = {p: Signal(32, name=f"extension{p}") for p in range(C.HEADER_WORDS, NOTICE + 3)}
        header = Signal()
        self.comb += [
            header.eq(word.valid & (word.kind == HEADER)),
            self.at_length.eq(header & (word.position == header_word("length"))),
            self.at_crc.eq(word.valid & (word.kind == HEADER_CRC)),
        ]
        taken_as = {p: word.data for p in [*range(C.HEADER_WORDS), *self.extension]}
        if extended and address_bits == 32:
            for p in STRIDE_HIGH:
                self.extension[p] = Signal(2, name=f"extension{p}")
                taken_as[p] = Cat(word.data != Replicate(self.extension[p - 1][31], 32), word.data != 0)
        self.sync += If(header,
            Case(word.position, {p: register.eq(taken_as[p]) for p, register in
                                 [*enumerate(words), *self.extension.items()]}))

        # Verdict. What takes long to see is seen before the CRC comes.
        not_for_us = Signal()
        ours       = Signal()
        empty      = Signal()
        judge      = Signal()
        cut        = Signal()
        self.comb += ours.eq((fields["target"] == self.node_id) | (self.anybody & (fields["target"] == C.ANYBODY)))
        self.sync += [
            not_for_us.eq(~ours | (fields["source"] >= C.NODES)),
            If(self.at_length, empty.eq(coming["length"] == 0)),
        ]
        self.comb += [
            judge.eq(self.at_crc & self.room),
            # A packet that goes on behind its header must have payload, and one with payload must
            # go on.
            cut.eq(Mux(word.last, word.bad | ~empty, empty)),
            self.crc_error.eq(judge & ~word.match),
            self.wrong_node.eq(judge & word.match & not_for_us),
            self.truncated.eq((judge & word.match & ~not_for_us & (cut | self.malformed))
                | (header & word.last & word.ready)),
            self.good.eq(judge & word.match & ~not_for_us & ~cut & ~self.malformed),
        ]
