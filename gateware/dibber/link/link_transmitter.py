"""Link transmitter: frame the packets of all channels and interleave them word by word."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import serial_tx_layout, word_layout
from dibber.link.stop_state import FlowSchedule
from dibber.link.symbols import (FIRST_IS_K, K_END, K_END_BAD, NONCE_PERIOD_WORDS, NONCE_TRAIN_WORDS,
    PONG_REST_WORDS, flow_word, nonce_word, ping_word, pong_word, prefixed_start_word, resume_word)

# Words that the lower-priority channels get after a whole packet, if they want them.
TURN_WORDS = 32

class LinkTransmitter(LiteXModule):
    """Frame packets and interleave them; insert the flow state between and within them.

    For each word the arbiter grants the lowest channel that offers a word and is not stopped. A
    START or RESUME marks a change of channel. The END follows a packet's last word at once, because
    sending another channel first would cost a RESUME. After an END of any channel except CONTROL,
    the channels of lower priority get up to TURN_WORDS words before that channel, or one between,
    may start again. So no channel starves.

    When the link is lost, the rest of each begun packet is discarded; the other end drops its part.
    A word with `first` inside a packet shows that its sender was reset: the old packet ends as bad.

    Priority of words: twin of a flow word, pong, flow word that is due, ping, nonce that is due
    (only after a word that was not a packet's), END, packets, filler flow word. At least
    PONG_REST_WORDS other words follow a pong. So pings of the other end cannot flood this
    direction, and delay a word that is due by at most one word.

    Parameters
    ----------
    channels : number of virtual channels, 2 to 4

    Attributes
    ----------
    sinks  : list of Endpoint(word_layout), in   `bad` on the last word: the packet ends as bad
    source : Endpoint(serial_tx_layout), out
    up     : Signal(), in          packets may be sent
    go     : Signal(channels), in  the other end accepts this channel
    flow   : Signal(8), in         state to send: STOP bits and "I hear you"
    told   : Signal(8), out        the state in the last flow word
    nonce  : Signal(16), in
    ping   : Record(valid, ready, number), in   `ready`: it goes into the output register
    pong   : Record(valid, ready, number), in
    waits  : Signal(), out         a packet waits for GO

    Cycles: 1 from a word to its symbols; 2 words between packets, 1 between words of different
    packets.
    """
    def __init__(self, channels):
        assert 2 <= channels <= 4
        self.sinks  = sinks  = [stream.Endpoint(word_layout()) for _ in range(channels)]
        self.source = source = stream.Endpoint(serial_tx_layout())
        self.up     = Signal()
        self.go     = Signal(channels)
        self.flow   = Signal(8)
        self.told   = Signal(8)
        self.nonce  = Signal(16)
        self.ping   = stream.Endpoint([("number", 8)])
        self.pong   = stream.Endpoint([("number", 8)])
        self.waits  = Signal()

        # # #

        step = Signal()  # the output register takes a word
        self.schedule = schedule = FlowSchedule()
        self.comb += [
            step.eq(~source.valid | source.ready),
            schedule.flow.eq(self.flow),
            schedule.step.eq(step),
            self.told.eq(schedule.told),
        ]

        # Channels ---------------------------------------------------------------------------------
        all_channels   = range(channels)
        # The channel may send: the other end accepts it, and no lost packet is being discarded.
        allowed         = Signal(channels)
        wants           = Signal(channels)  # offers a word, and may send it
        choice          = Signal(channels)  # one-hot: the lowest of these
        active  = Signal(channels)  # one-hot: channel of the last START or RESUME; 0 after END
        higher_priority = Signal(channels)  # the channels below `active`
        begun           = Signal(channels)  # START was sent, END not yet
        word_sent       = Signal(channels)  # a word after START was sent
        lost    = Signal(channels)  # the link was lost within a packet, whose end has not come yet
        lost_next       = Signal(channels)  # `lost` in the next cycle
        end_due         = Signal()          # the last word of the active channel's packet was sent
        bad             = Signal()
        start_held = Signal(channels)  # must not start a packet now: lower priorities have a turn
        valid           = Cat(*[sink.valid for sink in sinks])
        self.comb += [
            wants.eq(valid & allowed & (begun | ~start_held)),
            *[choice[n].eq(wants[n] & (wants[:n] == 0) if n else wants[n]) for n in all_channels],
            *[If(~self.up & word_sent[n] & ~(end_due & active[n]),
                lost_next[n].eq(1)
            ).Elif(sink.valid & (sink.first | sink.last),
                lost_next[n].eq(0)
            ).Else(
                lost_next[n].eq(lost[n])
            ) for n, sink in enumerate(sinks)],
        ]
        self.sync += [
            lost.eq(lost_next),
            allowed.eq(self.go & ~lost_next),
            self.waits.eq(self.up & ((valid & ~self.go & ~lost) != 0)),
        ]

        # What goes --------------------------------------------------------------------------------
        not_packet   = Signal()  # the word is no packet's word
        free         = Signal()  # a packet's word, START, RESUME or END may be sent
        same_channel = Signal()  # the granted channel is `active`
        new_first    = Signal()  # its word begins another packet within the last one
        packet_word  = Signal()  # a word of a packet is sent
        switches     = Signal()  # START or RESUME is sent
        sends_end    = Signal()  # END or END BAD is sent
        of_active    = lambda values: reduce(
            or_, [active[n] & value for n, value in enumerate(values)])
        self.comb += [
            free.eq(step & self.up & ~not_packet),
            same_channel.eq(((valid & allowed & active) != 0) & ((wants & higher_priority) == 0)),
            new_first.eq(of_active([word_sent[n] & sink.first for n, sink in enumerate(sinks)])),
            packet_word.eq(free & ~end_due & same_channel & ~new_first),
            switches.eq(free & ~end_due & ~same_channel & (wants != 0)),
            sends_end.eq(free & (end_due | (same_channel & new_first))),
            *[
                sink.ready.eq((packet_word & active[n]) | (lost[n] & ~sink.first))
                for n, sink in enumerate(sinks)],
        ]
        self.sync += [
            If(packet_word,
                word_sent.eq(word_sent | active),
                end_due.eq(of_active([sink.last for sink in sinks])),
                bad.eq(of_active([sink.bad for sink in sinks])),
            ),
            If(switches,
                active.eq(choice),
                higher_priority.eq(Cat(*[choice[n + 1:] != 0 for n in all_channels[:-1]])),
                begun.eq(begun | choice),
            ),
            If(sends_end,
                active.eq(0),
                begun.eq(begun & ~active),
                word_sent.eq(word_sent & ~active),
                end_due.eq(0),
            ),
            If(~self.up,
                active.eq(0),
                begun.eq(0),
                word_sent.eq(0),
                end_due.eq(0),
            ),
        ]

        # Turns ------------------------------------------------------------------------------------
        # A channel that offers a word keeps offering it. So the offers at the END are still valid
        # after it.
        turn_left   = Signal(max=TURN_WORDS)
        served      = Signal(channels)  # channels that have the turn, while others are held
        offer       = Signal(channels)
        served_word = Signal()          # a word of a served channel is sent
        self.comb += [
            served.eq(~start_held & ((1 << channels) - 2)),
            offer.eq(valid & allowed),
            served_word.eq(packet_word & ((active & served) != 0)),
        ]
        self.sync += [
            If(served_word, turn_left.eq(turn_left - 1)),
            If((served_word & (turn_left == 0)) | (free & ((offer & served) == 0)),
                start_held.eq(0)
            ),
            *[If(sends_end & active[n] & (offer[n + 1:] != 0),
                turn_left.eq(TURN_WORDS - 1),
                start_held.eq((2 << n) - 2),
            ) for n in all_channels[1:-1]],
        ]

        # Nonce ------------------------------------------------------------------------------------
        nonce_due   = Signal()
        sends_nonce = Signal()
        is_filler   = Signal()  # the word is only a filler
        age         = Signal(max=NONCE_PERIOD_WORDS)
        nonce_old   = Signal()
        self.comb += nonce_old.eq(
            (age == NONCE_PERIOD_WORDS - 1) | (~self.up & (age >= NONCE_TRAIN_WORDS - 1)))
        self.sync += If(step,
            If(sends_nonce,
                age.eq(0),
                nonce_due.eq(0)
            ).Else(
                If(nonce_old & is_filler, nonce_due.eq(1)),
                If(age != NONCE_PERIOD_WORDS - 1, age.eq(age + 1))
            ),
        )

        # Pongs ------------------------------------------------------------------------------------
        sends_pong   = Signal()
        pong_blocked = Signal()               # no pong for `block_left` + 1 more words
        block_left   = Signal(max=PONG_REST_WORDS)
        self.sync += If(step,
            If(sends_pong,
                block_left.eq(PONG_REST_WORDS - 1),
                pong_blocked.eq(1)
            ).Elif(pong_blocked,
                block_left.eq(block_left - 1),
                pong_blocked.eq(block_left != 0)
            ),
        )

        # Symbols ----------------------------------------------------------------------------------
        # Two output registers. `early` has what is known early in the cycle: words of no packet,
        # and words of the active channel. `late` has what depends on the channels' offers.
        early   = Signal(32)
        early_k = Signal()
        late    = Signal(32)
        is_late = Signal()
        begin   = reduce(
            or_,
            [Mux(choice[n], Mux(begun[n], resume_word(n), prefixed_start_word(n, sink.prefix)), 0)
            for n, sink in enumerate(sinks)])
        data    = Signal(32)
        self.comb += [
            not_packet.eq(1),
            If(self.pong.valid & ~pong_blocked & ~schedule.twin,
                data.eq(pong_word(self.pong.number)),
                self.pong.ready.eq(step),
                sends_pong.eq(1)
            ).Elif(schedule.due,
                data.eq(flow_word(self.flow)),
                schedule.sent.eq(1)
            ).Elif(self.ping.valid,
                data.eq(ping_word(self.ping.number)),
                self.ping.ready.eq(step)
            ).Elif(nonce_due,
                data.eq(nonce_word(self.nonce)),
                sends_nonce.eq(1)
            ).Else(
                not_packet.eq(0),
                data.eq(reduce(or_, [Mux(active[n], sink.data, 0) for n, sink in enumerate(sinks)]))
            ),
            is_filler.eq(~not_packet & ~(self.up & (end_due | (wants != 0)))),
            schedule.filled.eq(is_filler),
            source.data.eq(Mux(is_late, late, early)),
            source.k.eq(Mux(is_late | early_k, FIRST_IS_K, 0)),
        ]
        self.sync += If(step,
            source.valid.eq(1),
            early.eq(data),
            early_k.eq(not_packet),
            is_late.eq(~not_packet & ~packet_word),
            If(~self.up,
                late.eq(flow_word(self.told))
            ).Elif(end_due,
                late.eq(Mux(bad, K_END_BAD, K_END))
            ).Elif(same_channel,
                late.eq(K_END_BAD)
            ).Elif(wants != 0,
                late.eq(begin)
            ).Else(
                late.eq(flow_word(self.told))
            ),
        )
