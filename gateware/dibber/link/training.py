"""When the link is up, and why it is not."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.description import LINK_REASON, LINK_STATE
from dibber.link.symbols import HEAR_BIT, SILENCE_WORDS

# Flow words that must come with one alignment before it is believed.
ALIGN_FLOW_WORDS = 4

# Training -----------------------------------------------------------------------------------------

class LinkTraining(LiteXModule):
    """DOWN until flow words come, ALIGN until the other end hears us too, then UP. TEST while asked
    for.

    "I hear you" is said only when the other end's nonce is known and not our own, so that UP means
    that each end knows the other, and that a loopback stays in ALIGN. DOWN lasts until the other
    end was told that we do not hear it.

    Attributes
    ----------
    signal   : Signal(), in     the transceiver sees a signal; without it the link is down
    heard    : Signal(), in     a flow word came
    flow     : Signal(8), in    with `heard`
    told     : Signal(8), in    the flow word that was sent last
    known    : Signal(), in     the other end's nonce is known, and it is not our own
    retrain  : Signal(), in     pulse: go DOWN
    test     : Signal(), in     be in TEST
    state    : Signal(4), out   enum link_state
    hunt     : Signal(), out    DOWN: look for commas
    hear     : Signal(), out    to be told to the other end
    up       : Signal(), out
    silenced : Signal(), out    one cycle when the state goes DOWN for SILENCE_WORDS cycles without
               flow words
    trained  : Signal(), out    one cycle when the state becomes UP
    lost     : Signal(), out    one cycle when the state leaves UP
    """
    def __init__(self):
        self.signal   = Signal()
        self.heard    = Signal()
        self.flow     = Signal(8)
        self.told     = Signal(8)
        self.known    = Signal()
        self.retrain  = Signal()
        self.test     = Signal()
        self.state    = state = Signal(4, reset=LINK_STATE.DOWN)
        self.hunt     = Signal()
        self.hear     = Signal()
        self.up       = Signal()
        self.silenced = Signal()
        self.trained  = Signal()
        self.lost     = Signal()

        # # #

        silence = Signal(max=SILENCE_WORDS)
        seen    = Signal(max=ALIGN_FLOW_WORDS)
        aligned = Signal()  # ALIGN or UP
        breaks  = Signal()  # to DOWN or TEST, wherever it is
        agreed  = Signal()  # a flow word with which both ends hear each other
        refused = Signal()  # the opposite
        self.comb += [
            self.hunt.eq(state == LINK_STATE.DOWN),
            self.up.eq(state == LINK_STATE.UP),
            aligned.eq(self.up | (state == LINK_STATE.ALIGN)),
            self.hear.eq(aligned & self.known),
            self.silenced.eq(aligned & (silence == SILENCE_WORDS - 1)),
            breaks.eq(self.silenced | ~self.signal | self.retrain | self.test),
            agreed.eq(self.heard & self.flow[HEAR_BIT] & self.known),
            refused.eq((self.heard & ~self.flow[HEAR_BIT]) | ~self.known),
            self.trained.eq((state == LINK_STATE.ALIGN) & agreed & ~breaks),
            self.lost.eq(self.up & (breaks | refused)),
        ]
        self.sync += [
            silence.eq(silence + 1),
            If(self.heard | ~aligned, silence.eq(0)),
            Case(state, {
                LINK_STATE.DOWN: If(self.heard & ~self.told[HEAR_BIT],
                    seen.eq(seen + 1),
                    If(seen == ALIGN_FLOW_WORDS - 1, state.eq(LINK_STATE.ALIGN))
                ),
                LINK_STATE.ALIGN: If(agreed,  state.eq(LINK_STATE.UP)),
                LINK_STATE.UP:    If(refused, state.eq(LINK_STATE.ALIGN)),
                LINK_STATE.TEST:  state.eq(LINK_STATE.DOWN),
            }),
            If(breaks,
                state.eq(LINK_STATE.DOWN),
                seen.eq(0),
                If(self.test, state.eq(LINK_STATE.TEST))
            ),
        ]

# Diagnosis ----------------------------------------------------------------------------------------

# While DOWN, verdicts are given once in so many received words.
WINDOW_WORDS = 512
# More words than these with an erroneous symbol: not our rate or not our code. Of random bits at
# least 4 words in 5 are such, for a third of all 10-bit numbers have fewer than 4 ones or zeros,
# which no symbol has; of our own code with a bit error rate of 1e-3, it is 1 in 25.
WRONG_WORDS = WINDOW_WORDS//2
# So many inverted flow words: not by chance.
INVERTED_WORDS = 4

class LinkDiagnosis(LiteXModule):
    """Why the link is not UP, as far as this end can tell.

    SILENCE, the memory of what was, gives way to POLARITY and WRONG_RATE but not to NO_COMMA, which
    it implies.

    Attributes
    ----------
    state    : Signal(4), in
    signal   : Signal(), in
    loopback : Signal(), in    we hear our own nonce
    silenced : Signal(), in    pulse
    retrain  : Signal(), in    pulse
    word     : Signal(), in    one cycle a received word
    faulty   : Signal(), in    one cycle a word with an erroneous symbol
    inverted : Signal(), in    one cycle a flow word of an inverted pair
    reason   : Signal(4), out  enum link_reason
    """
    def __init__(self):
        self.state    = Signal(4)
        self.signal   = Signal()
        self.loopback = Signal()
        self.silenced = Signal()
        self.retrain  = Signal()
        self.word     = Signal()
        self.faulty   = Signal()
        self.inverted = Signal()
        self.reason   = Signal(4)

        # # #

        verdict   = Signal(4, reset=LINK_REASON.NO_COMMA)
        words     = Signal(max=WINDOW_WORDS)
        wrong     = Signal(max=WINDOW_WORDS)
        inversion = Signal(max=INVERTED_WORDS + 1)
        self.comb += Case(self.state, {
            LINK_STATE.DOWN:  self.reason.eq(Mux(self.signal, verdict, LINK_REASON.NO_SIGNAL)),
            LINK_STATE.ALIGN: self.reason.eq(Mux(self.loopback, LINK_REASON.LOOPBACK, LINK_REASON.NOT_HEARD)),
            LINK_STATE.UP:    self.reason.eq(LINK_REASON.NONE),
            LINK_STATE.TEST:  self.reason.eq(LINK_REASON.TEST),
        })
        self.sync += [
            If(self.word,
                words.eq(words + 1),
                If(self.faulty & (wrong != WINDOW_WORDS - 1), wrong.eq(wrong + 1)),
                If(self.inverted & (inversion != INVERTED_WORDS), inversion.eq(inversion + 1)),
                If(words == WINDOW_WORDS - 1,
                    wrong.eq(0),
                    inversion.eq(0),
                    If(inversion == INVERTED_WORDS,
                        verdict.eq(LINK_REASON.POLARITY)
                    ).Elif(wrong > WRONG_WORDS,
                        verdict.eq(LINK_REASON.WRONG_RATE)
                    ).Elif(verdict != LINK_REASON.SILENCE,
                        verdict.eq(LINK_REASON.NO_COMMA)
                    ),
                ),
            ),
            If((self.state != LINK_STATE.DOWN) | ~self.signal | self.retrain,
                words.eq(0),
                wrong.eq(0),
                inversion.eq(0),
                verdict.eq(LINK_REASON.NO_COMMA)
            ),
            If(self.silenced, verdict.eq(LINK_REASON.SILENCE)),
        ]
