"""What a ring node does with each word that comes: strip it, pass it on, or make an echo of it."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from dibber.common.one_hot import number_of
from dibber.fabric.ring.words import (ACCEPTED, ADDRESS_BITS, DAMAGED, LOST, NUMBER_BITS, OLD_MASK,
    STATUS_BITS, RingWord, resume_word, ring_word)
from dibber.link.symbols import K_END_BAD

# Layouts ------------------------------------------------------------------------------------------

def ring_symbols_layout():
    """A word for the wire; `k`: its first symbol is a K code."""
    return [("data", 32), ("k", 1)]

def answer_layout():
    """An echo or a grant for this node: `status` of packet `number`, or a grant of `source`."""
    return [
        ("status", STATUS_BITS), ("number", NUMBER_BITS), ("source", ADDRESS_BITS), ("channel", 2)]

# Transit ------------------------------------------------------------------------------------------

class RingTransit(LiteXModule):
    """Decide about each received word. At most one word leaves for each word that came.

    A word is *held* until its successor is known, where the successor matters: a START until its
    prefix shows the target, a RESUME until its echo word, a word of a packet until it is known
    whether it is the last one. Idles are not held; they have no place in the order.

    What ends a packet wrongly becomes END BAD for the nodes behind. The echo of a stripped packet
    leaves in the places of its last word and its END.

    Parameters
    ----------
    packet_words : most words of a packet, by channel; a longer one is cut as bad

    Attributes
    ----------
    decoder   : WordDecoder, in
    up        : Signal(), in            packets and echoes are taken and passed
    address   : Signal(ADDRESS_BITS), in
    scrubber  : Signal(), in            this node is the scrubber
    push      : Record(ring_symbols_layout) and `valid`, out   a word to pass on
    housekeep : Record(valid, data), out   a nonce, ping or pong that came
    keep      : Record(valid, data), in    what to pass on for it, in the same cycle
    ask       : Record, out   a packet for this node begins on `channel` (one-hot), from `source`
    accept, refusal : Signal, in   in the same cycle: take it, or the status of its echo
    take      : Record, out   a word for the receive FIFO of `channel` (one-hot)
    taking    : Signal(channels), out   channels whose packet is being taken or refused now
    answer    : Record(answer_layout) and `valid`, out
    idle, go  : Signal(), out          an idle came, with GO
    scrubbed  : Signal(), out          pulse: an old packet or echo was taken out
    misrouted : Signal(), out          pulse: a START or RESUME without a right word behind it

    Cycles: 1 from a decoded word to `push` or `take`, when its successor is decoded.
    """
    def __init__(self, decoder, packet_words):
        channels = len(packet_words)
        self.up        = Signal()
        self.address   = address = Signal(ADDRESS_BITS)
        self.scrubber  = Signal()
        self.push      = push = Record([("valid", 1)] + ring_symbols_layout())
        self.housekeep = Record([("valid", 1), ("data", 32)])
        self.keep      = Record([("valid", 1), ("data", 32)])
        self.ask       = ask = Record(
            [("valid", 1), ("channel", channels), ("source", ADDRESS_BITS), ("head", 1)])
        self.accept    = Signal()
        self.refusal   = Signal(STATUS_BITS)
        self.take      = take = Record(
            [("valid", 1), ("channel", channels), ("data", 32), ("first", 1), ("last", 1),
             ("bad", 1)])
        self.taking    = Signal(channels)
        self.answer    = answer = Record([("valid", 1)] + answer_layout())
        self.idle      = Signal()
        self.go        = Signal()
        self.scrubbed  = Signal()
        self.misrouted = Signal()

        # # #

        # The Held Word ----------------------------------------------------------------------------
        now         = Signal()  # a word came that is no idle
        now_ends    = Signal()
        now_begins  = Signal()
        now_is_odd  = Signal()  # it cannot stand inside a packet
        full        = Signal()
        held        = Signal(32)
        held_k      = Signal()
        is_start    = Signal()
        is_resume   = Signal()
        is_data     = Signal()
        is_end      = Signal()
        is_keeper   = Signal()  # a nonce, ping or pong
        channel     = Signal(channels)
        one_prefix  = Signal()
        process     = Signal()  # the held word is dealt with in this cycle
        looks       = Signal()  # it waits for its successor
        self.comb += [
            self.idle.eq(decoder.is_flow),
            self.go.eq(decoder.data[8]),
            now.eq(decoder.valid & ~decoder.is_flow),
            now_ends.eq(decoder.is_end | decoder.is_end_bad),
            now_begins.eq(decoder.is_start | decoder.is_resume),
            now_is_odd.eq(
                decoder.is_wrong | decoder.is_nonce | decoder.is_ping | decoder.is_pong),
            process.eq(full & (~looks | now | ~self.up)),
        ]
        self.sync += [
            If(process, full.eq(0)),
            If(now,
                full.eq(1),
                held.eq(decoder.data),
                held_k.eq(~decoder.is_data),
                is_start.eq(decoder.is_start),
                is_resume.eq(decoder.is_resume),
                is_data.eq(decoder.is_data),
                is_end.eq(now_ends),
                is_keeper.eq(decoder.is_nonce | decoder.is_ping | decoder.is_pong),
                channel.eq(decoder.channel),
                one_prefix.eq(decoder.data[12:15] == 1),
            ),
        ]

        # Modes ------------------------------------------------------------------------------------
        # What the words behind START or RESUME are for. Without a mode, a packet's words are
        # dropped.
        passes  = Signal()  # a packet for another node
        pair    = Signal()  # an echo for another node: one word
        takes   = Signal()  # a packet for this node goes to its receive FIFO
        refuses = Signal()  # a packet for this node is refused
        echoes  = Signal()  # the next word's place is the echo word's
        cuts    = Signal()  # the next word's place is END BAD's
        second  = Signal()  # the word behind START comes next
        marks   = Signal()  # and it passes the scrubber
        self.comb += looks.eq(is_start | is_resume | (is_data & (passes | takes | refuses)))

        # A Packet or an Echo Begins ---------------------------------------------------------------
        word    = RingWord(decoder.data)
        right   = Signal()
        mine    = Signal()
        own     = Signal()
        too_old = Signal()
        begins  = Signal()  # a START or RESUME is dealt with
        number  = Signal(NUMBER_BITS)
        source  = Signal(ADDRESS_BITS)
        status  = Signal(STATUS_BITS)
        of      = Signal(channels)  # the stripped packet's channel
        is_self = Signal()          # this node sent it
        self.comb += [
            right.eq(decoder.is_data & word.right & (is_resume | one_prefix)),
            mine.eq(word.target == address),
            own.eq(word.source == address),
            too_old.eq(word.old & self.scrubber),
            begins.eq(process & self.up & (is_start | is_resume)),
            ask.valid.eq(begins & is_start & right & mine),
            ask.channel.eq(channel),
            ask.source.eq(word.source),
            ask.head.eq(word.head),
            self.misrouted.eq(begins & ~right),
            self.scrubbed.eq(begins & right & ~mine & ~own & too_old),
            self.taking.eq(Mux(takes | refuses | echoes, of, 0)),
        ]

        # Words of a Packet ------------------------------------------------------------------------
        count  = Signal(max=max(packet_words) + 1)
        first  = Signal()
        closes = Signal()  # the packet that is stripped ends here
        clash  = Signal()  # the next packet begins without an end of this one
        whole  = Signal()  # a good end
        longest = Signal()
        self.comb += [
            clash.eq(now_begins),
            whole.eq(decoder.is_end),
            closes.eq(process & is_data & (takes | refuses) &
                (now_ends | now_is_odd | clash | ~self.up)),
            longest.eq(reduce(or_, [
                of[n] & (count == words - 1) for n, words in enumerate(packet_words)])),
            take.valid.eq(process & is_data & takes & ~second),
            take.channel.eq(of),
            take.data.eq(held),
            take.first.eq(first),
            take.last.eq(closes | longest),
            take.bad.eq(take.last & ~(closes & whole & self.up)),
        ]
        self.sync += If(process,
            second.eq(0),
            If(begins,
                second.eq(1),
                marks.eq(self.scrubber),
                passes.eq(is_start & right & ~mine & ~own & ~too_old),
                pair.eq(is_resume & right & ~mine & ~own & ~too_old),
                takes.eq(ask.valid & self.accept),
                refuses.eq(ask.valid & ~self.accept),
                echoes.eq(0),
                cuts.eq(0),
                status.eq(self.refusal),
                number.eq(word.number),
                source.eq(word.source),
                of.eq(channel),
                is_self.eq(own),
                first.eq(1),
                count.eq(0),
            ).Elif(is_data,
                pair.eq(0),
                If(take.valid,
                    first.eq(0),
                    count.eq(count + 1),
                    If(longest,
                        takes.eq(0),
                        refuses.eq(1),
                        status.eq(DAMAGED),
                    ),
                ),
                If(closes,
                    takes.eq(0),
                    refuses.eq(0),
                    echoes.eq(~clash & ~is_self),
                    If(takes, status.eq(Mux(whole, ACCEPTED, DAMAGED))),
                ),
                If(passes & now_begins, passes.eq(0)),
                If(passes & now_is_odd,
                    passes.eq(0),
                    cuts.eq(1),
                ),
            ).Else(
                passes.eq(0),
                echoes.eq(0),
                cuts.eq(0),
            ),
        )
        self.sync += If(~self.up,
            passes.eq(0),
            pair.eq(0),
            takes.eq(0),
            refuses.eq(0),
            echoes.eq(0),
            cuts.eq(0),
        )

        # What Leaves ------------------------------------------------------------------------------
        coded = Signal(2)
        echo_statements, echo_word = ring_word(source, address, number, status)
        self.comb += [
            *echo_statements,
            coded.eq(number_of(of)),
            self.housekeep.valid.eq(full & is_keeper & ~(echoes | cuts)),
            self.housekeep.data.eq(held),
            push.data.eq(held),
            push.k.eq(held_k),
            If(process,
                If(is_keeper & ~(echoes | cuts),
                    push.valid.eq(self.keep.valid),
                    push.data.eq(self.keep.data)
                ).Elif(~self.up,
                    push.valid.eq(0)
                ).Elif(is_start | is_resume,
                    push.valid.eq(right & ~mine & ~own & ~too_old)
                ).Elif(echoes,
                    push.valid.eq(1),
                    push.data.eq(echo_word),
                    push.k.eq(0)
                ).Elif(cuts,
                    push.valid.eq(1),
                    push.data.eq(K_END_BAD),
                    push.k.eq(1)
                ).Elif(is_data & closes & ~clash & ~is_self,
                    push.valid.eq(1),
                    push.data.eq(resume_word(coded)),
                    push.k.eq(1)
                ).Elif(is_data & passes & now_begins,
                    # Its END was lost, so the last word's place is that of END BAD.
                    push.valid.eq(1),
                    push.data.eq(K_END_BAD),
                    push.k.eq(1)
                ).Elif(is_data,
                    push.valid.eq(passes | pair),
                    push.data.eq(Mux(second & marks, held ^ OLD_MASK, held))
                ).Elif(is_end,
                    push.valid.eq(passes)
                ),
            ),
        ]

        # Answers ----------------------------------------------------------------------------------
        # An echo or a grant for this node; the own packet that came round without being taken; and
        # the end of a packet from this node to itself.
        absent = Signal()
        closed = Signal()
        self.comb += [
            absent.eq(begins & is_start & right & ~mine & own),
            closed.eq(closes & is_self),
            answer.valid.eq((begins & is_resume & right & mine) | absent | closed),
            answer.number.eq(word.number),
            answer.source.eq(word.source),
            answer.channel.eq(number_of(channel)),
            answer.status.eq(word.status),
            If(absent, answer.status.eq(LOST)),
            If(closed,
                answer.number.eq(number),
                If(takes,
                    answer.status.eq(Mux(whole, ACCEPTED, DAMAGED))
                ).Else(
                    answer.status.eq(status)
                ),
            ),
        ]
