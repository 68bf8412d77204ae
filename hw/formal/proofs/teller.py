"""The switch's answers to scouts: whole packets, each for one good scout, with one access each."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.soc.interconnect import stream

from dibber.common.crc import crc32c_next
from dibber.fabric.switch.teller import Teller
from dibber.interface.description import C
from dibber.layouts import word_layout
from dibber.packet.route import HOP_BITS

from harness import Harness, Mutant, Property, implies, inner

PORTS = 2


class Input(Module):
    """What the teller sees of a SwitchInput."""
    def __init__(self):
        self.sink     = stream.Endpoint(word_layout())
        self.ends     = Signal()
        self.discards = Signal()


class Teller_(Harness):
    """The block with inputs, a bus and an output that do whatever they like."""
    def __init__(self):
        super().__init__()
        inputs = [Input() for _ in range(PORTS)]
        for n, one in enumerate(inputs):
            self.free_all(f"sink{n}", one.sink)
            self.comb += [
                one.ends.eq(self.free(f"ends{n}")),
                one.discards.eq(self.free(f"discards{n}")),
            ]
        self.inputs = inputs
        self.teller = teller = Teller(inputs)
        self.comb += [
            teller.source.ready.eq(self.free("ready")),
            teller.granted.eq(self.free("granted")),
            teller.port.dat_r.eq(self.free("read", 32)),
        ]
        self.state = {name: teller.fsm.ongoing(name)
            for name in ("IDLE", "TARGET", "WORDS", "ACCESS", "READ", "WAIT", "TAKE", "ORDER", "PREFIX", "HEADER", "CRC")}
        states = Cat(*self.state.values())
        self.lemma("one_state", (states != 0) & ((states & (states - 1)) == 0))


class Whole(Teller_):
    """An answer is an order, its prefix words, a header and a CRC, without gaps in its framing."""
    def __init__(self):
        super().__init__()
        teller, state = self.teller, self.state
        source = teller.source
        hops, index = inner(teller, "hops"), inner(teller, "index")
        taken  = Signal()
        inside = Signal()
        count  = Signal(5)         # words that left since the order, with it
        total  = Signal(HOP_BITS)  # prefix words of this answer
        shown  = Signal(34)
        held   = Signal(34)
        waits  = Signal()
        self.comb += [
            taken.eq(source.valid & source.ready),
            shown.eq(Cat(source.data, source.first, source.last)),
        ]
        self.sync += [
            waits.eq(source.valid & ~source.ready),
            held.eq(shown),
            If(taken,
                inside.eq(~source.last),
                count.eq(Mux(source.first, 1, count + 1)),
                If(source.first, total.eq(hops)),
            ),
        ]
        body = C.HEADER_WORDS
        self.prove("first", implies(source.valid, source.first == ~inside))
        self.prove("stands", implies(waits, source.valid & (shown == held)))
        self.prove("never_bad", ~source.bad)
        self.prove("length", implies(source.valid & source.last, count == 1 + total + body))
        self.lemma("inside", inside == (state["PREFIX"] | state["HEADER"] | state["CRC"]))
        self.lemma("prefix", implies(state["PREFIX"], (hops <= total) & (count == 1 + total - hops) & (index == 0)))
        self.lemma("header", implies(state["HEADER"], (index < body) & (count == 1 + total + index)))
        self.lemma("crc",    implies(state["CRC"], count == 1 + total + body))
        self.lemma("order",  implies(state["TAKE"] | state["ORDER"], ~inside))
        self.lemma("begins", implies(state["ORDER"], index == 0))


class Asked(Teller_):
    """No access and no answer without a good scout: seven words, the CRC of the six that came and
    of ANYBODY as the target, an end that is not bad. Then one read, and one write if bit 10 of the
    number says so.
    """
    def __init__(self):
        super().__init__()
        teller, state = self.teller, self.state
        word, index = inner(teller, "word"), inner(teller, "index")
        sender, crc = inner(teller, "sender"), teller.crc
        # The CRC of what came, beside the teller's own.
        mine  = Signal(32)
        first = Signal(32)
        mix, after  = crc32c_next(Signal(32, reset=0xffffffff), first)
        next_mix, next_ = crc32c_next(mine, word.data)
        self.comb += [*mix, *next_mix, first.eq(Cat(Constant(C.ANYBODY, 16), sender))]
        good   = Signal()  # this word ends a good scout
        asked  = Signal()  # a good scout has no answer yet
        reads  = Signal(2)
        writes = Signal(2)
        number = inner(teller, "number")
        came   = Signal(max=C.HEADER_WORDS + 2)
        self.comb += good.eq(state["WORDS"] & word.valid & word.last & ~word.bad & (came == C.HEADER_WORDS)
            & (word.data == ~mine))
        self.sync += [
            If(state["TARGET"], mine.eq(after), came.eq(1)),
            If(state["WORDS"] & word.valid, mine.eq(next_), came.eq(came + 1)),
            If(state["IDLE"], asked.eq(0)),
            If(good, asked.eq(1), reads.eq(0), writes.eq(0)),
            If(teller.granted & teller.port.re, reads.eq(reads + 1)),
            If(teller.granted & teller.port.we, writes.eq(writes + 1)),
        ]
        self.prove("asked", implies(teller.port.re | teller.port.we | teller.source.valid, asked))
        self.prove("one_read", implies(teller.source.valid, reads == 1))
        self.prove("one_write", implies(teller.source.valid, writes == number[10]))
        self.prove("not_both", ~(teller.port.re & teller.port.we))
        later = state["WAIT"] | state["TAKE"] | state["ORDER"] | state["PREFIX"] | state["HEADER"] | state["CRC"]
        self.lemma("later", implies(later, asked & (reads == 1) & (writes == number[10])))
        self.lemma("access", implies(state["ACCESS"], asked & (reads == 0) & (writes == 0)))
        self.lemma("read", implies(state["READ"], asked & (reads == 0) & (writes == 1) & number[10]))
        self.lemma("sum", implies(state["WORDS"], (crc.value == ~mine) & (index == came)))
        # A sum of no words: the state is all ones, and the value is its inverse.
        self.lemma("target", implies(state["TARGET"], (crc.value == 0) & (index == 1)))
        self.lemma("few", implies(state["WORDS"], came <= C.HEADER_WORDS))


PROPERTIES = [
    Property("switch-answer", "fabric/switch/teller", "an answer is a whole packet: order, prefix, header, CRC",
        f"{PORTS} ports", "Whole", k=1, mutants=[
            Mutant("a header word is left out", "dibber.fabric.switch.teller",
                "If(index == C.HEADER_WORDS - 1, NextState(\"CRC\"))", "If(index == C.HEADER_WORDS - 2, NextState(\"CRC\"))",
                depth=30),
            Mutant("the last prefix word is left out", "dibber.fabric.switch.teller",
                "If(hops == 0,\n                NextState(\"HEADER\")", "If(hops <= 1,\n                NextState(\"HEADER\")", depth=30),
    ]),
    Property("switch-asked", "fabric/switch/teller", "no access and no answer without a good scout, one access each",
        f"{PORTS} ports", "Asked", k=1, mutants=[
            Mutant("the CRC of a scout is not looked at", "dibber.fabric.switch.teller",
                " & (word.data == crc.value)", "", depth=14),
            Mutant("a scout that ended as bad is answered", "dibber.fabric.switch.teller",
                "word.last & ~word.bad", "word.last", depth=14),
            Mutant("it writes without being asked to", "dibber.fabric.switch.teller",
                "port.we.eq(writes),", "port.we.eq(1),", depth=24),
    ]),
]
