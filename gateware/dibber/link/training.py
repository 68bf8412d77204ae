"""Link training: when the link is up, and the reason why it is not."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.description import LINK_REASON, LINK_STATE
from dibber.link.symbols import HEAR_BIT, SILENCE_WORDS

# Flow words that must come with one alignment before the alignment counts.
ALIGN_FLOW_WORDS = 4

# Training -----------------------------------------------------------------------------------------

class LinkTraining(LiteXModule):
    """Training state: DOWN until flow words come, ALIGN until the other end hears us too, then UP.

    "I hear you" is sent only if the other end's nonce is known and is not our own. So UP means that
    each end knows the other, and a loopback stays in ALIGN. DOWN lasts until a flow word without "I
    hear you" was sent. While `test` is set the state is TEST.

    Attributes
    ----------
    signal   : Signal(), in     the transceiver detects a signal; without it the link is down
    heard    : Signal(), in     a flow word was received
    flow     : Signal(8), in    with `heard`: its state
    told     : Signal(8), in    the state in the last flow word that was sent
    known    : Signal(), in     the other end's nonce is known, and it is not our own
    retrain  : Signal(), in     pulse: go DOWN
    test     : Signal(), in     stay in TEST
    state    : Signal(4), out   enum link_state
    hunt     : Signal(), out    DOWN: align to commas
    hear     : Signal(), out    "I hear you", for the flow words
    up       : Signal(), out
    silenced : Signal(), out    one cycle: the state goes DOWN after SILENCE_WORDS cycles without a
               flow word
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

        silence     = Signal(max=SILENCE_WORDS)
        flow_words  = Signal(max=ALIGN_FLOW_WORDS)
        aligned     = Signal()  # ALIGN or UP
        forced_down = Signal()  # to DOWN or TEST, from each state
        both_hear   = Signal()  # a flow word shows that both ends hear each other
        not_heard   = Signal()  # the other end does not hear us, or is unknown
        self.comb += [
            self.hunt.eq(state == LINK_STATE.DOWN),
            self.up.eq(state == LINK_STATE.UP),
            aligned.eq(self.up | (state == LINK_STATE.ALIGN)),
            self.hear.eq(aligned & self.known),
            self.silenced.eq(aligned & (silence == SILENCE_WORDS - 1)),
            forced_down.eq(self.silenced | ~self.signal | self.retrain | self.test),
            both_hear.eq(self.heard & self.flow[HEAR_BIT] & self.known),
            not_heard.eq((self.heard & ~self.flow[HEAR_BIT]) | ~self.known),
            self.trained.eq((state == LINK_STATE.ALIGN) & both_hear & ~forced_down),
            self.lost.eq(self.up & (forced_down | not_heard)),
        ]
        self.sync += [
            silence.eq(silence + 1),
            If(self.heard | ~aligned, silence.eq(0)),
            Case(state, {
                LINK_STATE.DOWN: If(self.heard & ~self.told[HEAR_BIT],
                    flow_words.eq(flow_words + 1),
                    If(flow_words == ALIGN_FLOW_WORDS - 1, state.eq(LINK_STATE.ALIGN))
                ),
                LINK_STATE.ALIGN: If(both_hear,  state.eq(LINK_STATE.UP)),
                LINK_STATE.UP:    If(not_heard, state.eq(LINK_STATE.ALIGN)),
                LINK_STATE.TEST:  state.eq(LINK_STATE.DOWN),
            }),
            If(forced_down,
                state.eq(LINK_STATE.DOWN),
                flow_words.eq(0),
                If(self.test, state.eq(LINK_STATE.TEST))
            ),
        ]

# Diagnosis ----------------------------------------------------------------------------------------

# In DOWN, a verdict is given once in so many received words.
WINDOW_WORDS = 512
# More words than these with an erroneous symbol mean a wrong rate or a wrong code. Of random bits
# at least 4 words in 5 are erroneous: a third of all 10-bit numbers have fewer than 4 ones or
# zeros, which no symbol has. Of our own code with a bit error rate of 1e-3, it is 1 word in 25.
WRONG_WORDS = WINDOW_WORDS//2
# So many inverted flow words do not occur by chance.
INVERTED_WORDS = 4

class LinkDiagnosis(LiteXModule):
    """The reason why the link is not UP, as far as this end can tell.

    SILENCE remembers how the link went down. POLARITY and WRONG_RATE replace it; NO_COMMA does not,
    because SILENCE implies it.

    Attributes
    ----------
    state    : Signal(4), in
    signal   : Signal(), in
    loopback : Signal(), in    our own nonce was received
    silenced : Signal(), in    pulse
    retrain  : Signal(), in    pulse
    word     : Signal(), in    one cycle for each received word
    faulty   : Signal(), in    one cycle for each word with an erroneous symbol
    inverted : Signal(), in    one cycle for each flow word with inverted bits
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

        verdict        = Signal(4, reset=LINK_REASON.NO_COMMA)
        words          = Signal(max=WINDOW_WORDS)
        faulty_words   = Signal(max=WINDOW_WORDS)
        inverted_words = Signal(max=INVERTED_WORDS + 1)
        self.comb += Case(self.state, {
            LINK_STATE.DOWN:  self.reason.eq(Mux(self.signal, verdict, LINK_REASON.NO_SIGNAL)),
            LINK_STATE.ALIGN: self.reason.eq(
                Mux(self.loopback, LINK_REASON.LOOPBACK, LINK_REASON.NOT_HEARD)),
            LINK_STATE.UP:    self.reason.eq(LINK_REASON.NONE),
            LINK_STATE.TEST:  self.reason.eq(LINK_REASON.TEST),
        })
        self.sync += [
            If(self.word,
                words.eq(words + 1),
                If(self.faulty & (faulty_words != WINDOW_WORDS - 1),
                    faulty_words.eq(faulty_words + 1)
                ),
                If(self.inverted & (inverted_words != INVERTED_WORDS),
                    inverted_words.eq(inverted_words + 1)
                ),
                If(words == WINDOW_WORDS - 1,
                    faulty_words.eq(0),
                    inverted_words.eq(0),
                    If(inverted_words == INVERTED_WORDS,
                        verdict.eq(LINK_REASON.POLARITY)
                    ).Elif(faulty_words > WRONG_WORDS,
                        verdict.eq(LINK_REASON.WRONG_RATE)
                    ).Elif(verdict != LINK_REASON.SILENCE,
                        verdict.eq(LINK_REASON.NO_COMMA)
                    ),
                ),
            ),
            If((self.state != LINK_STATE.DOWN) | ~self.signal | self.retrain,
                words.eq(0),
                faulty_words.eq(0),
                inverted_words.eq(0),
                verdict.eq(LINK_REASON.NO_COMMA)
            ),
            If(self.silenced, verdict.eq(LINK_REASON.SILENCE)),
        ]
