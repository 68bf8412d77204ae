"""STOP and GO: sent as a level again and again, so no loss of a change is permanent."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.link import stop_state as flow_state
from dibber.link.port import LinkPort
from dibber.link.symbols import (FIRST_IS_K, FLOW_FILL, FLOW_PAIRS, FLOW_PERIOD_WORDS, FLOW_REPEATS,
    FLOW_REPEAT_WORDS, K_COMMA, K_PONG, PONG_REST_WORDS)
from dibber.link.link_transmitter import LinkTransmitter

from harness import Harness, Mutant, Property, implies, inner
from transmitter import free_inputs

CHANNELS = 4

def is_flow_word(data, k):
    """docs/design/link.md; the state is in bits 15:8."""
    return ((k == FIRST_IS_K) & (data[0:8] == K_COMMA) & ((data[8:16] ^ data[16:24]) == 0xff)
        & (data[24:32] == FLOW_FILL))


class Told(Harness):
    """The sending half of a port, with free packets, GO of the other end, pace, pings, and state to
    send.

    - A flow word has the state of the cycle in which it is made, or of the one before.
    - No packet delays it, at any place of a stop: there is one in every FLOW_PERIOD_WORDS words.
    - The first word that is made a cycle or more after a change tells it. FLOW_REPEATS more flow
      words follow, at a distance of at most FLOW_REPEAT_WORDS.
    - A pong may take the place of any of these except the one for the period; then it comes next.
    - For any pings, at least PONG_REST_WORDS words lie between two pongs.
    - When FLOW_PAIRS flow words stood alone, another one follows the last of them directly.
    """
    period = FLOW_PERIOD_WORDS
    repeat = FLOW_REPEAT_WORDS
    pairs  = FLOW_PAIRS

    def __init__(self):
        super().__init__()
        flow_state.FLOW_PERIOD_WORDS = self.period
        flow_state.FLOW_REPEAT_WORDS = self.repeat
        flow_state.FLOW_PAIRS        = self.pairs
        self.tx     = tx = LinkTransmitter(CHANNELS)
        self.source = source = tx.source
        free_inputs(self, tx, CHANNELS)

        # About the word in the output register: the state in the cycle that made it, and in the
        # cycle before. About the words before it: their number since the last flow word, the state
        # in that one, the repeats still owed, and the flow words that stood alone since the last
        # pair.
        made  = Signal(8)
        sooner = Signal(8)
        since = Signal(max=self.period + 2)
        last  = Signal(8)
        owed  = Signal(max=FLOW_REPEATS + 1)
        alone = Signal(max=self.pairs + 1)
        after = Signal()  # the word before was a flow word
        # words since the last pong, if less
        rest  = Signal(max=PONG_REST_WORDS + 1, reset=PONG_REST_WORDS)
        flow  = Signal()  # the word is a flow word
        pong  = Signal()  # or a pong
        step  = Signal()  # a word is made
        says  = source.data[8:16]
        self.comb += [
            flow.eq(is_flow_word(source.data, source.k)),
            pong.eq((source.k == FIRST_IS_K) & (source.data[0:8] == K_PONG)),
            step.eq(~source.valid | source.ready),
        ]
        state     = (since, last, owed, alone, after)
        following = [Signal.like(s) for s in state]  # when this word has left
        self.comb += [
            following[0].eq(Mux(flow, 0, since + 1)),
            following[1].eq(Mux(flow, says, last)),
            following[2].eq(Mux(~flow, owed, Mux(says != last, FLOW_REPEATS, Mux(owed != 0, owed - 1, 0)))),
            following[3].eq(Mux(~flow, alone, Mux(after, 0, alone + 1))),
            following[4].eq(flow),
        ]
        before = self.before(tx.flow, 8)
        self.sync += [
            If(step, made.eq(tx.flow), sooner.eq(before)),
            If(source.valid & source.ready,
                *[s.eq(f) for s, f in zip(state, following)],
                If(pong, rest.eq(0)).Elif(rest != PONG_REST_WORDS, rest.eq(rest + 1)),
            ),
        ]
        self.prove("as_it_is",  implies(source.valid & flow, (says == made) | (says == sooner)))
        self.prove("at_once",   implies(source.valid & (sooner != last), flow | pong))
        self.prove("again",     implies(source.valid & (owed != 0) & (since >= self.repeat - 1),
            flow | (pong & (since == self.repeat - 1))))
        self.prove("pairs",     implies(source.valid & (alone == self.pairs), flow & after))
        self.prove("pongs_rest", implies(source.valid & pong, rest == PONG_REST_WORDS))
        self.prove("for_ever",  implies(source.valid & (since == self.period - 1), flow))

        age, soon = inner(tx.schedule, "age"), inner(tx.schedule, "repeats_left")
        rests, left = inner(tx, "pong_blocked"), inner(tx, "block_left")
        told      = tx.told
        single, flowed, twin = inner(tx.schedule, "singles"), inner(tx.schedule, "last_was_flow"), tx.schedule.twin
        begun, on = inner(tx, "begun"), inner(tx, "active")
        self.lemma("until_now", Mux(source.valid,
            (told == following[1]) & (age == following[0]) & (soon == following[2]),
            (told == last) & (age == since) & (soon == owed)))
        self.lemma("alone",     Mux(source.valid,
            (flowed == flow) & Mux(twin, single == 0, single == following[3]) & (twin == (following[3] == self.pairs)),
            ~flowed & (single == 0) & ~twin & (alone == 0)))
        self.lemma("twin_next", (alone <= self.pairs) & implies(twin, flowed & tx.schedule.due))
        self.lemma("after",     implies(alone == self.pairs, after))
        self.lemma("late_is_due",  implies(age >= self.period - 2, tx.schedule.due))
        self.lemma("pong_before",  implies(age == self.period - 1, source.valid & pong))
        self.lemma("soon_is_due",  implies((soon != 0) & (age >= self.repeat - 1), tx.schedule.due))
        self.lemma("pong_soon",    implies((soon != 0) & (age >= self.repeat) & (age < self.period - 2), source.valid & pong))
        self.lemma("change_is_due", implies(before != told, tx.schedule.due))
        self.lemma("rest",      rest <= PONG_REST_WORDS)
        self.lemma("rests",     Mux(source.valid & pong, rests & (left == PONG_REST_WORDS - 1),
            implies(~rests, rest + source.valid >= PONG_REST_WORDS)
            & implies(rests, rest + source.valid == PONG_REST_WORDS - 1 - left)))
        self.lemma("in_time",   (since < self.period) & (age < self.period))
        self.lemma("on_begun",  (on & ~begun) == 0)


class ToldSmall(Told):
    """For mutants: short times, which end within a short run."""
    period, repeat, pairs = 12, 5, 2


class Healed(Harness):
    """Both halves and a bad cable: the receiver has the state of the last flow word that arrived.

    The cable may replace any word by any other except an error-free comma, because forging one
    takes several errors that agree. So no alignment is lost. A loss of alignment costs up to
    SILENCE_WORDS, and training handles it.
    """
    def __init__(self):
        super().__init__()
        self.port = port = LinkPort(CHANNELS)
        sink      = port.serial_rx
        data, k   = self.free("data", 32), self.free("k", 4)
        errors    = self.free("errors", 4)
        intact    = self.free("intact")    # the word is a flow word as the other end made it
        flow      = self.free("flow", 8)
        valid     = self.free("valid")
        self.comb += [
            port.signal.eq(self.free("signal")),
            sink.valid.eq(valid),
            If(intact,
                sink.data.eq(Cat(Constant(K_COMMA, 8), flow, ~flow, Constant(FLOW_FILL, 8))),
                sink.k.eq(FIRST_IS_K),
            ).Else(
                sink.data.eq(data),
                sink.k.eq(k),
                sink.code_error.eq(errors),
            ),
        ]
        for n in range(4):
            self.assume(f"no_forged_comma{n}",
                intact | errors[n] | ~k[n] | (data[8*n:8*n + 8] != K_COMMA))
        # STOP of the last flow word that came; the receiver takes two cycles.
        heard = Signal(CHANNELS)
        self.sync += If(valid & intact, heard.eq(flow[:CHANNELS]))
        self.prove("believed", port.stopped == self.before(heard, CHANNELS))
        self.lemma("aligned",  inner(port.receiver.decoder, "lane") == 0)


PROPERTIES = [
    Property("flow-told", "link/link_transmitter, stop_state", "flow state is told at once, repeated, told for ever",
        f"period {FLOW_PERIOD_WORDS}, {CHANNELS} channels", "Told", k=2, quick=True, mutants=[
            Mutant("not inside packets", "dibber.link.link_transmitter", "Elif(schedule.due,",
                "Elif(schedule.due & (begun == 0),", depth=12),
            Mutant("no quick repeats", "dibber.link.stop_state", "repeats_left.eq(FLOW_REPEATS)", "repeats_left.eq(0)", depth=14, harness="ToldSmall"),
            Mutant("a pong for every ping", "dibber.link.link_transmitter", "self.pong.valid & ~pong_blocked &", "self.pong.valid &", depth=14,
                harness="ToldSmall"),
            Mutant("a pong between twins", "dibber.link.link_transmitter", "~pong_blocked & ~schedule.twin,", "~pong_blocked,", depth=18,
                harness="ToldSmall"),
            Mutant("idle words are not counted for pairs", "dibber.link.stop_state", "singles.eq(singles + 1),",
                "If(self.sent, singles.eq(singles + 1)),",
                depth=18, harness="ToldSmall"),
            Mutant("a state is told only once", "dibber.link.stop_state", "If(changed | age_limit |", "If(changed |",
                depth=18, harness="ToldSmall"),
    ]),
    Property("flow-healed", "link/port, link_receiver", "after any faults, the next flow word says what holds",
        f"{CHANNELS} channels", "Healed", k=4, quick=True, mutants=[
            Mutant("STOP sticks", "dibber.link.port", "self.stopped.eq(words.data[8:8 + channels])",
                "self.stopped.eq(self.stopped | words.data[8:8 + channels])", depth=10),
            Mutant("errors are not looked at", "dibber.link.link_receiver", "clean.eq(Cat(*[symbol[9] for symbol in word]) == 0)",
                "clean.eq(1)", depth=10),
    ]),
]
