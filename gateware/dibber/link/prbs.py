"""Pseudo-random bit sequences (PRBS) in place of words, to measure the bit error rate.

ITU-T O.150: PRBS7 x^7 + x^6 + 1, PRBS15 x^15 + x^14 + 1, PRBS23 x^23 + x^18 + 1, PRBS31 x^31 + x^28
+ 1; the last three are sent inverted. A word has 32 bits, bit 0 first. So the checker works at any
alignment of symbols to words.
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

# Good words in a row until the checker is locked, and bad ones in a row until it unlocks.
LOCK_WORDS   = 8
UNLOCK_WORDS = 8

def following(length, tap):
    """The next WIDTH bits of a sequence; each is a set of earlier bits, of which it is the sum.

    Earlier bit 0 is the last one before the word.
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
    """The next word as (signal, statements), `before` being the last bits. Sequences are not
    inverted here.
    """
    word = Signal(WIDTH)
    return word, [Case(select, {int(name): [
        word[i].eq(Reduce("XOR", [before[n] for n in sorted(bits)]))
        for i, bits in enumerate(following(length, tap))]
        for name, (length, tap, _) in POLYNOMIALS.items()})]

def is_inverted(select):
    """Whether a sequence is sent inverted, as an expression."""
    return Reduce(
        "OR", [select == int(name) for name, (_, _, inverted) in POLYNOMIALS.items() if inverted])

# Generator ----------------------------------------------------------------------------------------

class PRBSGenerator(LiteXModule):
    """Generator: one word of the sequence a step.

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
    """Checker: lock to the received sequence, follow it, and count wrong symbols.

    Until it is locked, it predicts each word from the previous received word; then from its own
    prediction. So a wrong symbol counts once, and not again when it reaches the taps. A constant
    line also follows the recurrence; it is not taken for the sequence.

    Attributes
    ----------
    select : Signal(3), in      enum prbs
    valid  : Signal(), in       `word` and `errors` are valid
    word   : Signal(32), in
    errors : Signal(4), in      symbols with a code error
    locked : Signal(), out
    words  : Signal(32), out    words since it was locked first
    wrong  : Signal(32), out    wrong symbols among them. A change of `select` clears both counters.
             Both stop when `words` is all ones or `wrong` is 2**31

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

        # The received word, not inverted, and its errors, beside its prediction.
        valid         = Signal()
        word          = Signal(WIDTH)
        errors        = Signal(4)
        expected      = Signal(WIDTH)
        previous      = Signal(WIDTH)
        select_before = Signal(3)
        changed       = Signal()
        predicted, statements = next_word(select, last_bits(previous))
        self.comb += [
            statements,
            changed.eq(select != select_before),
            previous.eq(Mux(self.locked, expected, word)),
        ]
        self.sync += [
            select_before.eq(select),
            valid.eq(self.valid & (select != PRBS.OFF) & ~changed),
            If(self.valid,
                word.eq(self.word ^ Replicate(is_inverted(select), WIDTH)),
                errors.eq(self.errors),
                # The prediction is made from the word that is in `word` now, the previous one.
                expected.eq(predicted),
            ),
        ]

        # Comparison, one cycle later.
        judged      = Signal()
        differs     = Signal(4)
        count       = Signal(3)
        is_constant = Signal()
        self.comb += count.eq(differs[0] + differs[1] + differs[2] + differs[3])
        self.sync += [
            judged.eq(valid),
            is_constant.eq(expected == 0),
            *[
                differs[n].eq(errors[n] | (word[8*n:8*n + 8] != expected[8*n:8*n + 8]))
                for n in range(4)],
        ]

        words_in_row = Signal(max=max(LOCK_WORDS, UNLOCK_WORDS))
        was_locked   = Signal()
        good         = Signal()
        # More than half of the symbols differ: not single errors, but another place in the
        # sequence.
        out_of_place   = Signal()
        self.comb += [
            good.eq((differs == 0) & ~is_constant),
            out_of_place.eq(count > 2),
        ]
        self.sync += [
            If(judged,
                words_in_row.eq(0),
                If(~self.locked & good,
                    words_in_row.eq(words_in_row + 1),
                    If(words_in_row == LOCK_WORDS - 1,
                        words_in_row.eq(0),
                        self.locked.eq(1)
                    )
                ).Elif(self.locked & out_of_place,
                    words_in_row.eq(words_in_row + 1),
                    If(words_in_row == UNLOCK_WORDS - 1,
                        words_in_row.eq(0),
                        self.locked.eq(0)
                    )
                ),
                was_locked.eq(was_locked | self.locked),
                # After the first lock words always count, also when the lock is lost.
                If((self.locked | was_locked) & (self.words != 2**32 - 1) & ~self.wrong[31],
                    self.words.eq(self.words + 1),
                    self.wrong.eq(self.wrong + count),
                ),
            ),
            If(changed,
                words_in_row.eq(0),
                was_locked.eq(0),
                self.locked.eq(0),
                self.words.eq(0),
                self.wrong.eq(0),
            ),
        ]
