"""Link receiver: symbols become words, and words become the packets of each channel."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import serial_rx_layout, word_layout
from dibber.common.crc import crc8
from dibber.link.symbols import (FIRST_IS_K, FLOW_FILL, FLOW_FILL_INVERTED, K_COMMA, K_END, K_END_BAD,
    K_NONCE, K_PING, K_PONG, K_RESUME, K_START, nonce_crc)

# Words --------------------------------------------------------------------------------------------

class WordDecoder(LiteXModule):
    """Align to words, and decode the kind of each word.

    Parameters
    ----------
    channels : number of virtual channels
    tagged   : the last byte of a ping has any value; by default it is 0

    Attributes
    ----------
    sink  : Endpoint(serial_rx_layout), in
    hunt  : Signal(), in    align: the lane of each comma becomes the first lane of a word
    data  : Signal(32), out the word
    valid : Signal(), out   there is a word; exactly one of the next ten signals is 1
    is_data, is_start, is_resume, is_end, is_end_bad : Signal(), out
    is_flow, is_nonce, is_ping, is_pong, is_wrong    : Signal(), out
    channel  : Signal(channels), out  one-hot: the channel of START or RESUME
    routed   : Signal(), out  START announces prefix words: the packet's route does not end here
    inverted : Signal(), out  a flow word with all bits inverted
    code_error, disparity_error : Signal(), out  one cycle for each input word with such errors

    Cycles: 1; one word more if the lanes are not aligned.
    """
    def __init__(self, channels, tagged=False):
        self.sink     = sink = stream.Endpoint(serial_rx_layout())
        self.hunt     = Signal()
        self.data     = Signal(32)
        self.valid    = Signal()
        self.channel  = Signal(channels)
        self.routed   = Signal()
        self.inverted = Signal()
        self.code_error      = Signal()
        self.disparity_error = Signal()

        # # #

        # Alignment --------------------------------------------------------------------------------
        lane   = Signal(2)
        errors = Signal(4)
        before = [Signal(10) for _ in range(4)]  # symbol, K flag and error of the previous word
        now    = [Cat(sink.data[8*n:8*n + 8], sink.k[n], errors[n]) for n in range(4)]
        word   = [Signal(10, name=f"symbol{n}") for n in range(4)]
        self.comb += [
            sink.ready.eq(1),
            errors.eq(sink.code_error | sink.disparity_error),
            Case(lane, {n: [w.eq(s) for w, s in zip(word, (before[n:] + now[:n]) if n else now)]
                        for n in range(4)}),
        ]
        self.sync += [
            self.code_error.eq(sink.valid & (sink.code_error != 0)),
            self.disparity_error.eq(sink.valid & (sink.disparity_error != 0)),
            If(sink.valid,
                *[b.eq(n) for b, n in zip(before, now)],
                If(self.hunt, *[
                    If((sink.data[8*n:8*n + 8] == K_COMMA) & sink.k[n] & ~errors[n], lane.eq(n))
                    for n in range(4)]),
            ),
        ]

        # Decoding ---------------------------------------------------------------------------------
        s             = [symbol[:8] for symbol in word]
        k             = Cat(*[symbol[8] for symbol in word])
        clean         = Signal()
        control       = Signal()
        rest_zero     = Signal()
        is_complement = Signal()  # the second and third symbols are complements
        channel_ok    = Signal()  # a channel, with its CRC
        no_prefix     = Signal()
        nonce_ok      = Signal()
        nonce         = Signal(16)
        bits          = bits_for(channels - 1)
        self.comb += [
            clean.eq(Cat(*[symbol[9] for symbol in word]) == 0),
            control.eq(clean & (k == FIRST_IS_K)),
            rest_zero.eq((s[1] == 0) & (s[2] == 0) & (s[3] == 0)),
            is_complement.eq((s[1] ^ s[2]) == 0xff),
            # The CRC is computed over the bits that may be set; the others are compared with 0.
            channel_ok.eq(
                (s[1][:4] < channels) & ~s[1][7] &
                (s[2] == crc8(Cat(s[1][:bits], Constant(0, 4 - bits), s[1][4:7], Constant(0, 1))))
                & (s[3] == 0)),
            no_prefix.eq(s[1][4:7] == 0),
            nonce.eq(Cat(s[1], s[2])),
            nonce_ok.eq(s[3] == nonce_crc(nonce)),
        ]
        kinds = {
            "data":    clean & (k == 0),
            "start":   control & (s[0] == K_START) & channel_ok,
            "resume":  control & (s[0] == K_RESUME) & channel_ok & no_prefix,
            "end":     control & (s[0] == K_END) & rest_zero,
            "end_bad": control & (s[0] == K_END_BAD) & rest_zero,
            "flow":    control & (s[0] == K_COMMA) & is_complement & (s[3] == FLOW_FILL),
            "nonce":   control & (s[0] == K_NONCE) & nonce_ok,
            "ping":    control & (s[0] == K_PING) & is_complement & (1 if tagged else s[3] == 0),
            "pong":    control & (s[0] == K_PONG) & is_complement & (s[3] == 0),
        }
        known = Signal(len(kinds))
        self.comb += known.eq(Cat(*kinds.values()))
        self.is_wrong = Signal()
        self.sync += [
            self.valid.eq(sink.valid),
            self.is_wrong.eq(sink.valid & (known == 0)),
            # Only the first and last symbols are compared: the middle ones of an inverted flow word
            # may have code errors.
            self.inverted.eq(
                sink.valid & (word[0] == (K_COMMA | 0x100)) & (word[3] == FLOW_FILL_INVERTED)),
            self.data.eq(Cat(*s)),
            self.routed.eq(~no_prefix),
            *[self.channel[n].eq(s[1][:2] == n) for n in range(channels)],
        ]
        for n, name in enumerate(kinds):
            kind = Signal(name=f"is_{name}")
            setattr(self, f"is_{name}", kind)
            self.sync += kind.eq(sink.valid & known[n])

# Receiver -----------------------------------------------------------------------------------------

class LinkReceiver(LiteXModule):
    """Extract the packets of each channel from their frames.

    A packet's last word is known only by its successor. So a word is held until the channel's next
    word or its END comes. An error ends all begun packets as bad in the same cycle: an erroneous
    symbol, an unknown control word, a START inside a packet of its own channel, a packet's word
    after an END, the loss of the link. Words after it are ignored until the next START or RESUME. A
    RESUME of a channel without a begun packet is no error: its packet was ended here, and the
    sender cannot know.

    The route of a packet with a prefix does not end here. A card does not begin it. A switch begins
    it like any other packet; its prefix words come before the header.

    Parameters
    ----------
    channels : number of virtual channels, 2 to 4
    routed   : packets with a prefix are begun, as in a switch

    Attributes
    ----------
    sink    : Endpoint(serial_rx_layout), in
    sources : list of Endpoint(word_layout), out   without backpressure; `prefix` only if `routed`
    up      : Signal(), in       packets are accepted
    misrouted : Signal(), out    one cycle for each packet with a prefix; 0 if `routed`
    decoder : WordDecoder        its flow, nonce, ping and pong words are used by other blocks

    Cycles: 1 from a word's successor to `sources`; one word more if the lanes are not aligned.
    """
    def __init__(self, channels, routed=False):
        self.decoder = decoder = WordDecoder(channels)
        self.sink    = decoder.sink
        self.sources = sources = [stream.Endpoint(word_layout()) for _ in range(channels)]
        self.up      = Signal()
        self.misrouted = Signal()

        # # #

        active       = Signal(channels)  # one-hot: channel of the last START or RESUME; 0 after END
        begun        = Signal(channels)
        holds_word   = Signal(channels)
        is_first     = Signal(channels)  # no word of the packet was passed on yet
        ends         = Signal()
        start_clash  = Signal()          # START inside a packet of its own channel
        stray_word   = Signal()          # a word without channel, while packets are begun
        ends_all_bad = Signal()          # all begun packets end as bad
        self.comb += [
            ends.eq(decoder.is_end | decoder.is_end_bad),
            start_clash.eq(decoder.is_start & ((begun & decoder.channel) != 0)),
            stray_word.eq((decoder.is_data | ends) & (active == 0) & (begun != 0)),
            ends_all_bad.eq(decoder.is_wrong | start_clash | stray_word | ~self.up),
        ]
        for n, source in enumerate(sources):
            begins = self.up & decoder.is_start & decoder.channel[n]
            if not routed:
                begins = begins & ~decoder.routed
            held   = Signal(32)
            adds   = Signal()
            closes = Signal()
            self.comb += [
                adds.eq(decoder.is_data & active[n] & begun[n]),
                closes.eq(begun[n] & (ends_all_bad | (ends & active[n]))),
                source.valid.eq(holds_word[n] & (closes | adds)),
                source.channel.eq(n),
                source.data.eq(held),
                source.first.eq(is_first[n]),
                source.last.eq(closes),
                source.bad.eq(closes & (ends_all_bad | decoder.is_end_bad)),
            ]
            self.sync += [
                If(adds,
                    held.eq(decoder.data),
                    holds_word[n].eq(1)
                ),
                If(source.valid, is_first[n].eq(0)),
                If(closes,
                    begun[n].eq(0),
                    holds_word[n].eq(0)
                ),
                If(begins,
                    begun[n].eq(1),
                    is_first[n].eq(1)
                ),
            ]
            if routed:
                # The number of prefix words is in bits 6:4 of START's second symbol.
                self.sync += If(begins, source.prefix.eq(decoder.data[12:15]))
        if not routed:
            self.sync += self.misrouted.eq(self.up & decoder.is_start & decoder.routed)
        self.sync += [
            If(ends, active.eq(0)),
            If(decoder.is_start | decoder.is_resume, active.eq(decoder.channel)),
        ]
