"""Pseudo-random bit sequences in place of words: what a bit error rate is measured with.

ITU-T O.150: PRBS7 x^7 + x^6 + 1, PRBS15 x^15 + x^14 + 1, PRBS23 x^23 + x^18 + 1, PRBS31 x^31 + x^28
+ 1, the last three sent inverted. 32 bits a word, bit 0 first, so that to the checker it does not
matter where in a word a symbol stands.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.description import PRBS

WIDTH = 32

POLYNOMIALS = {
    PRBS.PRBS7:  (7,  6,  False),
    PRBS.PRBS15: (15, 14, True),
    PRBS.PRBS23: (23, 18, True),
    PRBS.PRBS31: (31, 28, True),
}

LONGEST = max(length for length, _, _ in POLYNOMIALS.values())

# Good words in a row until the checker believes that it has the sequence, and bad ones until it
# gives it up.
LOCK_WORDS   = 8
UNLOCK_WORDS = 8

def following(length, tap):
    """The next WIDTH bits of a sequence, each as the set of bits before it that it is the sum of.

    Bit 0 is the one right before.
    """
    history = [frozenset([n]) for n in range(length)]
    bits    = []
    for _ in range(WIDTH):
        bit = history[length - 1] ^ history[tap - 1]
        bits.append(bit)
        history = [bit] + history[:-1]
    return bits

def last_bits(word):
    """The last LONGEST bits of a word, the latest in bit 0."""
    return Cat(*[word[WIDTH - 1 - n] for n in range(LONGEST)])

def next_word(select, before):
    """Expression of the word that follows, as a list: (signal, statements). Sequences are not
    inverted here.
    """
    word = Signal(WIDTH)
    return word, [Case(select, {int(name): [
        word[i].eq(Reduce("XOR", [before[n] for n in sorted(bits)]))
        for i, bits in enumerate(following(length, tap))]
        for name, (length, tap, _) in POLYNOMIALS.items()})]

def is_inverted(select):
    """Whether a sequence goes inverted over the wire."""
    return Reduce("OR", [select == int(name) for name, (_, _, inverted) in POLYNOMIALS.items() if inverted])

# Generator ----------------------------------------------------------------------------------------

class PRBSGenerator(LiteXModule):
    """A word of the sequence a step.

    Attributes
    ----------
    select : Signal(3), in     enum prbs
    step   : Signal(), in      the word is taken
    word   : Signal(32), out

    Cycles: 2 from a new `select` to its first word.
    """
    def __init__(self):
        self.select = select = Signal(3)
        self.step   = Signal()
        self.word   = Signal(WIDTH)

        # # #

        state = Signal(WIDTH, reset=2**WIDTH - 1)
        word, statements = next_word(select, last_bits(state))
        self.comb += [
            statements,
            self.word.eq(Mux(is_inverted(select), ~state, state)),
        ]
        self.sync += [
            If(select == PRBS.OFF,
                state.eq(state.reset)
            ).Elif(self.step,
                state.eq(word)
            ),
        ]

# Checker ------------------------------------------------------------------------------------------

class PRBSChecker(LiteXModule):
    """Finds the sequence in what comes, follows it, and counts the symbols that are wrong.

    Until it is locked it predicts each word from the one before as received; then from its own. So
    a wrong symbol counts once and not again when it comes by the taps. A line that stands still
    follows the recurrence too, and is not taken for the sequence.

    Attributes
    ----------
    select : Signal(3), in      enum prbs
    valid  : Signal(), in       `word` and `errors` are there
    word   : Signal(32), in
    errors : Signal(4), in      symbols that are known to be wrong
    locked : Signal(), out
    words  : Signal(32), out    words since it was locked first
    wrong  : Signal(32), out    symbols of them that were wrong. A change of `select` clears both;
             both stop
                                when `words` is all ones or `wrong` 2^31

    Cycles: 3 from a word to the counters.
    """
    def __init__(self):
        self.select = select = Signal(3)
        self.valid  = Signal()
        self.word   = Signal(WIDTH)
        self.errors = Signal(4)
        self.locked = Signal()
        self.words  = Signal(32)
        self.wrong  = Signal(32)

        # # #

        # The received word and its errors, upright, beside the prediction for it.
        valid     = Signal()
        word      = Signal(WIDTH)
        errors    = Signal(4)
        expected  = Signal(WIDTH)
        previous  = Signal(WIDTH)
        before    = Signal(3)
        changed   = Signal()
        predicted, statements = next_word(select, last_bits(previous))
        self.comb += [
            statements,
            changed.eq(select != before),
            previous.eq(Mux(self.locked, expected, word)),
        ]
        self.sync += [
            before.eq(select),
            valid.eq(self.valid & (select != PRBS.OFF) & ~changed),
            If(self.valid,
                word.eq(self.word ^ Replicate(is_inverted(select), WIDTH)),
                errors.eq(self.errors),
                # Of the word that now stands in `word`, which is the one before.
                expected.eq(predicted),
            ),
        ]

        # What differs, a cycle later.
        judged  = Signal()
        differs = Signal(4)
        count   = Signal(3)
        still   = Signal()
        self.comb += count.eq(differs[0] + differs[1] + differs[2] + differs[3])
        self.sync += [
            judged.eq(valid),
            still.eq(expected == 0),
            *[differs[n].eq(errors[n] | (word[8*n:8*n + 8] != expected[8*n:8*n + 8])) for n in range(4)],
        ]

        run    = Signal(max=max(LOCK_WORDS, UNLOCK_WORDS))
        ever   = Signal()
        good   = Signal()
        # more than half of the symbols: not errors, but another place in the sequence
        awry   = Signal()
        self.comb += [
            good.eq((differs == 0) & ~still),
            awry.eq(count > 2),
        ]
        self.sync += [
            If(judged,
                run.eq(0),
                If(~self.locked & good,
                    run.eq(run + 1),
                    If(run == LOCK_WORDS - 1,
                        run.eq(0),
                        self.locked.eq(1)
                    )
                ).Elif(self.locked & awry,
                    run.eq(run + 1),
                    If(run == UNLOCK_WORDS - 1,
                        run.eq(0),
                        self.locked.eq(0)
                    )
                ),
                ever.eq(ever | self.locked),
                # Once found, words count even when the sequence is lost again.
                If((self.locked | ever) & (self.words != 2**32 - 1) & ~self.wrong[31],
                    self.words.eq(self.words + 1),
                    self.wrong.eq(self.wrong + count),
                ),
            ),
            If(changed,
                run.eq(0),
                ever.eq(0),
                self.locked.eq(0),
                self.words.eq(0),
                self.wrong.eq(0),
            ),
        ]
