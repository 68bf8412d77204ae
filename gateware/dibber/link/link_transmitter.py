"""Packets of channels to symbols, interleaved."""

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

# Words that the channels behind have after a whole packet, if they want them.
TURN_WORDS = 32

class LinkTransmitter(LiteXModule):
    """Frame packets and interleave them, and tell the flow state in between and inside.

    At every word the lowest channel that offers one and is not stopped goes; a START or RESUME says
    that the channel changes. The END follows the last word whatever else waits: it is one word, and
    a RESUME for it would be another. After the END of any channel but CONTROL those behind it have
    TURN_WORDS words before it, or one between, may start again, so that none of them starves.

    When the link is lost the rest of each begun packet is taken and forgotten; the other end drops
    what it had of it. A `first` word inside a packet tells that its sender was reset: the old
    packet ends as bad.

    A word is the first that applies of: twin of a flow word, pong, flow word that is due, ping,
    nonce that is due (only where the word before was not a packet's), END, packets, flow word.
    PONG_REST_WORDS others follow a pong, so the other end's pings take one word in so many and
    delay nothing that is due by more than one.

    Parameters
    ----------
    channels : number of virtual channels, 2 to 4

    Attributes
    ----------
    sinks  : list of Endpoint(word_layout), in   `bad` on the last word: it ends as one to be
             dropped
    source : Endpoint(serial_tx_layout), out
    up     : Signal(), in          packets may be sent
    go     : Signal(channels), in  the other end takes this channel
    flow   : Signal(8), in         what to tell: STOP bits and "I hear you"
    told   : Signal(8), out        what was told last
    nonce  : Signal(16), in
    ping   : Record(valid, ready, number), in   `ready`: it goes into the output register
    pong   : the same
    waits  : Signal(), out         a packet waits for GO

    Cycles: 1 from a word to its symbols; 2 words between packets, 1 between words of different
    ones.
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
        every   = range(channels)
        # a word may go as far as the other end and a lost link are concerned
        allowed = Signal(channels)
        wants   = Signal(channels)  # one is there, and it is the channel's turn
        choice  = Signal(channels)  # the lowest of those
        on      = Signal(channels)  # the channel of the last START or RESUME; none after END
        lower   = Signal(channels)  # those before it
        begun   = Signal(channels)  # START was sent, END not yet
        taken   = Signal(channels)  # and a word after it
        lost    = Signal(channels)  # the link was lost inside a packet, whose end has not come yet
        loses   = Signal(channels)  # `lost` in the next cycle
        ending  = Signal()          # the last word of the packet that is `on` was sent
        bad     = Signal()
        held    = Signal(channels)  # may not start now, for the sake of those behind
        valid   = Cat(*[sink.valid for sink in sinks])
        self.comb += [
            wants.eq(valid & allowed & (begun | ~held)),
            *[choice[n].eq(wants[n] & (wants[:n] == 0) if n else wants[n]) for n in every],
            *[If(~self.up & taken[n] & ~(ending & on[n]),
                loses[n].eq(1)
            ).Elif(sink.valid & (sink.first | sink.last),
                loses[n].eq(0)
            ).Else(
                loses[n].eq(lost[n])
            ) for n, sink in enumerate(sinks)],
        ]
        self.sync += [
            lost.eq(loses),
            allowed.eq(self.go & ~loses),
            self.waits.eq(self.up & ((valid & ~self.go & ~lost) != 0)),
        ]

        # What goes --------------------------------------------------------------------------------
        fixed  = Signal()  # a word that is none of a packet's
        free   = Signal()  # for packets
        stays  = Signal()  # the channel that goes is `on`
        again  = Signal()  # its word begins another packet inside the last one
        takes  = Signal()  # a word of a packet goes
        turns  = Signal()  # START or RESUME goes
        closes = Signal()  # END or END BAD goes
        of_on  = lambda values: reduce(or_, [on[n] & value for n, value in enumerate(values)])
        self.comb += [
            free.eq(step & self.up & ~fixed),
            stays.eq(((valid & allowed & on) != 0) & ((wants & lower) == 0)),
            again.eq(of_on([taken[n] & sink.first for n, sink in enumerate(sinks)])),
            takes.eq(free & ~ending & stays & ~again),
            turns.eq(free & ~ending & ~stays & (wants != 0)),
            closes.eq(free & (ending | (stays & again))),
            *[sink.ready.eq((takes & on[n]) | (lost[n] & ~sink.first)) for n, sink in enumerate(sinks)],
        ]
        self.sync += [
            If(takes,
                taken.eq(taken | on),
                ending.eq(of_on([sink.last for sink in sinks])),
                bad.eq(of_on([sink.bad for sink in sinks])),
            ),
            If(turns,
                on.eq(choice),
                lower.eq(Cat(*[choice[n + 1:] != 0 for n in every[:-1]])),
                begun.eq(begun | choice),
            ),
            If(closes,
                on.eq(0),
                begun.eq(begun & ~on),
                taken.eq(taken & ~on),
                ending.eq(0),
            ),
            If(~self.up,
                on.eq(0),
                begun.eq(0),
                taken.eq(0),
                ending.eq(0),
            ),
        ]

        # Turns ------------------------------------------------------------------------------------
        # A channel that offers a word goes on offering it, so what is seen at the END holds after
        # it.
        turn   = Signal(max=TURN_WORDS)
        behind = Signal(channels)  # those for whose sake others are held
        offer  = Signal(channels)
        spent  = Signal()          # a word of them goes
        self.comb += [
            behind.eq(~held & ((1 << channels) - 2)),
            offer.eq(valid & allowed),
            spent.eq(takes & ((on & behind) != 0)),
        ]
        self.sync += [
            If(spent, turn.eq(turn - 1)),
            If((spent & (turn == 0)) | (free & ((offer & behind) == 0)), held.eq(0)),
            *[If(closes & on[n] & (offer[n + 1:] != 0),
                turn.eq(TURN_WORDS - 1),
                held.eq((2 << n) - 2),
            ) for n in every[1:-1]],
        ]

        # Nonce ------------------------------------------------------------------------------------
        greets = Signal()  # a nonce is to go
        greet  = Signal()  # it goes
        filled = Signal()  # a word goes that nobody needs
        age    = Signal(max=NONCE_PERIOD_WORDS)
        old    = Signal()
        self.comb += old.eq((age == NONCE_PERIOD_WORDS - 1) | (~self.up & (age >= NONCE_TRAIN_WORDS - 1)))
        self.sync += If(step,
            If(greet,
                age.eq(0),
                greets.eq(0)
            ).Else(
                If(old & filled, greets.eq(1)),
                If(age != NONCE_PERIOD_WORDS - 1, age.eq(age + 1))
            ),
        )

        # Pongs ------------------------------------------------------------------------------------
        answer = Signal()                     # a pong goes
        rests  = Signal()                     # the next one may not yet, for so many words and one:
        rest   = Signal(max=PONG_REST_WORDS)
        self.sync += If(step,
            If(answer,
                rest.eq(PONG_REST_WORDS - 1),
                rests.eq(1)
            ).Elif(rests,
                rest.eq(rest - 1),
                rests.eq(rest != 0)
            ),
        )

        # Symbols ----------------------------------------------------------------------------------
        # What is known early stands in one register: words that are none of packets', and those of
        # the channel that is `on`. What depends on who offers a word in this cycle stands in the
        # other.
        early   = Signal(32)
        early_k = Signal()
        late    = Signal(32)
        is_late = Signal()
        begin   = reduce(or_, [Mux(choice[n], Mux(begun[n], resume_word(n), prefixed_start_word(n, sink.prefix)), 0)
            for n, sink in enumerate(sinks)])
        data    = Signal(32)
        self.comb += [
            fixed.eq(1),
            If(self.pong.valid & ~rests & ~schedule.twin,
                data.eq(pong_word(self.pong.number)),
                self.pong.ready.eq(step),
                answer.eq(1)
            ).Elif(schedule.due,
                data.eq(flow_word(self.flow)),
                schedule.sent.eq(1)
            ).Elif(self.ping.valid,
                data.eq(ping_word(self.ping.number)),
                self.ping.ready.eq(step)
            ).Elif(greets,
                data.eq(nonce_word(self.nonce)),
                greet.eq(1)
            ).Else(
                fixed.eq(0),
                data.eq(reduce(or_, [Mux(on[n], sink.data, 0) for n, sink in enumerate(sinks)]))
            ),
            filled.eq(~fixed & ~(self.up & (ending | (wants != 0)))),
            schedule.filled.eq(filled),
            source.data.eq(Mux(is_late, late, early)),
            source.k.eq(Mux(is_late | early_k, FIRST_IS_K, 0)),
        ]
        self.sync += If(step,
            source.valid.eq(1),
            early.eq(data),
            early_k.eq(fixed),
            is_late.eq(~fixed & ~takes),
            If(~self.up,
                late.eq(flow_word(self.told))
            ).Elif(ending,
                late.eq(Mux(bad, K_END_BAD, K_END))
            ).Elif(stays,
                late.eq(K_END_BAD)
            ).Elif(wants != 0,
                late.eq(begin)
            ).Else(
                late.eq(flow_word(self.told))
            ),
        )
