"""The table of gets under way: node, key and generation must be those of the context, and nothing
spoilt it.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from migen import *

from dibber.deposit.expected import TAG, ExpectedTable

from tests.gateware.models.compiled import run_simulation


def enter(table, context, node=0, key=0, valid=1):
    for name, value in dict(context=context, node=node, key=key, valid=valid, write=1).items():
        yield getattr(table, name).eq(value)
    yield
    yield table.write.eq(0)


def spoil(table, context):
    yield table.port.spoil.eq(1)
    yield table.port.spoilt.eq(context)
    yield
    yield table.port.spoil.eq(0)
    yield
    yield


def ask(port, questions, answers):
    """Ask (context, node, key) in each cycle."""
    for n in range(len(questions) + 2):
        now = n < len(questions)
        yield port.valid.eq(int(now))
        if now:
            for name, value in zip(("context", "node", "key"), questions[n]):
                yield getattr(port, name).eq(value)
        yield
        if n >= 2:
            answers.append((yield port.granted))
        else:
            assert not (yield port.granted)


def test_only_the_node_and_region_of_the_get_are_granted(seed):
    random = Random(seed)
    entries = {
        context | random.randrange(64) << TAG: (random.randrange(16), random.getrandbits(32))
        for context in random.sample(range(256), 60)
    }
    table, answers = ExpectedTable(), []
    good = [(context, *entry) for context, entry in entries.items()]
    wrong = (
        [(context ^ 256 * random.randrange(1, 256), node, key) for context, node, key in good]
        + [(context, node ^ 1 << random.randrange(16), key) for context, node, key in good]
        + [(context, node, key ^ 1 << random.randrange(32)) for context, node, key in good]
        + [(context, 0, 0) for context in range(256) if context not in {c % 256 for c in entries}]
    )

    def test():
        for entry in good:
            yield from enter(table, *entry)
        yield
        yield from ask(table.port, good + wrong, answers)

    run_simulation(table, [test()])
    assert answers == [1] * len(good) + [0] * len(wrong)


def test_an_entry_is_taken_out_and_one_beyond_the_table_is_not_entered():
    table, answers = ExpectedTable(), []

    def test():
        yield from enter(table, 7, 1, 0x105)
        yield from enter(table, 8, 1, 0x105)
        yield from enter(table, 256 + 8, 2, 0x106)
        yield from enter(table, 7, 1, 0x105, valid=0)
        yield
        yield from ask(table.port, [(7, 1, 0x105), (8, 1, 0x105), (8, 2, 0x106)], answers)

    run_simulation(table, [test()])
    assert answers == [0, 1, 0]


def test_a_spoilt_answer_is_let_in_no_more_until_the_entry_is_written_again():
    """Of that generation alone: one that is spoilt late does the slot's next get no harm, not even
    64 gets later.
    """
    table, answers = ExpectedTable(), []

    def contexts(*generations):
        return [(7 | g << TAG, 1, 0x105) for g in generations]

    def test():
        yield from enter(table, 7 | 3 << TAG, 1, 0x105)
        yield from enter(table, 8 | 3 << TAG, 1, 0x105)
        yield from spoil(table, 7 | 3 << TAG)
        yield from ask(table.port, [*contexts(3), (8 | 3 << TAG, 1, 0x105)], answers)
        yield from enter(table, 7 | 4 << TAG, 1, 0x105)
        yield from spoil(table, 7 | 3 << TAG)
        yield from ask(table.port, contexts(3, 4), answers)
        yield from enter(table, 7 | 3 << TAG, 1, 0x105)
        yield from ask(table.port, contexts(3, 4), answers)
        # A write at the same time goes first, and the spoiling is not lost.
        yield table.port.spoil.eq(1)
        yield table.port.spoilt.eq(8 | 3 << TAG)
        yield
        yield table.port.spoil.eq(0)
        yield from enter(table, 9 | 3 << TAG, 1, 0x105)
        for _ in range(3):
            yield
        yield from ask(table.port, [(8 | 3 << TAG, 1, 0x105), (9 | 3 << TAG, 1, 0x105)], answers)

    run_simulation(table, [test()])
    assert answers == [0, 1, 0, 1, 1, 0, 0, 1]
