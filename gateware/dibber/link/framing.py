# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Packets of channels to symbols, and back."""

from migen import *
from migen.genlib.coding import PriorityEncoder

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import serial_rx_layout, serial_tx_layout, word_layout
from dibber.link.symbols import (FIRST_IS_K, FLOW_FILL, FLOW_PERIOD_WORDS, FLOW_REPEATS,
    FLOW_REPEAT_WORDS, K_COMMA, K_END, K_END_BAD, K_START, flow_word, start_word)
from dibber.packet.crc import crc8

# Transmitter --------------------------------------------------------------------------------------

class LinkTransmitter(LiteXModule):
    """Frame packets, and tell the flow state in between and inside.

    At packet boundaries the lowest channel goes first, so that CONTROL waits for no more than the
    packet that was begun. When the link is lost inside a packet, its rest is taken and forgotten; the
    other end drops what it had of it. A `first` word inside a packet tells that its sender was reset:
    the old packet ends as bad.

    Parameters
    ----------
    channels : number of virtual channels

    Attributes
    ----------
    sinks  : list of Endpoint(word_layout), in   `bad` on the last word: it ends as one to be dropped
    source : Endpoint(serial_tx_layout), out
    up     : Signal(), in          packets may be sent
    go     : Signal(channels), in  the other end takes this channel
    flow   : Signal(8), in         what to tell: STOP bits and "I hear you"
    waits  : Signal(), out         a packet waits for GO

    Cycles: 1 from a word to its symbols; 2 words between packets.
    """
    def __init__(self, channels):
        self.sinks  = sinks  = [stream.Endpoint(word_layout()) for _ in range(channels)]
        self.source = source = stream.Endpoint(serial_tx_layout())
        self.up     = Signal()
        self.go     = Signal(channels)
        self.flow   = Signal(8)
        self.waits  = Signal()

        # # #

        offered = Cat(*[sink.valid for sink in sinks])
        chosen  = Signal(max=max(channels, 2))
        word    = stream.Endpoint(word_layout())  # of the chosen channel
        may_go  = Signal()
        begun   = Signal()                        # a word of the packet was taken
        bad     = Signal()
        self.pick = pick = PriorityEncoder(channels)
        self.comb += [
            pick.i.eq(offered & self.go),
            self.waits.eq(self.up & ((offered & ~self.go) != 0)),
            Case(chosen, {n: [
                sink.connect(word),
                may_go.eq(self.go[n]),
            ] for n, sink in enumerate(sinks)}),
        ]

        # Flow state: at once when it changes, soon again, and at least once in FLOW_PERIOD_WORDS.
        step = Signal()  # the output register takes a word
        data = Signal(32)
        k    = Signal(4)
        due  = Signal()
        told = Signal(8)
        age  = Signal(max=FLOW_PERIOD_WORDS)
        soon = Signal(max=FLOW_REPEATS + 1)  # quick repeats still to come
        flow = Signal()  # it is a flow word
        self.comb += [
            step.eq(~source.valid | source.ready),
            due.eq((self.flow != told) | (age == FLOW_PERIOD_WORDS - 1) |
                ((soon != 0) & (age >= FLOW_REPEAT_WORDS - 1))),
        ]
        self.sync += If(step,
            source.valid.eq(1),
            source.data.eq(data),
            source.k.eq(k),
            age.eq(age + 1),
            If(flow,
                age.eq(0),
                told.eq(self.flow),
                If(self.flow != told,
                    soon.eq(FLOW_REPEATS)
                ).Elif(soon != 0,
                    soon.eq(soon - 1)
                ),
            ),
        )

        # One word a cycle: what a state does not use is a flow word.
        may_send = Signal()
        start, start_kind = start_word(pick.o)
        self.comb += [
            start_kind,
            may_send.eq(step & ~due & self.up),
        ]
        self.fsm = fsm = FSM(reset_state="IDLE")
        self.comb += [
            flow.eq(1),
            k.eq(FIRST_IS_K),
            data.eq(flow_word(self.flow)),
            If(may_send,
                If(fsm.ongoing("IDLE") & ~pick.n,
                    flow.eq(0),
                    data.eq(start)
                ),
                If(fsm.ongoing("PACKET") & word.valid & word.ready,
                    flow.eq(0),
                    k.eq(0),
                    data.eq(word.data)
                ),
                If(fsm.ongoing("END"),
                    flow.eq(0),
                    data.eq(Mux(bad, K_END_BAD, K_END))
                )
            )
        ]
        again = Signal()  # the word begins another packet
        self.comb += again.eq(word.first & begun)
        fsm.act("IDLE",
            NextValue(begun, 0),
            If(may_send & ~pick.n,
                NextValue(chosen, pick.o),
                NextState("PACKET")
            )
        )
        fsm.act("PACKET",
            word.ready.eq(may_send & may_go & ~again),
            If(~self.up,
                NextState("IDLE"),
                If(begun, NextState("LOST"))
            ).Elif(word.valid & again,
                NextValue(bad, 1),
                NextState("END")
            ).Elif(word.valid & word.ready,
                NextValue(begun, 1),
                If(word.last,
                    NextValue(bad, word.bad),
                    NextState("END")
                )
            )
        )
        fsm.act("END",
            If(may_send | ~self.up, NextState("IDLE"))
        )
        fsm.act("LOST",
            word.ready.eq(~again),
            If(word.valid & (word.last | again), NextState("IDLE"))
        )

# Receiver -----------------------------------------------------------------------------------------

class LinkReceiver(LiteXModule):
    """Find the words, take packets out of their frames, and hear the flow state.

    Whatever cannot be a part of a packet ends it as bad: an erroneous symbol, an unknown control word,
    a start before the end, the loss of the link. A word is held until the next one tells whether
    it was the last.

    Parameters
    ----------
    channels : number of virtual channels

    Attributes
    ----------
    sink    : Endpoint(serial_rx_layout), in
    sources : list of Endpoint(word_layout), out   without back-pressure
    hunt    : Signal(), in       take the lane of any comma as the first of a word
    up      : Signal(), in       packets are believed
    heard   : Signal(), out      a flow word came
    flow    : Signal(8), out     with `heard`: what it says
    code_error, disparity_error : Signal(), out  one cycle a word with such errors, but not while hunting

    Cycles: 1 from a word's successor to `sources`; a word more when the lanes are not aligned.
    """
    def __init__(self, channels):
        self.sink    = sink    = stream.Endpoint(serial_rx_layout())
        self.sources = sources = [stream.Endpoint(word_layout()) for _ in range(channels)]
        self.hunt    = Signal()
        self.up      = Signal()
        self.heard   = Signal()
        self.flow    = Signal(8)
        self.code_error      = Signal()
        self.disparity_error = Signal()

        # # #

        # Alignment --------------------------------------------------------------------------------
        lane   = Signal(2)
        errors = Signal(4)
        before = [Signal(10) for _ in range(4)]  # symbol, K flag and error of the previous word
        now    = [Cat(sink.data[8*n:8*n + 8], sink.k[n], errors[n]) for n in range(4)]
        word   = [Signal(10, name=f"symbol{n}") for n in range(4)]
        valid  = Signal()
        self.comb += [
            sink.ready.eq(1),
            errors.eq(sink.code_error | sink.disparity_error),
            self.code_error.eq(sink.valid & ~self.hunt & (sink.code_error != 0)),
            self.disparity_error.eq(sink.valid & ~self.hunt & (sink.disparity_error != 0)),
        ]
        self.sync += [
            valid.eq(sink.valid),
            If(sink.valid,
                *[b.eq(n) for b, n in zip(before, now)],
                Case(lane, {n: [w.eq(s) for w, s in zip(word, (before[n:] + now[:n]) if n else now)]
                            for n in range(4)}),
                If(self.hunt, *[
                    If((sink.data[8*n:8*n + 8] == K_COMMA) & sink.k[n] & ~errors[n], lane.eq(n))
                    for n in range(4)]),
            ),
        ]

        # Decoding ---------------------------------------------------------------------------------
        s        = [symbol[:8] for symbol in word]
        k        = Cat(*[symbol[8] for symbol in word])
        data     = Cat(*s)
        clean    = Signal()
        control  = Signal()
        is_data  = Signal()
        is_start = Signal()
        is_end   = Signal()
        is_wrong = Signal()
        empty    = Signal()
        self.comb += [
            clean.eq(valid & (Cat(*[symbol[9] for symbol in word]) == 0)),
            control.eq(clean & (k == FIRST_IS_K)),
            empty.eq((s[1] == 0) & (s[2] == 0) & (s[3] == 0)),
            is_data.eq(clean & (k == 0)),
            self.heard.eq(control & (s[0] == K_COMMA) & ((s[1] ^ s[2]) == 0xff) & (s[3] == FLOW_FILL)),
            self.flow.eq(s[1]),
            is_start.eq(control & (s[0] == K_START) & (s[1] < channels) & (s[2] == crc8(s[1])) & (s[3] == 0)),
            is_end.eq(control & (s[0] == K_END) & empty),
            # K30.7 is among these: to the packet, the end that says bad is as bad as any other.
            is_wrong.eq(valid & ~(is_data | self.heard | is_start | is_end)),
        ]

        # Packets ----------------------------------------------------------------------------------
        inside  = Signal()
        channel = Signal(2)
        held    = Signal(32)
        holds   = Signal()
        fresh   = Signal()  # nothing of the packet was handed on yet
        closes  = Signal()
        hands   = Signal()
        self.comb += [
            closes.eq(inside & (is_start | is_end | is_wrong | ~self.up)),
            hands.eq(holds & (closes | (inside & is_data))),
            *[[
                source.valid.eq(hands & (channel == n)),
                source.channel.eq(n),
                source.data.eq(held),
                source.first.eq(fresh),
                source.last.eq(closes),
                source.bad.eq(closes & ~(is_end & self.up)),
            ] for n, source in enumerate(sources)],
        ]
        self.sync += [
            If(inside & is_data,
                held.eq(data),
                holds.eq(1)
            ),
            If(hands, fresh.eq(0)),
            If(closes,
                inside.eq(0),
                holds.eq(0)
            ),
            If(is_start & self.up,
                inside.eq(1),
                channel.eq(s[1]),
                fresh.eq(1)
            ),
        ]
