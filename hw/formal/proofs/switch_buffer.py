"""The buffer of a switch's input: STOP is in time for the longest cable, and a packet's first word
becomes its order.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.fabric.switch.buffer import BUFFER_WORDS, InputBuffer, headroom_words
from dibber.fabric.switch.prefix import FAULT_NONE, order_layout
from dibber.fabric.switch.switch import CABLE_METERS
from dibber.packet.route import prefix_word

from harness import Harness, Mutant, Property, implies
from proofs.slack import SPARE

CLOCK_HZ = 125e6
HEADROOM = headroom_words(CABLE_METERS, CLOCK_HZ)


class Buffer(Harness):
    """The block with a free sender and a free consumer."""
    words    = BUFFER_WORDS
    headroom = HEADROOM

    def __init__(self):
        super().__init__()
        self.buffer = buffer = InputBuffer(self.words, self.headroom)
        self.sink   = sink   = buffer.sink
        self.free_all("sink", sink, omit=("channel",))
        self.comb += buffer.source.ready.eq(self.free("ready"))
        inside = Signal()
        self.sync += If(sink.valid, inside.eq(~sink.last))
        self.assume("framed", implies(sink.valid, sink.first == ~inside))


class Obeyed(Buffer):
    """No overflow while at most `headroom` - SPARE words come after a STOP."""
    def __init__(self):
        super().__init__()
        buffer = self.buffer
        level  = buffer.slack.fifo.level
        limit  = self.headroom - SPARE
        after  = Signal(max=self.words)
        self.sync += If(~buffer.stop, after.eq(0)).Elif(self.sink.valid, after.eq(after + 1))
        self.assume("obeyed", implies(self.sink.valid & buffer.stop, after < limit))
        self.prove("no_overflow", ~buffer.overflow)
        high = self.words - self.headroom
        self.lemma("level",    buffer.slack.fifo.fifo.fifo.fifo.level <= self.words)
        self.lemma("going",    implies(~buffer.stop, level <= high + 1))
        self.lemma("stopping", implies(buffer.stop, (level <= high + 2 + after) & (after <= limit)))


class Order(Buffer):
    """What enters the slack buffer: words as they came, but for each packet's first one."""
    def __init__(self):
        super().__init__()
        sink, entry = self.sink, self.buffer.check.source
        order  = Record(order_layout())
        turn   = sink.data[0:4]
        behind = Signal(3)
        right  = Signal()
        self.comb += [
            order.raw_bits().eq(entry.data),
            behind.eq(sink.prefix - 1),
            # Right is the word that the router of a card makes (packet/route.py).
            right.eq((sink.prefix != 0) & (sink.data == prefix_word(turn, behind))),
        ]
        begins = sink.valid & sink.first
        self.prove("framed", (entry.valid == sink.valid) & (entry.first == sink.first) & (entry.last == sink.last)
            & (entry.bad == sink.bad))
        self.prove("others",    implies(sink.valid & ~sink.first, entry.data == sink.data))
        self.prove("fault",     implies(begins, (order.fault == FAULT_NONE) == right))
        self.prove("the_order", implies(begins & right, (order.turn == turn) & (order.behind == behind)))


class ObeyedSmall(Obeyed):
    words, headroom = 16, 8


PROPERTIES = [
    Property("switch-stop", "fabric/switch/buffer", f"never overflows if ≤ {HEADROOM - SPARE} words follow STOP",
        f"{BUFFER_WORDS} words", "Obeyed", k=2, mutants=[
            Mutant("half the headroom", "dibber.fabric.switch.buffer",
                "SlackBuffer(words, headroom)", "SlackBuffer(words, headroom//2)", depth=24, harness="ObeyedSmall"),
    ]),
    Property("switch-order", "fabric/switch/prefix", "an order is of a right prefix word, or has a fault",
        "32 bits", "Order", k=1, quick=True, mutants=[
            Mutant("a packet with other hops behind is let pass", "dibber.fabric.switch.prefix",
                " & (sink.prefix == behind + 1)", "", depth=2),
            Mutant("bits that must be 0 are not looked at", "dibber.fabric.switch.prefix",
                "(sink.data[8 + HOP_BITS:24] == 0)", "(sink.data[8 + HOP_BITS:23] == 0)", depth=2),
    ]),
]
