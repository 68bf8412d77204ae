"""The switch answers scouts that end at it: one word of its registers each."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.crc import CRC32C
from dibber.fabric.switch.prefix import order_layout
from dibber.interface.description import C, PACKET, PACKET_HEADER
from dibber.interface.register_bank import line_port
from dibber.layouts import word_layout
from dibber.packet.header import header_word, header_words
from dibber.packet.route import HOP_BITS, TURN_BITS, hops_of, prefix_word, turn_of

# Cycles in which the words of a scout must come. A good scout needs far fewer.
PATIENCE_CYCLES = 4096

# Bits of a scout's number that are written.
VALUE_LSB = 16

# Teller -------------------------------------------------------------------------------------------

class Teller(LiteXModule):
    """Take a scout whose route ends at this switch, access the word that it asks for, and answer.

    The scout's words are seen while an input discards them. The answer goes out at the port where
    the scout came in, by the way back that the scout names, as a packet of the crossbar's guest.
    There is one scout at a time. Others that come meanwhile are dropped, as on a bad cable.

    The number of the scout, which comes back with the answer, is the question: constants
    SWITCH_ASK_WORD and SWITCH_ASK_WRITE.

    Parameters
    ----------
    inputs : list of SwitchInput, of channel CONTROL, by port

    Attributes
    ----------
    source  : Endpoint(word_layout), out   answers; the first word is an order for the guest
    port    : line_port(32)                to the registers, as their master
    granted : Signal(), in                 an access of `port` is taken in this cycle
    at      : Signal, out                  the port where the scout came in
    refused : Signal(ports), out           one cycle: a packet that ended here at this port was no
              good scout
    busy    : Signal(ports), out           one cycle: the same, another scout was being answered

    Cycles: some 30 from the scout's last word to the answer's last one.
    """
    def __init__(self, inputs):
        ports = len(inputs)
        self.source  = source = stream.Endpoint(word_layout())
        self.port    = port   = line_port(32)
        self.granted = Signal()
        self.at      = at     = Signal(max=ports)
        self.refused = Signal(ports)
        self.busy    = Signal(ports)

        # # #

        # Scout ------------------------------------------------------------------------------------
        ending   = Signal(ports)
        choice   = Signal(max=ports)
        idle     = Signal()
        sender   = Signal(16)
        number   = Signal(32)
        back     = Signal(32)
        self.comb += ending.eq(Cat(*[one.ends for one in inputs]))
        for n in reversed(range(ports)):
            self.comb += If(ending[n], choice.eq(n))
        self.comb += self.busy.eq(Mux(idle, ending & (ending - 1), ending))

        # The word that the input discards, one cycle later.
        word  = Record([("valid", 1), ("data", 32), ("last", 1), ("bad", 1)])
        sinks = [one.sink for one in inputs]
        self.sync += [
            word.valid.eq(Array([one.discards for one in inputs])[at]),
            word.data.eq(Array([sink.data for sink in sinks])[at]),
            word.last.eq(Array([sink.last for sink in sinks])[at]),
            word.bad.eq(Array([sink.bad for sink in sinks])[at]),
        ]

        # The sum of a scout's words as they come, then that of the answer's as they leave.
        self.crc = crc = CRC32C()
        index    = Signal(max=C.HEADER_WORDS + 1)
        wrong    = Signal()  # a word is not as in a scout
        form     = Signal()  # this word is
        patience = Signal(max=PATIENCE_CYCLES)
        kind     = PACKET.SCOUT << 8*(PACKET_HEADER["kind"].offset % 4)
        self.comb += [
            form.eq(1),
            Case(index, {
                header_word("kind"):  form.eq(word.data == kind),
                header_word("psn"):   form.eq(word.data == 0),
                # Not more hops than an answer can have.
                header_word("offset_low"): form.eq(~word.data[HOP_BITS]),
                C.HEADER_WORDS - 1:   form.eq(word.data == 0),
                C.HEADER_WORDS:       form.eq(word.last & ~word.bad & (word.data == crc.value)),
            }),
        ]

        # Answer -----------------------------------------------------------------------------------
        route = Signal(32)
        hops  = Signal(HOP_BITS)
        value = Signal(32)
        order = Record(order_layout())
        words, assign = header_words(
            target=sender, source=sender, kind=PACKET.SCOUT_REPLY, key=number, offset_low=value)
        self.comb += [
            assign,
            order.turn.eq(at),
            order.behind.eq(hops),
            hops.eq(hops_of(route)),
            port.adr.eq(number[:log2_int(C.SWITCH_ASK_WORD + 1)]),
            port.dat_w.eq(number[VALUE_LSB:]),
            port.be.eq(15),
        ]

        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            idle.eq(1),
            crc.load.eq(1),
            crc.seed.eq(0xffffffff),
            NextValue(index, 1),
            NextValue(wrong, 0),
            NextValue(patience, 0),
            If(ending != 0,
                NextValue(at, choice),
                NextValue(sender, Array([sink.data[16:] for sink in sinks])[choice]),
                NextState("TARGET")
            )
        )
        # The target of a scout is ANYBODY. Its first word is not kept, but its CRC has it.
        fsm.act("TARGET",
            crc.word.eq(Cat(Constant(C.ANYBODY, 16), sender)),
            crc.step.eq(1),
            NextState("WORDS")
        )
        fsm.act("WORDS",
            crc.word.eq(word.data),
            crc.step.eq(word.valid),
            NextValue(patience, patience + 1),
            If(word.valid,
                NextValue(index, index + 1),
                NextValue(wrong, wrong | ~form),
                If(index == header_word("key"), NextValue(number, word.data)),
                If(index == header_word("offset_low"), NextValue(back, word.data))
            ),
            If(word.valid & (index == C.HEADER_WORDS) & form & ~wrong,
                NextState("ACCESS")
            ).Elif((word.valid & (word.last | (index == C.HEADER_WORDS)))
                    | (patience == PATIENCE_CYCLES - 1),
                self.refused.eq(1 << at),
                NextState("IDLE")
            )
        )
        writes = number[log2_int(C.SWITCH_ASK_WRITE)]
        fsm.act("ACCESS",
            port.we.eq(writes),
            port.re.eq(~writes),
            If(self.granted,
                NextState("READ"),
                If(~writes, NextState("WAIT"))
            )
        )
        fsm.act("READ",
            port.re.eq(1),
            If(self.granted, NextState("WAIT"))
        )
        # The word comes 2 cycles after the read.
        fsm.act("WAIT", NextState("TAKE"))
        fsm.act("TAKE",
            NextValue(value, port.dat_r),
            NextValue(route, back),
            NextValue(index, 0),
            NextState("ORDER")
        )
        fsm.act("ORDER",
            source.valid.eq(1),
            source.first.eq(1),
            source.data.eq(order.raw_bits()),
            crc.load.eq(1),
            crc.seed.eq(0xffffffff),
            If(source.ready, NextState("PREFIX"))
        )
        behind = Signal(HOP_BITS)
        self.comb += behind.eq(hops - 1)
        fsm.act("PREFIX",
            source.valid.eq(hops != 0),
            source.data.eq(prefix_word(turn_of(route, 0), behind)),
            If(hops == 0,
                NextState("HEADER")
            ).Elif(source.ready,
                NextValue(route,
                    Cat(behind, Constant(0, TURN_BITS - HOP_BITS), route[2*TURN_BITS:]))
            )
        )
        fsm.act("HEADER",
            source.valid.eq(1),
            Case(index, {n: source.data.eq(one) for n, one in enumerate(words)}),
            crc.word.eq(source.data),
            crc.step.eq(source.ready),
            If(source.ready,
                NextValue(index, index + 1),
                If(index == C.HEADER_WORDS - 1, NextState("CRC"))
            )
        )
        fsm.act("CRC",
            source.valid.eq(1),
            source.data.eq(crc.value),
            source.last.eq(1),
            If(source.ready, NextState("IDLE"))
        )
