"""Symbols to words, and words to packets of channels."""

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
    """Find the words, and what each of them is.

    Parameters
    ----------
    channels : number of virtual channels

    Attributes
    ----------
    sink  : Endpoint(serial_rx_layout), in
    hunt  : Signal(), in    take the lane of any comma as the first of a word
    data  : Signal(32), out the word
    valid : Signal(), out   there is one, and then it is exactly one of the next ten:
    is_data, is_start, is_resume, is_end, is_end_bad, is_flow, is_nonce, is_ping, is_pong, is_wrong
    : Signal(), out
    channel  : Signal(channels), out  one bit: the channel of START or RESUME
    routed   : Signal(), out  START says that there is a prefix: the packet's route does not end
               here
    inverted : Signal(), out  a flow word whose bits are all inverted
    code_error, disparity_error : Signal(), out  one cycle an input word with such errors

    Cycles: 1; a word more when the lanes are not aligned.
    """
    def __init__(self, channels):
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
        s       = [symbol[:8] for symbol in word]
        k       = Cat(*[symbol[8] for symbol in word])
        clean   = Signal()
        control = Signal()
        empty   = Signal()
        twin    = Signal()  # the second symbol is the first one's complement
        named   = Signal()  # a channel, with its CRC
        plain   = Signal()  # no prefix words
        greets  = Signal()
        nonce   = Signal(16)
        bits    = bits_for(channels - 1)
        self.comb += [
            clean.eq(Cat(*[symbol[9] for symbol in word]) == 0),
            control.eq(clean & (k == FIRST_IS_K)),
            empty.eq((s[1] == 0) & (s[2] == 0) & (s[3] == 0)),
            twin.eq((s[1] ^ s[2]) == 0xff),
            # Bits that have to be 0 are none of the CRC's sum.
            named.eq((s[1][:4] < channels) & ~s[1][7] & (s[2] == crc8(Cat(s[1][:bits], Constant(0, 4 - bits), s[1][4:7], Constant(0, 1))))
                & (s[3] == 0)),
            plain.eq(s[1][4:7] == 0),
            nonce.eq(Cat(s[1], s[2])),
            greets.eq(s[3] == nonce_crc(nonce)),
        ]
        kinds = {
            "data":    clean & (k == 0),
            "start":   control & (s[0] == K_START) & named,
            "resume":  control & (s[0] == K_RESUME) & named & plain,
            "end":     control & (s[0] == K_END) & empty,
            "end_bad": control & (s[0] == K_END_BAD) & empty,
            "flow":    control & (s[0] == K_COMMA) & twin & (s[3] == FLOW_FILL),
            "nonce":   control & (s[0] == K_NONCE) & greets,
            "ping":    control & (s[0] == K_PING) & twin & (s[3] == 0),
            "pong":    control & (s[0] == K_PONG) & twin & (s[3] == 0),
        }
        known = Signal(len(kinds))
        self.comb += known.eq(Cat(*kinds.values()))
        self.is_wrong = Signal()
        self.sync += [
            self.valid.eq(sink.valid),
            self.is_wrong.eq(sink.valid & (known == 0)),
            # The other two symbols of an inverted flow word may be in error, for it is no pair of
            # ours.
            self.inverted.eq(sink.valid & (word[0] == (K_COMMA | 0x100)) & (word[3] == FLOW_FILL_INVERTED)),
            self.data.eq(Cat(*s)),
            self.routed.eq(~plain),
            *[self.channel[n].eq(s[1][:2] == n) for n in range(channels)],
        ]
        for n, name in enumerate(kinds):
            kind = Signal(name=f"is_{name}")
            setattr(self, f"is_{name}", kind)
            self.sync += kind.eq(sink.valid & known[n])

# Receiver -----------------------------------------------------------------------------------------

class LinkReceiver(LiteXModule):
    """Take the packets of each channel out of their frames.

    A packet's last word is known by what follows it, so a word is held until the channel's next one
    or its END comes. Whatever cannot stand where it does ends every begun packet as bad, all in the
    same cycle: an erroneous symbol, an unknown control word, a START inside a packet of its own
    channel, a word of a packet after an END, the loss of the link. What follows belongs to nobody
    until the next START or RESUME. A packet with a prefix, whose route does not end here, is never
    begun. RESUME of a channel without a begun packet is no contradiction: its packet was ended
    here, and the sender cannot know.

    Parameters
    ----------
    channels : number of virtual channels, 2 to 4

    Attributes
    ----------
    sink    : Endpoint(serial_rx_layout), in
    sources : list of Endpoint(word_layout), out   without back-pressure
    up      : Signal(), in       packets are believed
    misrouted : Signal(), out    one cycle for each packet with a prefix
    decoder : WordDecoder        the words; flow, nonce, ping and pong are for others

    Cycles: 1 from a word's successor to `sources`; a word more when the lanes are not aligned.
    """
    def __init__(self, channels):
        self.decoder = decoder = WordDecoder(channels)
        self.sink    = decoder.sink
        self.sources = sources = [stream.Endpoint(word_layout()) for _ in range(channels)]
        self.up      = Signal()
        self.misrouted = Signal()

        # # #

        on    = Signal(channels)  # the channel of the last START or RESUME; none after END
        begun = Signal(channels)
        holds = Signal(channels)
        fresh = Signal(channels)  # nothing of the packet was handed on yet
        ends  = Signal()
        clash = Signal()          # START inside a packet of its own channel
        stray = Signal()          # of no packet, though there are begun ones
        fails = Signal()          # every begun packet ends as bad
        self.comb += [
            ends.eq(decoder.is_end | decoder.is_end_bad),
            clash.eq(decoder.is_start & ((begun & decoder.channel) != 0)),
            stray.eq((decoder.is_data | ends) & (on == 0) & (begun != 0)),
            fails.eq(decoder.is_wrong | clash | stray | ~self.up),
        ]
        for n, source in enumerate(sources):
            held   = Signal(32)
            adds   = Signal()
            closes = Signal()
            self.comb += [
                adds.eq(decoder.is_data & on[n] & begun[n]),
                closes.eq(begun[n] & (fails | (ends & on[n]))),
                source.valid.eq(holds[n] & (closes | adds)),
                source.channel.eq(n),
                source.data.eq(held),
                source.first.eq(fresh[n]),
                source.last.eq(closes),
                source.bad.eq(closes & (fails | decoder.is_end_bad)),
            ]
            self.sync += [
                If(adds,
                    held.eq(decoder.data),
                    holds[n].eq(1)
                ),
                If(source.valid, fresh[n].eq(0)),
                If(closes,
                    begun[n].eq(0),
                    holds[n].eq(0)
                ),
                If(self.up & decoder.is_start & decoder.channel[n] & ~decoder.routed,
                    begun[n].eq(1),
                    fresh[n].eq(1)
                ),
            ]
        self.sync += [
            self.misrouted.eq(self.up & decoder.is_start & decoder.routed),
            If(ends, on.eq(0)),
            If(decoder.is_start | decoder.is_resume, on.eq(decoder.channel)),
        ]
